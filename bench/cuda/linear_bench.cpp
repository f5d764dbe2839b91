// blockdraft-bench-cuda-linear [products|chain|hunt|profile ...]: the products of a card.
//   products  microseconds of each shape, type of weight and number of rows, beside what reading the weights takes
//   chain     the products of a drafter of 5 layers and its head, one after another in one graph
//   profile   a product of each kind, once
//   hunt      replays of that chain, everything compared with products that run alone: looks for races
// Weights are random, and copies of them in turn, so that none is in the L2 when its turn comes.
#include <cstring>
#include <string>
#include <string_view>

#include "fill.h"
#include "ops/cuda/linear_stream.h"
#include "ops/linear.h"
#include "timing.h"

namespace blockdraft::bench {
namespace {

constexpr size_t kPoolBytes = size_t{6} << 30;
constexpr int kMaxRows = 64;
constexpr int64_t kMaxColumns = 151936;

enum class Kind { bf16, f8_rows, f8_blocks, nvfp4 };
constexpr Kind kKinds[] = {Kind::bf16, Kind::f8_rows, Kind::f8_blocks, Kind::nvfp4};
constexpr const char* kNames[] = {"BF16", "FP8 rows", "FP8 blocks", "NVFP4"};

struct Shape2 {
  int64_t out_features;
  int64_t in_features;
};

Buffer on_card(CudaDevice& device, size_t size_bytes, const char* what) {
  return Buffer::allocate_on(device, size_bytes, what).value();
}

class Bench {
 public:
  explicit Bench(CudaDevice& device)
      : pool_(on_card(device, kPoolBytes, "weights")),
        scales_(on_card(device, size_t{64} << 20, "scales")),
        x_(on_card(device, kMaxRows * 20480 * 4, "x")),
        x_bf16_(on_card(device, kMaxRows * 20480 * 2, "x")),
        out_(on_card(device, kMaxRows * kMaxColumns * 4, "out")),
        gate_bias_(on_card(device, 12288 * 4, "bias")),
        arena_(on_card(device, size_t{16} << 20, "arena")),
        context_{.arena = &arena_, .cuda = &device} {
    fill_uniform(context_, x_.f32(), kMaxRows * 20480, 1);
    fill_codes(context_, x_bf16_.data(), x_bf16_.size_bytes(), 2, 0xbfffbfffu, 0x30003000u);
    fill_codes(context_, gate_bias_.data(), gate_bias_.size_bytes(), 5, 0x0000ffffu, 0x40800000u);
    // As E4M3 codes and as floats near 0.01.
    fill_codes(context_, scales_.data(), scales_.size_bytes(), 3, 0x001f1f1fu, 0x3c202020u);
  }

  Context& context() { return context_; }

  void use(Kind kind) {
    kind_ = kind;
    const uint32_t keep = kind == Kind::bf16 ? 0x83ff83ffu : 0xbfbfbfbfu;
    const uint32_t set = kind == Kind::bf16 ? 0x38003800u : 0u;
    fill_codes(context_, pool_.data(), pool_.size_bytes(), 4 + static_cast<uint64_t>(kind), keep, set);
    finish(context_);
  }

  // So large that gating is close to a multiplication: numbers neither explode nor vanish along the chain.
  const float* gate_bias() const { return gate_bias_.f32(); }

  size_t bytes_of(const Shape2& shape) const {
    const auto elements = static_cast<size_t>(shape.out_features * shape.in_features);
    return kind_ == Kind::bf16 ? 2 * elements : kind_ == Kind::nvfp4 ? elements / 2 + elements / 16 : elements;
  }

  WeightView weight(const Shape2& shape, size_t offset) const {
    WeightView view{.dtype = kind_ == Kind::bf16    ? DType::bf16
                             : kind_ == Kind::nvfp4 ? DType::u8
                                                    : DType::f8_e4m3,
                    .out_features = shape.out_features,
                    .in_features = shape.in_features};
    view.data = static_cast<const std::byte*>(pool_.data()) + offset;
    if (kind_ == Kind::f8_rows) view.row_scales = scales_.f32();
    if (kind_ == Kind::f8_blocks) view.block_scales = scales_.f32();
    if (kind_ == Kind::nvfp4) {
      view.group_scales = view.data + view.row_bytes() * view.out_features;
      view.global_scale = 0.01f;
    }
    return view;
  }

  cu::StreamCall call(int rows, bool bf16) {
    cu::StreamCall call;
    call.x = bf16 ? x_bf16_.data() : x_.data();
    call.x_is_bf16 = bf16;
    call.rows = rows;
    call.out = out_.data();
    return call;
  }

  void products();
  void chain(bool hunts);
  void profile();

 private:
  double time_products(const Shape2& shape, int rows, bool bf16);

