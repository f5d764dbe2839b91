// blockdraft-bench-cuda-layer [context ...]: what a decoder layer of a card takes beside its products.
// Layers of Qwen3-8B's size one after another in one graph, with more and more of their ops: what each adds to the time
// of a layer, with everything overlapping as it does in a pass. One sequence; its rows stand at the end of the context
// (default 1024 positions).
#include <cstdlib>
#include <numeric>
#include <vector>

#include "fill.h"
#include "nn/decoder_layer.h"
#include "ops/attention.h"
#include "ops/linear.h"
#include "ops/linear_silu_mul.h"
#include "ops/qkv_finish.h"
#include "ops/rms_norm.h"
#include "timing.h"

namespace blockdraft::bench {
namespace {

constexpr int kLayers = 8;
constexpr int64_t kHidden = 4096;
constexpr int64_t kInner = 12288;
constexpr int64_t kHeads = 32;
constexpr int64_t kKvHeads = 8;
constexpr int64_t kHeadDim = 128;
constexpr int64_t kQkv = (kHeads + 2 * kKvHeads) * kHeadDim;
constexpr int kMaxRows = 64;
constexpr size_t kLayerElements = static_cast<size_t>(kHidden * (kQkv + kHeads * kHeadDim + 3 * kInner));

Buffer on_card(CudaDevice& device, size_t size_bytes) {
  return Buffer::allocate_on(device, size_bytes, "bench").value();
}

// What of a layer runs.
enum class Upto { products, norms, finish, attention };
constexpr const char* kNames[] = {"products", "+ norms", "+ end of q, k, v", "+ attention"};

class LayerBench {
 public:
  LayerBench(CudaDevice& device, bool fp8, int64_t positions)
      : device_(device),
        fp8_(fp8),
        weights_(on_card(device, kLayers * kLayerElements * (fp8 ? 1 : 2))),
        floats_(on_card(device, 1 << 20)),
        kv_(on_card(device, static_cast<size_t>(kLayers * 2 * padded(positions) * kKvHeads * kHeadDim * 2))),
        integers_(on_card(device, 1 << 20)),
        arena_(on_card(device, size_t{256} << 20)),
        context_{.arena = &arena_, .cuda = &device},
        positions_(positions) {
    const uint32_t keep = fp8 ? 0xbfbfbfbfu : 0x83ff83ffu;
    fill_codes(context_, weights_.data(), weights_.size_bytes(), 1, keep, fp8 ? 0u : 0x38003800u);
    fill_codes(context_, floats_.data(), floats_.size_bytes(), 2, 0x001f1f1fu, 0x3c202020u);
    fill_codes(context_, kv_.data(), kv_.size_bytes(), 3, 0x83ff83ffu, 0x38003800u);
    pages_.resize(static_cast<size_t>(padded(positions) / kPageSize));
    std::iota(pages_.begin(), pages_.end(), 0);
  }

  double layer_us(int rows, Upto upto) {
    lay_out(rows);
    return microseconds(context_, 11,
                        [&] {
                          const ArenaScope scope(arena_);
                          const TensorView h = arena_.take_f32({rows, kHidden});
                          const TensorView x = arena_.take(DType::bf16, {rows, kHidden});
                          const TensorView attended = arena_.take(DType::bf16, {rows, kHeads * kHeadDim});
                          const TensorView inner = arena_.take(DType::bf16, {rows, kInner});
                          const TensorView qkv = arena_.take_f32({rows, kQkv});
                          for (int layer = 0; layer < kLayers; ++layer) run(layer, upto, h, x, qkv, attended, inner);
                        }) /
           kLayers;
  }
  double floor_bytes() const {
    return static_cast<double>(weights_.size_bytes()) / kLayers +
           static_cast<double>(positions_ * 2 * kKvHeads * kHeadDim * 2);
  }
  double bytes_a_us() {
    return static_cast<double>(weights_.size_bytes()) / microseconds(context_, 7, [&] {
             read_all(context_, weights_.data(), weights_.size_bytes(), static_cast<uint32_t*>(integers_.data()));
           });
  }

 private:
  static int64_t padded(int64_t positions) { return (positions + kMaxRows + kPageSize - 1) / kPageSize * kPageSize; }

  void lay_out(int rows) {
    std::vector<int32_t> integers(256, 0);
    for (int r = 0; r < rows; ++r) integers[static_cast<size_t>(r)] = static_cast<int32_t>(positions_ - rows + r);
    integers[128 + 1] = rows;
    integers.insert(integers.end(), pages_.begin(), pages_.end());
    device_.copy_to_device(integers_.data(), integers.data(), integers.size() * 4, "batch");
    finish(context_);
    const auto* begin = static_cast<const int32_t*>(integers_.data());
    batch_ = {.num_rows = rows,
              .num_sequences = 1,
              .token_ids = begin,
              .positions = begin,
              .first_row = begin + 128,
              .page_tables = begin + 256,
              .page_table_stride = static_cast<int32_t>(pages_.size())};
  }

