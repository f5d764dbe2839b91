// tokenizer.json as read: the two large parts in tables, everything else as a document.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/vocabulary.h"

namespace blockdraft {

inline constexpr size_t kMaxTokenizerFileBytes = 256u << 20;
inline constexpr size_t kMaxMerges = size_t{1} << 22;

// The entries of model.merges, as spelled: "left right" or ["left", "right"].
class MergeList {
 public:
  void add(std::string_view left, std::string_view right);
  size_t size() const { return sizes_.size(); }

  struct Entry {
    std::string_view left;
    std::string_view right;
    std::string_view both;  // left and right joined
  };
  // Calls visit(entry) in order, until one returns an error.
  template <class F>
  Status for_each(F&& visit) const {
    size_t at = 0;
    for (const Sizes& sizes : sizes_) {
      const std::string_view both = std::string_view(text_).substr(at, sizes.left + sizes.right);
      BLOCKDRAFT_TRY(visit(Entry{both.substr(0, sizes.left), both.substr(sizes.left), both}));
      at += both.size();
    }
    return {};
  }

 private:
  struct Sizes {
    uint32_t left;
    uint32_t right;
  };
  std::string text_;
  std::vector<Sizes> sizes_;
};

struct TokenizerFile {
  Json document;  // null in place of model.vocab and model.merges when those are below
  bool has_vocabulary = false;
  bool has_merges = false;
  Vocabulary vocabulary;
  MergeList merges;
};

// Parses a tokenizer.json without building a document of its hundred thousands of tokens. Errors (corrupt_file) as
// parse_json, and for entries of model.vocab and model.merges of another kind than expected.
Result<TokenizerFile> parse_tokenizer_file(std::string_view text, std::string_view origin);

}  // namespace blockdraft