  Buffer pool_, scales_, x_, x_bf16_, out_, gate_bias_;
  Arena arena_;
  Context context_;
  Kind kind_ = Kind::bf16;
};

double Bench::time_products(const Shape2& shape, int rows, bool bf16) {
  const size_t bytes = (bytes_of(shape) + 255) / 256 * 256;
  const auto copies = static_cast<int>(std::min<size_t>(16, pool_.size_bytes() / bytes));
  const int launches = std::clamp(static_cast<int>(4e9 / static_cast<double>(bytes)), copies, 64) / copies * copies;
  return microseconds(context_, 7,
                      [&] {
                        for (int i = 0; i < launches; ++i) {
                          cu::StreamCall one = call(rows, bf16);
                          one.x_stride = shape.in_features;
                          one.num_weights = 1;
                          one.weights[0] = weight(shape, static_cast<size_t>(i % copies) * bytes);
                          one.out_stride = shape.out_features;
                          cu::launch_stream(context_, "linear", one);
                        }
                      }) /
         launches;
}

double read_bandwidth(Bench& bench, const void* memory, size_t size_bytes, uint32_t* sink) {
  const double us = microseconds(bench.context(), 7, [&] { read_all(bench.context(), memory, size_bytes, sink); });
  return static_cast<double>(size_bytes) / us;  // bytes a microsecond
}

void Bench::products() {
  const double rate = read_bandwidth(*this, pool_.data(), pool_.size_bytes(), static_cast<uint32_t*>(out_.data()));
  std::printf("a read of %.1f GB: %.2f TB/s\n", static_cast<double>(pool_.size_bytes()) * 1e-9, rate * 1e-6);
  std::printf("us of a product, weights of 6144x4096, 4096x4096, 24576x4096, 4096x12288, 151936x4096, 6144x2560\n");
  constexpr Shape2 kShapes[] = {{6144, 4096}, {4096, 4096}, {24576, 4096}, {4096, 12288}, {151936, 4096}, {6144, 2560}};
  for (const Kind kind : kKinds) {
    use(kind);
    std::printf("%-10s %-14s", kNames[static_cast<int>(kind)], "floor");
    for (const Shape2& shape : kShapes) std::printf(" %7.2f", static_cast<double>(bytes_of(shape)) / rate);
    std::printf("\n");
    for (const auto& [rows, bf16] : {std::pair(16, true), std::pair(16, false), std::pair(1, false),
                                     std::pair(32, true), std::pair(64, true), std::pair(64, false)}) {
      std::printf("%-10s %2d rows, %-5s", "", rows, bf16 ? "BF16" : "F32");
      for (const Shape2& shape : kShapes) std::printf(" %7.2f", time_products(shape, rows, bf16));
      std::printf("\n");
      std::fflush(stdout);
    }
  }
}

// A product of each kind and number of rows, once, for a profiler.
void Bench::profile() {
  const Shape2 shape{24576, 4096};
  for (const auto& [kind, rows] : {std::pair(Kind::bf16, 16), std::pair(Kind::f8_rows, 16), std::pair(Kind::nvfp4, 16),
                                   std::pair(Kind::bf16, 32), std::pair(Kind::bf16, 64)}) {
    use(kind);
    cu::StreamCall one = call(rows, true);
    one.x_stride = shape.in_features;
    one.num_weights = 1;
    one.weights[0] = weight(shape, 0);
    one.out_stride = shape.out_features;
    cu::launch_stream(context_, "linear", one);
    finish(context_);
  }
}

constexpr int kLayers = 5;
constexpr int64_t kHidden = 4096;
constexpr int64_t kInner = 12288;
constexpr int64_t kVocabulary = 151936;

// Outputs of a layer: q, k and v; o; gate and up; down.
struct LayerOutputs {
  float* qkv;
  float* o;
  float* inner;
  float* down;
};
constexpr int64_t kLayerColumns = 6144 + kHidden + kInner + kHidden;

// Everything that the chain computes: a layer after another, then keys of the head.
class ChainMemory {
 public:
  explicit ChainMemory(CudaDevice& device) : memory_(on_card(device, kBytes, "outputs of a chain")) {}
  LayerOutputs layer(int i) {
    float* first = memory_.f32() + i * kMaxRows * kLayerColumns;
    return {first, first + kMaxRows * 6144, first + kMaxRows * (6144 + kHidden),
            first + kMaxRows * (6144 + kHidden + kInner)};
  }
  cu::BestKey* keys() { return reinterpret_cast<cu::BestKey*>(memory_.f32() + kLayers * kMaxRows * kLayerColumns); }
  void* data() { return memory_.data(); }

  static constexpr size_t kBytes = kLayers * kMaxRows * kLayerColumns * 4 + kMaxRows * cu::kBestParts * 8;

