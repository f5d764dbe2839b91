// Text to token ids and back, from a model folder's tokenizer.json (byte-level BPE).
//
//   auto tokenizer = blockdraft::Tokenizer::open("demo/pycode-14m");
//   std::vector<int32_t> ids = tokenizer->encode("def main():");
//   std::string text = tokenizer->decode(ids);
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "blockdraft/result.h"

namespace blockdraft {

class TokenizerModel;  // src/text/

// Immutable after open; all members may be called from several threads at once. Copies share the tables.
class Tokenizer {
 public:
  // Reads `folder`/tokenizer.json. Errors name the file and the part that is not supported or not well-formed.
  static Result<Tokenizer> open(const std::filesystem::path& folder);

  // One without tokens: no text has ids, no id has text.
  static Tokenizer empty();

  struct EncodeOptions {
    bool add_special_tokens = true;    // what the file's post-processor adds, such as a begin-of-text token
    bool parse_special_tokens = true;  // text that spells a special token becomes that token
  };
  // Any bytes are accepted: what is not UTF-8 is replaced by U+FFFD first.
  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options) const;
  std::vector<int32_t> encode(std::string_view text) const;  // with the default options

  // skip_special: special tokens give no text. Ids that no token has give none either.
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const;

  // The raw bytes of one token, which may be part of a UTF-8 character. Empty for an unknown id.
  std::string_view token_bytes(int32_t id) const;
  bool is_special(int32_t id) const;
  std::optional<int32_t> id_of(std::string_view token) const;  // by its text; special and added tokens too
  int32_t vocab_size() const;                                  // largest id + 1

 private:
  explicit Tokenizer(std::shared_ptr<const TokenizerModel> model) : model_(std::move(model)) {}
  std::shared_ptr<const TokenizerModel> model_;
};

// Turns ids into text one at a time, for streaming. Never returns part of a UTF-8 character: bytes wait until the
// character is complete. Bytes that can no longer become one come out as U+FFFD, so that the pieces joined, with
// finish(), equal Tokenizer::decode of all ids. One object per text; not thread-safe.
class Detokenizer {
 public:
  explicit Detokenizer(Tokenizer tokenizer, bool skip_special = true);

  std::string push(int32_t id);  // the text that became certain; may be empty
  std::string finish();          // what is left, U+FFFD for an unfinished character

 private:
  Tokenizer tokenizer_;
  bool skip_special_;
  std::string pending_;  // bytes of a character that is not complete yet
};

}  // namespace blockdraft
