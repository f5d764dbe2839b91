// The spelling of byte-level tokens in tokenizer.json: every byte is one printable character, so that token strings
// are valid JSON. Printable bytes stand for themselves, the other 68 are U+0100 upwards in byte order; a space is "Ġ".
// Pure and thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace blockdraft {

// Appends the bytes that `spelling` (valid UTF-8) stands for. false, and `bytes` as before, if a character of it
// stands for no byte: such a token is literal text, as many special tokens are.
bool append_spelled_bytes(std::string& bytes, std::string_view spelling);

// The spelling of one byte, one or two bytes of UTF-8.
std::string_view byte_spelling(unsigned char byte);

}  // namespace blockdraft
