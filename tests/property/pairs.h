// The pairs that the property tests decode with, and what plain decoding makes of their prompts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "engine/sequence.h"
#include "support/decoder.h"
#include "support/draft_sources.h"
#include "support/temp_dir.h"

namespace blockdraft::test {

inline constexpr int32_t kTinyWidth = 15;  // a block of 16
inline constexpr int64_t kTinyVocab = 160;

// A Qwen3 target with random weights and a drafter with random weights that fits it. Written once.
class TinyPair {
 public:
  static const TinyPair& get();
  std::filesystem::path target() const { return folder_ / "target"; }
  std::filesystem::path drafter() const { return folder_ / "drafter"; }    // sees everything
  std::filesystem::path windowed() const { return folder_ / "windowed"; }  // all layers slide, by 20 positions

 private:
  TinyPair();
  TempDir folder_;
};

std::filesystem::path demo_target();
std::filesystem::path demo_drafter();

// Ids below kTinyVocab.
std::vector<int32_t> random_prompt(uint32_t seed, int64_t length);

// Each prompt followed by `length` ids of plain decoding, one request at a time.
PlainTexts plain_texts(const std::filesystem::path& target, const std::vector<std::vector<int32_t>>& prompts,
                       int64_t length, CpuIsa isa = best_cpu_isa());

// What a request must give whose prompt is the beginning of `text`, by the definition: the plain text up to the first
// stop id, and not beyond max_tokens.
std::vector<int32_t> expected_ids(std::span<const int32_t> text, const TokenRequest& request);

}  // namespace blockdraft::test
