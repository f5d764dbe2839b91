// Everything a tokenizer.json says, ready to encode and decode with.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "blockdraft/result.h"
#include "blockdraft/tokenizer.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/pre_tokenizer.h"

namespace blockdraft {

// Immutable once loaded; all const members may be called from several threads at once.
class TokenizerModel {
 public:
  BpeModel bpe;
  AddedTokens added_tokens;
  PreTokenizer pre_tokenizer;
  bool nfc = false;                      // normalize to NFC
  std::vector<int32_t> template_prefix;  // what the post-processor puts before and after the text
  std::vector<int32_t> template_suffix;

  // As the members of Tokenizer of these names.
  std::vector<int32_t> encode(std::string_view text, const Tokenizer::EncodeOptions& options) const;
  std::string decode(std::span<const int32_t> ids, bool skip_special) const;

  // The bytes that decode takes for an id; none for a special token that is skipped.
  std::string_view visible_bytes(int32_t id, bool skip_special) const {
    return skip_special && added_tokens.is_special(id) ? std::string_view() : bpe.vocabulary.bytes(id);
  }
};

// Builds a model from the text of a tokenizer.json. Errors name `origin`, the key, the value found and the value
// expected: corrupt_file, unsupported, mismatch or limit_exceeded.
Result<std::shared_ptr<const TokenizerModel>> parse_tokenizer(std::string_view text, std::string_view origin);

}  // namespace blockdraft
