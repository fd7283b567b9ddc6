// Requests from the page to the engine: JSON with a name and arguments, answered in JSON.
#pragma once

#include "training.h"

#include <cstdint>
#include <map>
#include <span>

namespace heed::web {

class Service {
 public:
  using Bytes = std::span<const std::uint8_t>;

  /// Answers {"ask": NAME, ...}; `bytes` are pixels if the request takes them. Throws Error for an unknown name, and
  /// for errors of the request:
  ///
  ///   mechanisms                        the mechanisms with their options and settings; weight colours; thread count;
  ///                                     libraries of matrix products; version
  ///   open config sets weights          opens a model; replies with its description and its number, "model"
  ///   begin config sets train test      like open; the model is trained on the images in `bytes` (image_sets)
  ///   close model                       closes a model
  ///   predict model height width channels       Member::predict of the bytes
  ///   look model height width channels          Member::look of the bytes
  ///   step model steps                  "steps", results of Training::step(); "failed", the error that ended them
  ///   evaluate model; save model path   Training::evaluate(); Member::save()
  ///   cost config sets convention pass  cost_json() of the model
  ///   cases mechanism; check mechanism case; element mechanism case input element change; surrogates (checks.h)
  Reply operator()(const Json& request, Bytes bytes);

 private:
  Json open(const Json& request);
  Json begin(const Json& request, Bytes bytes);
  Json step(const Json& request);

  Member& member(const Json& request);
  Training& training(const Json& request);

  std::map<Index, std::unique_ptr<Member>> members_;  ///< opened models that are not in training, by number
  std::map<Index, std::unique_ptr<Training>> trainings_;
  Index last_ = 0;
};

}  // namespace heed::web
