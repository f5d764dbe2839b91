// Whole decoder layers: against the CPU, against the ops of which they are made, and as a graph that is replayed.
#include "nn/decoder_layer.h"

#include <cmath>
#include <cstring>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "gpu_suite/card.h"
#include "ops/attention.h"
#include "ops/copy_rows.h"
#include "ops/kv_write.h"
#include "ops/linear.h"
#include "ops/linear_silu_mul.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"
#include "support/paged_sequences.h"
#include "support/stored_weight.h"
#include "tensor/cublas_lt.h"

namespace blockdraft {
namespace {

using test::Card;
using test::Format;
using test::Matrix;
using test::OnCard;
using test::PagedSequences;
using test::SequenceSpec;
using test::StoredWeight;

constexpr int kLayers = 2;
constexpr int32_t kHeadDim = 128;
constexpr int32_t kHeads = 8;
constexpr int32_t kKvHeads = 2;

TransformerConfig config() {
  TransformerConfig config;
  config.hidden_size = 1024;
  config.intermediate_size = 1536;
  config.num_attention_heads = kHeads;
  config.num_key_value_heads = kKvHeads;
  config.head_dim = kHeadDim;
  return config;
}

// A layer with random weights, on the CPU.
class HostLayer {
 public:
  HostLayer(std::mt19937& generator, Format format, const TransformerConfig& config)
      : norms_(Matrix::random(generator, 2, config.hidden_size)),
        head_norms_(Matrix::random(generator, 2, config.head_dim)) {
    const int64_t hidden = config.hidden_size;
    const int64_t inner = config.intermediate_size;
    const auto add = [&](int64_t n, int64_t k) { weights_.emplace_back(generator, format, n, k); };
    for (const int64_t n : {config.query_size(), config.key_value_size(), config.key_value_size()}) add(n, hidden);
    add(hidden, config.query_size());
    add(inner, hidden);
    add(inner, hidden);
    add(hidden, inner);
  }

  DecoderLayer on_cpu() const {
    const auto weight = [](const WeightView& view) { return view; };
    return layer([](const Matrix& matrix) { return matrix.view(); }, weight);
  }
  DecoderLayer on_card(OnCard& on) const {
    return layer([&](const Matrix& matrix) { return ConstTensorView(on.upload(matrix)); },
                 [&](const WeightView& weight) { return on.upload(weight); });
  }

 private:
  template <class Norms, class Weight>
  DecoderLayer layer(const Norms& norms, const Weight& weight) const {
    const auto row = [](const ConstTensorView& view, int64_t r) { return view_f32(view.row(r), Shape{view.dim(1)}); };
    const ConstTensorView norm = norms(norms_);
    const ConstTensorView head_norm = norms(head_norms_);
    return {.input_layernorm = row(norm, 0),
            .qkv_proj = {weight(weights_[0].view()), weight(weights_[1].view()), weight(weights_[2].view())},
            .q_norm = row(head_norm, 0),
            .k_norm = row(head_norm, 1),
            .o_proj = weight(weights_[3].view()),
            .post_attention_layernorm = row(norm, 1),
            .gate_up_proj = {weight(weights_[4].view()), weight(weights_[5].view())},
            .down_proj = weight(weights_[6].view())};
  }

