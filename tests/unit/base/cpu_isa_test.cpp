#include "base/cpu_isa.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace blockdraft {
namespace {

using ::testing::HasSubstr;

// Sets BLOCKDRAFT_CPU_ISA for a test and puts it back.
class CpuIsaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* value = std::getenv(kVariable)) before_ = value;
    unsetenv(kVariable);
  }
  void TearDown() override {
    if (before_.empty()) {
      unsetenv(kVariable);
    } else {
      setenv(kVariable, before_.c_str(), 1);
    }
  }
  static constexpr const char* kVariable = "BLOCKDRAFT_CPU_ISA";

 private:
  std::string before_;
};

TEST_F(CpuIsaTest, TheBestOneIfNothingIsNamed) {
  EXPECT_EQ(choose_cpu_isa().value(), best_cpu_isa());
  setenv(kVariable, "", 1);
  EXPECT_EQ(choose_cpu_isa().value(), best_cpu_isa());
}

TEST_F(CpuIsaTest, ThePortableOneIsAlwaysThere) {
  EXPECT_EQ(choose_cpu_isa("portable").value(), CpuIsa::portable);
  setenv(kVariable, "portable", 1);
  EXPECT_EQ(choose_cpu_isa().value(), CpuIsa::portable);
}

TEST_F(CpuIsaTest, ANameGoesBeforeTheVariable) {
  setenv(kVariable, "portable", 1);
  EXPECT_EQ(choose_cpu_isa(name_of(best_cpu_isa())).value(), best_cpu_isa());
}

TEST_F(CpuIsaTest, WhatTheProcessorLacksIsRefused) {
  for (const CpuIsa isa : {CpuIsa::portable, CpuIsa::avx2, CpuIsa::avx512, CpuIsa::avx512_bf16}) {
    const auto chosen = choose_cpu_isa(name_of(isa));
    if (isa <= best_cpu_isa()) {
      EXPECT_EQ(chosen.value(), isa);
    } else {
      EXPECT_THAT(chosen.error().message, HasSubstr("this processor has"));
    }
  }
}

TEST_F(CpuIsaTest, UnknownNamesAreRefusedByTheirSource) {
  EXPECT_EQ(choose_cpu_isa("sse9").error().message,
            "option cpu_isa is 'sse9', expected portable, avx2, avx512 or avx512_bf16");
  setenv(kVariable, "AVX2", 1);
  EXPECT_THAT(choose_cpu_isa().error().message, HasSubstr("BLOCKDRAFT_CPU_ISA is 'AVX2', expected "));
}

}  // namespace
}  // namespace blockdraft
