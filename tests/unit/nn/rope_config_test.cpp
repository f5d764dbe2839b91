#include "nn/rope_config.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "support/config_refusal.h"

namespace blockdraft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kMaxPositions = 40960;

struct Reading {
  Result<RopeConfig> rope;
  std::vector<std::string> warnings;
};

Reading read(const char* text) {
  const Json document = Json::parse(text);
  std::vector<std::string> warnings;
  Result<RopeConfig> rope = read_rope_config(ConfigReader(document, "config.json"), kMaxPositions, warnings);
  return {std::move(rope), std::move(warnings)};
}

RopeConfig read_ok(const char* text) {
  const Reading reading = read(text);
  EXPECT_TRUE(reading.rope.ok()) << text << ": " << (reading.rope ? "" : reading.rope.error().message);
  EXPECT_THAT(reading.warnings, IsEmpty()) << text;
  return reading.rope ? *reading.rope : RopeConfig();
}

// The published values have nine digits; ours are the nearest float32.
void expect_frequencies(const RopeConfig& rope, int64_t head_dim, const std::map<size_t, double>& expected) {
  const std::vector<float> found = inverse_frequencies(rope, head_dim);
  ASSERT_EQ(found.size(), static_cast<size_t>(head_dim / 2));
  for (const auto& [pair, frequency] : expected) {
    EXPECT_NEAR(found[pair] / frequency, 1.0, 7e-8) << "pair " << pair;
  }
}

TEST(RopeConfig, FieldFault3_ReadsThetaFromEachPlace) {
  for (
      const char* text : {
          R"({"rope_theta": 5e5})",
          R"({"rope_theta": 500000, "rope_scaling": null, "rope_parameters": null})",
          R"({"rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}})",
          R"({"rope_parameters": {"rope_theta": 500000.0, "type": "default"}})",
          R"({"rope_parameters": {"rope_theta": 500000.0}})",
          R"({"rope_theta": 500000, "rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}})",
          R"({"rope_theta": null, "rope_parameters": {"full_attention": {"rope_theta": 5e5, "rope_type": "default"}}})",
          R"({"rope_parameters": {"full_attention": {"rope_theta": 5e5}, "sliding_attention": {"rope_theta": 5e5}}})",
          R"({"rope_parameters": {"rope_theta": 5e5, "sliding_attention": {}}})",
          R"({"rope_scaling": {"rope_theta": 5e5, "rope_type": "default"}})",
          R"({"rope_theta": 5e5, "rope_scaling": {}, "partial_rotary_factor": 1.0, "is_neox_style": true})",
      }) {
    RopeConfig expected;
    expected.rope_theta = 500000.0;
    EXPECT_EQ(read_ok(text), expected) << text;
  }
}

TEST(RopeConfig, TopLevelThetaWinsWithAWarning) {
  const Reading reading = read(R"({"rope_theta": 10000.0, "rope_parameters": {"rope_theta": 10000000}})");
  ASSERT_TRUE(reading.rope.ok());
  EXPECT_EQ(reading.rope->rope_theta, 10000.0);
  EXPECT_THAT(reading.warnings, ElementsAre("config.json: key 'rope_theta' is 10000.0 but 'rope_parameters.rope_theta' "
                                            "is 10000000; the first is used"));
}

TEST(RopeConfig, FlatThetaWinsOverThatOfALayerType) {
  const Reading reading = read(R"({"rope_parameters": {"rope_theta": 2e4, "full_attention": {"rope_theta": 3e4}}})");
  ASSERT_TRUE(reading.rope.ok());
  EXPECT_EQ(reading.rope->rope_theta, 20000.0);
  EXPECT_THAT(reading.warnings, ElementsAre(HasSubstr("'rope_parameters.full_attention.rope_theta' is 30000.0")));
}

TEST(RopeConfig, FieldFault3_MissingThetaIsNotGuessed) {
  for (const char* text : {"{}", R"({"rope_theta": null})", R"({"rope_parameters": {"rope_type": "default"}})"}) {
    const Reading reading = read(text);
    ASSERT_FALSE(reading.rope.ok()) << text;
    EXPECT_EQ(reading.rope.error().code, Code::not_found);
    EXPECT_EQ(reading.rope.error().message,
              "config.json: key 'rope_theta' is missing, expected a number above 1, there or in rope_parameters");
  }
}

