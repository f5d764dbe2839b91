#include "nn/weight_store.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/safetensors_writer.h"
#include "support/take.h"

namespace blockdraft {
namespace {

using test::take;
using testing::ElementsAre;
using testing::IsEmpty;

class WeightStoreTest : public testing::Test {
 protected:
  WeightStore store(const std::vector<TensorToWrite>& tensors, const std::string& prefix = "") {
    write_safetensors(folder_ / "model.safetensors", tensors);
    return WeightStore(std::make_shared<const Checkpoint>(take(Checkpoint::open(folder_.path()))), prefix);
  }

 private:
  TempDir folder_;
};

const std::vector<float> kSix = {1, -2, 3, 0.5, 0, -8};

TEST_F(WeightStoreTest, VectorsOfEveryFloatTypeBecomeFloat32) {
  WeightStore weights = store({f32_tensor("a", {3}, {1, -2, 0.1f}), bf16_tensor("b", {3}, {1, -2, 0.5f}),
                               raw_tensor("c", "F16", {3}, std::vector<uint16_t>{0x3c00, 0xc000, 0x3800})});
  const ConstTensorView a = take(weights.vector("a", 3));
  EXPECT_EQ(a.shape, Shape{3});
  EXPECT_THAT(std::vector<float>(a.f32(), a.f32() + 3), ElementsAre(1.0f, -2.0f, 0.1f));
  for (const char* name : {"b", "c"}) {
    const ConstTensorView view = take(weights.vector(name, 3));
    EXPECT_THAT(std::vector<float>(view.f32(), view.f32() + 3), ElementsAre(1.0f, -2.0f, 0.5f)) << name;
  }
  EXPECT_THAT(std::vector<float>(a.f32(), a.f32() + 3), ElementsAre(1.0f, -2.0f, 0.1f)) << "views stay valid";
}

TEST_F(WeightStoreTest, VectorsAreRefusedByName) {
  WeightStore weights = store({f32_tensor("short", {2}, {1, 2}), raw_tensor("ids", "I64", {1}, std::vector<int64_t>{1}),
                               f32_tensor("nan", {1}, {std::nanf("")}),
                               f32_tensor("inf", {1}, {std::numeric_limits<float>::infinity()})});
  expect_error(weights.vector("short", 3), Code::mismatch, {"model.safetensors", "'short'", "[2]", "3"});
  expect_error(weights.vector("ids", 1), Code::unsupported, {"model.safetensors", "'ids'", "I64", "F32"});
  expect_error(weights.vector("nan", 1), Code::corrupt_file, {"'nan'", "not finite"});
  expect_error(weights.vector("inf", 1), Code::corrupt_file, {"'inf'", "not finite"});
  expect_error(weights.vector("gone", 1), Code::not_found, {"gone"});
}

TEST_F(WeightStoreTest, MatricesStayInTheFile) {
  WeightStore weights = store(
      {bf16_tensor("p.weight", {2, 3}, kSix), f32_tensor("p.bias", {2}, {7, 8}), f32_tensor("q.weight", {2, 3}, kSix)});
  const WeightView p = take(weights.matrix("p", 2, 3, true));
  EXPECT_EQ(p.data, weights.checkpoint().find("p.weight")->data);
  EXPECT_EQ(p.dtype, DType::bf16);
  EXPECT_EQ(p.out_features, 2);
  EXPECT_EQ(p.in_features, 3);
  EXPECT_EQ(p.row_scales, nullptr);
  ASSERT_NE(p.bias, nullptr);
  EXPECT_EQ(p.bias[1], 8.0f);
  EXPECT_EQ(take(weights.matrix("q", 2, 3)).bias, nullptr);
}

const std::vector<uint8_t> kCodes = {0x38, 0xb8, 0x40, 0x01, 0x00, 0x7e};

TEST_F(WeightStoreTest, Fp8NeedsAScaleForEachRow) {
  const std::vector<float> scales = {0.5f, 2.0f};
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{2, 1}, std::vector<int64_t>{2}}) {
    WeightStore weights = store({fp8_tensor("p.weight", {2, 3}, kCodes), bf16_tensor("p.weight_scale", shape, scales)});
    const WeightView p = take(weights.matrix("p", 2, 3));
    EXPECT_EQ(p.dtype, DType::f8_e4m3);
    EXPECT_THAT(std::vector<float>(p.row_scales, p.row_scales + 2), ElementsAre(0.5f, 2.0f));
    EXPECT_THAT(weights.unused(), IsEmpty());
  }
  WeightStore one_row = store({fp8_tensor("p.weight", {1, 6}, kCodes), f32_tensor("p.weight_scale", {}, {0.25f})});
  EXPECT_EQ(take(one_row.matrix("p", 1, 6)).row_scales[0], 0.25f);
}

