#include "heed/kernels/elements/adamw.h"

#include "heed/cost/counted.h"
#include "support/compare.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(kernels_adamw)

// Gradients and first moments are positive, so that nothing cancels and errors are relative.
BOOST_AUTO_TEST_CASE(one_step_at_every_length) {
  const kernels::AdamWStep step{1e-3, 0.9, 0.999, 1e-8, 0.05, 0.271, 0.002997, 0.5};
  for (const Index n : lengths) {
    auto w = normal_floats(n, 1), g = normal_floats(n, 2), m = normal_floats(n, 3), v = normal_floats(n, 4);
    for (std::vector<double>* positive : {&g, &m, &v})
      for (double& x : *positive) x = std::abs(x);
    const auto before = w;
    Guarded fw(w, 1), fg(g, 2), fm(m, 3), fv(v, 0);
    kernels::reference::adamw(step, n, w.data(), g.data(), m.data(), v.data());
    kernels::adamw(step, n, fw.data(), fg.data(), fm.data(), fv.data());
    require_close("m", fm, m, [&](std::size_t i) { return 3e-7 * m[i]; });
    require_close("v", fv, v, [&](std::size_t i) { return 4e-7 * v[i]; });
    require_close("w", fw, w, [&](std::size_t i) {
      return 5e-7 * std::abs(step.lr / step.correction1 * m[i] / std::sqrt(v[i] / step.correction2)) +
             1.2e-7 * std::abs(before[i]);
    });
  }
  Guarded w(20, 0, 1.0f), g(20, 0, 1.0f), m(20, 0), v(20, 0);
  g.data()[17] = NAN;
  kernels::adamw(step, 20, w.data(), g.data(), m.data(), v.data());
  BOOST_TEST(std::isnan(w[17]));
  BOOST_TEST(std::isfinite(w[16]));
}

BOOST_AUTO_TEST_CASE(counts) {
  std::vector<Counted> w(5), g(5, 1.0), m(5), v(5);
  Counted::tally() = {};
  kernels::adamw({}, 5, w.data(), g.data(), m.data(), v.data());
  BOOST_TEST((Counted::tally() == kernels::adamw_counts(5)));
}

BOOST_AUTO_TEST_SUITE_END()