TEST(RopeConfig, ReadsYarnInEitherSpellingAndPlace) {
  RopeConfig expected;
  expected.type = RopeType::yarn;
  expected.rope_theta = 150000.0;
  expected.factor = 32.0;
  expected.original_max_position_embeddings = 4096;
  expected.attention_factor = 1.3465735902799727;
  for (const char* text : {
           R"({"rope_theta": 150000, "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0,
               "beta_slow": 1.0, "original_max_position_embeddings": 4096}})",
           R"({"rope_theta": 150000, "rope_scaling": {"type": "yarn", "factor": 32,
               "original_max_position_embeddings": 4096}})",
           R"({"rope_scaling": null, "rope_parameters": {"rope_theta": 150000, "rope_type": "yarn", "type": "yarn",
               "factor": 32, "original_max_position_embeddings": 4096, "truncate": true}})",
           R"({"rope_theta": 150000, "rope_parameters": {"rope_theta": 150000, "rope_type": "default"},
               "rope_scaling": {"rope_type": "yarn", "factor": 32, "original_max_position_embeddings": 4096,
                                "beta_fast": 0, "beta_slow": 0, "attention_factor": null}})",
           R"({"rope_theta": 150000,
               "rope_scaling": {"type": "yarn", "factor": 32, "original_max_position_embeddings": 4096},
               "rope_parameters": {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0,
                                   "original_max_position_embeddings": 4096}})",
           R"({"rope_parameters": {
               "full_attention": {"rope_theta": 150000, "rope_type": "yarn", "factor": 32,
                                  "original_max_position_embeddings": 4096},
               "sliding_attention": {"rope_theta": 150000.0, "type": "yarn", "factor": 32.0,
                                     "original_max_position_embeddings": 4096, "beta_fast": 32}}})",
       }) {
    const RopeConfig rope = read_ok(text);
    EXPECT_DOUBLE_EQ(rope.attention_factor, expected.attention_factor) << text;
    expected.attention_factor = rope.attention_factor;
    EXPECT_EQ(rope, expected) << text;
  }
}

TEST(RopeConfig, RopeParametersWinOverRopeScalingWithAWarning) {
  const Reading reading = read(R"({"rope_theta": 1e4, "rope_parameters": {"rope_type": "linear", "factor": 2},
                                   "rope_scaling": {"rope_type": "linear", "factor": 4}})");
  ASSERT_TRUE(reading.rope.ok());
  EXPECT_EQ(reading.rope->factor, 2.0);
  ASSERT_EQ(reading.warnings.size(), 1u);
  EXPECT_THAT(reading.warnings[0], HasSubstr(R"('rope_parameters' ({"factor":2,"rope_type":"linear"}))"));
  EXPECT_THAT(reading.warnings[0], HasSubstr(R"('rope_scaling' ({"factor":4,"rope_type":"linear"}))"));
}

TEST(RopeConfig, YarnLengthFallsBackToMaxPositions) {
  for (const char* text : {R"({"rope_theta": 1e4, "rope_scaling": {"type": "yarn", "factor": 2}})",
                           R"({"rope_theta": 1e4, "rope_scaling": {"type": "yarn", "factor": 2,
                               "original_max_position_embeddings": 0}})"}) {
    EXPECT_EQ(read_ok(text).original_max_position_embeddings, kMaxPositions) << text;
  }
}

TEST(RopeConfig, ResolvesTheAttentionFactor) {
  const auto factor_with = [](const std::string& keys) {
    return read_ok((R"({"rope_theta": 1e4, "rope_scaling": {"type": "yarn", "factor": 16)" + keys + "}}").c_str())
        .attention_factor;
  };
  const double plain = 0.1 * std::log(16.0) + 1.0;
  EXPECT_DOUBLE_EQ(factor_with(""), plain);
  EXPECT_DOUBLE_EQ(factor_with(R"(, "attention_factor": 0.75, "mscale": 2, "mscale_all_dim": 1)"), 0.75);
  EXPECT_DOUBLE_EQ(factor_with(R"(, "mscale": 1.0, "mscale_all_dim": 1.0)"), 1.0);
  EXPECT_DOUBLE_EQ(factor_with(R"(, "mscale": 2.0, "mscale_all_dim": 0.5)"),
                   (0.2 * std::log(16.0) + 1.0) / (0.05 * std::log(16.0) + 1.0));
  EXPECT_DOUBLE_EQ(factor_with(R"(, "mscale": 2.0)"), plain);
  EXPECT_DOUBLE_EQ(factor_with(R"(, "mscale": 2.0, "mscale_all_dim": 0)"), plain);
  EXPECT_EQ(read_ok(R"({"rope_theta": 1e4, "rope_scaling": {"type": "yarn", "factor": 1}})").attention_factor, 1.0);
}

