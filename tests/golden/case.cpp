#include "golden/case.h"

#include "base/error.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "tensor/codec.h"

namespace blockdraft::golden {
namespace {

float float_at(const StoredTensor& tensor, size_t index) {
  const std::byte* address = tensor.data + index * size_of(tensor.dtype);
  if (tensor.dtype == DType::bf16) return float_from_bf16(load_unaligned<uint16_t>(address));
  CHECK(tensor.dtype == DType::f32);
  return load_unaligned<float>(address);
}

}  // namespace

std::vector<float> Case::floats(const std::string& name) const {
  const StoredTensor* tensor = io.find(name);
  std::vector<float> values(tensor == nullptr ? 0 : static_cast<size_t>(tensor->num_elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = float_at(*tensor, i);
  return values;
}

std::vector<int32_t> Case::integers(const std::string& name) const {
  const StoredTensor* tensor = io.find(name);
  std::vector<int32_t> values(tensor == nullptr ? 0 : static_cast<size_t>(tensor->num_elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    const std::byte* address = tensor->data + i * size_of(tensor->dtype);
    values[i] = tensor->dtype == DType::i64 ? static_cast<int32_t>(load_unaligned<int64_t>(address))
                                            : load_unaligned<int32_t>(address);
  }
  return values;
}

WeightView Case::matrix(const std::string& name) const {
  const StoredTensor* tensor = io.find(name);
  CHECK(tensor != nullptr && tensor->shape.size() == 2);
  return {tensor->data, tensor->dtype, tensor->shape[0], tensor->shape[1]};
}

Result<Case> read_case(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "case.json";
  BLOCKDRAFT_ASSIGN(const MappedFile file, MappedFile::open(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  BLOCKDRAFT_ASSIGN(Json description, parse_json(text, path.string()));
  BLOCKDRAFT_ASSIGN(SafetensorsFile io, SafetensorsFile::open(folder / "io.safetensors"));
  return Case{folder, std::move(description), std::move(io)};
}

}  // namespace blockdraft::golden
