#include "mutator.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace blockdraft {
namespace {

// Around the ends of every width, where a sum or product wraps.
constexpr std::array<uint64_t, 16> kEdges = {0,
                                             1,
                                             7,
                                             8,
                                             0x7f,
                                             0xff,
                                             0x7fff,
                                             0xffff,
                                             100'000'000,
                                             0x7fffffff,
                                             0xffffffff,
                                             uint64_t{1} << 32,
                                             uint64_t{1} << 62,
                                             (uint64_t{1} << 63) - 1,
                                             uint64_t{1} << 63,
                                             UINT64_MAX};

constexpr std::array<std::string_view, 28> kTokens = {
    "{",          "}",     "[",  "]",  ":",     ",",        "\"",        "\\",        "\\u",
    "\\ud800",    "-",     "-0", ".0", "1e999", "true",     "false",     "null",      "{}",
    "[]",         "\"\":", " ",  "\n", "\xff",  "\xc3\xa9", "\"dtype\"", "\"shape\"", "\"data_offsets\"",
    "\"F8_E4M3\""};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

// splitmix64
uint64_t Mutator::random() {
  state_ += 0x9e3779b97f4a7c15u;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

size_t Mutator::below(size_t bound) { return bound == 0 ? 0 : random() % bound; }

std::string Mutator::next(const std::vector<std::string>& corpus) {
  std::string input = corpus[below(corpus.size())];
  // Mostly few changes: far from every seed nothing gets past the first check.
  const size_t changes = size_t{1} << below(4);
  for (size_t i = 0; i < changes; ++i) change(input, corpus);
  if (input.size() > kMaxBytes) input.resize(kMaxBytes);
  return input;
}

void Mutator::change(std::string& input, const std::vector<std::string>& corpus) {
  switch (below(9)) {
    case 0:
      return flip_bit(input);
    case 1:
      return set_byte(input);
    case 2:
      return insert_bytes(input);
    case 3:
      return erase_range(input);
    case 4:
      return repeat_range(input);
    case 5:
      return splice(input, corpus[below(corpus.size())]);
    case 6:
      return write_binary_integer(input);
    case 7:
      return replace_decimal_integer(input);
    default:
      return insert_token(input);
  }
}

void Mutator::flip_bit(std::string& input) {
  if (input.empty()) return;
  char& c = input[below(input.size())];
  c = static_cast<char>(static_cast<unsigned char>(c) ^ (1u << below(8)));
}

void Mutator::set_byte(std::string& input) {
  if (!input.empty()) input[below(input.size())] = static_cast<char>(below(256));
}

void Mutator::insert_bytes(std::string& input) {
  std::string bytes(1 + below(8), '\0');
  for (char& c : bytes) c = static_cast<char>(below(256));
  input.insert(below(input.size() + 1), bytes);
}

void Mutator::erase_range(std::string& input) {
  const size_t begin = below(input.size());
  input.erase(begin, 1 + below(std::min<size_t>(input.size() - begin, 64)));
}

void Mutator::repeat_range(std::string& input) {
  if (input.size() > kMaxBytes) return;
  const size_t begin = below(input.size());
  const std::string range = input.substr(begin, 1 + below(64));
  const size_t times = below(8) == 0 ? 100 : 1 + below(3);
  for (size_t i = 0; i < times; ++i) input.insert(begin, range);
}

// The beginning of one input and the end of another.
void Mutator::splice(std::string& input, const std::string& other) {
  input.resize(below(input.size() + 1));
  input += other.substr(below(other.size() + 1));
}

void Mutator::write_binary_integer(std::string& input) {
  const size_t width = size_t{1} << below(4);
  if (input.size() < width) return;
  // Half of them at the beginning, where binary formats keep their lengths.
  const size_t begin = below(2) == 0 ? below(2) * width : below(input.size());
  if (begin + width > input.size()) return;
  const uint64_t value = kEdges[below(kEdges.size())] + below(5) - 2;
  for (size_t i = 0; i < width; ++i) input[begin + i] = static_cast<char>((value >> (8 * i)) & 0xffu);
}

void Mutator::replace_decimal_integer(std::string& input) {
  std::vector<size_t> starts;
  for (size_t i = 0; i < input.size(); ++i) {
    if (is_digit(input[i]) && (i == 0 || !is_digit(input[i - 1]))) starts.push_back(i);
  }
  if (starts.empty()) return;
  const size_t begin = starts[below(starts.size())];
  size_t end = begin;
  while (end < input.size() && is_digit(input[end])) ++end;
  const uint64_t value = below(3) == 0 ? below(64) : kEdges[below(kEdges.size())] + below(5) - 2;
  input.replace(begin, end - begin, std::to_string(value));
}

void Mutator::insert_token(std::string& input) {
  input.insert(below(input.size() + 1), kTokens[below(kTokens.size())]);
}

}  // namespace blockdraft
