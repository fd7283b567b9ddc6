// Number formats of tables and reports.
#pragma once

#include <functional>
#include <string>

namespace heed::cli {

/// Function that formats a number.
using NumberFormat = std::function<std::string(double)>;

/// Returns a format with a fixed number of decimals and a unit: fixed(1, " %") writes "12.5 %".
NumberFormat fixed(int decimals, std::string unit = "");

/// Formats a number with its sign and a fixed number of decimals: "-0.50"; a value that is rounded to 0 becomes
/// "+0.00".
std::string with_sign(double value, int decimals);

/// Returns a format with a number of significant digits, like %g: "0.001235", "1.2e-07".
NumberFormat significant(int digits);

/// Formats a positive number with up to two decimals and at least three digits: "1.25", "12.5", "1250".
std::string digits(double value);

/// Formats a fraction as a whole percentage: "75 %".
std::string percent(double fraction);

/// Formats a number with four digits and an SI prefix, or a whole number below 1000 as it is: "1.254 G", "64".
std::string si(double value);

/// Formats an energy, given in picojoules, with a suitable unit: "108.6 uJ".
std::string joules(double pj);

/// Formats a whole number with commas between thousands: "54,000".
std::string grouped(double value);

}  // namespace heed::cli
