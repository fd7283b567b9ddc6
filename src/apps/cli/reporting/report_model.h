// A trained model's answers to the test images, for a report.
#pragma once

#include "heed/io/json.h"

#include <string>

namespace heed::cli {

/// Takes the test images of the run through its model: {"images", "accuracy", "loss", "classes", "confusion",
/// "mistakes", "maps"}; see the functions in report_model.cpp. Returns {"obstacle"} if weights or images
/// are missing, or the model's answers are no classes or not finite.
Json model_json(const std::string& run);

}  // namespace heed::cli
