// datasets/fetch.sh with downloads from a local mirror. The script is copied beside checksums of files made here, since
// the real files cannot be generated.
#include "support/images.h"

#include <stdlib.h>
#include <sys/wait.h>

#include <cstdlib>

using namespace heed;
using namespace heed::test;

namespace {

struct Result {
  int status;
  std::string output;
};

Result shell(const std::string& command, const std::filesystem::path& scratch) {
  const std::filesystem::path log = scratch / "log";
  const int status = std::system(("(" + command + ") > '" + log.string() + "' 2>&1").c_str());
  const Bytes bytes = read_bytes(log);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, std::string(bytes.begin(), bytes.end())};
}

/// A mirror of MNIST with four small files, and a copy of the script with their checksums.
struct Mirror {
  TemporaryDirectory directory;
  std::vector<std::string> files = {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                                    "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"};

  Mirror() {
    for (std::size_t i = 0; i < files.size(); ++i) {
      const std::uint8_t first = static_cast<std::uint8_t>(i);
      const bool images = files[i].find("images") != std::string::npos;
      write_gz(mirror() / "mnist" / files[i], images ? idx({2, 1, 1}, {first, 9}) : idx({2}, {first, 9}));
    }
    std::filesystem::create_directory(directory / "datasets");
    std::filesystem::copy("datasets/fetch.sh", directory / "datasets/fetch.sh");
    record("mnist/*");
  }
  std::filesystem::path mirror() const { return directory / "mirror"; }
  std::filesystem::path target() const { return directory / "datasets/mnist"; }
  void record(const std::string& what) const {
    const Result result =
        shell("cd '" + mirror().string() + "' && md5sum " + what + " > ../datasets/checksums.md5", directory.path());
    BOOST_REQUIRE(result.status == 0);
  }
  Result fetch(const std::string& arguments) const {
    return shell("HEED_MIRROR='file://" + mirror().string() + "' '" + (directory / "datasets/fetch.sh").string() +
                     "' " + arguments,
                 directory.path());
  }
};