TEST_F(WeightStoreTest, OtherScalesOfFp8AreRefused) {
  const TensorToWrite weight = fp8_tensor("p.weight", {2, 3}, kCodes);
  expect_error(store({weight}).matrix("p", 2, 3), Code::not_found,
               {"model.safetensors", "'p.weight'", "F8_E4M3", "'p.weight_scale'"});
  expect_error(store({weight, f32_tensor("p.weight_scale", {2, 3}, kSix)}).matrix("p", 2, 3), Code::mismatch,
               {"'p.weight_scale'", "[2, 3]", "[2, 1]"});
  expect_error(store({weight, f32_tensor("p.weight_scale", {2}, {1, std::nanf("")})}).matrix("p", 2, 3),
               Code::corrupt_file, {"'p.weight_scale'", "not finite"});
  for (const uint8_t code : {uint8_t{0x7f}, uint8_t{0xff}}) {
    std::vector<uint8_t> codes = kCodes;
    codes[4] = code;
    expect_error(
        store({fp8_tensor("p.weight", {2, 3}, codes), f32_tensor("p.weight_scale", {2}, {1, 1})}).matrix("p", 2, 3),
        Code::corrupt_file, {"'p.weight'", "NaN"});
  }
}

TEST_F(WeightStoreTest, OtherFormatsAreRefusedByName) {
  expect_error(store({raw_tensor("p.weight", "I16", {2, 3}, std::vector<uint16_t>(6))}).matrix("p", 2, 3),
               Code::unsupported, {"'p.weight'", "I16", "expected BF16"});
}

TEST_F(WeightStoreTest, MatricesOfAnotherShapeOrMissingAreRefused) {
  WeightStore weights = store({bf16_tensor("p.weight", {2, 3}, kSix), f32_tensor("p.bias", {3}, {1, 2, 3}),
                               bf16_tensor("q.weight", {6}, kSix)});
  expect_error(weights.matrix("p", 3, 2), Code::mismatch, {"model.safetensors", "'p.weight'", "[2, 3]", "[3, 2]"});
  expect_error(weights.matrix("q", 2, 3), Code::mismatch, {"'q.weight'", "[6]", "[2, 3]"});
  expect_error(weights.matrix("r", 2, 3), Code::not_found, {"r.weight"});
  expect_error(weights.matrix("q", 6, 1), Code::mismatch, {"'q.weight'"});
  expect_error(weights.matrix("p", 2, 3, true), Code::mismatch, {"'p.bias'", "[3]", "2"});
  expect_error(store({bf16_tensor("p.weight", {2, 3}, kSix)}).matrix("p", 2, 3, true), Code::not_found, {"p.bias"});
}

TEST_F(WeightStoreTest, KnowsWhatNobodyAskedFor) {
  WeightStore weights = store({bf16_tensor("model.p.weight", {2, 3}, kSix), f32_tensor("model.n.weight", {2}, {1, 2}),
                               raw_tensor("model.d2t", "I64", {1}, std::vector<int64_t>{5}),
                               f32_tensor("model.extra", {1}, {1}), f32_tensor("p.weight", {1}, {1})},
                              "model.");
  EXPECT_TRUE(weights.has("extra"));
  EXPECT_FALSE(weights.has("model.extra"));
  take(weights.matrix("p", 2, 3));
  take(weights.vector("n.weight", 2));
  EXPECT_EQ(take(weights.raw("d2t"))->dtype, DType::i64);
  EXPECT_THAT(weights.unused(), ElementsAre("model.extra", "p.weight"));
  weights.ignore("extra");
  weights.ignore("not there");
  EXPECT_THAT(weights.unused(), ElementsAre("p.weight"));
  expect_error(weights.raw("t2d"), Code::not_found, {"model.t2d"});
}

}  // namespace
}  // namespace blockdraft
