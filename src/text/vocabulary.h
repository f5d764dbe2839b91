// The tokens of a file: id to bytes and bytes to id.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "blockdraft/result.h"

namespace blockdraft {

inline constexpr int64_t kMaxTokenId = (int64_t{1} << 21) - 1;  // the largest published vocabularies have 2^18

// Filled while loading, then immutable and thread-safe.
class Vocabulary {
 public:
  // Adds a token by its spelling (text/byte_level.h). A spelling with a character outside the byte alphabet is literal
  // text: its bytes are the spelling's own, and no merge or word can produce it.
  // Precondition: 0 <= id <= kMaxTokenId. Errors (without file name): spelling or id given twice.
  Status add(std::string_view spelling, int32_t id);

  // Adds an id that only added tokens refer to: bytes as in add, but the token is found by no find function.
  // Precondition: !has(id).
  void add_unlisted(std::string_view spelling, int32_t id);

  bool has(int32_t id) const { return id >= 0 && id < size() && tokens_[static_cast<size_t>(id)].used; }
  std::string_view bytes(int32_t id) const;                              // empty for an id without token
  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }  // largest id + 1

  // -1: none. By bytes, tokens of literal text excepted; by spelling, all.
  int32_t find(std::string_view bytes) const;
  int32_t find_spelling(std::string_view spelling) const;
  int32_t find_literal(std::string_view text) const;

 private:
  struct Token {
    uint64_t offset = 0;  // in bytes_
    uint32_t size = 0;
    bool used = false;
  };
  struct Slot {
    uint32_t tag = 0;  // upper half of the hash: spares most look-ups of other tokens' bytes
    int32_t id = -1;   // -1: free
  };

  // The slot of `bytes`, or the free one where it would go. Precondition: slots_ not empty.
  size_t slot_of(std::string_view bytes, uint64_t hash) const;
  void grow();
  void set_token(int32_t id, uint64_t offset);

  std::string bytes_;  // of all tokens, one after another
  std::vector<Token> tokens_;
  std::vector<Slot> slots_;  // open addressing; a power of two, at most half full
  size_t listed_ = 0;
  std::unordered_map<std::string, int32_t> literals_;
};

// For hash tables of short byte strings inside this folder.
uint64_t hash_bytes(std::string_view bytes);

}  // namespace blockdraft
