// Reading and atomic replacement of files; paths, checksums, and locks of directories.
#include "heed/io/file.h"

#include "heed/io/checksum.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <thread>

using namespace heed;
namespace fs = std::filesystem;

namespace {

std::size_t entries(const std::string& directory) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(io_file)

BOOST_AUTO_TEST_CASE(content_comes_back) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a", content("a\0b\n", 4);
  write_file(path, content);
  BOOST_TEST(read_file(path) == content);
  write_file(path, "");
  BOOST_TEST(read_file(path).empty());
  BOOST_TEST(entries(directory / "") == 1u);
}

BOOST_AUTO_TEST_CASE(a_file_not_committed_leaves_the_old_one_and_nothing_else) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  write_file(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
    BOOST_TEST(read_file(path) == "old");
  }
  BOOST_TEST(read_file(path) == "old");
  BOOST_TEST(entries(directory / "") == 1u);
}

BOOST_AUTO_TEST_CASE(a_symbolic_link_stays_one) {
  const TemporaryDirectory directory;
  write_file(directory / "target", "old");
  fs::create_symlink("target", directory / "link");
  write_file(directory / "link", "new");
  BOOST_TEST(fs::is_symlink(directory / "link"));
  BOOST_TEST(read_file(directory / "target") == "new");
}

BOOST_AUTO_TEST_CASE(what_has_the_temporary_name_is_left_alone) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a", planted = fmt::format("{}.{}.part", path, ::getpid());
  write_file(directory / "another's", "dear");
  fs::create_symlink("another's", planted);
  write_file(path, "new");
  BOOST_TEST(read_file(path) == "new");
  BOOST_TEST(!fs::is_symlink(path));
  BOOST_TEST(read_file(directory / "another's") == "dear");
  BOOST_TEST(fs::is_symlink(planted));
  fs::remove(planted);
  fs::create_symlink("none yet", planted);
  write_file(path, "newer");
  BOOST_TEST(read_file(path) == "newer");
  BOOST_TEST(!fs::exists(directory / "none yet"));
}

// Tested only on file systems that support unnamed files (O_TMPFILE).
BOOST_AUTO_TEST_CASE(a_killed_process_leaves_nothing_half_written) {
  const TemporaryDirectory directory;
  const int nameless = ::open(directory.path().c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (nameless < 0) return;
  ::close(nameless);
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(directory / "a");
    file.write("half");
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  BOOST_TEST(entries(directory / "") == 0u);
}

BOOST_AUTO_TEST_CASE(two_writers_of_one_file_do_not_meet) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  AtomicFile first(path), second(path);
  first.write("first");
  second.write("second");
  first.commit();
  BOOST_TEST(read_file(path) == "first");
  second.commit();
  BOOST_TEST(read_file(path) == "second");
  BOOST_TEST(entries(directory / "") == 1u);
}

BOOST_AUTO_TEST_CASE(permissions_stay_and_new_files_follow_the_mask) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  const mode_t mask = ::umask(027);
  write_file(path, "");
  BOOST_TEST((fs::status(path).permissions() == fs::perms(0640)));
  for (const fs::perms permissions : {fs::perms(0600), fs::perms(0666), fs::perms(0444)}) {
    fs::permissions(path, permissions);
    AtomicFile file(path);
    for (const auto& entry : fs::directory_iterator(directory.path()))
      BOOST_TEST((entry.status().permissions() == permissions));
    file.commit();
    BOOST_TEST((fs::status(path).permissions() == permissions));
  }
  ::umask(mask);
}

BOOST_AUTO_TEST_CASE(an_open_file_outlives_its_name) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  write_file(path, "old");
  const InputFile file(path);
  write_file(path, "newer");
  BOOST_TEST(file.size() == 3u);
  char bytes[2];
  file.read(1, bytes, 2);
  BOOST_TEST(std::string(bytes, 2) == "ld");
  BOOST_TEST(error_of([&] { file.read(2, bytes, 2); }, path) == ": ends at byte 3; 1 more were expected");
}

// Opening a pipe would wait for a writer; a device has no end.
BOOST_AUTO_TEST_CASE(what_is_not_a_regular_file_is_refused_at_once) {
  const TemporaryDirectory directory;
  const std::string pipe = directory / "pipe";
  BOOST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path : {pipe, std::string("/dev/zero")}) {
    BOOST_TEST(error_of([&] { read_file(path); }, path) == ": cannot read: not a regular file");
    BOOST_TEST(error_of([&] { InputFile{path}; }, path) == ": cannot read: not a regular file");
  }
}

