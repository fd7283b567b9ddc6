#include "heed/data/sequences/text.h"

#include "src/data/readers/files.h"
#include "heed/io/file.h"

#include <algorithm>

namespace heed {

std::vector<std::uint8_t> read_text(const DataConfig& data) {
  require(!data.path.empty(), "data.name=text requires data.path, a file of any bytes");
  std::error_code error;
  const bool bible = data.path.ends_with("datasets/bible/bible.txt");
  require(std::filesystem::exists(data.path, error), "{}: the file does not exist (data.path of text){}", data.path,
          bible ? "; `datasets/fetch.sh bible` writes it" : "");
  std::vector<std::uint8_t> text =
      data.limit > 0 ? data::read_start(data.path, data.limit) : data::read_file(data.path, data::read_limit());
  if (std::string_view(reinterpret_cast<const char*>(text.data()), text.size()).starts_with(utf8_mark))
    text.erase(text.begin(), text.begin() + utf8_mark.size());
  require(!text.empty(), "{}: is empty; expected a text", data.path);
  return text;
}

bool bytes_are_characters(std::span<const std::uint8_t> text) {
  return std::ranges::all_of(text, [](std::uint8_t byte) { return byte < 128; });
}

std::span<const std::uint8_t> part_of(std::span<const std::uint8_t> text, Part part) {
  const std::size_t n = text.size(), train = n * 9 / 10, validation = n * 19 / 20;
  if (part == Part::train) return text.first(train);
  return part == Part::validation ? text.subspan(train, validation - train) : text.subspan(validation);
}

std::vector<TextWindow> evaluation_windows(Index n, Index context, Index stride, bool start) {
  const Index last = start ? n : n - 1;  // end of the last input
  std::vector<TextWindow> windows;
  for (Index first = 0, done = 0; done < last; first += stride) {
    const Index end = std::min(first + context, last);
    windows.push_back({first, end - first, done - first});
    done = end;
  }
  return windows;
}

}  // namespace heed
