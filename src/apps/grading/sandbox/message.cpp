#include "message.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace heed {

namespace {

/// Throws MessageError unless the condition holds.
template <class... Args>
void demand(bool condition, fmt::format_string<Args...> problem, Args&&... args) {
  if (!condition) throw MessageError("message: " + fmt::format(problem, std::forward<Args>(args)...));
}

void read_whole(int file, char* bytes, std::size_t count) {
  for (std::size_t done = 0; done < count;) {
    const ssize_t got = read(file, bytes + done, count - done);
    if (got < 0 && errno == EINTR) continue;
    demand(got > 0, "the other side has ended");
    done += static_cast<std::size_t>(got);
  }
}

}  // namespace

void Message::put(Index value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }

void Message::put(std::string_view text) {
  put(static_cast<Index>(text.size()));
  bytes_ += text;
}

void Message::put(const Tensor<double>& tensor) {
  put(Index{tensor.shape().rank()});
  for (const Index size : tensor.shape()) put(size);
  bytes_.append(reinterpret_cast<const char*>(tensor.data()), static_cast<std::size_t>(tensor.size()) * sizeof(double));
}

std::string_view Message::take(std::size_t count) {
  demand(count <= bytes_.size() - at_, "truncated");
  at_ += count;
  return std::string_view(bytes_).substr(at_ - count, count);
}

Index Message::integer() {
  Index value = 0;
  std::memcpy(&value, take(sizeof value).data(), sizeof value);
  return value;
}

Index Message::integer(Index low, Index high) {
  const Index value = integer();
  demand(value >= low && value <= high, "{}; expected a number from {} to {}", value, low, high);
  return value;
}

std::string Message::text(std::size_t most) {
  return std::string(take(static_cast<std::size_t>(integer(0, static_cast<Index>(most)))));
}

Tensor<double> Message::tensor() {
  constexpr Index most = 1'000'000;
  std::array<Index, Shape::max_rank> sizes{};
  const int rank = static_cast<int>(integer(0, Shape::max_rank));
  Index elements = 1;
  for (int axis = 0; axis < rank; ++axis) {
    sizes[static_cast<std::size_t>(axis)] = integer(0, most);
    elements *= sizes[static_cast<std::size_t>(axis)];
    demand(elements <= most, "a tensor has more than {} elements", most);
  }
  const std::string_view numbers = take(static_cast<std::size_t>(elements) * sizeof(double));
  Tensor<double> tensor(Shape(sizes.data(), rank));
  std::memcpy(tensor.data(), numbers.data(), numbers.size());
  return tensor;
}

void write_message(int file, const Message& message) {
  const std::uint64_t size = message.bytes().size();
  std::string all(reinterpret_cast<const char*>(&size), sizeof size);
  all += message.bytes();
  for (std::size_t done = 0; done < all.size();) {
    const ssize_t count = ::write(file, all.data() + done, all.size() - done);
    if (count < 0 && errno == EINTR) continue;
    demand(count > 0, "cannot be written: {}", std::strerror(errno));
    done += static_cast<std::size_t>(count);
  }
}

Message read_message(int file, std::size_t most) {
  std::uint64_t size = 0;
  read_whole(file, reinterpret_cast<char*>(&size), sizeof size);
  demand(size <= most, "{} bytes; expected at most {}", size, most);
  std::string bytes(size, '\0');
  read_whole(file, bytes.data(), bytes.size());
  return Message(std::move(bytes));
}

}  // namespace heed
