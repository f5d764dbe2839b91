#include "text/byte_level.h"

#include <array>

#include "text/utf8.h"

namespace blockdraft {
namespace {

constexpr uint32_t kSpellings = 0x144;  // code points from 0 to U+0143 spell the 256 bytes

// A byte that is a printable, non-blank character of Latin-1.
constexpr bool spells_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Tables {
  std::array<int16_t, kSpellings> byte_of{};    // -1: stands for no byte
  std::array<std::array<char, 2>, 256> utf8{};  // of the spelling
  std::array<unsigned char, 256> utf8_size{};
};

constexpr Tables make_tables() {
  Tables tables;
  for (int16_t& byte : tables.byte_of) byte = -1;
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint32_t code_point = spells_itself(byte) ? byte : next++;
    tables.byte_of[code_point] = static_cast<int16_t>(byte);
    if (code_point < 0x80) {
      tables.utf8[byte] = {static_cast<char>(code_point), 0};
      tables.utf8_size[byte] = 1;
    } else {
      tables.utf8[byte] = {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3F))};
      tables.utf8_size[byte] = 2;
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

bool append_spelled_bytes(std::string& bytes, std::string_view spelling) {
  const size_t before = bytes.size();
  for (size_t at = 0; at < spelling.size();) {
    const Utf8Step step = utf8_step(spelling, at);
    const int byte = step.code_point < kSpellings ? kTables.byte_of[step.code_point] : -1;
    if (byte < 0) {
      bytes.resize(before);
      return false;
    }
    bytes.push_back(static_cast<char>(byte));
    at += step.length;
  }
  return true;
}

std::string_view byte_spelling(unsigned char byte) { return {kTables.utf8[byte].data(), kTables.utf8_size[byte]}; }

}  // namespace blockdraft