  WeightView take(size_t& offset, int64_t n, int64_t k) const {
    WeightView view{.data = static_cast<const std::byte*>(weights_.data()) + offset,
                    .dtype = fp8_ ? DType::f8_e4m3 : DType::bf16,
                    .out_features = n,
                    .in_features = k};
    if (fp8_) view.row_scales = floats_.f32();
    offset += static_cast<size_t>(n * k) * (fp8_ ? 1 : 2);
    return view;
  }

  void run(int layer, Upto upto, const TensorView& h, const TensorView& x, const TensorView& qkv,
           const TensorView& attended, const TensorView& inner) {
    const ArenaScope scope(arena_);
    size_t offset = weights_.size_bytes() / kLayers * static_cast<size_t>(layer);
    const ConstTensorView norm = view_f32(std::as_const(floats_).f32(), Shape{kHidden});
    const ConstTensorView head_norm = view_f32(std::as_const(floats_).f32(), Shape{kHeadDim});
    const ConstTensorView rope = view_f32(std::as_const(floats_).f32(), Shape{h.dim(0), kHeadDim});
    const WeightView in[] = {take(offset, kHeads * kHeadDim, kHidden), take(offset, kKvHeads * kHeadDim, kHidden),
                             take(offset, kKvHeads * kHeadDim, kHidden)};
    const WeightView o = take(offset, kHidden, kHeads * kHeadDim);
    const WeightView gate = take(offset, kInner, kHidden);
    const WeightView up = take(offset, kInner, kHidden);
    const WeightView down = take(offset, kHidden, kInner);
    const size_t bytes = kv_.size_bytes() / kLayers / 2;
    std::byte* k = static_cast<std::byte*>(kv_.data()) + 2 * bytes * static_cast<size_t>(layer);
    const PagedKvView pages{k, k + bytes, static_cast<int32_t>(pages_.size()), kKvHeads, kHeadDim, DType::bf16};
    const TensorView q = columns_of(qkv, 0, kHeads * kHeadDim);

    if (upto >= Upto::norms) rms_norm(context_, x, h, norm, 1e-6f);
    linear(context_, {.out = qkv, .x = x, .weights = in});
    if (upto >= Upto::finish) {
      qkv_finish(context_, {.q = q,
                            .k = columns_of(qkv, kHeads * kHeadDim, kKvHeads * kHeadDim),
                            .v = columns_of(qkv, (kHeads + kKvHeads) * kHeadDim, kKvHeads * kHeadDim),
                            .q_norm = head_norm,
                            .k_norm = head_norm,
                            .eps = 1e-6f,
                            .rope = rope,
                            .kv = pages,
                            .batch = batch_});
    }
    if (upto >= Upto::attention) {
      attention(context_, {.out = attended,
                           .q = q,
                           .kv = pages,
                           .batch = batch_,
                           .num_heads = kHeads,
                           .scale = 0.088f,
                           .early = true,
                           .unrounded = q});
    }
    linear(context_, {.out = h, .x = attended, .weights = {&o, 1}, .accumulate = true});
    if (upto >= Upto::norms) rms_norm(context_, x, h, norm, 1e-6f);
    linear_silu_mul(context_, {.out = inner, .x = x, .gate = gate, .up = up});
    linear(context_, {.out = h, .x = inner, .weights = {&down, 1}, .accumulate = true});
  }

  CudaDevice& device_;
  bool fp8_;
  Buffer weights_, floats_, kv_, integers_;
  Arena arena_;
  Context context_;
  int64_t positions_;
  std::vector<int32_t> pages_;
  BatchView batch_;
};

void report(CudaDevice& device, int64_t positions) {
  for (const bool fp8 : {false, true}) {
    LayerBench bench(device, fp8, positions);
    const double floor = bench.floor_bytes() / bench.bytes_a_us();
    std::printf("%s, context %lld: us a layer, floor %.1f\n", fp8 ? "FP8" : "BF16", static_cast<long long>(positions),
                floor);
    for (const int rows : {1, 8, 16, 64}) {
      std::printf("  %2d rows", rows);
      for (const Upto upto : {Upto::products, Upto::norms, Upto::finish, Upto::attention}) {
        std::printf("  %s %.1f", kNames[static_cast<int>(upto)], bench.layer_us(rows, upto));
      }
      std::printf("\n");
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace blockdraft::bench

int main(int argc, char** argv) {
  const auto device = blockdraft::bench::open_card();
  if (argc < 2) blockdraft::bench::report(*device, 1024);
  for (int i = 1; i < argc; ++i) blockdraft::bench::report(*device, std::atoll(argv[i]));
  return 0;
}
