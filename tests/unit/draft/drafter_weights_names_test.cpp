// The names that a drafter's tensors have in files of different makers.

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "draft/drafter_weights.h"
#include "support/drafter_examples.h"
#include "support/expect_error.h"
#include "support/safetensors_writer.h"

namespace blockdraft {
namespace {

using Rename = std::function<std::string(const std::string&)>;

// Writes the tensors of a golden fixture under the names that `rename` makes of theirs, without those for which it
// makes none, and loads them.
Result<DrafterWeights> load_renamed(const std::string& fixture, const Rename& rename) {
  const std::filesystem::path folder = std::filesystem::path(BLOCKDRAFT_SOURCE_DIR) / "tests/golden" / fixture;
  BLOCKDRAFT_ASSIGN(const Checkpoint source, Checkpoint::open(folder));
  std::vector<TensorToWrite> tensors;
  for (const std::string& name : source.names()) {
    const StoredTensor& tensor = *source.find(name);
    EXPECT_EQ(tensor.dtype, DType::bf16) << name;
    if (rename(name).empty()) continue;
    tensors.push_back({rename(name), "BF16", tensor.shape,
                       std::string(reinterpret_cast<const char*>(tensor.data), tensor.size_bytes)});
  }
  const TempDir copy;
  write_safetensors(copy / "model.safetensors", tensors);
  BLOCKDRAFT_ASSIGN(Checkpoint checkpoint, Checkpoint::open(copy.path()));
  const auto shared = std::make_shared<const Checkpoint>(std::move(checkpoint));
  BLOCKDRAFT_ASSIGN(std::string prefix, find_prefix(*shared));
  WeightStore store(shared, prefix);
  BLOCKDRAFT_ASSIGN(DrafterWeights weights, load_drafter_weights(store, read_golden(fixture)));
  // Whatever loads can be looked at, too.
  WeightStore unread(shared, prefix, WeightValues::unread);
  BLOCKDRAFT_TRY(load_drafter_weights(unread, read_golden(fixture)));
  return weights;
}

Result<DrafterWeights> load_with_head_prefix(const std::string& fixture, const std::string& prefix) {
  return load_renamed(fixture, [&](const std::string& name) {
    const bool of_head = name.starts_with("markov_head.") || name.starts_with("confidence_head.");
    return (of_head ? prefix : "") + name;
  });
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

// What a config declares must be there.
TEST(DrafterWeightNames, TensorsOfDeclaredHeadsMustBeThere) {
  struct Missing {
    const char* fixture;
    const char* name;
  };
  for (const Missing& missing :
       std::initializer_list<Missing>{{"dflash2_plain", "layers.0.attention_conv.base_kernel"},
                                      {"dflash2_plain", "layers.1.mlp_conv.kernel_projection.weight"},
                                      {"dflash2_plain", "candidate_selector.hidden_projection.weight"},
                                      {"dflash2_plain", "candidate_selector.predecessor_codebook"},
                                      {"dflash2_plain", "candidate_selector.successor_codebook"},
                                      {"dspark_vanilla_nested", "markov_head.markov_w1.weight"},
                                      {"dspark_vanilla_nested", "markov_head.markov_w2.weight"},
                                      {"dspark_vanilla_nested", "confidence_head.proj.weight"},
                                      {"dspark_vanilla_nested", "confidence_head.proj.bias"},
                                      {"dspark_gated_flat", "markov_head.gate_proj.weight"},
                                      {"dspark_gated_flat", "markov_head.gate_proj.bias"},
                                      {"dspark_rnn_flat", "markov_head.joint_proj.weight"},
                                      {"dspark_rnn_flat", "markov_head.joint_proj.bias"}}) {
    const auto without = [&](const std::string& name) { return name == missing.name ? std::string() : name; };
    expect_error(load_renamed(missing.fixture, without), Code::not_found, {missing.name});
  }
}

TEST(DrafterWeightNames, OfTheMuseAssistant) {
  const auto muse = [](const std::string& name) -> std::string {
    if (name == "fc.weight") return "encoder.fc.weight";
    return name == "hidden_norm.weight" ? "encoder.output_norm_enc.weight" : name;
  };
  const auto weights = load_renamed("dflash_plain", muse);
  ASSERT_TRUE(weights.ok()) << weights.error().message;
  EXPECT_EQ(weights->fc.out_features, 64);
  const auto half = [](const std::string& name) { return name == "fc.weight" ? "encoder.fc.weight" : name; };
  expect_error(load_renamed("dflash_plain", half), Code::not_found, {"encoder.output_norm_enc.weight"});
}

TEST(DrafterWeightNames, TheFirstLayerMayBeTheMidlayer) {
  const auto midlayer = [](const std::string& name) {
    return name.starts_with("layers.0.") ? "midlayer." + name.substr(9) : name;
  };
  const auto weights = load_renamed("dflash_plain", midlayer);
  ASSERT_TRUE(weights.ok()) << weights.error().message;
  EXPECT_EQ(weights->layers.size(), 2u);
  const auto prefixed = [&](const std::string& name) { return "model." + midlayer(name); };
  EXPECT_TRUE(load_renamed("dflash_plain", prefixed).ok());
}

TEST(DrafterWeightNames, OtherContainersAreRefused) {
  const auto weights = load_with_head_prefix("dspark_vanilla_nested", "heads.");
  ASSERT_FALSE(weights.ok());
  EXPECT_EQ(weights.error().code, Code::not_found);
  EXPECT_NE(weights.error().message.find("markov_head.markov_w1"), std::string::npos) << weights.error().message;
}

}  // namespace
}  // namespace blockdraft