// Paths of missing files are compared, too, and links are followed.
BOOST_AUTO_TEST_CASE(paths_of_the_same_file) {
  const TemporaryDirectory directory;
  const std::string a = directory / "a", link = directory / "link", hard = directory / "hard";
  write_file(a, "");
  fs::create_symlink("a", link);
  fs::create_hard_link(a, hard);
  for (const std::string& path : {a, link, hard, (directory / "./a").string(), fs::relative(a).string()})
    BOOST_TEST(same_file(a, path), path);
  BOOST_TEST(same_file(directory / "none", directory / "no/../none"));
  write_file(directory / "b", "");
  for (const char* const other : {"b", "none", ""}) BOOST_TEST(!same_file(a, directory / other), other);
}

// "link/.." is the parent of the link's target; normalising the path would lead to another directory.
BOOST_AUTO_TEST_CASE(paths_through_a_link_become_plain) {
  const TemporaryDirectory directory;
  fs::create_directories(directory / "away/real");
  fs::create_directory_symlink("away/real", directory / "link");
  write_file(directory / "away/x", "");
  BOOST_TEST(with_plain_parents(directory / "link/../x") == fs::canonical(directory / "away/x").string());
  for (const char* path : {"away/x", "away/real/../x", "away/./x", "link/../none", "none/../away/x"})
    BOOST_TEST(with_plain_parents(directory / path) == (directory / path).string());
  BOOST_TEST(with_plain_parents("") == "");
}

BOOST_AUTO_TEST_CASE(directories_are_created_once) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a/b", file = directory / "file";
  BOOST_TEST(make_directory(path));
  BOOST_TEST(fs::is_directory(path));
  BOOST_TEST(!make_directory(path));
  write_file(file, "");
  BOOST_TEST(error_of([&] { make_directory(file); }, file) == ": cannot be created: Not a directory");
}

BOOST_AUTO_TEST_CASE(a_limit_counts_what_is_read) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  write_file(path, "four");
  BOOST_TEST(read_file(path, 4) == "four");
  BOOST_TEST(error_of([&] { read_file(path, 3); }, path) == ": the file has more than 3 bytes");
  BOOST_TEST(!read_file("/proc/self/maps").empty());
}

BOOST_AUTO_TEST_CASE(errors_name_path_and_reason) {
  const TemporaryDirectory directory;
  const std::string path = directory / "none/a";
  BOOST_TEST(error_of([&] { read_file(path); }, path) == ": cannot open: No such file or directory");
  BOOST_TEST(error_of([&] { InputFile{path}; }, path) == ": cannot open: No such file or directory");
  BOOST_TEST(error_of([&] { write_file(path, ""); }, path) == ": cannot write: No such file or directory");
  // The name of the temporary file is longer than allowed.
  const std::string longest = directory / std::string(255, 'a');
  BOOST_TEST(error_of([&] { AtomicFile{longest}; }, longest) == ": cannot write: File name too long");
  fs::create_directory(directory / "none");
  BOOST_TEST(error_of([&] { read_file(directory / "none"); }, directory / "none") ==
             ": cannot read: a directory; expected a file");
  BOOST_TEST(error_of([&] { InputFile{directory / "none"}; }, directory / "none") ==
             ": cannot read: a directory; expected a file");
  BOOST_TEST(error_of([&] { write_file("/dev/null", "x"); }) == "/dev/null: cannot write: not a regular file");
}

BOOST_AUTO_TEST_CASE(a_byte_order_mark_is_no_text) {
  const TemporaryDirectory directory;
  for (const char* content : {"\xef\xbb\xbf"
                              "a\xef\xbb\xbf",
                              "a\xef\xbb\xbf"}) {
    write_file(directory / "text", content);
    BOOST_TEST(read_text_file(directory / "text") == "a\xef\xbb\xbf");
    BOOST_TEST(read_file(directory / "text") == content);
  }
  for (const auto& [content, encoding] :
       std::vector<std::pair<std::string, std::string>>{{{"\xff\xfe\0\0a\0\0\0", 8}, "UTF-32"},
                                                        {{"\xff\xfe"
                                                          "a\0",
                                                          4},
                                                         "UTF-16"},
                                                        {{"\xfe\xff\0a", 4}, "UTF-16"}}) {
    write_file(directory / "text", content);
    BOOST_TEST(error_of([&] { read_text_file(directory / "text"); }, directory / "text") ==
               ": the text is " + encoding + "; expected UTF-8; convert it with `iconv -f " + encoding + " -t UTF-8`");
  }
}

BOOST_AUTO_TEST_CASE(several_files_are_replaced_together) {
  const TemporaryDirectory directory;
  write_file(directory / "a", "old");
  {
    AtomicFiles files;
    files.write(directory / "a", "new");
    BOOST_TEST(error_of([&] { files.write(directory / "none/b", "new"); }) != "no error");
  }
  BOOST_TEST(read_file(directory / "a") == "old");
  AtomicFiles files;
  files.write(directory / "a", "new");
  files.write(directory / "b", "other");
  BOOST_TEST(read_file(directory / "a") == "old");
  BOOST_TEST(!fs::exists(directory / "b"));
  files.commit();
  BOOST_TEST(read_file(directory / "a") == "new");
  BOOST_TEST(read_file(directory / "b") == "other");
}

