// What every error must be: of the right code, one line, and naming what the reader needs to know.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "blockdraft/result.h"

namespace blockdraft {

// `parts` are the file, the item, the value found and the value expected, as far as the case has them.
template <class T>
void expect_error(const Result<T>& result, Code code, std::initializer_list<std::string_view> parts) {
  ASSERT_FALSE(result.ok()) << "no error, expected one with '" << (parts.size() == 0 ? "" : *parts.begin()) << "'";
  const std::string& message = result.error().message;
  EXPECT_EQ(static_cast<int>(result.error().code), static_cast<int>(code)) << message;
  for (const std::string_view part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' is not in: " << message;
  }
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_FALSE(message.empty());
  EXPECT_NE(message.back(), '.') << message;
}

}  // namespace blockdraft
