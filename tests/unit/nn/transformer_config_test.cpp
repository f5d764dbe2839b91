#include "nn/transformer_config.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "support/config_refusal.h"

namespace blockdraft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Json base() {
  return Json::parse(R"({"hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 5,
                         "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
                         "rope_theta": 1000000, "rms_norm_eps": 1e-05, "max_position_embeddings": 40960,
                         "attention_bias": true, "hidden_act": "silu"})");
}

// `patch` is a merge patch: null removes a key.
Result<TransformerConfig> read(const char* patch) {
  Json document = base();
  document.merge_patch(Json::parse(patch));
  return read_transformer_config(ConfigReader(document, "config.json"));
}

TEST(TransformerConfig, ReadsAllKeys) {
  const auto config = read("{}");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->hidden_size, 2560);
  EXPECT_EQ(config->intermediate_size, 9728);
  EXPECT_EQ(config->num_hidden_layers, 5);
  EXPECT_EQ(config->num_attention_heads, 32);
  EXPECT_EQ(config->num_key_value_heads, 8);
  EXPECT_EQ(config->head_dim, 128);
  EXPECT_EQ(config->vocab_size, 151936);
  EXPECT_EQ(config->max_position_embeddings, 40960);
  EXPECT_EQ(config->rms_norm_eps, 1e-5);
  EXPECT_TRUE(config->attention_bias);
  EXPECT_EQ(config->rope.rope_theta, 1e6);
  EXPECT_EQ(config->query_size(), 4096);
  EXPECT_EQ(config->key_value_size(), 1024);
}

TEST(TransformerConfig, AbsentKeysHaveTheirDefaults) {
  const auto config = read(R"({"num_key_value_heads": null, "head_dim": null, "rms_norm_eps": null,
                               "max_position_embeddings": null, "attention_bias": null, "hidden_act": null})");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->num_key_value_heads, 32);
  EXPECT_EQ(config->head_dim, 80);
  EXPECT_EQ(config->rms_norm_eps, 1e-6);
  EXPECT_EQ(config->max_position_embeddings, 32768);
  EXPECT_FALSE(config->attention_bias);
}

TEST(TransformerConfig, NullIsAbsent) {
  Json document = base();
  document["head_dim"] = nullptr;
  const auto config = read_transformer_config(ConfigReader(document, "config.json"));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->head_dim, 80);
}

TEST(TransformerConfig, PassesWarningsOfTheRotaryKeysOn) {
  const auto config = read(R"({"rope_parameters": {"rope_theta": 10000}})");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_THAT(config->warnings, ElementsAre(HasSubstr("'rope_parameters.rope_theta' is 10000; the first is used")));
}

TEST(TransformerConfig, YarnWithoutLengthTakesMaxPositions) {
  const auto config = read(R"({"rope_scaling": {"type": "yarn", "factor": 4}})");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->rope.original_max_position_embeddings, 40960);
}

class TransformerRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(TransformerRefusal, NamesKeyFoundAndExpected) { expect_refusal(read(GetParam().patch), GetParam()); }

constexpr Code kCorrupt = Code::corrupt_file;

