#include "progress_line.h"

#include "number_text.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace heed::cli {

Index terminal_columns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  Index columns = 0;
  if (const char* const said = std::getenv("COLUMNS")) std::from_chars(said, said + std::strlen(said), columns);
  return columns > 0 ? columns : 80;
}

std::string duration(double seconds) {
  const long total = std::lround(seconds);
  if (total >= 3600) return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
  return fmt::format("{}:{:02}", total / 60, total % 60);
}

Index steps_left(const StepReport& step, Index steps_per_epoch, Index epochs, Index max_steps) {
  const Index left = (epochs - step.epoch + 1) * steps_per_epoch - step.batch;
  return max_steps > 0 ? std::min(left, max_steps - step.step) : left;
}

std::string progress_line(const StepReport& step, const TrainPlan& plan, Index epochs, double seconds_left,
                          Index columns) {
  constexpr Index widest_bar = 20, narrowest_bar = 6;
  const std::string epoch = fmt::format("epoch {}/{} ", step.epoch, epochs);
  const std::string parts[] = {
      fmt::format(" {}/{}", step.batch, plan.steps_per_epoch),
      fmt::format("  loss {:.4f}", step.loss),
      fmt::format("  accuracy {:.2f} %", 100 * step.accuracy),
      fmt::format("  {} left", duration(seconds_left)),
      fmt::format("  {} {}s/s", digits(step.images_per_s), plan.example),
  };
  const auto width = [](const std::string& text) { return static_cast<Index>(text.size()); };
  Index left = columns - 1 - width(epoch) - narrowest_bar;
  if (left < 0) return epoch.substr(0, static_cast<std::size_t>(std::max<Index>(columns - 1, 0)));
  std::string rest;
  for (const std::string& part : parts) {
    if (width(part) > left) break;
    left -= width(part);
    rest += part;
  }
  const Index bar = std::min(widest_bar, narrowest_bar + left), full = bar * step.batch / plan.steps_per_epoch;
  std::string line = epoch;
  for (Index i = 0; i < bar; ++i) line += i < full ? "█" : "░";
  return line + rest;
}

}  // namespace heed::cli
