// CHECK states what must be true whatever a user does: a failure is a bug of ours and ends the process.
// Anything that input can cause is a Result instead.
#pragma once

namespace blockdraft {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}  // namespace blockdraft

#define CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::blockdraft::check_failed(#condition, __FILE__, __LINE__))

// In inner loops: debug builds only.
#ifdef NDEBUG
#define DCHECK(condition) static_cast<void>(0)
#else
#define DCHECK(condition) CHECK(condition)
#endif
