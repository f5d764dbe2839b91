#include "text/nfc.h"

#include <algorithm>
#include <array>
#include <vector>

#include <utf8proc.h>

#include "base/check.h"
#include "text/utf8.h"

namespace blockdraft {
namespace {

constexpr uint32_t kFirstCombining = 0x300;  // below it every character is in NFC whatever stands around it
constexpr uint32_t kTableEnd = 0x20000;      // beyond: ideographs, tags and private use, which never compose
constexpr size_t kMaxDecomposition = 32;     // the longest canonical one has 4
constexpr auto kDecompose = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE);
constexpr auto kCompose = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);

int combining_class(int32_t code_point) { return utf8proc_get_property(code_point)->combining_class; }

struct Decomposition {
  std::array<int32_t, kMaxDecomposition> parts;
  size_t size = 0;
};

Decomposition decompose(uint32_t code_point) {
  Decomposition out;
  int boundary = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<int32_t>(code_point), out.parts.data(),
                                                         kMaxDecomposition, kDecompose, &boundary);
  CHECK(count >= 0 && count <= static_cast<utf8proc_ssize_t>(kMaxDecomposition));
  out.size = static_cast<size_t>(count);
  return out;
}

bool composes_to_itself(uint32_t code_point, Decomposition parts) {
  return utf8proc_normalize_utf32(parts.parts.data(), static_cast<utf8proc_ssize_t>(parts.size), kCompose) == 1 &&
         parts.parts[0] == static_cast<int32_t>(code_point);
}

// What is left to ask beyond the table, where no character composes or has a combining class.
bool decomposes_to_itself(uint32_t code_point) {
  const Decomposition parts = decompose(code_point);
  return parts.size == 1 && parts.parts[0] == static_cast<int32_t>(code_point);
}

// Inert characters: a text of them is in NFC. Each is its own NFC, is not reordered (combining class 0) and does not
// compose with a character before it: it is no later part of any decomposition.
std::vector<bool> make_inert_table() {
  std::vector<bool> inert(kTableEnd, true);
  std::vector<uint32_t> later_parts;
  for (uint32_t c = kFirstCombining; c < kTableEnd; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const Decomposition parts = decompose(c);
    for (size_t i = 1; i < parts.size; ++i) later_parts.push_back(static_cast<uint32_t>(parts.parts[i]));
    inert[c] = combining_class(static_cast<int32_t>(c)) == 0 && composes_to_itself(c, parts);
  }
  for (const uint32_t c : later_parts) inert[c] = false;
  return inert;
}

bool is_nfc_at_a_glance(std::string_view text) {
  static const std::vector<bool> inert = make_inert_table();
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0xCC) {  // lead bytes of U+0300 start at CC
      ++at;
      continue;
    }
    const Utf8Step step = utf8_step(text, at);
    if (!(step.code_point < kTableEnd ? inert[step.code_point] : decomposes_to_itself(step.code_point))) return false;
    at += step.length;
  }
  return true;
}

std::vector<int32_t> decompose_text(std::string_view text) {
  std::vector<int32_t> out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    const Decomposition parts = decompose(step.code_point);
    out.insert(out.end(), parts.parts.begin(), parts.parts.begin() + static_cast<std::ptrdiff_t>(parts.size));
    at += step.length;
  }
  return out;
}

// The canonical ordering of combining marks. utf8proc's own is quadratic in the length of a run of marks.
void reorder_marks(std::vector<int32_t>& text) {
  const auto is_starter = [](int32_t c) { return combining_class(c) == 0; };
  for (auto begin = text.begin(); begin != text.end();) {
    const auto end = std::find_if(begin, text.end(), is_starter);
    std::stable_sort(begin, end, [](int32_t a, int32_t b) { return combining_class(a) < combining_class(b); });
    begin = std::find_if_not(end, text.end(), is_starter);
  }
}

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& storage) {
  if (is_nfc_at_a_glance(text)) return text;
  std::vector<int32_t> characters = decompose_text(text);
  reorder_marks(characters);
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(characters.data(), static_cast<utf8proc_ssize_t>(characters.size()), kCompose);
  CHECK(count >= 0);
  storage.clear();
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    std::array<utf8proc_uint8_t, 4> bytes;
    const utf8proc_ssize_t size = utf8proc_encode_char(characters[static_cast<size_t>(i)], bytes.data());
    storage.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(size));
  }
  return storage;
}

}  // namespace blockdraft
