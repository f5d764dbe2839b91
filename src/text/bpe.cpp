#include "text/bpe.h"

#include <algorithm>

namespace blockdraft {
namespace {

constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
constexpr uint64_t kFreePair = UINT64_MAX;             // ids are not negative, so no pair is this one

// Up to here looking at every symbol for each merge is faster than keeping a queue; above it would be quadratic.
constexpr size_t kMaxScanned = 64;

constexpr uint32_t kNone = UINT32_MAX;  // no neighbour

constexpr size_t kMaxCachedWord = 64;  // bytes; longer words hardly come twice
constexpr size_t kFirstCacheSlots = 256;
constexpr size_t kMaxCacheSlots = 1 << 16;  // the cache is emptied when half of this many words are in it

uint64_t pair_of(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

}  // namespace

size_t MergeTable::slot_of(uint64_t pair) const {
  const size_t mask = slots_.size() - 1;
  uint64_t hash = pair * kMultiplier;
  hash ^= hash >> 32;
  size_t at = hash & mask;
  while (slots_[at].pair != pair && slots_[at].pair != kFreePair) at = (at + 1) & mask;
  return at;
}

void MergeTable::reserve(size_t count) {
  size_t size = 16;
  while (size < 2 * count) size *= 2;
  if (size <= slots_.size()) return;
  std::vector<Slot> old(size, Slot{kFreePair, {}});
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.pair != kFreePair) slots_[slot_of(slot.pair)] = slot;
  }
}

bool MergeTable::add(int32_t left, int32_t right, Merge merge) {
  reserve(count_ + 1);
  Slot& slot = slots_[slot_of(pair_of(left, right))];
  if (slot.pair != kFreePair) return false;
  slot = {pair_of(left, right), merge};
  ++count_;
  return true;
}

const Merge* MergeTable::find(int32_t left, int32_t right) const {
  if (slots_.empty()) return nullptr;
  const Slot& slot = slots_[slot_of(pair_of(left, right))];
  return slot.pair == kFreePair ? nullptr : &slot.merge;
}

void WordEncoder::encode(std::string_view word, std::vector<int32_t>& ids) {
  if (word.size() == 1) {
    ids.push_back(model_->byte_ids[static_cast<unsigned char>(word[0])]);
    return;
  }
  if (word.size() > kMaxCachedWord) return encode_uncached(word, ids);

  const uint64_t hash = hash_bytes(word);
  if (2 * (num_cached_ + 1) > cache_.size()) grow_cache();
  CachedWord& slot = cache_slot(word, hash);
  if (slot.ids_size == 0) {
    const size_t before = ids.size();
    encode_uncached(word, ids);
    slot = {hash, static_cast<uint32_t>(cached_bytes_.size()), static_cast<uint32_t>(cached_ids_.size()),
            static_cast<uint16_t>(word.size()), static_cast<uint16_t>(ids.size() - before)};
    cached_bytes_.append(word);
    cached_ids_.insert(cached_ids_.end(), ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end());
    ++num_cached_;
    return;
  }
  const auto begin = cached_ids_.begin() + slot.ids_at;
  ids.insert(ids.end(), begin, begin + slot.ids_size);
}

WordEncoder::CachedWord& WordEncoder::cache_slot(std::string_view word, uint64_t hash) {
  const size_t mask = cache_.size() - 1;
  size_t at = hash & mask;
  while (cache_[at].ids_size != 0 &&
         !(cache_[at].hash == hash &&
           std::string_view(cached_bytes_).substr(cache_[at].word_at, cache_[at].word_size) == word)) {
    at = (at + 1) & mask;
  }
  return cache_[at];
}

