// What a trained model does with the test images, for a report.
#pragma once

#include "heed/io/json.h"

#include <string>

namespace heed::cli {

/// Takes the test images of the run through its model: {"images", "accuracy", "loss", "classes", "confusion",
/// "mistakes", "maps"}; see the functions in report_model.cpp. Where the weights or images are not at hand, or the
/// model's answers are not classes or not finite, {"obstacle"} says so.
Json model_json(const std::string& run);

}  // namespace heed::cli
