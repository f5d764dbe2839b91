#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/safetensors.h"
#include "support/expect_error.h"
#include "support/safetensors_writer.h"

namespace blockdraft {
namespace {

TEST(SafetensorsFile, GivesTheBytesOfEachTensor) {
  const TempDir folder;
  write_safetensors(folder / "w.safetensors",
                    {fp8_tensor("codes", {3}, {0x38, 0xb8, 0x7e}), f32_tensor("scale", {1, 2}, {1.5f, -2.0f}),
                     bf16_tensor("half", {2}, {1.0f, -0.5f}), f32_tensor("none", {0}, {})});
  auto file = SafetensorsFile::open(folder / "w.safetensors");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->path(), folder / "w.safetensors");
  EXPECT_EQ(file->size_bytes(), std::filesystem::file_size(folder / "w.safetensors"));
  EXPECT_EQ(file->find("absent"), nullptr);

  // A move must not invalidate the pointers into the mapping.
  const SafetensorsFile moved = std::move(*file);
  const StoredTensor* codes = moved.find("codes");
  ASSERT_NE(codes, nullptr);
  EXPECT_EQ(codes->dtype, DType::f8_e4m3);
  EXPECT_EQ(codes->num_elements(), 3);
  EXPECT_EQ(codes->size_bytes, 3u);
  EXPECT_EQ(codes->data[2], std::byte{0x7e});
  // Three bytes of codes before it: not aligned to its element size, and read all the same.
  const StoredTensor* scale = moved.find("scale");
  ASSERT_NE(scale, nullptr);
  EXPECT_EQ(scale->shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(load_unaligned<float>(scale->data), 1.5f);
  EXPECT_EQ(load_unaligned<float>(scale->data + 4), -2.0f);
  EXPECT_EQ(float_from_bf16(load_unaligned<uint16_t>(moved.find("half")->data + 2)), -0.5f);
  EXPECT_EQ(moved.find("none")->num_elements(), 0);
  EXPECT_EQ(moved.find("none")->size_bytes, 0u);
}

TEST(SafetensorsFile, AScalarHasOneElement) {
  const TempDir folder;
  write_safetensors(folder / "w.safetensors", {f32_tensor("s", {}, {3.0f})});
  const auto file = SafetensorsFile::open(folder / "w.safetensors");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->find("s")->num_elements(), 1);
}

TEST(SafetensorsFile, RefusalsNameTheFile) {
  const TempDir folder;
  expect_error(SafetensorsFile::open(folder / "absent.safetensors"), Code::not_found,
               {"absent.safetensors", "No such file"});
  write_file(folder / "empty.safetensors", "");
  expect_error(SafetensorsFile::open(folder / "empty.safetensors"), Code::corrupt_file, {"empty.safetensors", "empty"});
  write_file(folder / "cut.safetensors", safetensors_from({f32_tensor("w", {4}, {1, 2, 3, 4})}).substr(0, 70));
  expect_error(SafetensorsFile::open(folder / "cut.safetensors"), Code::corrupt_file, {"cut.safetensors", "'w'"});
  expect_error(SafetensorsFile::open(folder.path()), Code::io_error, {folder.path().string(), "not a regular file"});
}

// Every prefix of a good file is an error, and nothing worse.
TEST(SafetensorsFile, EveryTruncationIsAnError) {
  const TempDir folder;
  const std::string whole = safetensors_from({f32_tensor("w", {2}, {1, 2}), bf16_tensor("v", {3}, {1, 2, 3})});
  for (size_t size = 0; size < whole.size(); ++size) {
    write_file(folder / "w.safetensors", whole.substr(0, size));
    expect_error(SafetensorsFile::open(folder / "w.safetensors"), Code::corrupt_file, {"w.safetensors"});
  }
  write_file(folder / "w.safetensors", whole);
  EXPECT_TRUE(SafetensorsFile::open(folder / "w.safetensors").ok());
}

// The beginning of a download, cut anywhere behind its header, can be looked at.
TEST(SafetensorsFile, DataMayBeOptional) {
  const TempDir folder;
  const std::string whole = safetensors_from({f32_tensor("w", {2}, {1, 2}), bf16_tensor("v", {3}, {1, 2, 3})});
  const size_t header_bytes = whole.size() - 14;
  for (size_t size = 0; size <= whole.size(); ++size) {
    write_file(folder / "w.safetensors", whole.substr(0, size));
    const auto file = SafetensorsFile::open(folder / "w.safetensors", TensorData::optional);
    if (size < header_bytes) {
      expect_error(file, Code::corrupt_file, {"w.safetensors"});
      continue;
    }
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ(file->header_bytes(), header_bytes);
    EXPECT_EQ(file->has_data(), size == whole.size());
    EXPECT_EQ(file->find("w")->data != nullptr, file->has_data());
    EXPECT_EQ(file->find("v")->size_bytes, 6u);
  }
  write_file(folder / "w.safetensors", whole + "x");
  expect_error(SafetensorsFile::open(folder / "w.safetensors", TensorData::optional), Code::corrupt_file,
               {"w.safetensors", "end at byte 14", "the file has 15"});
}

TEST(SafetensorsFile, AHeaderAloneIsNotLoaded) {
  const TempDir folder;
  const std::string whole = safetensors_from({f32_tensor("w", {2}, {1, 2})});
  write_file(folder / "w.safetensors", whole.substr(0, whole.size() - 8));
  expect_error(SafetensorsFile::open(folder / "w.safetensors"), Code::corrupt_file,
               {"w.safetensors", "ends behind its header", "8 bytes", "inspected, not loaded"});
}

// Opening a model must not read it: the weights of a large one would push everything else out of memory.
TEST(SafetensorsFile, OpeningReadsTheHeaderOnly) {
  const TempDir folder;
  constexpr size_t kDataBytes = size_t{1} << 32;
  const std::string header = R"({"w":{"dtype":"U8","shape":[4294967296],"data_offsets":[0,4294967296]}})";
  const std::filesystem::path path = folder / "sparse.safetensors";
  write_file(path, safetensors_from_header(header));
  std::filesystem::resize_file(path, 8 + header.size() + kDataBytes);  // a hole: takes no room on the disk
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  const StoredTensor* tensor = file->find("w");
  ASSERT_EQ(tensor->size_bytes, kDataBytes);

  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(tensor->data) + page) / page * page;
  const size_t length = (kDataBytes - page) / page * page;
  std::vector<unsigned char> resident(length / page);
  ASSERT_EQ(::mincore(reinterpret_cast<void*>(begin), length, resident.data()), 0);
  size_t in_memory = 0;
  for (const unsigned char flag : resident) in_memory += flag & 1u;
  EXPECT_LT(in_memory * page, size_t{64} << 20);  // the system reads a little ahead of the header
}

}  // namespace
}  // namespace blockdraft
