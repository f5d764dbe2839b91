#include "checkpoint/safetensors_writer.h"

#include <array>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"

namespace blockdraft {
namespace {

constexpr size_t kHeaderAlignment = 8;  // so that the first tensor is aligned, and those after it by their sizes

std::string header_text(const std::vector<TensorSpec>& tensors) {
  Json header = Json::object();
  header["__metadata__"] = {{"format", "pt"}};
  size_t offset = 0;
  for (const TensorSpec& tensor : tensors) {
    CHECK(!header.contains(tensor.name));
    const size_t end = offset + tensor.size_bytes();
    header[tensor.name] = {
        {"dtype", name_of(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", std::array{offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  return text;
}

std::array<char, 8> little_endian(uint64_t value) {
  std::array<char, 8> bytes{};
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xffu);
    value >>= 8;
  }
  return bytes;
}

}  // namespace

size_t TensorSpec::size_bytes() const {
  size_t size = size_of(dtype);
  for (const int64_t extent : shape) size *= static_cast<size_t>(extent);
  return size;
}

Result<SafetensorsWriter> SafetensorsWriter::create(const std::filesystem::path& path,
                                                    const std::vector<TensorSpec>& tensors) {
  std::error_code unknown;
  if (std::filesystem::exists(path, unknown)) {
    return make_error(Code::io_error, "{}: the file exists, expected none of that name", path.string());
  }
  SafetensorsWriter writer(path);
  writer.file_.open(path, std::ios::binary | std::ios::trunc);
  const std::string header = header_text(tensors);
  const std::array<char, 8> length = little_endian(header.size());
  writer.file_.write(length.data(), length.size());
  writer.file_.write(header.data(), static_cast<std::streamsize>(header.size()));
  if (!writer.file_) return make_error(Code::io_error, "{}: cannot be written", path.string());
  for (const TensorSpec& tensor : tensors) writer.remaining_ += tensor.size_bytes();
  return writer;
}

Status SafetensorsWriter::append(std::span<const std::byte> bytes) {
  CHECK(bytes.size() <= remaining_);
  remaining_ -= bytes.size();
  file_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file_) return make_error(Code::io_error, "{}: cannot be written to its end", path_.string());
  return {};
}

Status SafetensorsWriter::finish() {
  CHECK(remaining_ == 0);
  file_.close();
  if (!file_) return make_error(Code::io_error, "{}: cannot be written to its end", path_.string());
  return {};
}

}  // namespace blockdraft
