#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace blockdraft {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "blockdraft: internal error, please report it: %s:%d: CHECK(%s) failed\n", file, line,
               condition);
  std::abort();
}

}  // namespace blockdraft
