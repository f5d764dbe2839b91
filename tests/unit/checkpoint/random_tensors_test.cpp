#include "checkpoint/random_tensors.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "checkpoint/checkpoint.h"
#include "support/expect_error.h"
#include "support/safetensors_writer.h"
#include "tensor/codec.h"

namespace blockdraft {
namespace {

std::vector<float> values_of(const StoredTensor& tensor) {
  std::vector<float> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    values.push_back(float_from_bf16(load_unaligned<uint16_t>(tensor.data + 2 * i)));
  }
  return values;
}

std::vector<float> made(RandomTensors& tensors, const std::string& name, const Shape& shape) {
  EXPECT_TRUE(tensors.make(name, shape).ok());
  const StoredTensor& tensor = tensors.tensors().at(name);
  EXPECT_EQ(tensor.dtype, DType::bf16);
  EXPECT_EQ(Shape(tensor.shape), shape);
  return values_of(tensor);
}

double mean_square(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return sum / static_cast<double>(values.size());
}

// Large enough for several tasks, and not a multiple of what a task fills.
constexpr int64_t kRows = 301, kColumns = 1000;

TEST(RandomTensors, MatricesKeepTheMagnitudeOfActivations) {
  RandomTensors tensors(7);
  const std::vector<float> values = made(tensors, "w", {kRows, kColumns});
  EXPECT_NEAR(mean_square(values) * kColumns, 1.0, 0.02);
  double sum = 0;
  for (const float value : values) sum += value;
  EXPECT_NEAR(sum / static_cast<double>(values.size()), 0.0, 0.001);
  // No part is left out, and none repeats another.
  const std::set<std::vector<float>> rows = [&] {
    std::set<std::vector<float>> all;
    for (auto row = values.begin(); row != values.end(); row += kColumns) all.emplace(row, row + kColumns);
    return all;
  }();
  EXPECT_EQ(rows.size(), static_cast<size_t>(kRows));
}

TEST(RandomTensors, NormsAreNearOneAndBiasesNearZero) {
  RandomTensors tensors(7);
  for (const float value : made(tensors, "norm.weight", {500})) EXPECT_NEAR(value, 1.0f, 0.105f);
  const std::vector<float> bias = made(tensors, "proj.bias", {500});
  for (const float value : bias) EXPECT_NEAR(value, 0.0f, 0.105f);
  EXPECT_GT(mean_square(bias), 0.001);
}

TEST(RandomTensors, SeedAndOrderDecide) {
  RandomTensors first(7), again(7), other(8);
  const std::vector<float> a = made(first, "a", {kRows, kColumns});
  EXPECT_EQ(made(again, "a", {kRows, kColumns}), a);
  EXPECT_NE(made(other, "a", {kRows, kColumns}), a);
  EXPECT_NE(made(first, "b", {kRows, kColumns}), a);
  EXPECT_EQ(made(first, "a", {kRows, kColumns}), a) << "a tensor that is there stays";
  EXPECT_EQ(first.size_bytes(), static_cast<size_t>(2 * kRows * kColumns * 2));
}

TEST(RandomCheckpoint, HoldsWhatItWasAskedFor) {
  const TempDir folder;
  const auto checkpoint = Checkpoint::open_source({folder.path(), 3});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_TRUE(checkpoint->has_data());
  EXPECT_EQ(checkpoint->find("w"), nullptr);
  EXPECT_TRUE(checkpoint->provide("w", {2, 3}).ok());
  EXPECT_TRUE(checkpoint->require("w", Shape{2, 3}).ok());
  EXPECT_EQ(checkpoint->names(), std::vector<std::string>{"w"});
  EXPECT_EQ(checkpoint->mapped_bytes(), 12u);
  EXPECT_EQ(checkpoint->data_bytes(), 12u);
  EXPECT_EQ(checkpoint->file_of("w"), folder.path().string());
}

TEST(RandomCheckpoint, RefusesAFolderWithWeights) {
  const TempDir folder;
  write_safetensors(folder / "model.safetensors", {f32_tensor("w", {1}, {1})});
  expect_error(Checkpoint::open_source({folder.path(), 3}), Code::invalid_argument,
               {"model.safetensors", "no weights"});
  const auto stored = Checkpoint::open_source({folder.path()});
  ASSERT_TRUE(stored.ok()) << stored.error().message;
  EXPECT_TRUE(stored->provide("v", {1}).ok());
  EXPECT_EQ(stored->find("v"), nullptr) << "nothing is made up beside files";
}

}  // namespace
}  // namespace blockdraft
