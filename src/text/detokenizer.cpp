#include <utility>

#include "blockdraft/tokenizer.h"
#include "text/utf8.h"

namespace blockdraft {

Detokenizer::Detokenizer(Tokenizer tokenizer, bool skip_special)
    : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

// Whether bytes are a character, can still become one or never will is decided by what came before alone, so that
// cutting the text anywhere changes nothing.
std::string Detokenizer::push(int32_t id) {
  if (skip_special_ && tokenizer_.is_special(id)) return {};
  pending_.append(tokenizer_.token_bytes(id));
  std::string text;
  pending_.erase(0, append_complete_utf8(text, pending_));
  return text;
}

std::string Detokenizer::finish() {
  std::string text;
  append_as_utf8(text, std::exchange(pending_, {}));
  return text;
}

}  // namespace blockdraft
