// UTF-8 by the Unicode Standard, section 3.9: decoding, and replacement of what is not UTF-8.
// All functions are pure and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace blockdraft {

enum class Utf8Kind {
  character,   // a whole character
  invalid,     // a maximal subpart of an ill-formed sequence: becomes one U+FFFD
  incomplete,  // the text ends inside a character
};

struct Utf8Step {
  Utf8Kind kind = Utf8Kind::invalid;
  uint32_t code_point = 0;  // of a character
  size_t length = 0;        // bytes, at least 1
};

// What starts at byte `at`. Precondition: at < text.size().
Utf8Step utf8_step(std::string_view text, size_t at);

// The character that ends before byte `end` of valid UTF-8. Precondition: 0 < end <= text.size().
Utf8Step utf8_step_back(std::string_view text, size_t end);

bool is_utf8(std::string_view text);

// Appends text to out with one U+FFFD for every maximal subpart of an ill-formed sequence (Unicode 3.9, "substitution
// of maximal subparts"). An incomplete character at the end is left alone; returns the number of bytes taken.
size_t append_complete_utf8(std::string& out, std::string_view text);

// The same for a whole text: an incomplete character at its end becomes U+FFFD too.
void append_as_utf8(std::string& out, std::string_view text);

// The property White_Space, which is what \s means in the regexes of tokenizer files.
bool is_white_space(uint32_t code_point);

// printable (base/json.h) in quotes, for messages.
std::string in_quotes(std::string_view text);

}  // namespace blockdraft
