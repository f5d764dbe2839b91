// The names that a drafter's tensors have in files of different makers.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "draft/drafter_weights.h"
#include "drafter_examples.h"
#include "support/safetensors_writer.h"

namespace blockdraft {
namespace {

// Writes the tensors of a golden fixture with `prefix` before the names of its two heads, and loads them.
Result<DrafterWeights> load_with_head_prefix(const std::string& fixture, const std::string& prefix) {
  const std::filesystem::path folder = std::filesystem::path(BLOCKDRAFT_SOURCE_DIR) / "tests/golden" / fixture;
  BLOCKDRAFT_ASSIGN(const Checkpoint source, Checkpoint::open(folder));
  std::vector<TensorToWrite> tensors;
  for (const std::string& name : source.names()) {
    const StoredTensor& tensor = *source.find(name);
    EXPECT_EQ(tensor.dtype, DType::bf16) << name;
    const bool of_head = name.starts_with("markov_head.") || name.starts_with("confidence_head.");
    tensors.push_back({(of_head ? prefix : "") + name, "BF16", tensor.shape,
                       std::string(reinterpret_cast<const char*>(tensor.data), tensor.size_bytes)});
  }
  const TempDir copy;
  write_safetensors(copy / "model.safetensors", tensors);
  BLOCKDRAFT_ASSIGN(Checkpoint checkpoint, Checkpoint::open(copy.path()));
  WeightStore store(std::make_shared<const Checkpoint>(std::move(checkpoint)), "");
  return load_drafter_weights(store, read_golden(fixture));
}

TEST(DrafterWeightNames, HeadsMayLieInAContainer) {
  for (const char* fixture : {"dspark_vanilla_nested", "dspark_gated_flat", "dspark_rnn_flat"}) {
    for (const char* prefix : {"", "logit_head."}) {
      const auto weights = load_with_head_prefix(fixture, prefix);
      ASSERT_TRUE(weights.ok()) << weights.error().message;
      EXPECT_EQ(weights->markov.markov_w2.in_features, 32) << fixture;
      EXPECT_EQ(weights->markov.confidence.out_features, 1) << fixture;
    }
  }
}

TEST(DrafterWeightNames, OtherContainersAreRefused) {
  const auto weights = load_with_head_prefix("dspark_vanilla_nested", "heads.");
  ASSERT_FALSE(weights.ok());
  EXPECT_EQ(weights.error().code, Code::not_found);
  EXPECT_NE(weights.error().message.find("markov_head.markov_w1"), std::string::npos) << weights.error().message;
}

}  // namespace
}  // namespace blockdraft
