#include "landlock.h"

#include "confined.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace heed {

namespace {

/// Returns the kernel's version of Landlock; below 1: none.
long version() { return syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION); }

// A permission that older kernel headers do not define.
constexpr std::uint64_t to_truncate = 1u << 14;

constexpr std::uint64_t to_read =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t to_make_files =
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG;
constexpr std::uint64_t all_of_version_1 = (std::uint64_t{1} << 13) - 1;
constexpr std::uint64_t of_files =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | to_truncate;

void allow(int rules, const std::string& path, std::uint64_t rights) {
  const Descriptor place(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (place < 0) return;
  struct stat info {};
  if (fstat(place, &info) == 0 && !S_ISDIR(info.st_mode)) rights &= of_files;
  const landlock_path_beneath_attr beneath{rights, place};
  syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
}

}  // namespace

bool has_landlock() { return version() >= 1; }

FileRules::FileRules(const std::vector<std::string>& readable, const std::vector<std::string>& writable) {
  if (!has_landlock()) return;
  const std::uint64_t truncation = version() >= 3 ? to_truncate : 0;
  landlock_ruleset_attr handled{};
  handled.handled_access_fs = all_of_version_1 | truncation;
  rules_ = Descriptor(static_cast<int>(syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0)));
  for (const std::string& path : readable) allow(rules_, path, to_read);
  for (const std::string& path : writable) allow(rules_, path, to_read | to_make_files | truncation);
}

bool FileRules::install() const { return rules_ < 0 || syscall(SYS_landlock_restrict_self, int{rules_}, 0) == 0; }

}  // namespace heed
