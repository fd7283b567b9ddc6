// A stand-in for the output of heed bench --only times --json.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace heed::test {

/// Returns the measurements of a machine on which 10^9 multiply-adds take a thread 1 ms, and everything else takes no
/// time.
inline std::string made_up_machine() {
  nlohmann::json json{{"cpu", "made up"}, {"threads", 1}};
  for (const char* name : {"multiply-add", "gemm", "l1", "clamp", "exp", "L1 cache", "L2 cache", "L3 cache", "memory"})
    json["limits"].push_back({{"name", name}, {"threads", 1}, {"rate", 2000}});
  const nlohmann::json products{{"products", 1}}, steps{{"operations", 1}, {"lockstep", 1}, {"spread", 1}};
  json["times"] = {{"l2_bytes", 1e6}, {"l3_bytes", 1e7}, {"watts", "none"}, {"training", steps}, {"inference", steps}};
  json["times"]["operations"] = {
      {{"kind", ""}, {"forward", products}, {"backward", products}, {"inference", products}}};
  return json.dump();
}

}  // namespace heed::test
