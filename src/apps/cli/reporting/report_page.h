// The page of a report.
#pragma once

#include "heed/io/json.h"

#include <string>

namespace heed::cli {

/// A file in HTML that shows `report` in a browser and needs nothing else: style, program, data and images are in it.
/// Throws Error, naming the key, for a number that is not finite.
std::string report_page(const std::string& title, const Json& report);

}  // namespace heed::cli
