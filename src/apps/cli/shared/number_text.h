// Number formats of tables and reports.
#pragma once

#include <functional>
#include <string>

namespace heed::cli {

/// Writes a number as text.
using NumberFormat = std::function<std::string(double)>;

/// Returns a format with a fixed number of decimals and a unit: fixed(1, " %") writes "12.5 %".
NumberFormat fixed(int decimals, std::string unit = "");

/// Returns a format with a number of significant digits, like %g: "0.001235", "1.2e-07".
NumberFormat significant(int digits);

/// Writes three digits: "1.25", "12.5", "125".
std::string digits(double value);

/// Writes a fraction as a whole percentage: "75 %".
std::string percent(double fraction);

/// Writes four digits and an SI prefix: "1.254 G".
std::string si(double value);

/// Writes an energy with a suitable unit: "108.6 uJ".
std::string joules(double pj);

/// Writes a whole number with commas between thousands: "54,000".
std::string grouped(double value);

}  // namespace heed::cli
