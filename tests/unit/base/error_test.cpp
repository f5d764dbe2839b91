#include "base/error.h"

#include <memory>

#include <gtest/gtest.h>

#include "base/check.h"
#include "support/expect_error.h"

namespace blockdraft {
namespace {

Status fail_if(bool fail) {
  if (fail) return make_error(Code::mismatch, "{}: found {}, expected {}", "file", 1, 2);
  return {};
}

Result<std::unique_ptr<int>> make(int value) {
  if (value < 0) return make_error(Code::invalid_argument, "value is {}, expected at least 0", value);
  return std::make_unique<int>(value);
}

Result<int> sum(int a, int b, bool fail) {
  BLOCKDRAFT_TRY(fail_if(fail));
  BLOCKDRAFT_ASSIGN(const auto x, make(a));
  BLOCKDRAFT_ASSIGN(const auto y, make(b));
  return *x + *y;
}

TEST(Error, ValuesPassThrough) {
  const auto result = sum(3, 4, false);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(static_cast<bool>(result));
  EXPECT_EQ(*result, 7);
}

TEST(Error, TheFirstErrorLeavesTheFunction) {
  expect_error(sum(3, 4, true), Code::mismatch, {"file: found 1, expected 2"});
  expect_error(sum(-1, -2, false), Code::invalid_argument, {"value is -1"});
  expect_error(sum(1, -2, false), Code::invalid_argument, {"value is -2"});
}

TEST(Error, ABrokenPreconditionThrows) {
  auto failed = make(-1);
  EXPECT_THROW(static_cast<void>(failed.value()), std::bad_variant_access);
  EXPECT_THROW(static_cast<void>(make(1).error()), std::bad_variant_access);
}

TEST(CheckDeathTest, NamesConditionAndPlace) {
  CHECK(1 + 1 == 2);
  EXPECT_DEATH(CHECK(1 + 1 == 3), "internal error.*error_test.cpp:[0-9]+: CHECK\\(1 \\+ 1 == 3\\) failed");
}

}  // namespace
}  // namespace blockdraft
