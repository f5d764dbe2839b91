// The checkpoints of the repository: what other writers produce.
#include <gtest/gtest.h>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/config_reader.h"

namespace blockdraft {
namespace {

const std::filesystem::path kSource = BLOCKDRAFT_SOURCE_DIR;

std::vector<std::filesystem::path> golden_folders() {
  std::vector<std::filesystem::path> folders;
  for (const auto& item : std::filesystem::directory_iterator(kSource / "tests" / "golden")) {
    if (std::filesystem::exists(item.path() / "case.json")) folders.push_back(item.path());
  }
  return folders;
}

TEST(RealFiles, EveryGoldenCaseOpens) {
  const auto folders = golden_folders();
  ASSERT_GE(folders.size(), 20u);
  for (const auto& folder : folders) {
    const auto model = Checkpoint::open(folder);
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_FALSE(model->names().empty()) << folder;
    const auto io = SafetensorsFile::open(folder / "io.safetensors");
    ASSERT_TRUE(io.ok()) << io.error().message;
    EXPECT_FALSE(io->tensors().empty()) << folder;
    const auto config = read_config_json(folder);
    ASSERT_TRUE(config.ok()) << config.error().message;
  }
}

// No tensor is lost or counted twice: their bytes and the headers are the files.
TEST(RealFiles, TensorsCoverTheirFiles) {
  for (const auto& folder : golden_folders()) {
    const auto file = SafetensorsFile::open(folder / "model.safetensors");
    ASSERT_TRUE(file.ok()) << file.error().message;
    size_t bytes = 0;
    for (const auto& [name, tensor] : file->tensors()) {
      EXPECT_EQ(tensor.size_bytes, static_cast<size_t>(tensor.num_elements()) * size_of(tensor.dtype)) << name;
      bytes += tensor.size_bytes;
    }
    EXPECT_LT(bytes, file->size_bytes());
    EXPECT_GT(bytes, file->size_bytes() / 2);
  }
}

TEST(RealFiles, TheDemoTargetHasAWeightAndItsScaleInDifferentShards) {
  const auto checkpoint = Checkpoint::open(kSource / "demo" / "pycode-14m");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  const auto embedding = checkpoint->require("model.embed_tokens.weight", Shape{4160, 384});
  ASSERT_TRUE(embedding.ok()) << embedding.error().message;
  EXPECT_EQ((*embedding)->dtype, DType::bf16);

  int split = 0;
  for (const std::string& name : checkpoint->names()) {
    const StoredTensor* scale = checkpoint->find(name + "_scale");
    if (scale == nullptr) continue;
    const StoredTensor* weight = checkpoint->find(name);
    EXPECT_EQ(weight->dtype, DType::f8_e4m3) << name;
    EXPECT_EQ(scale->dtype, DType::f32) << name;
    EXPECT_EQ(scale->shape, (std::vector<int64_t>{weight->shape[0], 1})) << name;
    split += checkpoint->file_of(name) != checkpoint->file_of(name + "_scale") ? 1 : 0;
  }
  EXPECT_GE(split, 1);
}

TEST(RealFiles, TheDemoDraftersOpen) {
  for (const char* name : {"pycode-14m-dflash", "pycode-14m-dflash2", "pycode-14m-dspark"}) {
    const auto checkpoint = Checkpoint::open(kSource / "demo" / name);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    const auto fc = checkpoint->require("fc.weight", Shape{384, 1152});
    ASSERT_TRUE(fc.ok()) << fc.error().message;
    EXPECT_EQ((*fc)->dtype, DType::f8_e4m3);
  }
}

}  // namespace
}  // namespace blockdraft
