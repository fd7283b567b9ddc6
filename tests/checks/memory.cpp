// Faults planted in a mechanism's use of memory, each of which must be told by name; and none in those of the list.
#include "heed/attention/mechanism_base.h"
#include "heed/checks/gradcheck.h"
#include "src/checks/memory.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

enum class Fault {
  none,
  past_saved,
  before_saved,
  far_past_saved,
  unsized,
  unread,
  unread_hidden,
  ignores_update,
  unwritten,
  unwritten_out,
  changes_saved,
  beside
};

/// out = 2 v, with v saved on the way, and a fault.
struct Faulty : MechanismBase<Faulty> {
  static constexpr const char *mechanism_name = "faulty", *summary = "", *complexity = "";
  Fault fault = Fault::none;

  template <class Visitor>
  void options(Visitor&) {}
  static std::vector<OptionValues> variants() { return {{}}; }
  MechanismTraits traits() const override { return {.map = false}; }
  AttentionLayout layout(Index dim, Index heads) const override { return {heads, 0, 0, dim / heads}; }

  template <class T>
  struct Saved {
    Matrix<T> v, rest;
  };
  template <class T>
  Saved<T> saved(const AttentionShape& s, Carver<T>& carve) const {
    const Index missing = fault == Fault::past_saved;
    return {carve.matrix(s.queries - missing, s.value_width), carve.matrix(1, s.value_width)};
  }
  template <class T>
  Matrix<T> scratch(const AttentionShape&, Carver<T>& carve) const {
    return carve.matrix(1, 1);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved<T>& saved, Matrix<T> scratch) const {
    const auto [N, M, d, e] = in.shape.sizes();
    for (Index i = 0; i < N; ++i)
      for (Index c = 0; c < e; ++c) {
        saved.v.data[i * e + c] = in.v[0](i, c);
        if (fault != Fault::unwritten_out || i > 0) out[0](i, c) = T(2) * in.v[0](i, c);
      }
    if (fault == Fault::unsized) scratch.data[1] = T(0);
    if (fault == Fault::beside) out[0](0, e) = T(0);
    if (fault == Fault::before_saved) saved.v.data[-1] = T(0);
    if (fault == Fault::far_past_saved) saved.rest.data[e + 100] = T(0);
    if (fault == Fault::unread_hidden) out[0](1, 1) += saved.rest(0, 0) > T(0) ? T(1) : T(0);  // false for a NaN
    if (fault == Fault::unread) out[0](1, 1) += T(0) * saved.rest(0, 0);
  }
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const Saved<T>& saved, Matrix<T>,
                    const AttentionGradient<T>& gradient) const {
    const auto [N, M, d, e] = in.shape.sizes();
    const Update update = fault == Fault::ignores_update ? Update::assign : gradient.update;
    if (fault == Fault::changes_saved) saved.v(0, 0) = T(1);
    for (Index i = 0; i < N; ++i)
      for (Index c = 0; c < e; ++c)
        if (fault != Fault::unwritten || i + c > 0) write(update, gradient.v[0](i, c), T(2) * dout[0](i, c));
  }
  Cost cost(const AttentionShape&) const override { return {}; }
};

std::string faults_of(Fault fault) {
  Faulty mechanism;
  mechanism.fault = fault;
  const AttentionLayout layout = mechanism.layout(3, 1);
  std::string all;
  for (const std::string& line : memory_faults(mechanism, layout, layout.among(5, {}))) all += line + "\n";
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_check)

BOOST_AUTO_TEST_CASE(sound_use_is_not_blamed) { BOOST_TEST(faults_of(Fault::none) == ""); }

BOOST_AUTO_TEST_CASE(each_fault_is_told_by_name) {
  BOOST_TEST(faults_of(Fault::past_saved) == "[faulty] forward writes outside part 1 of its saved memory\n");
  BOOST_TEST(faults_of(Fault::before_saved) == "[faulty] forward writes outside part 1 of its saved memory\n");
  BOOST_TEST(faults_of(Fault::far_past_saved) == "[faulty] forward writes outside part 2 of its saved memory\n");
  BOOST_TEST(faults_of(Fault::unread_hidden) ==
             "[faulty] forward makes out of what it never wrote: 1 numbers differ\n");
  BOOST_TEST(faults_of(Fault::unsized) == "[faulty] forward writes outside part 1 of its scratch memory\n");
  BOOST_TEST(faults_of(Fault::unread) ==
             "[faulty] forward makes out of what it never wrote: 1 numbers are not finite\n");
  BOOST_TEST(faults_of(Fault::ignores_update) ==
             "[faulty] backward ignores `update`: 15 numbers of the gradient of v were not added\n");
  BOOST_TEST(faults_of(Fault::unwritten) == "[faulty] backward leaves 1 numbers of the gradient of v unwritten\n");
  BOOST_TEST(faults_of(Fault::unwritten_out) == "[faulty] forward leaves 3 numbers of out unwritten\n");
  BOOST_TEST(faults_of(Fault::changes_saved) == "[faulty] backward changes what forward saved\n");
  BOOST_TEST(faults_of(Fault::beside) == "[faulty] forward writes beside the rows of out\n");
}

BOOST_AUTO_TEST_CASE(mechanisms_use_their_memory_soundly) {
  Index watched = 0;
  for (const CheckCase& c : all_check_cases()) {
    if (!c.memory_faults) continue;
    ++watched;
    for (const std::string& fault : c.memory_faults()) BOOST_ERROR(fault << " (" << c.name << ")");
  }
  BOOST_TEST(watched >= static_cast<Index>(mechanisms().size()));
}

BOOST_AUTO_TEST_SUITE_END()
