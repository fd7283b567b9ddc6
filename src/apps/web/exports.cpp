// Functions called by JavaScript. Memory that they return belongs to the engine and is valid until the next request.
#include "service.h"

#include "heed/base/parallel.h"

#include <new>

namespace {

struct Exchange {
  heed::web::Service service;
  std::vector<std::uint8_t> bytes;
  std::string text;
  std::vector<heed::Tensor<float>> arrays;
};

Exchange& exchange() {
  static Exchange only;
  return only;
}

}  // namespace

extern "C" {

/// Returns memory for the bytes of the next request.
std::uint8_t* heed_bytes(std::size_t count) {
  exchange().bytes.resize(count);
  return exchange().bytes.data();
}

/// Answers a request: {"answer": ...}, or {"error": "one line"}.
const char* heed_ask(const char* request) {
  Exchange& e = exchange();
  try {
    heed::web::Reply reply = e.service(heed::Json::parse(request), e.bytes);
    e.arrays = std::move(reply.arrays);
    e.text = heed::Json::object({{"answer", std::move(reply.json)}}).dump();
  } catch (const std::bad_alloc&) {
    e.text = R"({"error":"not enough memory"})";
  } catch (const std::exception& error) {
    e.text = heed::Json::object({{"error", error.what()}}).dump();
  }
  return e.text.c_str();
}

/// Returns an array that the last answer refers to.
const float* heed_array(int number) { return exchange().arrays.at(static_cast<std::size_t>(number)).data(); }

void heed_threads(int count) { heed::set_threads(count); }
}
