#include "draft/drafter_weights.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/take.h"
#include "support/tiny_models.h"

namespace blockdraft::test {
namespace {

using testing::ElementsAre;

class DrafterWeightsTest : public testing::Test {
 protected:
  Result<DrafterWeights> load(const ModelFiles& files) {
    files.write(folder_.path());
    auto checkpoint = std::make_shared<const Checkpoint>(take(Checkpoint::open(folder_.path())));
    auto prefix = find_prefix(*checkpoint);
    if (!prefix) return prefix.error();
    prefix_ = *prefix;
    store_ = std::make_unique<WeightStore>(checkpoint, *prefix);
    return load_drafter_weights(*store_, take(read_drafter_config(folder_.path())));
  }
  TensorToWrite random(const std::string& name, std::vector<int64_t> shape) {
    return random_tensor(generator_, name, std::move(shape), 1.0);
  }

  TempDir folder_;
  std::unique_ptr<WeightStore> store_;  // owns what the weights view
  std::string prefix_;
  std::mt19937 generator_{1};
};

TEST_F(DrafterWeightsTest, LoadsAPlainDrafter) {
  const DrafterWeights weights = take(load(tiny_drafter({}, 1)));
  EXPECT_EQ(weights.fc.in_features, 3 * 64);
  EXPECT_EQ(weights.fc.out_features, 64);
  ASSERT_EQ(weights.layers.size(), 2u);
  EXPECT_EQ(weights.hidden_norm.shape, Shape{64});
  EXPECT_FALSE(weights.embed_tokens.has_value());
  EXPECT_FALSE(weights.lm_head.has_value());
  EXPECT_TRUE(weights.draft_to_target.empty());
  ASSERT_EQ(weights.context_kv_proj.size(), 4u);
  for (size_t layer = 0; layer < 2; ++layer) {
    EXPECT_EQ(weights.context_kv_proj[2 * layer].data, weights.layers[layer].decoder.qkv_proj[1].data);
    EXPECT_EQ(weights.context_kv_proj[2 * layer + 1].data, weights.layers[layer].decoder.qkv_proj[2].data);
  }
}

TEST_F(DrafterWeightsTest, FieldFault7_NamesMayHaveAPrefix) {
  for (const std::string prefix : {"", "model.", "draft_model."}) {
    ModelFiles files = tiny_drafter({}, 1);
    for (TensorToWrite& tensor : files.tensors) tensor.name = prefix + tensor.name;
    take(load(files));
    EXPECT_EQ(prefix_, prefix);
  }
  ModelFiles files = tiny_drafter({}, 1);
  for (TensorToWrite& tensor : files.tensors) tensor.name = "other." + tensor.name;
  expect_error(load(files), Code::not_found, {folder_.path().string(), "'fc.weight'", "'draft_model.fc.weight'"});
}

TEST_F(DrafterWeightsTest, EveryTensorMustBeThere) {
  for (const char* name :
       {"hidden_norm.weight", "norm.weight", "layers.1.self_attn.k_norm.weight", "layers.0.mlp.gate_proj.weight"}) {
    ModelFiles files = tiny_drafter({}, 1);
    files.remove(name);
    expect_error(load(files), Code::not_found, {folder_.path().string(), name});
  }
}

TEST_F(DrafterWeightsTest, FieldFault6_OtherTensorsAreRefused) {
  for (const char* name : {"layers.2.input_layernorm.weight", "layers.0.self_attn.q_proj.bias",
                           "layers.0.attention_conv.base_kernel", "markov_w1.weight", "rotary_emb.inv_freqs"}) {
    ModelFiles files = tiny_drafter({}, 1);
    files.tensors.push_back(random(name, {64}));
    expect_error(load(files), Code::unsupported, {"model.safetensors", name, "DFlashDraftModel", "1 such tensor"});
  }
}

TEST_F(DrafterWeightsTest, WhatOtherToolsLeaveInTheFileIsIgnored) {
  ModelFiles files = tiny_drafter({}, 1);
  files.tensors.push_back(random("layers.0.self_attn.rotary_emb.inv_freq", {8}));
  files.tensors.push_back(random("verifier_norm.weight", {64}));
  files.tensors.push_back(random("verifier_lm_head.weight", {160, 64}));
  files.tensors.push_back(raw_tensor("t2d", "BOOL", {160}, std::vector<uint8_t>(160, 1)));
  take(load(files));
}

// fc is as wide as there are taps, however many layers the drafter has.
TEST_F(DrafterWeightsTest, FieldFault7_TapsAndLayersAreCountedApart) {
  for (const TinyFamily family : {TinyFamily::dflash, TinyFamily::dflash2, TinyFamily::dspark}) {
    for (const auto& [layers, taps] : {std::pair<int64_t, std::vector<int32_t>>{3, {5, 0, 2, 4, 1}}, {5, {4, 0, 2}}}) {
      const DrafterWeights weights = take(
          load(tiny_drafter({.family = family, .stack = {.layers = layers}, .target_layers = 6, .taps = taps}, 1)));
      EXPECT_EQ(weights.fc.in_features, std::ssize(taps) * 64);
      EXPECT_EQ(std::ssize(weights.layers), layers);
    }
  }
  ModelFiles files = tiny_drafter({.stack = {.layers = 3}, .target_layers = 6, .taps = {5, 0, 2, 4, 1}}, 1);
  files.tensor("fc.weight") = random("fc.weight", {64, 3 * 64});
  expect_error(load(files), Code::mismatch, {"fc.weight", "[64, 192]", "[64, 320]"});
}

TEST_F(DrafterWeightsTest, BiasesComeWithTheConfig) {
  TinyDrafter shape;
  shape.stack.bias = true;
  EXPECT_NE(take(load(tiny_drafter(shape, 1))).context_kv_proj[0].bias, nullptr);
  ModelFiles files = tiny_drafter(shape, 1);
  files.remove("layers.1.self_attn.o_proj.bias");
  expect_error(load(files), Code::not_found, {"layers.1.self_attn.o_proj.bias"});
}

TEST_F(DrafterWeightsTest, OwnTablesAreUsed) {
  ModelFiles files = tiny_drafter({}, 1);
  files.tensors.push_back(random("embed_tokens.weight", {160, 64}));
  files.tensors.push_back(random("lm_head.weight", {160, 64}));
  const DrafterWeights weights = take(load(files));
  ASSERT_TRUE(weights.embed_tokens.has_value());
  ASSERT_TRUE(weights.lm_head.has_value());
  EXPECT_EQ(weights.lm_head->out_features, 160);
  files.tensor("lm_head.weight") = random("lm_head.weight", {150, 64});
  expect_error(load(files), Code::mismatch, {"lm_head.weight", "[150, 64]", "[160, 64]"});
}

TEST_F(DrafterWeightsTest, AReducedVocabularyNeedsItsHeadAndItsIds) {
  ModelFiles files = tiny_drafter({}, 1);
  files.config["draft_vocab_size"] = 4;
  expect_error(load(files), Code::not_found, {"lm_head.weight"});
  files.tensors.push_back(random("lm_head.weight", {4, 64}));
  expect_error(load(files), Code::not_found, {"d2t"});
  files.tensors.push_back(raw_tensor("d2t", "I64", {4}, std::vector<int64_t>{0, 0, 2, 60}));
  const DrafterWeights weights = take(load(files));
  EXPECT_THAT(weights.draft_to_target, ElementsAre(0, 1, 4, 63));
  EXPECT_EQ(weights.lm_head->out_features, 4);
  files.tensors.push_back(raw_tensor("t2d", "BOOL", {160}, std::vector<uint8_t>(160, 1)));
  expect_error(load(files), Code::corrupt_file, {folder_.path().string(), "'t2d'"});
}

}  // namespace
}  // namespace blockdraft::test
