// blockdraft-gpu-suite: a line a case, behind the reason of one that fails or is skipped, then "N passed, M failed".
// Exit code 1 after a failure, 77 where there is no card and BLOCKDRAFT_CARD asks for none.
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "gpu_suite/card.h"

namespace blockdraft::test {
namespace {

class LinePrinter : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed() && !result.skipped()) return;
    std::printf("%s:%d: %s\n", result.file_name() == nullptr ? "?" : result.file_name(), result.line_number(),
                result.message());
  }

  void OnTestEnd(const testing::TestInfo& info) override {
    const testing::TestResult& result = *info.result();
    std::printf("%-6s %s.%s (%lld ms)\n",
                result.Passed()    ? "ok"
                : result.Skipped() ? "skipped"
                                   : "FAILED",
                info.test_suite_name(), info.name(), static_cast<long long>(result.elapsed_time()));
    std::fflush(stdout);
  }

  void OnTestProgramEnd(const testing::UnitTest& suite) override {
    std::printf("%d passed, %d failed\n", suite.successful_test_count(), suite.failed_test_count());
  }
};

}  // namespace
}  // namespace blockdraft::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (!testing::GTEST_FLAG(list_tests)) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new blockdraft::test::LinePrinter());
    if (const auto status = blockdraft::test::Card::open(); !status) {
      const bool has_none = status.error().code == blockdraft::Code::not_found;
      const bool is_skipped = has_none && std::getenv("BLOCKDRAFT_CARD") == nullptr;
      std::printf("%s: %s\n", is_skipped ? "skipped" : "FAILED", status.error().message.c_str());
      return is_skipped ? 77 : 1;
    }
  }
  const int result = RUN_ALL_TESTS();
  blockdraft::test::Card::close();
  return result;
}