  std::vector<StoredWeight> weights_;
  Matrix norms_, head_norms_;
};

std::vector<float> inverse_frequencies() {
  std::vector<float> result;
  for (int i = 0; i < kHeadDim / 2; ++i) result.push_back(std::pow(1e6f, -2.0f * static_cast<float>(i) / kHeadDim));
  return result;
}

// Some layers over the same batch, and so many rows of no sequence. What a pass writes lies in one piece: h, then K and
// V of each layer.
class Layers {
 public:
  Layers(OnCard& on, Format format, const std::vector<SequenceSpec>& specs, int64_t padding = 0)
      : on_(on),
        config_(config()),
        pages_(specs, kKvHeads, kHeadDim, 5),
        host_batch_(pages_.batch()),
        padding_(padding) {
    std::mt19937 generator(7);
    pages_.fill();
    h0_ = Matrix::random(generator, rows(), config_.hidden_size);
    for (int i = 0; i < kLayers; ++i) {
      host_.emplace_back(generator, format, config_);
      layers_.push_back(host_.back().on_card(on));
    }
    batch_ = on.upload(host_batch_);
    positions_ = on.poisoned_i32(rows());
    next_positions_ = on.poisoned_i32(rows());
    batch_.positions = positions_;
    batch_.num_rows = static_cast<int32_t>(rows());
    h0_on_card_ = on.upload(h0_);
    inv_freq_ = on.upload(inverse_frequencies());
    rope_ = on.upload(Matrix(rows(), kHeadDim));
    const PagedKvView kv = on.upload_bf16(pages_.kv());
    out_ = static_cast<std::byte*>(on.poisoned(out_bytes()));
    before_ = static_cast<std::byte*>(on.poisoned(out_bytes()));
    for (int i = 0; i < kLayers; ++i) {
      std::byte* pool = before_ + h_bytes() + static_cast<size_t>(2 * i) * pool_bytes();
      Card::device().copy_on_device(pool, kv.k, pool_bytes(), "keys");
      Card::device().copy_on_device(pool + pool_bytes(), kv.v, pool_bytes(), "values");
    }
  }

  // The positions of the next passes, `back` before those of the specs.
  void set_positions(int32_t back) {
    std::vector<int32_t> positions(host_batch_.positions, host_batch_.positions + host_batch_.num_rows);
    for (int32_t& position : positions) position -= back;
    positions.resize(static_cast<size_t>(rows()), 0);
    Card::device().copy_to_device(next_positions_, positions.data(), positions.size() * 4, "positions");
    on_.synchronize();
  }

  // All that a pass writes becomes what it was, or no number at all.
  void reset() {
    Card::device().copy_on_device(out_, before_, out_bytes(), "outputs");
    Card::device().fill(positions_, 0xFF, static_cast<size_t>(rows()) * 4, "positions");
  }

  // The positions are copied in the pass: whoever looks at them too early finds none.
  template <class Layer>
  void pass(const Layer& layer) {
    Context& context = on_.card();
    const auto as_floats = [&](int32_t* ids) { return view_f32(reinterpret_cast<float*>(ids), Shape{1, rows()}); };
    copy_rows(context, as_floats(positions_), as_floats(next_positions_), nullptr);
    copy_rows(context, h(), h0_on_card_, nullptr);
    rope_table(context, rope_, positions_, view_f32(inv_freq_, Shape{kHeadDim / 2}), 1.0f);
    const LayerInput input{config_, batch_, rope_};
    for (int i = 0; i < kLayers; ++i) layer(context, layers_[static_cast<size_t>(i)], input, kv(i), h());
  }

  std::vector<std::byte> outputs() { return on_.download(out_, static_cast<int64_t>(out_bytes())); }

  TensorView h() const { return view_f32(reinterpret_cast<float*>(out_), Shape{rows(), config_.hidden_size}); }

  // What the CPU makes of h, without padding.
  Matrix on_cpu() {
    Matrix h(host_batch_.num_rows, config_.hidden_size);
    for (int64_t r = 0; r < h.rows(); ++r) std::copy_n(h0_.row(r), h.columns(), h.row(r));
    Matrix rope(h.rows(), kHeadDim);
    const std::vector<float> inv_freq = inverse_frequencies();
    rope_table(on_.cpu(), rope.view(), host_batch_.positions, view_f32(inv_freq.data(), Shape{kHeadDim / 2}), 1.0f);
    const LayerInput input{config_, host_batch_, rope.view()};
    for (const HostLayer& layer : host_) {
      PagedSequences pages(pages_.specs(), kKvHeads, kHeadDim, 5);
      pages.fill();
      for (float* pool : {pages.kv().k_f32(), pages.kv().v_f32()}) {
        test::round_to_bf16(pool, static_cast<int64_t>(pool_bytes() / 2));
      }
      decoder_layer(on_.cpu(), layer.on_cpu(), input, {}, pages.kv(), h.view());
    }
    return h;
  }

 private:
  int64_t rows() const { return host_batch_.num_rows + padding_; }
  size_t h_bytes() const { return static_cast<size_t>(rows() * config_.hidden_size) * sizeof(float); }
  size_t pool_bytes() const {
    return static_cast<size_t>(int64_t{pages_.kv().num_pages} * kKvHeads * kPageSize * kHeadDim) * 2;
  }
  size_t out_bytes() const { return h_bytes() + 2 * kLayers * pool_bytes(); }

