#include "checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/safetensors_writer.h"

namespace blockdraft {
namespace {

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kFirst = "model-00001-of-00002.safetensors";
constexpr const char* kSecond = "model-00002-of-00002.safetensors";

// a.weight in the first shard; its scale and b in the second.
class Sharded : public ::testing::Test {
 protected:
  Sharded() {
    write_safetensors(folder_ / kFirst, {fp8_tensor("a.weight", {2, 2}, {1, 2, 3, 4})});
    write_safetensors(folder_ / kSecond,
                      {f32_tensor("a.weight_scale", {2, 1}, {0.5f, 2.0f}), bf16_tensor("b", {2}, {1.0f, 2.0f})});
    write_shard_index(folder_.path(), {{"a.weight", kFirst}, {"a.weight_scale", kSecond}, {"b", kSecond}});
  }
  void write_index(const std::string& text) { write_file(folder_ / kIndex, text); }
  auto open() const { return Checkpoint::open(folder_.path()); }

  TempDir folder_;
};

TEST(Checkpoint, OpensASingleFile) {
  const TempDir folder;
  write_safetensors(folder / "model.safetensors", {f32_tensor("w", {2, 3}, {1, 2, 3, 4, 5, 6})});
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->folder(), folder.path());
  EXPECT_EQ(checkpoint->names(), std::vector<std::string>{"w"});
  EXPECT_EQ(checkpoint->file_of("w"), (folder / "model.safetensors").string());
  EXPECT_EQ(checkpoint->mapped_bytes(), std::filesystem::file_size(folder / "model.safetensors"));
  EXPECT_EQ(checkpoint->find("v"), nullptr);
}

TEST(Checkpoint, RequireChecksPresenceAndShape) {
  const TempDir folder;
  write_safetensors(folder / "model.safetensors", {f32_tensor("w", {2, 3}, {1, 2, 3, 4, 5, 6})});
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  const auto tensor = checkpoint->require("w", Shape{2, 3});
  ASSERT_TRUE(tensor.ok()) << tensor.error().message;
  EXPECT_EQ(load_unaligned<float>((*tensor)->data + 20), 6.0f);
  expect_error(checkpoint->require("v"), Code::not_found, {folder.path().string(), "'v'", "missing"});
  expect_error(checkpoint->require("v", Shape{2, 3}), Code::not_found, {"'v'"});
  expect_error(checkpoint->require("w", Shape{3, 2}), Code::mismatch,
               {"model.safetensors", "'w'", "has shape [2, 3]", "expected [3, 2]"});
  expect_error(checkpoint->require("w", Shape{6}), Code::mismatch, {"has shape [2, 3]", "expected [6]"});
}

TEST(Checkpoint, RefusesAFolderWithoutWeights) {
  const TempDir folder;
  expect_error(Checkpoint::open(folder.path()), Code::not_found, {folder.path().string(), "model.safetensors", kIndex});
  expect_error(Checkpoint::open(folder / "absent"), Code::not_found, {"absent", "no such folder"});
  write_file(folder / "file", "x");
  expect_error(Checkpoint::open(folder / "file"), Code::not_found, {"file", "no such folder"});
}

TEST(Checkpoint, RefusesABrokenSingleFile) {
  const TempDir folder;
  write_file(folder / "model.safetensors", "not weights");
  expect_error(Checkpoint::open(folder.path()), Code::corrupt_file, {"model.safetensors", "header length"});
}

TEST(Checkpoint, ADanglingLinkIsNamed) {
  const TempDir folder;
  std::filesystem::create_symlink(folder / "nowhere", folder / "model.safetensors");
  expect_error(Checkpoint::open(folder.path()), Code::not_found, {"model.safetensors", "No such file"});
}

// Download caches store every file as a link to a blob elsewhere.
TEST(Checkpoint, ShardsMayBeLinks) {
  const TempDir blobs;
  const TempDir folder;
  write_safetensors(blobs / "0123", {f32_tensor("w", {1}, {1})});
  std::filesystem::create_symlink(blobs / "0123", folder / kFirst);
  write_shard_index(folder.path(), {{"w", kFirst}});
  const auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message;
}

TEST_F(Sharded, FindsTensorsOverAllShards) {
  const auto checkpoint = open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->names(), (std::vector<std::string>{"a.weight", "a.weight_scale", "b"}));
  EXPECT_EQ(checkpoint->file_of("a.weight"), (folder_ / kFirst).string());
  EXPECT_EQ(checkpoint->file_of("a.weight_scale"), (folder_ / kSecond).string());
  EXPECT_EQ(checkpoint->find("a.weight")->data[3], std::byte{4});
  EXPECT_EQ(load_unaligned<float>(checkpoint->find("a.weight_scale")->data + 4), 2.0f);
  EXPECT_EQ(checkpoint->mapped_bytes(),
            std::filesystem::file_size(folder_ / kFirst) + std::filesystem::file_size(folder_ / kSecond));
}

