#include "text/vocabulary.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "text/byte_level.h"
#include "text/utf8.h"

namespace blockdraft {
namespace {

constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
constexpr size_t kFirstSlots = 1024;

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * kMultiplier;
  return hash ^ hash >> 32;
}

}  // namespace

uint64_t hash_bytes(std::string_view bytes) {
  uint64_t hash = bytes.size() * kMultiplier;
  size_t at = 0;
  for (; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    hash = mix(hash, word);
  }
  uint64_t rest = 0;
  for (; at < bytes.size(); ++at) rest = rest << 8 | static_cast<unsigned char>(bytes[at]);
  return mix(hash, rest);
}

Status Vocabulary::add(std::string_view spelling, int32_t id) {
  if (has(id)) {
    return make_error(Code::corrupt_file, "gives id {} to {} and to another token, expected unique ids", id,
                      in_quotes(spelling));
  }
  const auto twice = [&] {
    return make_error(Code::corrupt_file, "has token {} twice, expected unique tokens", in_quotes(spelling));
  };
  const uint64_t offset = bytes_.size();
  if (!append_spelled_bytes(bytes_, spelling)) {
    if (!literals_.emplace(spelling, id).second) return twice();
    bytes_.append(spelling);
    set_token(id, offset);
    return {};
  }
  if (2 * (listed_ + 1) > slots_.size()) grow();
  const std::string_view bytes = std::string_view(bytes_).substr(offset);
  const uint64_t hash = hash_bytes(bytes);
  Slot& slot = slots_[slot_of(bytes, hash)];
  if (slot.id >= 0) return twice();
  slot = {static_cast<uint32_t>(hash >> 32), id};
  ++listed_;
  set_token(id, offset);
  return {};
}

void Vocabulary::add_unlisted(std::string_view spelling, int32_t id) {
  const uint64_t offset = bytes_.size();
  if (!append_spelled_bytes(bytes_, spelling)) bytes_.append(spelling);
  set_token(id, offset);
}

void Vocabulary::set_token(int32_t id, uint64_t offset) {
  if (id >= size()) tokens_.resize(static_cast<size_t>(id) + 1);
  tokens_[static_cast<size_t>(id)] = {offset, static_cast<uint32_t>(bytes_.size() - offset), true};
}

std::string_view Vocabulary::bytes(int32_t id) const {
  if (!has(id)) return {};
  const Token& token = tokens_[static_cast<size_t>(id)];
  return std::string_view(bytes_).substr(token.offset, token.size);
}

size_t Vocabulary::slot_of(std::string_view bytes, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  size_t at = hash & mask;
  while (slots_[at].id >= 0 && !(slots_[at].tag == tag && this->bytes(slots_[at].id) == bytes)) at = (at + 1) & mask;
  return at;
}

void Vocabulary::grow() {
  std::vector<Slot> old(slots_.empty() ? kFirstSlots : 2 * slots_.size());
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.id < 0) continue;
    const std::string_view token = bytes(slot.id);
    slots_[slot_of(token, hash_bytes(token))] = slot;
  }
}

int32_t Vocabulary::find(std::string_view bytes) const {
  return slots_.empty() ? -1 : slots_[slot_of(bytes, hash_bytes(bytes))].id;
}

int32_t Vocabulary::find_literal(std::string_view text) const {
  if (literals_.empty()) return -1;
  const auto found = literals_.find(std::string(text));
  return found == literals_.end() ? -1 : found->second;
}

int32_t Vocabulary::find_spelling(std::string_view spelling) const {
  std::string bytes;
  return append_spelled_bytes(bytes, spelling) ? find(bytes) : find_literal(spelling);
}

}  // namespace blockdraft
