#include "api/text_stream.h"

#include <algorithm>
#include <utility>

namespace blockdraft {

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop,
                       std::function<bool(std::string_view)> emit)
    : detokenizer_(tokenizer), stop_(std::move(stop)), emit_(std::move(emit)) {}

bool TextStream::push(int32_t id) { return take(detokenizer_.push(id), false); }

void TextStream::finish() {
  if (!at_stop_text_ && !canceled_) take(detokenizer_.finish(), true);
}

bool TextStream::take(const std::string& certain, bool is_last) {
  waiting_ += certain;
  size_t first_stop = std::string::npos;
  for (const std::string& stop : stop_) first_stop = std::min(first_stop, waiting_.find(stop));
  if (first_stop != std::string::npos) {
    at_stop_text_ = true;
    hand_out(first_stop);
    return false;
  }
  return hand_out(is_last ? waiting_.size() : waiting_.size() - held_back_bytes());
}

// The longest end of the waiting text that a stop text begins with.
size_t TextStream::held_back_bytes() const {
  size_t held = 0;
  for (const std::string& stop : stop_) {
    for (size_t size = std::min(stop.size() - 1, waiting_.size()); size > held; --size) {
      if (std::string_view(waiting_).ends_with(std::string_view(stop).substr(0, size))) held = size;
    }
  }
  return held;
}

bool TextStream::hand_out(size_t size_bytes) {
  if (size_bytes == 0) return true;
  const std::string piece = waiting_.substr(0, size_bytes);
  waiting_.erase(0, size_bytes);
  text_ += piece;
  if (emit_ && !emit_(piece)) canceled_ = true;
  return !canceled_;
}

}  // namespace blockdraft
