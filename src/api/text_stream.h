// From the tokens of one request to its text: pieces for the caller, and the end at a stop text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "blockdraft/tokenizer.h"

namespace blockdraft {

// One object a request. Text that may be the beginning of a stop text is held back until that is decided.
class TextStream {
 public:
  // `emit` gets every piece; returning false cancels the request. It may be empty.
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop, std::function<bool(std::string_view)> emit);

  // False: the text is complete (stop text found) or canceled, and no more tokens are wanted.
  bool push(int32_t id);
  // The end of the tokens: hands out what was held back.
  void finish();

  const std::string& text() const { return text_; }
  bool at_stop_text() const { return at_stop_text_; }
  bool canceled() const { return canceled_; }

 private:
  bool take(const std::string& certain, bool is_last);
  size_t held_back_bytes() const;
  bool hand_out(size_t size_bytes);

  Detokenizer detokenizer_;
  std::vector<std::string> stop_;
  std::function<bool(std::string_view)> emit_;
  std::string text_;     // handed out
  std::string waiting_;  // certain, but perhaps the beginning of a stop text
  bool at_stop_text_ = false;
  bool canceled_ = false;
};

}  // namespace blockdraft