TEST(RopeConfig, PlainFrequencies) {
  RopeConfig rope;
  rope.rope_theta = 10000.0;
  expect_frequencies(rope, 8, {{0, 1.0}, {1, 0.1}, {2, 0.01}, {3, 0.001}});
}

TEST(RopeConfig, LinearFrequencies) {
  const RopeConfig rope = read_ok(R"({"rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 4}})");
  EXPECT_EQ(rope.type, RopeType::linear);
  EXPECT_EQ(rope.attention_factor, 1.0);
  expect_frequencies(rope, 8, {{0, 0.25}, {1, 0.025}, {2, 0.0025}, {3, 0.00025}});
}

// The vectors of spec section 10.
TEST(RopeConfig, YarnFrequenciesOfTheSpec) {
  expect_frequencies(read_ok(R"({"rope_theta": 150000, "rope_scaling": {"rope_type": "yarn", "factor": 32,
                                 "original_max_position_embeddings": 4096}})"),
                     64,
                     {{0, 1.0},
                      {1, 0.689044306},
                      {8, 0.0508132748},
                      {9, 0.0316207523},
                      {12, 0.00701571391},
                      {16, 0.000580947502},
                      {17, 0.000227947796},
                      {18, 3.83088124e-05},
                      {31, 3.02351143e-07}});
}

TEST(RopeConfig, UntruncatedYarnFrequenciesOfTheSpec) {
  expect_frequencies(read_ok(R"({"rope_theta": 150000, "rope_scaling": {"rope_type": "yarn", "factor": 32,
                                 "original_max_position_embeddings": 4096, "truncate": false}})"),
                     64,
                     {{0, 1.0},
                      {1, 0.689044306},
                      {8, 0.0508132748},
                      {9, 0.0317056962},
                      {12, 0.00679495949},
                      {16, 0.000456483919},
                      {17, 0.000129318701},
                      {18, 3.83088124e-05},
                      {31, 3.02351143e-07}});
}

TEST(RopeConfig, SecondYarnVectorOfTheSpec) {
  const RopeConfig rope = read_ok(R"({"rope_theta": 10000, "rope_scaling": {"rope_type": "yarn", "factor": 16,
                                      "original_max_position_embeddings": 4096}})");
  EXPECT_DOUBLE_EQ(rope.attention_factor, 1.2772588722239782);
  expect_frequencies(rope, 64,
                     {{9, 0.0749894209},
                      {10, 0.0562341325},
                      {12, 0.0270617992},
                      {16, 0.00567307692},
                      {20, 0.000881788963},
                      {24, 6.25e-05},
                      {31, 8.33450895e-06}});
}

// A share `ramp` of the interpolated frequency, the rest of the plain one.
double blended(double theta, double pair, double head_dim, double ramp, double factor) {
  return std::pow(theta, -2.0 * pair / head_dim) * (1.0 - ramp + ramp / factor);
}

// Here the ramp would begin at -3 and end at 10.
TEST(RopeConfig, YarnRampBeginsAtZero) {
  const RopeConfig rope = read_ok(R"({"rope_theta": 10000, "rope_scaling": {"rope_type": "yarn", "factor": 2,
                                      "original_max_position_embeddings": 100}})");
  expect_frequencies(rope, 64, {{0, 1.0}, {5, blended(1e4, 5, 64, 0.5, 2)}, {10, blended(1e4, 10, 64, 1.0, 2)}});
}

// Here it would begin at 0 and end at 12; the bound is the last dimension, not the last pair.
TEST(RopeConfig, YarnRampEndsAtTheLastDimension) {
  const RopeConfig rope = read_ok(R"({"rope_theta": 10, "rope_scaling": {"rope_type": "yarn", "factor": 2,
                                      "original_max_position_embeddings": 4096, "beta_fast": 640}})");
  expect_frequencies(rope, 8, {{0, 1.0}, {1, blended(10, 1, 8, 1.0 / 7.0, 2)}, {3, blended(10, 3, 8, 3.0 / 7.0, 2)}});
}

