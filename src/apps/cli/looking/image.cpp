// heed image: writes an image of a data set to a file.
#include "image_choice.h"

#include "heed/base/printable.h"
#include "heed/data/images/image_write.h"

#include <iostream>

namespace heed::cli {

namespace {

struct ImageArguments {
  DataChoice data{"mnist"};
  std::vector<std::string> sets;
  std::string output;
  Index index = 0;
};

int image_command(const ImageArguments& a) {
  DataChoice choice = a.data;
  for (const auto& [key, value] : parse_options(a.sets)) {
    require(key == "data.name" || key == "data.path", "image: --set {}: expected data.name or data.path", key);
    (key == "data.name" ? choice.data : choice.path) = value;
  }
  require_writable({"-o", a.output}, ".png");
  const std::unique_ptr<Dataset> data = open_data(choice);
  const Image image = image_of(*data, choice, a.index);
  save_png(a.output, image);
  std::cout << fmt::format("{}: {}, {} x {} pixels, label {}\n", printable(a.output), name_of(choice, a.index),
                           image.size.width, image.size.height, label_of(*data, a.index));
  return ok;
}

}  // namespace

void add_image(Command program) {
  static ImageArguments a;
  Command command = program.command("image", "Save an image of a data set as a PNG file");
  add_data_choice(command, a.data, "the data set; default: mnist");
  command.option("--index", &a.index, "index of the image, from 0; default: 0", {.value = "N"});
  command.option("-o,--output", &a.output, "the file to write", {.value = "FILE.png", .required = true});
  std::vector<std::string> offered{"data.name=", "data.path="};
  for (const std::string& name : dataset_names()) offered.push_back("data.name=" + name);
  add_sets(command, a.sets, "data.name or data.path, as in an experiment; repeatable", offered);
  command.action([] { return image_command(a); });
}

}  // namespace heed::cli
