#include "gpu_suite/card.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "tensor/int8_pack.h"

namespace blockdraft::test {
namespace {

std::unique_ptr<CudaDevice>& opened() {
  static std::unique_ptr<CudaDevice> device;
  return device;
}

int64_t page_elements(const PagedKvView& kv) {
  return int64_t{kv.num_pages} * kv.num_kv_heads * kPageSize * kv.head_dim;
}

std::vector<uint16_t> bf16_of(const float* values, int64_t count) {
  std::vector<uint16_t> codes(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) codes[static_cast<size_t>(i)] = bf16_from_float(values[i]);
  return codes;
}

}  // namespace

Status Card::open() {
  const char* index = std::getenv("BLOCKDRAFT_CARD");
  auto device = CudaDevice::open(index == nullptr ? 0 : std::atoi(index));
  if (!device) return device.error();
  opened() = std::move(device).value();
  std::printf("card %d: %s, %d multiprocessors\n", opened()->index(), opened()->name().c_str(),
              opened()->num_multiprocessors());
  return {};
}

void Card::close() { opened().reset(); }

CudaDevice& Card::device() { return *opened(); }

OnCard::OnCard(size_t arena_bytes)
    : arena_(Buffer::allocate_on(Card::device(), arena_bytes, "arena").value()),
      card_{.arena = &arena_, .cuda = &Card::device()},
      cpu_(4, size_t{64} << 20, CpuIsa::portable) {
  // Scratch is not zero in life either.
  const ArenaScope scope(arena_);
  Card::device().fill(arena_.take_f32({static_cast<int64_t>(arena_bytes / 4)}).data, 0xFF, arena_bytes, "arena");
}

OnCard::~OnCard() { synchronize(); }

void* OnCard::allocate(size_t size_bytes) {
  memory_.push_back(Buffer::allocate_on(Card::device(), size_bytes, "memory of a test").value());
  return memory_.back().data();
}

void* OnCard::poisoned(size_t size_bytes) {
  void* memory = allocate(size_bytes);
  Card::device().fill(memory, 0xFF, size_bytes, "poison");
  return memory;
}

TensorView OnCard::upload(const Matrix& matrix) {
  const ConstTensorView view = matrix.view();
  float* memory = upload(view.f32(), view.dim(0) * view.row_stride);
  return {memory, DType::f32, view.shape, view.row_stride};
}

TensorView OnCard::upload_bf16(const Matrix& matrix) {
  const ConstTensorView view = matrix.view();
  return {upload(bf16_of(view.f32(), view.dim(0) * view.row_stride)), DType::bf16, view.shape, view.row_stride};
}

TensorView OnCard::poisoned_bf16(int64_t rows, int64_t columns, int64_t row_stride) {
  const int64_t stride = row_stride == 0 ? columns : row_stride;
  return {poisoned(static_cast<size_t>(rows * stride) * 2), DType::bf16, Shape{rows, columns}, stride};
}

WeightView OnCard::upload(const WeightView& weight) {
  WeightView copy = weight;
  const int64_t n = weight.out_features;
  const int64_t bytes = weight.dtype == DType::i8 ? int8_bytes(n, weight.in_features) : weight.row_bytes() * n;
  copy.data = upload(weight.data, bytes);
  if (weight.bias != nullptr) copy.bias = upload(weight.bias, n);
  if (weight.row_scales != nullptr) copy.row_scales = upload(weight.row_scales, n);
  if (weight.block_scales != nullptr) {
    copy.block_scales = upload(weight.block_scales, (n + kScaleBlock - 1) / kScaleBlock * weight.scale_blocks());
  }
  if (weight.group_scales != nullptr) {
    copy.group_scales = upload(weight.group_scales, n * (weight.in_features / kScaleGroup));
  }
  return copy;
}

BatchView OnCard::upload(const BatchView& batch) {
  BatchView copy = batch;
  if (batch.token_ids != nullptr) copy.token_ids = upload(batch.token_ids, batch.num_rows);
  copy.positions = upload(batch.positions, batch.num_rows);
  copy.first_row = upload(batch.first_row, batch.num_sequences + 1);
  copy.page_tables = upload(batch.page_tables, int64_t{batch.num_sequences} * batch.page_table_stride);
  return copy;
}

PagedKvView OnCard::upload_bf16(const PagedKvView& kv) {
  PagedKvView copy = kv;
  copy.k = upload(bf16_of(kv.k_f32(), page_elements(kv)));
  copy.v = upload(bf16_of(kv.v_f32(), page_elements(kv)));
  copy.dtype = DType::bf16;
  return copy;
}

Matrix OnCard::download(const ConstTensorView& view) {
  Matrix matrix(view.dim(0), view.dim(1), view.row_stride);
  if (view.dtype == DType::bf16) {
    const std::vector<uint16_t> codes =
        download(static_cast<const uint16_t*>(view.data), view.dim(0) * view.row_stride);
    std::ranges::transform(codes, matrix.row(0), float_from_bf16);
    return matrix;
  }
  const auto size = static_cast<size_t>(view.dim(0) * view.row_stride) * sizeof(float);
  Card::device().copy_to_host(matrix.row(0), view.data, size, "download");
  synchronize();
  return matrix;
}

void OnCard::synchronize() {
  const Status status = Card::device().synchronize();
  if (!status) ADD_FAILURE() << status.error().message;
}

double relative_error(const Matrix& found, const Matrix& expected) {
  double magnitude = 0.0;
  double error = 0.0;
  for (int64_t r = 0; r < expected.rows(); ++r) {
    for (int64_t c = 0; c < expected.columns(); ++c) {
      const auto a = static_cast<double>(found.row(r)[c]);
      const auto b = static_cast<double>(expected.row(r)[c]);
      if (std::isnan(a) != std::isnan(b)) return std::numeric_limits<double>::infinity();
      if (std::isnan(b) || a == b) continue;
      magnitude = std::max(magnitude, std::abs(b));
      error = std::max(error, std::abs(a - b));
    }
  }
  return error == 0.0 ? 0.0 : error / std::max(magnitude, 1e-30);
}

}  // namespace blockdraft::test