INSTANTIATE_TEST_SUITE_P(
    All, TransformerRefusal,
    testing::Values(
        Refusal{"no_hidden_size", R"({"hidden_size": null})", Code::not_found,
                "key 'hidden_size' is missing, expected an integer from 1 to 16777216"},
        Refusal{"hidden_size_zero", R"({"hidden_size": 0})", kCorrupt,
                "key 'hidden_size' is 0, expected an integer from 1 to 16777216"},
        Refusal{"hidden_size_text", R"({"hidden_size": "2560"})", kCorrupt,
                R"(key 'hidden_size' is "2560", expected an integer from 1 to 16777216)"},
        Refusal{"hidden_size_fraction", R"({"hidden_size": 2560.5})", kCorrupt,
                "key 'hidden_size' is 2560.5, expected an integer from 1 to 16777216"},
        Refusal{"hidden_size_huge", R"({"hidden_size": 99999999999})", kCorrupt,
                "key 'hidden_size' is 99999999999, expected an integer from 1 to 16777216"},
        Refusal{"no_intermediate_size", R"({"intermediate_size": null})", Code::not_found,
                "key 'intermediate_size' is missing, expected an integer from 1 to 16777216"},
        Refusal{"no_layers", R"({"num_hidden_layers": null})", Code::not_found,
                "key 'num_hidden_layers' is missing, expected an integer from 1 to 4096"},
        Refusal{"too_many_layers", R"({"num_hidden_layers": 4097})", kCorrupt,
                "key 'num_hidden_layers' is 4097, expected an integer from 1 to 4096"},
        Refusal{"no_heads", R"({"num_attention_heads": null})", Code::not_found,
                "key 'num_attention_heads' is missing, expected an integer from 1 to 16777216"},
        Refusal{"heads_negative", R"({"num_attention_heads": -32})", kCorrupt,
                "key 'num_attention_heads' is -32, expected an integer from 1 to 16777216"},
        Refusal{"key_value_heads", R"({"num_key_value_heads": 5})", kCorrupt,
                "key 'num_key_value_heads' is 5, expected a divisor of num_attention_heads 32"},
        Refusal{"more_key_value_heads", R"({"num_key_value_heads": 64})", kCorrupt,
                "key 'num_key_value_heads' is 64, expected a divisor of num_attention_heads 32"},
        Refusal{"odd_head_dim", R"({"head_dim": 127})", kCorrupt, "key 'head_dim' is 127, expected an even integer"},
        Refusal{"head_dim_no_quotient", R"({"head_dim": null, "hidden_size": 2561})", Code::not_found,
                "key 'head_dim' is missing, expected an even integer, for hidden_size 2561 is no even multiple of "
                "num_attention_heads 32"},
        Refusal{"head_dim_odd_quotient", R"({"head_dim": null, "hidden_size": 2592})", Code::not_found,
                "key 'head_dim' is missing, expected an even integer, for hidden_size 2592 is no even multiple of "
                "num_attention_heads 32"},
        Refusal{"no_vocab_size", R"({"vocab_size": null})", Code::not_found,
                "key 'vocab_size' is missing, expected an integer from 1 to 16777216"},
        Refusal{"max_positions_zero", R"({"max_position_embeddings": 0})", kCorrupt,
                "key 'max_position_embeddings' is 0, expected an integer from 1 to 16777216"},
        Refusal{"eps_zero", R"({"rms_norm_eps": 0})", kCorrupt, "key 'rms_norm_eps' is 0, expected a positive float32"},
        Refusal{"eps_negative", R"({"rms_norm_eps": -1e-06})", kCorrupt,
                "key 'rms_norm_eps' is -1e-06, expected a positive float32"},
        Refusal{"eps_vanishes", R"({"rms_norm_eps": 1e-60})", kCorrupt,
                "key 'rms_norm_eps' is 1e-60, expected a positive float32"},
        Refusal{"eps_huge", R"({"rms_norm_eps": 1e60})", kCorrupt,
                "key 'rms_norm_eps' is 1e+60, expected a positive float32"},
        Refusal{"gelu", R"({"hidden_act": "gelu_pytorch_tanh"})", Code::unsupported,
                R"(key 'hidden_act' is "gelu_pytorch_tanh", expected "silu")"},
        Refusal{"gelu_under_another_name", R"({"hidden_activation": "gelu"})", Code::unsupported,
                R"(key 'hidden_activation' is "gelu", expected "silu")"},
        Refusal{"mlp_bias", R"({"mlp_bias": true})", Code::unsupported, "key 'mlp_bias' is true, expected false"},
        Refusal{"bias_text", R"({"attention_bias": "no"})", kCorrupt,
                R"(key 'attention_bias' is "no", expected true or false)"},
        Refusal{"rope", R"({"rope_scaling": {"type": "dynamic"}})", Code::unsupported,
                R"(key 'rope_scaling.type' is "dynamic", expected rope type default, linear, llama3 or yarn)"}),
    refusal_name);

}  // namespace
}  // namespace blockdraft
