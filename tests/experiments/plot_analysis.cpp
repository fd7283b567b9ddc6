// experiments/tools/plot_spectrum.py and plot_residual.py, run with Debian's Python.
#include "support/command.h"
#include "heed/data/images/image.h"

#include <boost/test/unit_test.hpp>

using namespace heed;
using namespace heed::test;

namespace {

struct Tables {
  TemporaryDirectory directory;
  const std::string spectrum = "mechanism,matrix,used,block,head,index,singular_value,cumulative,rank\n";
  const std::string residual =
      "init,dtype,block,head,iteration,relative_median,relative_worst,identity_median,identity_worst,condition_median,"
      "condition_worst\n";

  CommandResult plot(const std::string& script, const std::string& arguments) const {
    return run_command("'" + std::filesystem::absolute("experiments/tools/" + script).string() + "' " + arguments,
                       directory / "");
  }
  void check_picture(const std::string& name) const {
    const ImageSize size = image_file_size(directory / name);
    BOOST_TEST(size.width >= 500);
    BOOST_TEST(size.height >= 300);
  }
  void refused(const std::string& script, const std::string& arguments, const std::string& piece) const {
    const CommandResult result = plot(script, arguments);
    BOOST_TEST(result.status == 2, arguments << ": status " << result.status);
    BOOST_TEST(is_line_with(result.errors, piece), arguments << ": " << result.errors);
    BOOST_TEST(result.output == "");
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(plot_analysis, *boost::unit_test::precondition(with_matplotlib))

BOOST_FIXTURE_TEST_CASE(spectra, Tables) {
  std::string adder = spectrum, softmax = spectrum;
  for (const char* const start : {"adder,A,false,1,1,", "adder,A+I,true,1,1,"})
    adder += std::string(start) + "1,1,0.7,2\n" + start + "2,0.5,1,2\n";
  softmax += "softmax,A,true,1,1,1,1,1,1\nsoftmax,A+I,false,1,1,1,2,1,1\n";
  write_file(directory / "adder.csv", adder);
  write_file(directory / "softmax.csv", softmax);
  const CommandResult result = plot("plot_spectrum.py", "softmax.csv 'no identity=adder.csv' -o s.svg");
  BOOST_TEST(result.status == 0, result.errors);
  const std::string svg = read_file(directory / "s.svg");
  for (const char* const label : {"softmax: A ", "no identity: A + I", "no identity: A alone", "block 1"})
    BOOST_TEST(svg.find(std::string("<!-- ") + label) != std::string::npos, label);
  BOOST_TEST(svg.find("softmax: A alone") == std::string::npos);
  // The blocks of a model may have different mechanisms.
  write_file(directory / "both.csv", spectrum + "softmax,A,true,1,1,1,1,1,1\nsima,A,true,2,1,1,1,1,1\n");
  BOOST_TEST(plot("plot_spectrum.py", "both.csv -o b.svg").status == 0);
  BOOST_TEST(read_file(directory / "b.svg").find("<!-- softmax, sima: A ") != std::string::npos);
  BOOST_TEST(plot("plot_spectrum.py", "adder.csv").output == "spectrum.png\n");
  check_picture("spectrum.png");
  // A sweep's directories have names such as "mechanism=sima".
  std::filesystem::create_directory(directory / "norm=l1");
  write_file(directory / "norm=l1/spectrum.csv", softmax);
  for (const char* const argument : {"norm=l1/spectrum.csv", "a=norm=l1/spectrum.csv"})
    BOOST_TEST(plot("plot_spectrum.py", argument).output == "norm=l1/spectrum.png\n", argument);
}

BOOST_FIXTURE_TEST_CASE(residuals, Tables) {
  std::string rows = residual;
  for (const char* const start : {"damped", "plain", "backtrack"})
    for (const char* const iteration : {"0", "1"})
      rows += std::string(start) + ",f32,1,1," + iteration + ",0.1,inf,0,1,10,20\n";
  write_file(directory / "residual.csv", rows);
  const CommandResult result = plot("plot_residual.py", "residual.csv");
  BOOST_TEST(result.status == 0, result.errors);
  BOOST_TEST(result.errors == "");
  check_picture("residual.png");
}

BOOST_FIXTURE_TEST_CASE(bad_tables, Tables) {
  write_file(directory / "empty.csv", residual);
  write_file(directory / "start.csv", residual + "quick,f32,1,1,0,1,1,1,1,1,1\n");
  write_file(directory / "matrix.csv", spectrum + "adder,B,true,1,1,1,1,1,1\n");
  write_file(directory / "none.csv", spectrum);
  refused("plot_residual.py", "empty.csv", "empty.csv: has no residuals");
  refused("plot_residual.py", "start.csv", "start.csv:2: init is 'quick'");
  refused("plot_residual.py", "none.csv", "none.csv: has no column 'init'");
  refused("plot_residual.py", "empty.csv -o x.jpg", "x.jpg: expected a name that ends in .png or .svg");
  refused("plot_spectrum.py", "matrix.csv", "matrix.csv:2: matrix is 'B'");
  refused("plot_spectrum.py", "none.csv", "none.csv: has no spectrum");
  refused("plot_spectrum.py", "absent.csv", "absent.csv: No such file");
  BOOST_TEST(!std::filesystem::exists(directory / "x.jpg"));
}

BOOST_AUTO_TEST_SUITE_END()