 private:
  Buffer memory_;
};

// With `alone`, nothing overlaps anything.
void run_chain(Bench& bench, ChainMemory& memory, int rows, bool bf16, bool alone) {
  Context& context = bench.context();
  size_t offset = 0;
  const auto next_weight = [&](int64_t n, int64_t k) {
    const WeightView weight = bench.weight({n, k}, offset);
    offset += (bench.bytes_of({n, k}) + 255) / 256 * 256;
    return weight;
  };
  const auto run = [&](cu::StreamCall& call) {
    cu::launch_stream(context, "linear", call);
    if (alone) finish(context);
  };
  const auto product = [&](const void* x, int64_t stride, bool is_first, std::initializer_list<WeightView> weights,
                           float* out) {
    cu::StreamCall call = bench.call(rows, bf16);
    if (!is_first) call.x = x;
    call.x_stride = stride;
    for (const WeightView& weight : weights) {
      call.weights[call.num_weights++] = weight;
      call.out_stride += weight.out_features;
    }
    call.out = out;
    call.out_is_bf16 = bf16;
    return call;
  };
  const void* x = nullptr;
  for (int i = 0; i < kLayers; ++i) {
    const LayerOutputs out = memory.layer(i);
    auto qkv = product(x, kHidden, i == 0,
                       {next_weight(4096, kHidden), next_weight(1024, kHidden), next_weight(1024, kHidden)}, out.qkv);
    run(qkv);
    auto o = product(out.qkv, 6144, false, {next_weight(kHidden, 4096)}, out.o);
    run(o);
    WeightView gate = next_weight(kInner, kHidden);
    gate.bias = bench.gate_bias();
    auto inner = product(out.o, kHidden, false, {gate, next_weight(kInner, kHidden)}, out.inner);
    inner.output = cu::StreamOutput::silu_mul;
    inner.out_stride = kInner;
    run(inner);
    auto down = product(out.inner, kInner, false, {next_weight(kHidden, kInner)}, out.down);
    run(down);
    x = out.down;
  }
  auto head = product(x, kHidden, false, {next_weight(kVocabulary, kHidden)}, nullptr);
  head.output = cu::StreamOutput::keys;
  head.keys = memory.keys();
  run(head);
}

void Bench::chain(bool hunts) {
  constexpr int kReplays = 200;
  ChainMemory memory(*context_.cuda);
  ChainMemory expected(*context_.cuda);
  Buffer counter = on_card(*context_.cuda, 4, "counter");
  const double rate = read_bandwidth(*this, pool_.data(), pool_.size_bytes(), static_cast<uint32_t*>(out_.data()));
  for (const Kind kind : kKinds) {
    use(kind);
    const Shape2 all{kLayers * (6144 + kHidden + 2 * kInner + 3 * kHidden) + kVocabulary, kHidden};
    const double floor = static_cast<double>(bytes_of(all)) / rate;
    std::printf("%-10s chain, floor %.1f us\n", kNames[static_cast<int>(kind)], floor);
    for (const auto& [rows, bf16] :
         {std::pair(16, true), std::pair(16, false), std::pair(1, false), std::pair(32, true), std::pair(64, true)}) {
      std::printf("%-10s %2d rows, %-5s", "", rows, bf16 ? "BF16" : "F32");
      if (!hunts) {
        const double us = microseconds(context_, 15, [&] { run_chain(*this, memory, rows, bf16, false); });
        std::printf(" %.1f us, %.3f x floor\n", us, us / floor);
      } else {
        context_.cuda->fill(expected.data(), 0xFF, ChainMemory::kBytes, "poison");
        run_chain(*this, expected, rows, bf16, true);
        Graph graph(context_, [&] { run_chain(*this, memory, rows, bf16, false); });
        int bad = 0;
        for (int i = 0; i < kReplays; ++i) {
          context_.cuda->fill(memory.data(), 0xFF, ChainMemory::kBytes, "poison");
          context_.cuda->fill(counter.data(), 0, 4, "counter");
          graph.replay();
          int32_t differing = -1;
          count_differing(context_, memory.data(), expected.data(), ChainMemory::kBytes,
                          static_cast<int32_t*>(counter.data()));
          context_.cuda->copy_to_host(&differing, counter.data(), 4, "counter");
          finish(context_);
          bad += differing != 0;
        }
        std::printf(" %d of %d replays differ\n", bad, kReplays);
      }
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace blockdraft::bench

int main(int argc, char** argv) {
  const auto device = blockdraft::bench::open_card();
  blockdraft::bench::Bench bench(*device);
  for (int i = 1; i < std::max(2, argc); ++i) {
    const std::string_view what = argc > 1 ? argv[i] : "products";
    if (what == "products") {
      bench.products();
    } else if (what == "chain" || what == "hunt") {
      bench.chain(what == "hunt");
    } else if (what == "profile") {
      bench.profile();
    } else {
      std::fprintf(stderr, "'%s' is no part, expected products, chain, hunt or profile\n", argv[i]);
      return 1;
    }
  }
  return 0;
}
