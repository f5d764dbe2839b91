// Fails in the way that its input asks for; the tests of the driver run it.
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace {

// Recurses until the stack is gone: the depth never is negative, which the compiler cannot know. The result depends on
// the callee, so that no loop can replace the calls.
int deeper(volatile int* depth) {
  if (*depth < 0) return 0;
  volatile char frame[1024] = {};
  frame[*depth % 1024] = 1;
  *depth = *depth + 1;
  return deeper(depth) + frame[*depth % 1024];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input == "abort") std::abort();
  if (input == "throw") throw std::runtime_error("nobody catches this");
  volatile uintptr_t nowhere = 64;
  if (input == "segfault") *reinterpret_cast<volatile int*>(nowhere) = 1;
  volatile int depth = 0;
  if (input == "overflow") return deeper(&depth);
  volatile bool forever = input == "hang";
  while (forever) {
  }
  if (input != "none" && input.find("mutated") == std::string_view::npos) std::abort();  // only a mutation gets here
  return 0;
}
