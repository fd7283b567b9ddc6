// Answers of the engine in a native build, for comparison with the page's: reads requests (src/apps/web/service.h) as
// lines of JSON from standard input; "file" names the file of a request's bytes. Prints {"answer": ..., "arrays":
// [[numbers], ...]} or {"error": ...}.
#include "src/apps/web/service.h"

#include "heed/io/file.h"

#include <iostream>

using namespace heed;

namespace {

Json answered(web::Service& service, const Json& request) {
  const std::string file = request.contains("file") ? read_file(request.at("file").text()) : "";
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(file.data()), file.size());
  web::Reply reply = service(request, bytes);
  Json arrays = Json::list();
  for (const Tensor<float>& array : reply.arrays) {
    Json& numbers = arrays.push_back(Json::list());
    for (const float number : array) numbers.push_back(static_cast<double>(number));
  }
  return Json::object({{"answer", std::move(reply.json)}, {"arrays", std::move(arrays)}});
}

}  // namespace

int main() {
  web::Service service;
  for (std::string line; std::getline(std::cin, line);) {
    Json result;
    try {
      result = answered(service, Json::parse(line));
    } catch (const std::exception& error) {
      result = Json::object({{"error", error.what()}});
    }
    std::cout << result.dump() << std::endl;
  }
}