TEST_F(Sharded, HeadersOfShardsAreEnoughToLookAt) {
  const size_t whole_bytes = open()->data_bytes();
  const std::string second = read_file(folder_ / kSecond);
  write_file(folder_ / kSecond, second.substr(0, second.size() - 1));
  expect_error(open(), Code::corrupt_file, {kSecond});
  const auto checkpoint = Checkpoint::open(folder_.path(), TensorData::optional);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_FALSE(checkpoint->has_data());
  EXPECT_EQ(checkpoint->data_bytes(), whole_bytes - 1);
  EXPECT_EQ(checkpoint->names().size(), 3u);
}

TEST_F(Sharded, RefusesASingleFileBesideTheIndex) {
  write_safetensors(folder_ / "model.safetensors", {f32_tensor("w", {1}, {1})});
  expect_error(open(), Code::mismatch, {folder_.path().string(), "both", "model.safetensors", kIndex});
}

TEST_F(Sharded, RefusesAMissingShard) {
  std::filesystem::remove(folder_ / kSecond);
  expect_error(open(), Code::not_found, {kSecond, "missing", kIndex, "'a.weight_scale'"});
}

TEST_F(Sharded, RefusesAShardThatIsAFolder) {
  std::filesystem::remove(folder_ / kSecond);
  std::filesystem::create_directory(folder_ / kSecond);
  expect_error(open(), Code::io_error, {kSecond, "not a regular file"});
}

TEST_F(Sharded, RefusesABrokenShard) {
  write_file(folder_ / kSecond, safetensors_from_header(R"({"b":1})"));
  expect_error(open(), Code::corrupt_file, {kSecond, "'b'"});
}

TEST_F(Sharded, RefusesShardsOutsideTheFolder) {
  for (const char* name :
       {"/etc/passwd", "../model.safetensors", "..", ".", "", "sub/model.safetensors",
        "./model-00001-of-00002.safetensors", "sub\\\\model.safetensors", "model\\u0000.safetensors"}) {
    write_index(fmt::format(R"({{"weight_map":{{"a.weight":"{}"}}}})", name));
    expect_error(open(), Code::corrupt_file, {kIndex, "'a.weight'", "a file in the same folder"});
  }
}

TEST_F(Sharded, RefusesShardNamesThatAreNotStrings) {
  write_index(R"({"weight_map":{"a.weight":1}})");
  expect_error(open(), Code::corrupt_file, {kIndex, "'a.weight'", "lies in 1", "the name of a file"});
  write_index(R"({"weight_map":{"a.weight":["x"]}})");
  expect_error(open(), Code::corrupt_file, {kIndex, "'a.weight'", "lies in [\"x\"]"});
}

TEST_F(Sharded, RefusesAnIndexWithoutAWeightMap) {
  write_index("[]");
  expect_error(open(), Code::corrupt_file, {kIndex, "a list", "an object"});
  write_index("{}");
  expect_error(open(), Code::corrupt_file, {kIndex, "'weight_map' is missing"});
  write_index(R"({"weight_map":"model"})");
  expect_error(open(), Code::corrupt_file, {kIndex, "'weight_map' is a string", "an object"});
  write_index(R"({"weight_map":{}})");
  expect_error(open(), Code::corrupt_file, {kIndex, "names no tensors"});
  write_index("");
  expect_error(open(), Code::corrupt_file, {kIndex, "empty"});
  write_index("{\"weight_map\":" + std::string(100'000, '['));
  expect_error(open(), Code::corrupt_file, {kIndex, "nested deeper"});
}

TEST_F(Sharded, RefusesATensorThatTheIndexNamesTwice) {
  write_index(fmt::format(R"({{"weight_map":{{"a.weight":"{}","a.weight":"{}"}}}})", kFirst, kSecond));
  expect_error(open(), Code::corrupt_file, {kIndex, "'a.weight'", "twice"});
}

TEST_F(Sharded, RefusesAShardThatLacksATensor) {
  write_shard_index(folder_.path(),
                    {{"a.weight", kFirst}, {"a.weight_scale", kSecond}, {"b", kSecond}, {"c", kSecond}});
  expect_error(open(), Code::mismatch, {kSecond, "does not hold", "'c'", kIndex});
}

TEST_F(Sharded, RefusesATensorThatTheIndexDoesNotName) {
  write_shard_index(folder_.path(), {{"a.weight", kFirst}, {"b", kSecond}});
  expect_error(open(), Code::mismatch, {kSecond, "holds tensor 'a.weight_scale'", kIndex, "does not name"});
}

TEST_F(Sharded, RefusesATensorThatTwoShardsHold) {
  write_safetensors(folder_ / kFirst,
                    {fp8_tensor("a.weight", {2, 2}, {1, 2, 3, 4}), bf16_tensor("b", {2}, {1.0f, 2.0f})});
  expect_error(open(), Code::mismatch, {kFirst, "holds tensor 'b'", kIndex, "places in shard", kSecond});
}

// One file under two names: each of its tensors is held twice.
TEST_F(Sharded, RefusesOneShardUnderTwoNames) {
  std::filesystem::remove(folder_ / kFirst);
  std::filesystem::create_symlink(folder_ / kSecond, folder_ / kFirst);
  write_shard_index(folder_.path(), {{"a.weight_scale", kFirst}, {"b", kSecond}});
  expect_error(open(), Code::mismatch, {kFirst, "'b'", kSecond});
}

}  // namespace
}  // namespace blockdraft
