// JSON from untrusted files and requests.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/json_fwd.h"
#include "blockdraft/result.h"

namespace blockdraft {

// Parses one JSON document. `origin` names the text in errors (a path, "request body").
// Refused, each as corrupt_file with origin and byte offset where known: syntax errors, trailing text, nesting deeper
// than kMaxJsonDepth, a key that occurs twice in one object, invalid UTF-8.
inline constexpr int kMaxJsonDepth = 64;
Result<Json> parse_json(std::string_view text, std::string_view origin);

// The name of a value's type for error messages: "a string", "an integer", "null".
const char* json_type_name(const Json& value);

// Text from a file for a message of one line: control characters become spaces, and what is longer than kMaxExcerpt
// bytes is cut with "...", never inside a UTF-8 sequence.
inline constexpr size_t kMaxExcerpt = 160;
std::string printable(std::string_view text);

// A value for a message: a scalar as it is written in JSON, a string in its quotes, a list or an object cut short.
std::string json_excerpt(const Json& value);

}  // namespace blockdraft
