// The refusal of a config value that is well-formed but of a kind that blockdraft does not implement.
#pragma once

#include <string_view>

#include "blockdraft/result.h"
#include "checkpoint/config_reader.h"

namespace blockdraft {

// The text of ConfigReader::wrong_value (key, value found, what was expected) under Code::unsupported.
inline Error unsupported_value(const ConfigReader& reader, const ConfigValue& found, std::string_view expected) {
  Error error = reader.wrong_value(found, expected);
  error.code = Code::unsupported;
  return error;
}

}  // namespace blockdraft
