#include "nn/device_weights.h"

#include <algorithm>
#include <utility>

#include "tensor/cuda_upload.h"

namespace blockdraft {
namespace {

// What is smaller shares a buffer: there are hundreds of norms and scales, and an allocation takes a moment.
constexpr size_t kSharedBytes = size_t{4} << 20;
constexpr size_t kAlignment = 256;

size_t bytes_of_codes(const WeightView& weight) {
  return static_cast<size_t>(weight.dtype == DType::i8 ? int8_bytes(weight.out_features, weight.in_features)
                                                       : weight.row_bytes() * weight.out_features);
}

size_t bytes_of_block_scales(const WeightView& weight) {
  const int64_t rows = (weight.out_features + kScaleBlock - 1) / kScaleBlock;
  return static_cast<size_t>(rows * weight.scale_blocks()) * sizeof(float);
}

}  // namespace

DeviceWeights::DeviceWeights() = default;
DeviceWeights::DeviceWeights(DeviceWeights&& other) noexcept = default;
DeviceWeights& DeviceWeights::operator=(DeviceWeights&& other) noexcept = default;
DeviceWeights::~DeviceWeights() = default;

Result<DeviceWeights> DeviceWeights::create(CudaDevice& device, ThreadPool* threads, const char* what) {
  DeviceWeights weights;
  weights.device_ = &device;
  weights.what_ = what;
  BLOCKDRAFT_ASSIGN(CudaUpload upload, CudaUpload::create(device, threads));
  weights.upload_ = std::make_unique<CudaUpload>(std::move(upload));
  return weights;
}

Result<std::byte*> DeviceWeights::allocate(size_t size_bytes) {
  BLOCKDRAFT_ASSIGN(Buffer buffer, Buffer::allocate_on(*device_, size_bytes, what_));
  size_bytes_ += buffer.size_bytes();
  memory_.push_back(std::move(buffer));
  return static_cast<std::byte*>(memory_.back().data());
}

Result<std::byte*> DeviceWeights::take(size_t size_bytes) {
  const size_t padded = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (padded >= kSharedBytes) return allocate(padded);
  if (padded > shared_left_) {
    BLOCKDRAFT_ASSIGN(shared_, allocate(kSharedBytes));
    shared_left_ = kSharedBytes;
  }
  std::byte* place = shared_;
  shared_ += padded;
  shared_left_ -= padded;
  return place;
}

Result<const void*> DeviceWeights::copy_bytes(const void* data, size_t size_bytes) {
  if (data == nullptr) return data;
  if (const auto known = copies_.find(data); known != copies_.end()) return known->second;
  BLOCKDRAFT_ASSIGN(std::byte * memory, take(size_bytes));
  upload_->copy(memory, static_cast<const std::byte*>(data), size_bytes);
  return copies_.emplace(data, memory).first->second;
}

Status DeviceWeights::move(ConstTensorView& values) {
  BLOCKDRAFT_ASSIGN(values.data,
                    copy_bytes(values.data, static_cast<size_t>(values.shape.num_elements()) * size_of(values.dtype)));
  return {};
}

Status DeviceWeights::move(WeightView& weight) {
  CHECK(!weight.is_packed);
  const auto scales = static_cast<size_t>(weight.out_features) * sizeof(float);
  const auto floats = [&](const float*& values, size_t size_bytes) -> Status {
    BLOCKDRAFT_ASSIGN(const void* copied, copy_bytes(values, size_bytes));
    values = static_cast<const float*>(copied);
    return {};
  };
  const auto bytes = [&](const std::byte*& codes, size_t size_bytes) -> Status {
    BLOCKDRAFT_ASSIGN(const void* copied, copy_bytes(codes, size_bytes));
    codes = static_cast<const std::byte*>(copied);
    return {};
  };
  BLOCKDRAFT_TRY(bytes(weight.data, bytes_of_codes(weight)));
  BLOCKDRAFT_TRY(
      bytes(weight.group_scales, static_cast<size_t>(weight.out_features * (weight.in_features / kScaleGroup))));
  BLOCKDRAFT_TRY(floats(weight.row_scales, scales));
  BLOCKDRAFT_TRY(floats(weight.block_scales, bytes_of_block_scales(weight)));
  return floats(weight.bias, scales);
}

Status DeviceWeights::finish() {
  upload_.reset();
  copies_.clear();
  return device_->synchronize();
}

}  // namespace blockdraft
