// What fuzz targets demand of results; a failure aborts, which the driver reports with its input.
#pragma once

#include <algorithm>

#include "base/check.h"
#include "base/json.h"
#include "blockdraft/result.h"

namespace blockdraft {

// A message is one line of valid UTF-8 and of bounded length, whatever the input was.
inline void check_message(const Error& error) {
  const std::string& message = error.message;
  CHECK(!message.empty() && message.size() < 2000);
  CHECK(std::none_of(message.begin(), message.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
  static_cast<void>(Json(message).dump());  // throws on invalid UTF-8
}

}  // namespace blockdraft