// Only regular files named NAME.*.part are removed, where NAME is the name of the given file.
BOOST_AUTO_TEST_CASE(leftovers_of_a_file_are_removed) {
  const TemporaryDirectory directory;
  for (const char* name : {"a", "a.12.part", "a.12-3.part", "a.part", "ab.12.part", "b.12.part", "a.12.parts"})
    write_file(directory / name, "content");
  fs::create_symlink("a", directory / "a.link.part");
  fs::create_directory(directory / "a.directory.part");
  remove_leftovers(directory / "a");
  for (const char* name : {"a", "a.part", "ab.12.part", "b.12.part", "a.12.parts", "a.link.part", "a.directory.part"})
    BOOST_TEST(fs::exists(directory / name), name);
  BOOST_TEST(entries(directory / "") == 7u);
}

BOOST_AUTO_TEST_CASE(lines_are_appended_to_the_named_file) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  write_file(path, "first\n");
  AppendedFile lines(path);
  lines.append("second\n");
  BOOST_TEST(read_file(path) == "first\nsecond\n");
  lines.sync();
  write_file(path, "another");
  BOOST_TEST(error_of([&] { lines.sync(); }, path) == ": removed or replaced during writing");
  fs::remove(path);
  BOOST_TEST(error_of([&] { lines.sync(); }, path) == ": removed or replaced during writing");
  fs::create_symlink("elsewhere", path);
  BOOST_TEST(error_of([&] { AppendedFile{path}; }, path) == ": cannot write: Too many levels of symbolic links");
  BOOST_TEST(!fs::exists(directory / "elsewhere"));
}

// CRC-32's check value is the checksum of "123456789"; files are read in blocks of a megabyte.
BOOST_AUTO_TEST_CASE(checksums_of_texts_and_files) {
  const TemporaryDirectory directory;
  BOOST_TEST(checksum("123456789") == "cbf43926-9");
  BOOST_TEST(checksum("") == "00000000-0");
  std::string large;
  for (int i = 0; i < 2'500'000; ++i) large += static_cast<char>(i % 251 * (i % 251) % 251);
  for (const std::string& content : {std::string(), std::string("123456789"), large, large.substr(0, 1 << 20)}) {
    write_file(directory / "a", content);
    BOOST_TEST(file_checksum(directory / "a") == checksum(content));
  }
}

// Without patience, taking a lock that another process holds fails at once; with patience, it waits that long for the
// release.
BOOST_AUTO_TEST_CASE(a_lock_is_waited_for_with_patience) {
  using namespace std::chrono_literals;
  const TemporaryDirectory directory;
  const std::string path = directory.path();
  const auto failure = [&](std::chrono::milliseconds patience) {
    return error_of([&] { DirectoryLock(path, DirectoryLock::Holders::process, patience); }, path);
  };
  BOOST_TEST(failure(0ms) == "no error");
  std::optional<DirectoryLock> held(std::in_place, path);
  const std::string used = ": another process is using this directory; wait until it ends";
  BOOST_TEST(failure(0ms) == used);
  const auto start = std::chrono::steady_clock::now();
  BOOST_TEST(failure(60ms) == used);
  BOOST_TEST((std::chrono::steady_clock::now() - start >= 60ms));
  std::jthread releasing([&] {
    std::this_thread::sleep_for(50ms);
    held.reset();
  });
  BOOST_TEST(failure(60s) == "no error");
}

// A child process (here cat) holds the lock only with process_and_programs_it_starts.
BOOST_AUTO_TEST_CASE(a_lock_is_shared_with_programs_if_asked) {
  using namespace std::chrono_literals;
  using Holders = DirectoryLock::Holders;
  const TemporaryDirectory directory;
  const std::string path = directory.path();
  const auto failure = [&](std::chrono::milliseconds patience) {
    return error_of([&] { DirectoryLock(path, Holders::process, patience); }, path);
  };
  for (const Holders holders : {Holders::process, Holders::process_and_programs_it_starts}) {
    std::optional<DirectoryLock> held(std::in_place, path, holders);
    FILE* const program = ::popen("cat >/dev/null", "w");
    BOOST_REQUIRE(program != nullptr);
    held.reset();
    if (holders == Holders::process)
      BOOST_TEST(failure(10s) == "no error");
    else
      BOOST_TEST(failure(0ms) == ": another process is using this directory; wait until it ends");
    ::pclose(program);
    BOOST_TEST(failure(10s) == "no error");
  }
}

BOOST_AUTO_TEST_SUITE_END()
