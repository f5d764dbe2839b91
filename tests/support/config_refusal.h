// Tables of configs that are refused, each with the whole message that it must give.
#pragma once

#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "blockdraft/result.h"

namespace blockdraft {

struct Refusal {
  const char* name;   // of the test
  const char* patch;  // the config, or what makes it of a good one
  Code code;
  std::string message;  // without the origin, which is "config.json"
};
inline void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

inline std::string refusal_name(const testing::TestParamInfo<Refusal>& refusal) { return refusal.param.name; }

template <class T>
void expect_refusal(const Result<T>& config, const Refusal& refusal) {
  ASSERT_FALSE(config.ok()) << refusal.patch;
  EXPECT_EQ(config.error().message, "config.json: " + refusal.message);
  EXPECT_EQ(config.error().code, refusal.code) << refusal.message;
}

}  // namespace blockdraft
