// The commit and the architecture of this build.
#pragma once

namespace heed {

/// Returns "1a2b3c4d5e6f", with "-dirty" if files were changed since; empty if not built in a checkout.
const char* source_commit();

/// Returns the loaded library's ARCH: "native", or "x86-64-v3" or "x86-64-v4" of a package.
const char* built_for();

}  // namespace heed
