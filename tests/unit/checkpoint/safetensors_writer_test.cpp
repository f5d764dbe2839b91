#include "checkpoint/safetensors_writer.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/safetensors.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace blockdraft {
namespace {

std::vector<std::byte> counted(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

TEST(SafetensorsWriter, TheReaderFindsWhatWasWritten) {
  const std::vector<TensorSpec> specs{
      {"a \"name\"", DType::f32, {2, 3}}, {"scalar", DType::f32, {}},        {"b", DType::bf16, {5}},
      {"empty", DType::i64, {0, 4}},      {"codes", DType::f8_e4m3, {3, 1}}, {"packed", DType::u8, {1, 1, 1, 2}}};
  const std::vector<std::byte> bytes = counted(24 + 4 + 10 + 0 + 3 + 2);
  // Pieces end at tensors, inside them, and run over several.
  for (const size_t piece : {size_t{1}, size_t{5}, size_t{26}, bytes.size()}) {
    const TempDir folder;
    auto writer = SafetensorsWriter::create(folder / "t.safetensors", specs);
    ASSERT_TRUE(writer) << writer.error().message;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      ASSERT_TRUE(writer->append(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at))));
    }
    ASSERT_TRUE(writer->finish());
    const auto file = SafetensorsFile::open(folder / "t.safetensors");
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_EQ(file->tensors().size(), specs.size());
    size_t at = 0;
    for (const TensorSpec& spec : specs) {
      const StoredTensor* tensor = file->find(spec.name);
      ASSERT_NE(tensor, nullptr) << spec.name;
      EXPECT_EQ(tensor->dtype, spec.dtype);
      EXPECT_EQ(tensor->shape, spec.shape);
      ASSERT_EQ(tensor->size_bytes, spec.size_bytes());
      EXPECT_TRUE(std::equal(tensor->data, tensor->data + tensor->size_bytes, bytes.data() + at)) << spec.name;
      at += spec.size_bytes();
    }
  }
}

TEST(SafetensorsWriter, TheFirstTensorIsAligned) {
  for (const char* name : {"a", "ab", "abc", "abcdefgh"}) {
    const TempDir folder;
    auto writer = SafetensorsWriter::create(folder / "t.safetensors", {{name, DType::f32, {1}}});
    ASSERT_TRUE(writer && writer->append(counted(4)) && writer->finish());
    EXPECT_EQ((read_file(folder / "t.safetensors").size() - 4) % 8, 0u);
  }
}

TEST(SafetensorsWriter, RefusesAnExistingFileAndAFolderThatIsNotThere) {
  const TempDir folder;
  write_file(folder / "t.safetensors", "mine");
  expect_error(SafetensorsWriter::create(folder / "t.safetensors", {}), Code::io_error, {"t.safetensors", "exists"});
  EXPECT_EQ(read_file(folder / "t.safetensors"), "mine");
  expect_error(SafetensorsWriter::create(folder / "none" / "t.safetensors", {}), Code::io_error, {"none"});
}

TEST(SafetensorsWriterDeathTest, MoreOrFewerBytesThanDeclared) {
  const TempDir folder;
  auto writer = SafetensorsWriter::create(folder / "t.safetensors", {{"a", DType::u8, {3}}});
  ASSERT_TRUE(writer);
  EXPECT_DEATH((void)writer->append(counted(4)), "remaining_");
  EXPECT_DEATH((void)writer->finish(), "remaining_");
}

}  // namespace
}  // namespace blockdraft