// Both bounds fall to 0: a step, not a division by zero.
TEST(RopeConfig, YarnRampWithEqualBoundsIsAStep) {
  const RopeConfig rope = read_ok(R"({"rope_theta": 10000, "rope_scaling": {"rope_type": "yarn", "factor": 2,
                                      "original_max_position_embeddings": 6}})");
  expect_frequencies(rope, 64, {{0, 1.0}, {1, blended(1e4, 1, 64, 1.0, 2)}, {31, blended(1e4, 31, 64, 1.0, 2)}});
}

TEST(RopeConfig, Describe) {
  EXPECT_EQ(describe(read_ok(R"({"rope_theta": 1000000})")), "plain, theta 1e+06");
  EXPECT_EQ(describe(read_ok(R"({"rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 2.5}})")),
            "linear, theta 10000, factor 2.5");
  EXPECT_EQ(describe(read_ok(R"({"rope_theta": 150000, "rope_scaling": {"type": "yarn", "factor": 32,
                                 "original_max_position_embeddings": 4096}})")),
            "yarn, theta 150000, factor 32, original length 4096");
}

class RopeRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(RopeRefusal, NamesKeyFoundAndExpected) { expect_refusal(read(GetParam().patch).rope, GetParam()); }

#define YARN(keys) R"({"rope_theta": 1e4, "rope_scaling": {"rope_type": "yarn", "factor": 2, )" keys "}}"

