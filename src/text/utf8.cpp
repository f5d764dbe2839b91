#include "text/utf8.h"

#include <cstring>

#include <fmt/format.h>

#include "base/json.h"

namespace blockdraft {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Well-formed sequences that a lead byte can start (Unicode, table 3-7). Bytes after the second are 80..BF.
struct Lead {
  size_t length;  // 0: no lead byte
  unsigned char second_min;
  unsigned char second_max;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};  // no overlong forms
  if (byte == 0xED) return {3, 0x80, 0x9F};  // no surrogates
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};  // up to U+10FFFF
  return {0, 0, 0};
}

size_t ascii_prefix(std::string_view text, size_t at) {
  size_t end = at;
  while (end + sizeof(uint64_t) <= text.size()) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + end, sizeof(word));
    if ((word & 0x8080808080808080u) != 0) break;
    end += sizeof(word);
  }
  while (end < text.size() && static_cast<unsigned char>(text[end]) < 0x80) ++end;
  return end - at;
}

}  // namespace

Utf8Step utf8_step(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  const Lead lead = lead_of(byte);
  if (lead.length == 0) return {Utf8Kind::invalid, 0, 1};
  if (lead.length == 1) return {Utf8Kind::character, byte, 1};
  uint32_t code_point = byte & (0x7Fu >> lead.length);
  for (size_t i = 1; i < lead.length; ++i) {
    if (at + i >= text.size()) return {Utf8Kind::incomplete, 0, i};
    const auto next = static_cast<unsigned char>(text[at + i]);
    const unsigned char low = i == 1 ? lead.second_min : 0x80;
    const unsigned char high = i == 1 ? lead.second_max : 0xBF;
    if (next < low || next > high) return {Utf8Kind::invalid, 0, i};
    code_point = code_point << 6 | (next & 0x3Fu);
  }
  return {Utf8Kind::character, code_point, lead.length};
}

Utf8Step utf8_step_back(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return utf8_step(text.substr(0, end), at);
}

bool is_utf8(std::string_view text) {
  size_t at = 0;
  while ((at += ascii_prefix(text, at)) < text.size()) {
    const Utf8Step step = utf8_step(text, at);
    if (step.kind != Utf8Kind::character) return false;
    at += step.length;
  }
  return true;
}

size_t append_complete_utf8(std::string& out, std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    if (const size_t ascii = ascii_prefix(text, at); ascii > 0) {
      out.append(text.substr(at, ascii));
      at += ascii;
      continue;
    }
    const Utf8Step step = utf8_step(text, at);
    if (step.kind == Utf8Kind::incomplete) break;
    out.append(step.kind == Utf8Kind::character ? text.substr(at, step.length) : kReplacement);
    at += step.length;
  }
  return at;
}

void append_as_utf8(std::string& out, std::string_view text) {
  if (append_complete_utf8(out, text) < text.size()) out.append(kReplacement);
}

bool is_white_space(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string in_quotes(std::string_view text) { return fmt::format("'{}'", printable(text)); }

}  // namespace blockdraft