bool contains(const std::string& text, const std::string& piece) { return text.find(piece) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_SUITE(data_fetch)

BOOST_FIXTURE_TEST_CASE(good_files_arrive_once, Mirror) {
  const Result first = fetch("mnist");
  BOOST_TEST(first.status == 0, first.output);
  BOOST_TEST(contains(first.output, "mnist: complete in"), first.output);
  BOOST_TEST(open_dataset("mnist", target().string(), Split::train)->label(0) == 1);
  std::filesystem::remove_all(mirror());
  const Result second = fetch("mnist");
  BOOST_TEST(second.status == 0, second.output);
  BOOST_TEST(contains(second.output, "nothing to do"), second.output);
}

BOOST_FIXTURE_TEST_CASE(a_directory_may_be_given, Mirror) {
  BOOST_TEST(fetch("mnist '" + (directory / "else where").string() + "'").status == 0);
  BOOST_TEST(std::filesystem::exists(directory / "else where" / files[3]));
  BOOST_TEST(!std::filesystem::exists(target()));
}

BOOST_FIXTURE_TEST_CASE(addresses_of_files_are_decoded, Mirror) {
  std::filesystem::rename(mirror(), directory / "my 100% mirror");
  const Result result = shell("HEED_MIRROR='file://" + directory.path().string() + "/my%20100%25%20mirror' '" +
                                  (directory / "datasets/fetch.sh").string() + "' mnist",
                              directory.path());
  BOOST_TEST(result.status == 0, result.output);
  BOOST_TEST(std::filesystem::exists(target() / files[0]));
}

BOOST_FIXTURE_TEST_CASE(wrong_and_truncated_files_are_refused_and_removed, Mirror) {
  const auto source = mirror() / "mnist" / files[1];
  const Bytes good = read_bytes(source);
  Bytes wrong = good;
  wrong.back() ^= 1;
  for (const Bytes& bad : {wrong, Bytes(good.begin(), good.end() - 5), Bytes()}) {
    write_file(source, bad);
    const Result result = fetch("mnist");
    BOOST_TEST(result.status == 2);
    BOOST_TEST(contains(result.output, files[1] + ": expected MD5"), result.output);
    BOOST_TEST(std::filesystem::exists(target() / files[0]));
    for (const auto& entry : std::filesystem::directory_iterator(target())) {
      BOOST_TEST(entry.path().filename() != files[1]);
      BOOST_TEST(entry.path().extension() == ".gz");  // no temporary files either
    }
  }
  write_file(source, good);
  BOOST_TEST(fetch("mnist").status == 0);
  BOOST_TEST((read_bytes(target() / files[1]) == good));
}

BOOST_FIXTURE_TEST_CASE(damaged_files_in_place_are_replaced, Mirror) {
  BOOST_REQUIRE(fetch("mnist").status == 0);
  write_file(target() / files[2], {1, 2, 3});
  BOOST_TEST(fetch("mnist").status == 0);
  BOOST_TEST((read_bytes(target() / files[2]) == read_bytes(mirror() / "mnist" / files[2])));
}

// An attacker with write access has planted links at the download paths, to another user's file.
BOOST_FIXTURE_TEST_CASE(planted_links_are_not_followed, Mirror) {
  const auto dear = directory / "dear";
  write_file(dear, {1, 2, 3});
  std::filesystem::create_directories(target());
  for (const std::string& file : files) {
    std::filesystem::create_symlink(dear, target() / (file + ".part"));
    std::filesystem::create_symlink(dear, target() / file);
  }
  const auto source = mirror() / "mnist" / files[1];
  const Bytes good = read_bytes(source);
  write_file(source, {4, 5});
  BOOST_TEST(fetch("mnist").status == 2);
  BOOST_TEST((read_bytes(dear) == Bytes{1, 2, 3}));
  write_file(source, good);
  const Result result = fetch("mnist");
  BOOST_TEST(result.status == 0, result.output);
  BOOST_TEST((read_bytes(dear) == Bytes{1, 2, 3}));
  BOOST_TEST(!std::filesystem::is_symlink(target() / files[1]));
}

BOOST_FIXTURE_TEST_CASE(a_missing_source_leaves_nothing, Mirror) {
  std::filesystem::remove_all(mirror());
  const Result result = fetch("mnist");
  BOOST_TEST(result.status == 2);
  BOOST_TEST(contains(result.output, "the download failed"), result.output);
  BOOST_TEST(!std::filesystem::exists(target()));
}

/// CIFAR-10 on the mirror. The archive also contains ../outside and an unrelated file.
struct CifarMirror : Mirror {
  std::filesystem::path place = directory / "datasets/cifar10", unpacked = place / "cifar-10-batches-bin";

  CifarMirror() {
    const auto source = directory / "source";
    for (const char* name :
         {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"})
      write_file(source / "cifar-10-batches-bin" / (std::string(name) + ".bin"), Bytes(3073, 1));
    write_file(source / "stray", {1});
    write_file(source / "outside", {1});
    std::filesystem::create_directories(mirror() / "cifar10");
    const Result packed =
        shell("cd '" + source.string() + "' && tar -czPf ../mirror/cifar10/cifar-10-binary.tar.gz --transform " +
                  "'s,^outside,../outside,' cifar-10-batches-bin stray outside",
              directory.path());
    BOOST_REQUIRE(packed.status == 0);
    record("cifar10/*");
  }
};

BOOST_FIXTURE_TEST_CASE(archives_are_unpacked_to_known_names_only, CifarMirror) {
  const Result first = fetch("cifar10");
  BOOST_TEST(first.status == 0, first.output);
  BOOST_TEST(open_dataset("cifar10", place.string(), Split::train)->size() == 5);
  for (const auto& entry : std::filesystem::directory_iterator(place))
    BOOST_TEST(entry.path().filename() == "cifar-10-batches-bin");
  BOOST_TEST(!std::filesystem::exists(directory / "datasets/outside"));
  const Result second = fetch("cifar10");
  BOOST_TEST(second.status == 0);
  BOOST_TEST(contains(second.output, "nothing to do"), second.output);
}

BOOST_FIXTURE_TEST_CASE(unpacked_files_that_are_not_as_they_were_are_fetched_again, CifarMirror) {
  BOOST_REQUIRE(fetch("cifar10").status == 0);
  const std::vector<std::function<void()>> damages = {
      [&] { write_file(unpacked / "data_batch_1.bin", {1}); },
      [&] { write_file(unpacked / "test_batch.bin", Bytes(3073, 2)); },
      [&] { std::filesystem::remove(unpacked / "data_batch_5.bin"); },
      [&] { std::filesystem::remove(unpacked / "checksums.md5"); },
      [&] { write_file(unpacked / "checksums.md5", {}); },
  };
  for (const auto& damage : damages) {
    damage();
    const Result result = fetch("cifar10");
    BOOST_TEST(contains(result.output, "complete in"), result.output);
    for (const char* name : {"data_batch_1.bin", "data_batch_5.bin", "test_batch.bin"})
      BOOST_TEST((read_bytes(unpacked / name) == Bytes(3073, 1)));
  }
  BOOST_TEST(contains(fetch("cifar10").output, "nothing to do"));
}

BOOST_FIXTURE_TEST_CASE(usage, Mirror) {
  BOOST_TEST(fetch("--help").status == 0);
  BOOST_TEST(contains(fetch("--help").output, "HEED_MIRROR"));
  BOOST_TEST(fetch("").status == 2);
  const Result unknown = fetch("imagenet");
  BOOST_TEST(unknown.status == 2);
  BOOST_TEST(contains(unknown.output, "'imagenet'"), unknown.output);
  const Result path =
      shell("HEED_MIRROR=/srv '" + (directory / "datasets/fetch.sh").string() + "' mnist", directory.path());
  BOOST_TEST(path.status == 2);
  BOOST_TEST(contains(path.output, "HEED_MIRROR is '/srv'; expected an address that begins with"), path.output);
}

BOOST_AUTO_TEST_SUITE_END()