INSTANTIATE_TEST_SUITE_P(
    All, RopeRefusal,
    testing::Values(
        Refusal{"theta_text", R"({"rope_theta": "1e6"})", Code::corrupt_file,
                R"(key 'rope_theta' is "1e6", expected a number)"},
        Refusal{"theta_one", R"({"rope_theta": 1})", Code::corrupt_file,
                "key 'rope_theta' is 1, expected a number above 1"},
        Refusal{"theta_negative", R"({"rope_parameters": {"rope_theta": -10000.0}})", Code::corrupt_file,
                "key 'rope_parameters.rope_theta' is -10000.0, expected a number above 1"},
        Refusal{
            "llama3", R"({"rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}})", Code::not_found,
            "key 'rope_scaling.original_max_position_embeddings' is missing, expected an integer from 1 to 16777216"},
        Refusal{"dynamic", R"({"rope_parameters": {"rope_theta": 1e4, "type": "dynamic", "factor": 2}})",
                Code::unsupported,
                R"(key 'rope_parameters.type' is "dynamic", expected rope type default, linear, llama3 or yarn)"},
        Refusal{"unused_dictionary",
                R"({"rope_theta": 1e4, "rope_parameters": {"rope_type": "linear", "factor": 2},
                    "rope_scaling": {"rope_type": "longrope"}})",
                Code::unsupported,
                R"(key 'rope_scaling.rope_type' is "longrope", expected rope type default, linear, llama3 or yarn)"},
        Refusal{"type_number", R"({"rope_theta": 1e4, "rope_scaling": {"rope_type": 3}})", Code::corrupt_file,
                "key 'rope_scaling.rope_type' is 3, expected a string"},
        Refusal{"two_types", R"({"rope_theta": 1e4, "rope_scaling": {"rope_type": "yarn", "type": "linear"}})",
                Code::corrupt_file,
                R"(key 'rope_scaling.rope_type' is "yarn", expected the value of 'rope_scaling.type', "linear")"},
        Refusal{"no_type", R"({"rope_theta": 1e4, "rope_scaling": {"factor": 2.0}})", Code::not_found,
                "key 'rope_scaling.rope_type' is missing, expected rope type default, linear, llama3 or yarn"},
        Refusal{"list", R"({"rope_theta": 1e4, "rope_scaling": [1, 2]})", Code::corrupt_file,
                "key 'rope_scaling' is [1, 2], expected an object"},
        Refusal{"mrope",
                R"({"rope_parameters": {"rope_theta": 1e7, "rope_type": "default", "mrope_section": [11, 11, 10]}})",
                Code::unsupported,
                "key 'rope_parameters.mrope_section' is [11, 11, 10], expected no such key with rope type default"},
        Refusal{"factor_without_scaling", R"({"rope_parameters": {"rope_theta": 1e7, "rope_type": "default",
                                              "factor": 2}})",
                Code::unsupported, "key 'rope_parameters.factor' is 2, expected no such key with rope type default"},
        Refusal{"linear_beta",
                R"({"rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 2, "beta_fast": 4}})",
                Code::unsupported, "key 'rope_scaling.beta_fast' is 4, expected no such key with rope type linear"},
        Refusal{"yarn_unknown_key", YARN(R"("extrapolation_factor": 1.0)"), Code::unsupported,
                "key 'rope_scaling.extrapolation_factor' is 1.0, expected no such key with rope type yarn"},
        Refusal{"no_factor", R"({"rope_theta": 1e4, "rope_scaling": {"type": "yarn"}})", Code::not_found,
                "key 'rope_scaling.factor' is missing, expected a number of at least 1"},
        Refusal{"small_factor", R"({"rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 0.5}})",
                Code::corrupt_file, "key 'rope_scaling.factor' is 0.5, expected a number of at least 1"},
        Refusal{"original_negative", YARN(R"("original_max_position_embeddings": -1)"), Code::corrupt_file,
                "key 'rope_scaling.original_max_position_embeddings' is -1, expected an integer from 0 to 16777216"},
        Refusal{
            "original_fraction", YARN(R"("original_max_position_embeddings": 4096.5)"), Code::corrupt_file,
            "key 'rope_scaling.original_max_position_embeddings' is 4096.5, expected an integer from 0 to 16777216"},
        Refusal{"beta_negative", YARN(R"("beta_fast": -32)"), Code::corrupt_file,
                "key 'rope_scaling.beta_fast' is -32, expected a number of at least 0"},
        Refusal{"beta_order", YARN(R"("beta_fast": 2, "beta_slow": 4)"), Code::corrupt_file,
                "'rope_scaling.beta_fast' is 2 and 'rope_scaling.beta_slow' is 4, expected the first to be no smaller"},
        Refusal{"truncate_number", YARN(R"("truncate": 1)"), Code::corrupt_file,
                "key 'rope_scaling.truncate' is 1, expected true or false"},
        Refusal{"attention_factor_zero", YARN(R"("attention_factor": 0)"), Code::corrupt_file,
                "key 'rope_scaling.attention_factor' is 0, expected a number above 0"},
        Refusal{"attention_factor_huge", YARN(R"("attention_factor": 1e200)"), Code::corrupt_file,
                "the attention factor of 'rope_scaling.attention_factor' is 1e+200, expected a positive float32"},
        Refusal{"mscale_negative", YARN(R"("mscale": -1)"), Code::corrupt_file,
                "key 'rope_scaling.mscale' is -1, expected a number of at least 0"},
        Refusal{"partial_top", R"({"rope_theta": 1e4, "partial_rotary_factor": 0.5})", Code::unsupported,
                "key 'partial_rotary_factor' is 0.5, expected 1 (partial rotary embeddings are not supported)"},
        Refusal{"partial_nested", R"({"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.25}})",
                Code::unsupported,
                "key 'rope_parameters.partial_rotary_factor' is 0.25, expected 1 (partial rotary embeddings are not "
                "supported)"},
        Refusal{"interleaved", R"({"rope_theta": 1e4, "is_neox_style": false})", Code::unsupported,
                "key 'is_neox_style' is false, expected true (half-split pairs)"},
        Refusal{"rope_interleaved", R"({"rope_theta": 1e4, "rope_is_neox_style": false})", Code::unsupported,
                "key 'rope_is_neox_style' is false, expected true (half-split pairs)"},
        Refusal{
            "layer_types_differ",
            R"({"rope_parameters": {"full_attention": {"rope_theta": 1e6},
                                        "sliding_attention": {"rope_theta": 1e4}}})",
            Code::unsupported,
            R"(key 'rope_parameters.sliding_attention' is an object, expected {"rope_theta":1000000.0} as in )"
            R"('rope_parameters.full_attention', not {"rope_theta":10000.0}: all layers share one rotary embedding)"},
        Refusal{
            "layer_type_unknown", R"({"rope_parameters": {"full_attention": {"rope_theta": 1e6},
                                          "linear_attention": {}}})",
            Code::unsupported,
            "key 'rope_parameters.linear_attention' is an object, expected no such key beside those of layer types"},
        Refusal{"layer_type_number", R"({"rope_parameters": {"full_attention": 5}})", Code::corrupt_file,
                "key 'rope_parameters.full_attention' is 5, expected an object"}),
    refusal_name);

#undef YARN

}  // namespace
}  // namespace blockdraft