void WordEncoder::grow_cache() {
  if (cache_.size() == kMaxCacheSlots) {
    std::fill(cache_.begin(), cache_.end(), CachedWord{});
    cached_bytes_.clear();
    cached_ids_.clear();
    num_cached_ = 0;
    return;
  }
  std::vector<CachedWord> old(cache_.empty() ? kFirstCacheSlots : 2 * cache_.size());
  old.swap(cache_);
  for (const CachedWord& entry : old) {
    if (entry.ids_size == 0) continue;
    cache_slot(std::string_view(cached_bytes_).substr(entry.word_at, entry.word_size), entry.hash) = entry;
  }
}

void WordEncoder::set_merge(Symbol& symbol, int32_t next_id) const {
  const Merge* merge = model_->merges.find(symbol.id, next_id);
  symbol.rank = merge == nullptr ? kNoMerge : merge->rank;
  symbol.merged = merge == nullptr ? -1 : merge->id;
}

void WordEncoder::encode_uncached(std::string_view word, std::vector<int32_t>& ids) {
  if (model_->ignore_merges) {
    if (const int32_t id = model_->vocabulary.find(word); id >= 0) {
      ids.push_back(id);
      return;
    }
  }
  symbols_.clear();
  for (const char c : word) symbols_.push_back({model_->byte_ids[static_cast<unsigned char>(c)], kNoMerge, -1});
  for (size_t i = 0; i + 1 < symbols_.size(); ++i) set_merge(symbols_[i], symbols_[i + 1].id);
  if (symbols_.size() <= kMaxScanned) {
    merge_by_scan(ids);
  } else {
    merge_by_queue(ids);
  }
}

void WordEncoder::merge_by_scan(std::vector<int32_t>& ids) {
  const auto lower_rank = [](const Symbol& a, const Symbol& b) { return a.rank < b.rank; };
  while (true) {
    const auto best = std::min_element(symbols_.begin(), symbols_.end(), lower_rank);  // the first of equals
    if (best->rank == kNoMerge) break;
    best->id = best->merged;
    const auto next = symbols_.erase(best + 1);
    if (next != symbols_.end()) {
      set_merge(*best, next->id);
    } else {
      best->rank = kNoMerge;
    }
    if (best != symbols_.begin()) set_merge(*(best - 1), best->id);
  }
  for (const Symbol& symbol : symbols_) ids.push_back(symbol.id);
}

// Lowest rank first, then leftmost, as the scan does. A candidate is stale when its symbol is gone or has another merge
// by now; a merge is known by its rank.
void WordEncoder::merge_by_queue(std::vector<int32_t>& ids) {
  const auto later = [](const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  };
  const auto size = static_cast<uint32_t>(symbols_.size());
  links_.resize(size);
  queue_.clear();
  for (uint32_t i = 0; i < size; ++i) {
    links_[i] = {i == 0 ? kNone : i - 1, i + 1 == size ? kNone : i + 1};
    if (symbols_[i].rank != kNoMerge) queue_.push_back({symbols_[i].rank, i});
  }
  std::make_heap(queue_.begin(), queue_.end(), later);

  const auto update = [&](uint32_t at) {
    const uint32_t next = links_[at].next;
    if (next == kNone) {
      symbols_[at].rank = kNoMerge;
      return;
    }
    set_merge(symbols_[at], symbols_[next].id);
    if (symbols_[at].rank == kNoMerge) return;
    queue_.push_back({symbols_[at].rank, at});
    std::push_heap(queue_.begin(), queue_.end(), later);
  };
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end(), later);
    const Candidate best = queue_.back();
    queue_.pop_back();
    Symbol& symbol = symbols_[best.at];
    if (symbol.rank != best.rank) continue;
    const uint32_t gone = links_[best.at].next;
    symbol.id = symbol.merged;
    symbols_[gone].rank = kNoMerge;
    links_[best.at].next = links_[gone].next;
    if (links_[gone].next != kNone) links_[links_[gone].next].previous = best.at;
    update(best.at);
    if (links_[best.at].previous != kNone) update(links_[best.at].previous);
  }
  for (uint32_t i = 0; i != kNone; i = links_[i].next) ids.push_back(symbols_[i].id);
}

}  // namespace blockdraft
