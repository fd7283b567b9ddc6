// The parser of metrics.csv and gradients.csv, used to resume runs and to compare them.
#include "heed/train/runs/history.h"

#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

const std::string metrics = "kind,epoch,step,loss,accuracy,lr,images_per_s\n";
const std::string gradients = "kind,epoch,step,gradient_norm\n";

/// A run of one epoch with given tables.
struct Tables {
  TemporaryDirectory directory;
  RunPaths paths{directory / ""};

  void write(const std::string& rows, const std::string& norms = "train,1,7,0.5\n") const {
    write_file(paths.metrics(), metrics + rows);
    write_file(paths.gradients(), gradients + norms);
  }
  std::string compared() const {
    return error_of([&] { read_history(paths); });
  }
  std::string resumed() const {
    return error_of([&] { MetricsFile(paths, MetricsSoFar{.epochs = 1, .steps = 7}); });
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(train_table_rows, Tables)

BOOST_AUTO_TEST_CASE(damaged_rows_are_refused) {
  const std::string good = "train,1,7,2.5,0.25,0.001,112\n";
  for (const std::string row :
       {"train,1,7,nan,0.25,0.001,112", "train,1,7,inf,0.25,0.001,112", "train,1,7,-2.5,0.25,0.001,112",
        "train,1,7,0x10,0.25,0.001,112", "train,1,7,1e999,0.25,0.001,112", "train,1,7,2.5 ,0.25,0.001,112",
        "train,1,7,2.5,0.25,0.001", "train,1,7,2.5,0.25,0.001,112,", "train,1,7", "train", "", "trian,1,7,2.5,0.25,,",
        "train,0,7,2.5,0.25,0.001,112", "train,-1,7,2.5,0.25,0.001,112", "train,1,-7,2.5,0.25,0.001,112",
        "train,1.5,7,2.5,0.25,0.001,112", "train,,7,2.5,0.25,0.001,112", "train,0x1,7,2.5,0.25,0.001,112",
        "train,1,7,2.5,1.5,0.001,112"}) {
    write(good + row + "\n");
    const std::string beginning = fmt::format("{}:3: found '{}'; expected kind,epoch,step,loss,", paths.metrics(), row);
    BOOST_TEST(compared().starts_with(beginning), compared());
    BOOST_TEST(resumed() == compared());
  }
  write(good, "train,1,7,-0.5\n");
  BOOST_TEST(compared().starts_with(paths.gradients() + ":2: found 'train,1,7,-0.5'; expected"));
  BOOST_TEST(resumed() == compared());
}

BOOST_AUTO_TEST_CASE(a_row_that_is_being_written_is_left_out) {
  write("train,1,7,2.5,0.25,0.001,112\nvalid,1,7,2,0.5,,\nstep,2,8,na");
  BOOST_TEST(compared() == "no error");
  const RunHistory history = read_history(paths);
  BOOST_REQUIRE(history.epochs.size() == 1u);
  BOOST_TEST(*history.epochs[0].gradient_norm == 0.5);
  BOOST_TEST(*history.epochs[0].validation_loss == 2);
  BOOST_TEST(!history.finished);
  BOOST_TEST(resumed() == "no error");
  BOOST_TEST(read_file(paths.metrics()) == metrics + "train,1,7,2.5,0.25,0.001,112\nvalid,1,7,2,0.5,,\n");
  for (const char* torn : {"", "kind,epo"}) {
    write_file(paths.metrics(), torn);
    BOOST_TEST(read_history(paths).epochs.empty());
  }
}

BOOST_AUTO_TEST_CASE(only_a_run_that_is_resumed_has_the_columns_of_this_version) {
  write_file(paths.metrics(), "kind,epoch,step,loss,accuracy,lr,gradient_norm,images_per_s\ntrain,1,7,2.5,,,3,112\n");
  write_file(paths.gradients(), gradients);
  BOOST_TEST(*read_history(paths).epochs.at(0).images_per_s == 112);
  BOOST_TEST(!read_history(paths).epochs[0].accuracy);
  BOOST_TEST(resumed().find("begins with 'kind,epoch,step,loss,accuracy,lr,gradient_norm,images_per_s'; expected") !=
             std::string::npos);
  write_file(paths.metrics(), "loss,accuracy\n1,2\n");
  BOOST_TEST(compared() == paths.metrics() + ": begins with 'loss,accuracy'; expected kind,epoch,step");
}

// An editor may have written CR LF; a resumed run writes LF.
BOOST_AUTO_TEST_CASE(lines_may_end_with_cr_lf) {
  write_file(paths.metrics(), "kind,epoch,step,loss,accuracy,lr,images_per_s\r\ntrain,1,7,2.5,0.25,0.001,112\r\n");
  write_file(paths.gradients(), "kind,epoch,step,gradient_norm\r\ntrain,1,7,0.5\r\n");
  BOOST_TEST(*read_history(paths).epochs.at(0).images_per_s == 112);
  BOOST_TEST(*read_history(paths).epochs[0].gradient_norm == 0.5);
  BOOST_TEST(resumed() == "no error");
  BOOST_TEST(read_file(paths.metrics()) == metrics + "train,1,7,2.5,0.25,0.001,112\n");
}

BOOST_AUTO_TEST_CASE(two_columns_of_one_name_are_refused) {
  write_file(paths.metrics(), "kind,epoch,step,loss,accuracy,loss\ntrain,1,7,2.5,,2.6\n");
  BOOST_TEST(compared() == paths.metrics() + ": has two columns 'loss'; expected one");
}

BOOST_AUTO_TEST_SUITE_END()
