// A drafter of the golden fixtures, opened through the public class, with the features and drafts recorded for it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "blockdraft/drafter.h"
#include "checkpoint/safetensors.h"

namespace blockdraft {

// Drafting after `length` rows of the features with this anchor gave these drafts.
struct GoldenCycle {
  int32_t length = 0;
  int32_t anchor_id = 0;
  std::vector<int32_t> drafts;
};

class HeadFixture {
 public:
  explicit HeadFixture(const std::string& name);  // a folder of tests/golden

  TargetTensors tensors() const;
  Result<Drafter> try_open(const DrafterOptions& options) const { return Drafter::open(folder_, options, tensors()); }
  // With kernels whose numbers are those of the recordings, unless the options name others.
  Drafter open(DrafterOptions options = {.max_sequences = 4, .max_positions = 128}) const;

  // Taps of positions first .. first + count - 1; all 64 lie in memory.
  std::span<const float> taps(int64_t first, int64_t count) const;
  std::vector<float> recorded(const std::string& name) const;  // F32
  const std::vector<GoldenCycle>& cycles() const { return cycles_; }
  const std::string& folder() const { return folder_; }

 private:
  const StoredTensor& tensor(const std::string& name) const;
  MatrixView matrix(const std::string& name) const;
  std::vector<int32_t> integers(const std::string& name) const;

  std::string folder_;
  SafetensorsFile io_;
  int64_t columns_ = 0;
  std::vector<float> features_;
  std::vector<GoldenCycle> cycles_;
};

// The drafts of one query, which must succeed.
Proposal propose_one(Drafter& drafter, const DraftQuery& query);

}  // namespace blockdraft
