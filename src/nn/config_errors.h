// What the readers of configs share beyond checkpoint/config_reader.h.
#pragma once

#include <limits>
#include <string_view>

#include "blockdraft/result.h"
#include "checkpoint/config_reader.h"

namespace blockdraft {

// For a value that is well-formed but of a kind that blockdraft does not implement: the text of
// ConfigReader::wrong_value (key, value found, what was expected) under Code::unsupported.
inline Error unsupported_value(const ConfigReader& reader, const ConfigValue& found, std::string_view expected) {
  Error error = reader.wrong_value(found, expected);
  error.code = Code::unsupported;
  return error;
}

// Whether a number of a config can be used as a factor or an epsilon in float32: neither zero nor infinite there.
inline bool is_positive_float32(double value) {
  return value >= std::numeric_limits<float>::min() && value <= std::numeric_limits<float>::max();
}

}  // namespace blockdraft