  PagedKvView kv(int layer) const {
    PagedKvView kv = pages_.kv();
    kv.dtype = DType::bf16;
    kv.k = out_ + h_bytes() + static_cast<size_t>(2 * layer) * pool_bytes();
    kv.v = static_cast<std::byte*>(kv.k) + pool_bytes();
    return kv;
  }

  OnCard& on_;
  const TransformerConfig config_;
  PagedSequences pages_;
  const BatchView host_batch_;
  const int64_t padding_;
  Matrix h0_{0, 0};
  std::vector<HostLayer> host_;
  std::vector<DecoderLayer> layers_;
  BatchView batch_;
  int32_t* positions_ = nullptr;
  int32_t* next_positions_ = nullptr;
  TensorView h0_on_card_, rope_;
  const float* inv_freq_ = nullptr;
  std::byte* out_ = nullptr;
  std::byte* before_ = nullptr;
};

void whole_layer(Context& context, const DecoderLayer& layer, const LayerInput& input, const PagedKvView& kv,
                 TensorView h) {
  decoder_layer(context, layer, input, {}, kv, h);
}

// The same of single ops, nothing overlapping. In float32 throughout where products round what they read.
void layer_by_ops(Context& context, const DecoderLayer& layer, const LayerInput& input, const PagedKvView& kv,
                  TensorView h) {
  const ArenaScope scope(*context.arena);
  const auto wait = [] { EXPECT_TRUE(Card::device().synchronize().ok()); };
  const DType type = Card::device().compute_capability() == 90 ? DType::f32 : DType::bf16;
  const int64_t q_size = input.config.query_size();
  const int64_t kv_size = input.config.key_value_size();
  const TensorView x = context.arena->take(type, h.shape);
  const TensorView qkv = context.arena->take_f32({h.dim(0), q_size + 2 * kv_size});
  const TensorView q = columns_of(qkv, 0, q_size);
  const TensorView k = columns_of(qkv, q_size, kv_size);
  const TensorView attended = context.arena->take(type, q.shape);
  const TensorView inner = context.arena->take(type, {h.dim(0), input.config.intermediate_size});
  const auto eps = static_cast<float>(input.config.rms_norm_eps);
  rms_norm(context, x, h, layer.input_layernorm, eps), wait();
  linear(context, {.out = qkv, .x = x, .weights = layer.qkv_proj}), wait();
  rms_norm(context, q, q, layer.q_norm, eps), wait();
  rms_norm(context, k, k, layer.k_norm, eps), wait();
  rope(context, q, input.rope), wait();
  rope(context, k, input.rope), wait();
  kv_write(context, kv, input.batch, k, columns_of(qkv, q_size + kv_size, kv_size)), wait();
  attention(context, {.out = attended,
                      .q = q,
                      .kv = kv,
                      .batch = input.batch,
                      .num_heads = kHeads,
                      .scale = 1.0f / std::sqrt(static_cast<float>(kHeadDim)),
                      .unrounded = q});
  wait();
  linear(context, {.out = h, .x = attended, .weights = {&layer.o_proj, 1}, .accumulate = true}), wait();
  rms_norm(context, x, h, layer.post_attention_layernorm, eps), wait();
  linear_silu_mul(context, {.out = inner, .x = x, .gate = layer.gate_up_proj[0], .up = layer.gate_up_proj[1]}), wait();
  linear(context, {.out = h, .x = inner, .weights = {&layer.down_proj, 1}, .accumulate = true}), wait();
}

// One row, the rows of a cycle with a text that is long enough to be split, several sequences, and more rows than the
// products take at once.
const std::vector<std::vector<SequenceSpec>> kBatches{
    {{1, 90, 1}}, {{1, 2000, 16}}, {{1, 700, 5}, {2, 15, 1}, {3, 127, 12}}, {{1, 40, 70}}};

TEST(DecoderLayer, MatchesTheCpu) {
  for (const Format format : {Format::bf16, Format::fp8_block}) {
    for (const auto& specs : kBatches) {
      OnCard on(size_t{256} << 20);
      Layers layers(on, format, specs);
      layers.set_positions(0);
      layers.reset();
      layers.pass(whole_layer);
      EXPECT_LT(test::relative_error(on.download(layers.h()), layers.on_cpu()), 3e-2)
          << name_of(format) << ", " << specs.size() << " sequences";
    }
  }
}

// Kernels of a pass overlap. Whatever looks too early or overwrites too early shows against the same pass with nothing
// overlapping; all that a pass writes is poisoned before every replay, and positions change between replays.
TEST(DecoderLayer, ReplaysHaveTheBitsOfTheOps) {
  constexpr int kReplays = 200;
  constexpr int32_t kBack[] = {0, 9};
  for (const Format format : {Format::bf16, Format::fp8_row, Format::nvfp4}) {
    for (const auto& specs : kBatches) {
      OnCard on(size_t{256} << 20);
      Layers layers(on, format, specs);
      std::vector<std::byte> expected[2];
      for (const int i : {0, 1}) {
        layers.set_positions(kBack[i]);
        layers.reset();
        layers.pass(layer_by_ops);
        expected[i] = layers.outputs();
        layers.reset();
        layers.pass(whole_layer);
        EXPECT_TRUE(layers.outputs() == expected[i]) << name_of(format) << ", " << specs.size() << " sequences";
      }
      EXPECT_FALSE(expected[0] == expected[1]);
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t executable = nullptr;
      const cudaStream_t stream = Card::device().stream();
      ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
      layers.pass(whole_layer);
      ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
      ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
      int differing = 0;
      for (int i = 0; i < kReplays; ++i) {
        layers.set_positions(kBack[i % 2]);
        layers.reset();
        ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
        differing += layers.outputs() == expected[i % 2] ? 0 : 1;
      }
      EXPECT_EQ(differing, 0) << name_of(format) << ", " << specs.size() << " sequences: of " << kReplays << " replays";
      cudaGraphExecDestroy(executable);
      cudaGraphDestroy(graph);
    }
  }
}

// The library's kernels between ours, which overlap with what they can.
TEST(DecoderLayer, OfAPromptHasTheBitsOfTheOps) {
  const auto products = CublasLt::open(Card::device());
  if (!products) GTEST_SKIP() << products.error().message;
  constexpr int kRuns = 50;
  for (const Format format : {Format::bf16, Format::fp8_row, Format::fp8_block, Format::nvfp4}) {
    OnCard on(size_t{256} << 20);
    on.card().prompt_products = products->get();
    Layers layers(on, format, {{1, kPromptRows, kPromptRows}});
    layers.set_positions(0);
    layers.reset();
    layers.pass(layer_by_ops);
    const std::vector<std::byte> expected = layers.outputs();
    int differing = 0;
    for (int i = 0; i < kRuns; ++i) {
      layers.reset();
      layers.pass(whole_layer);
      differing += layers.outputs() == expected ? 0 : 1;
    }
    EXPECT_EQ(differing, 0) << name_of(format) << ": of " << kRuns << " runs";
  }
}

// The passes over a prompt are padded to the grid: a position has the bits that it has in a full one.
TEST(DecoderLayer, OfAPromptIsThatOfAFullGrid) {
  const auto products = CublasLt::open(Card::device());
  if (!products) GTEST_SKIP() << products.error().message;
  constexpr int32_t kFirst = 2 * kPromptRows;
  for (const Format format : {Format::bf16, Format::fp8_row, Format::fp8_block, Format::nvfp4}) {
    OnCard on(size_t{256} << 20);
    on.card().prompt_products = products->get();
    Layers full(on, format, {{1, kFirst, kPromptRows}});
    full.set_positions(0);
    full.reset();
    full.pass(whole_layer);
    const Matrix expected = on.download(full.h());
    EXPECT_LT(test::relative_error(expected, full.on_cpu()), 3e-2) << name_of(format);
    for (const int32_t rows : {1, 17, 100, 255}) {
      Layers padded(on, format, {{1, kFirst, rows}}, kPromptRows - rows);
      padded.set_positions(0);
      padded.reset();
      padded.pass(whole_layer);
      const Matrix found = on.download(padded.h());
      for (int64_t r = 0; r < rows; ++r) {
        ASSERT_TRUE(test::same_bits(found.row(r), expected.row(r), expected.columns()))
            << name_of(format) << ": row " << r << " of " << rows;
      }
    }
  }
}

}  // namespace
}  // namespace blockdraft
