// Byte-pair encoding of one word.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace blockdraft {

// What a pair of neighbouring tokens becomes, and how early: the lowest rank in the word is merged first.
struct Merge {
  uint32_t rank = 0;
  int32_t id = 0;
};

// (left, right) to Merge. Filled while loading, then immutable and thread-safe.
class MergeTable {
 public:
  void reserve(size_t count);
  bool add(int32_t left, int32_t right, Merge merge);    // false: the pair is there already
  const Merge* find(int32_t left, int32_t right) const;  // null: none

 private:
  struct Slot {
    uint64_t pair;
    Merge merge;
  };
  size_t slot_of(uint64_t pair) const;

  std::vector<Slot> slots_;  // open addressing; a power of two, at most half full
  size_t count_ = 0;
};

struct BpeModel {
  Vocabulary vocabulary;
  MergeTable merges;
  std::array<int32_t, 256> byte_ids{};  // the token of each byte; -1 for bytes that UTF-8 has no use for
  bool ignore_merges = false;           // a word that is a token needs no merges
};

// Encodes words one after another and remembers those that it has seen. One object per text and thread; borrows the
// model.
class WordEncoder {
 public:
  explicit WordEncoder(const BpeModel& model) : model_(&model) {}

  // Appends the ids of `word` (valid UTF-8).
  void encode(std::string_view word, std::vector<int32_t>& ids);

 private:
  static constexpr uint32_t kNoMerge = UINT32_MAX;
  struct Symbol {
    int32_t id;
    uint32_t rank;   // of the merge with the next symbol, or kNoMerge
    int32_t merged;  // what that merge makes
  };
  struct Links {
    uint32_t previous;
    uint32_t next;
  };
  struct Candidate {
    uint32_t rank;
    uint32_t at;
  };
  struct CachedWord {
    uint64_t hash = 0;
    uint32_t word_at = 0;  // in cached_bytes_
    uint32_t ids_at = 0;   // in cached_ids_
    uint16_t word_size = 0;
    uint16_t ids_size = 0;  // 0: free slot
  };

  void encode_uncached(std::string_view word, std::vector<int32_t>& ids);
  void merge_by_scan(std::vector<int32_t>& ids);
  void merge_by_queue(std::vector<int32_t>& ids);
  void set_merge(Symbol& symbol, int32_t next_id) const;

  CachedWord& cache_slot(std::string_view word, uint64_t hash);
  void grow_cache();

  const BpeModel* model_;
  std::vector<Symbol> symbols_;
  std::vector<Links> links_;
  std::vector<Candidate> queue_;
  std::vector<CachedWord> cache_;  // open addressing; a power of two, at most half full
  size_t num_cached_ = 0;
  std::string cached_bytes_;
  std::vector<int32_t> cached_ids_;
};

}  // namespace blockdraft
