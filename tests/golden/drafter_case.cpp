// A drafter fixture: its cycles as growing prefixes of one sequence, each cycle from scratch, and a shortened block.

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "draft/draft_model.h"
#include "golden/case.h"
#include "nn/weight_store.h"
#include "ops/cpu/decode.h"
#include "tensor/codec.h"
#include "tensor/recorder.h"

namespace blockdraft::golden {
namespace {

constexpr int32_t kMaxPositions = 128;
enum Slot : int32_t { kGrowing, kFresh, kNumSlots };

// The first `count` rows of tensors with `total` rows.
struct Rows {
  size_t count;
  size_t total;

  template <class T>
  std::span<const T> of(std::span<const T> values) const {
    return values.first(values.size() / total * count);
  }
};

struct Runner {
  test::DeviceContext& device;
  const Case& fixture;
  DraftModel& model;
  ConstTensorView taps;  // [positions, taps], where the model computes
  Comparison comparison;

  // Appends features of positions [from, to) in pieces, so that chunk borders fall anywhere.
  Status extend(int32_t slot, int32_t from, int32_t to, int32_t piece) {
    for (; from < to; from += piece) {
      const TapRows rows{slot, from, from, std::min(piece, to - from)};
      BLOCKDRAFT_TRY(device.begin_pass());
      model.extend_context(device.context(), taps, {&rows, 1});
      BLOCKDRAFT_TRY(device.finish_pass());
    }
    return {};
  }

  // A tensor that every block has. Returns the largest absolute error.
  double check(const Recorder& recorder, const std::string& name, const std::string& quantity,
               const std::string& layer = "") {
    const RecordedTensor* found = recorder.find(quantity + layer);
    return comparison.tensor(quantity, found == nullptr ? std::span<const float>{} : found->floats,
                             fixture.floats(name + "." + quantity + layer));
  }
  // One that the fixture may lack.
  double check_if_there(const Recorder& recorder, const std::string& name, const std::string& quantity,
                        const std::string& layer = "") {
    return fixture.has(name + "." + quantity + layer) ? check(recorder, name, quantity, layer) : 0;
  }

  // Of a context that came in one piece: no window has let go of any of it yet.
  void check_context(const Recorder& recorder, const std::string& name) {
    for (int64_t layer = 0; layer < model.config().transformer.num_hidden_layers; ++layer) {
      check_if_there(recorder, name, "context_k", fmt::format(".{}", layer));
      check_if_there(recorder, name, "context_v", fmt::format(".{}", layer));
    }
  }

  // The first rows of a tensor that a chain has: later ones depend on a pick that was another.
  double check_rows(const Recorder& recorder, const std::string& name, const std::string& quantity, Rows rows) {
    if (!fixture.has(name + "." + quantity) || rows.count == 0) return 0;
    const std::vector<float> expected = fixture.floats(name + "." + quantity);
    const std::vector<float>& found = recorder.find(quantity)->floats;
    return comparison.tensor(quantity, rows.of(std::span<const float>(found)),
                             rows.of(std::span<const float>(expected)));
  }

  // Candidates are compared as sets: the reference lists them in another order. One may be missing if the smallest of
  // them is as near to it as the error of logits allows.
  double check_candidates(const Recorder& recorder, const std::string& name, Rows rows, double error) {
    if (!fixture.has(name + ".candidates")) return 0;
    const auto k = static_cast<size_t>(model.config().dflash2.selector_top_k);
    const std::vector<int32_t> ids = fixture.integers(name + ".candidates");
    const std::vector<float> logits = fixture.floats(name + ".logits");
    const size_t columns = logits.size() / (ids.size() / k);
    const std::vector<int32_t>& candidates = recorder.find("candidates")->integers;
    const std::vector<float>& scores = recorder.find("selector_scores")->floats;
    const std::vector<float> expected = fixture.floats(name + ".selector_scores");
    std::vector<float> found = expected;
    comparison.require("candidates of another number", ids.size() == candidates.size());
    for (size_t i = 0; i < std::min(ids.size(), candidates.size()); ++i) {
      const auto row = candidates.begin() + static_cast<int64_t>(i / k * k);
      const auto place = std::find(row, row + static_cast<int64_t>(k), ids[i]);
      if (place != row + static_cast<int64_t>(k)) {
        found[i] = scores[static_cast<size_t>(place - candidates.begin())];
        continue;
      }
      const auto logit = [&](int32_t id) { return logits[i / k * columns + static_cast<size_t>(id)]; };
      const auto of_row = std::span(ids).subspan(i / k * k, k);
      const float least = logit(*std::ranges::min_element(of_row, {}, logit));
      comparison.near_tie(fmt::format("{}: id {} is not among the candidates", name, ids[i]),
                          static_cast<double>(logit(ids[i]) - least), 2 * error);
    }
    if (rows.count == 0) return 0;
    return comparison.tensor("selector_scores", rows.of(std::span<const float>(found)),
                             rows.of(std::span<const float>(expected)));
  }

  // In a chain (selector, Markov head) each pick depends on those before: up to and with the first other one, but
  // without it if it had other candidates to pick from.
  Rows comparable_rows(const Recorder& recorder, const std::string& name, const std::vector<int32_t>& drafts,
                       const std::vector<int32_t>& expected) const {
    const Rows all{expected.size(), expected.size()};
    if (model.config().family == DrafterFamily::dflash || drafts.size() != expected.size()) return all;
    const auto same = static_cast<size_t>(std::ranges::mismatch(drafts, expected).in1 - drafts.begin());
    if (same == all.total) return all;
    return {has_other_candidates(recorder, name, same) ? same : same + 1, all.total};
  }

  bool has_other_candidates(const Recorder& recorder, const std::string& name, size_t row) const {
    if (!fixture.has(name + ".candidates")) return false;
    const auto sorted_row = [&](std::vector<int32_t> ids) {
      const auto k = static_cast<ptrdiff_t>(model.config().dflash2.selector_top_k);
      std::vector<int32_t> of_row(ids.begin() + static_cast<ptrdiff_t>(row) * k,
                                  ids.begin() + static_cast<ptrdiff_t>(row + 1) * k);
      std::ranges::sort(of_row);
      return of_row;
    };
    return sorted_row(recorder.find("candidates")->integers) != sorted_row(fixture.integers(name + ".candidates"));
  }

  // What one block computes, compared with the fixture's `name`.
  Status check_block(const DraftRequest& request, const std::string& name) {
    std::vector<int32_t> drafts(static_cast<size_t>(request.width));
    int32_t width = 0;
    Recorder recorder;
    Context recorded = device.context();
    recorded.recorder = &recorder;
    BLOCKDRAFT_TRY(device.begin_pass());
    BLOCKDRAFT_TRY(model.propose(recorded, {&request, 1}, {drafts, {&width, 1}}));
    BLOCKDRAFT_TRY(device.finish_pass());
    if (request.slot == kFresh) check_context(recorder, name);
    check(recorder, name, "hidden");
    comparison.require("some drafts were withheld", width == request.width);
    const std::vector<int32_t> expected = fixture.integers(name + ".drafts");
    const std::vector<float> margins = fixture.floats(name + ".margin");
    const Rows rows = comparable_rows(recorder, name, drafts, expected);
    check_rows(recorder, name, "confidence_logits", rows);
    const double logit_error = check(recorder, name, "logits");
    const double error = std::max({logit_error, check_rows(recorder, name, "corrected_logits", rows),
                                   check_candidates(recorder, name, rows, logit_error)});
    comparison.tokens(name + ".drafts", rows.of(std::span<const int32_t>(drafts)),
                      rows.of(std::span<const int32_t>(expected)), rows.of(std::span<const float>(margins)), error);
    return {};
  }
};

// How many elements of the stored weight `name`, dequantized and rounded to BF16, differ from the fixture's in a bit.
Result<int64_t> count_other_bits(WeightStore& store, const std::string& name, const StoredTensor& expected) {
  CHECK(expected.dtype == DType::bf16 && expected.shape.size() == 2);
  BLOCKDRAFT_ASSIGN(const WeightView weight, store.parameter(name, expected.shape[0], expected.shape[1]));
  std::vector<float> row(static_cast<size_t>(weight.in_features));
  const std::byte* bits = expected.data;
  int64_t others = 0;
  for (int64_t n = 0; n < weight.out_features; ++n) {
    cpu::decode_row(weight, n, row.data());
    for (const float value : row) {
      if (bf16_from_float(value) != load_unaligned<uint16_t>(bits)) ++others;
      bits += sizeof(uint16_t);
    }
  }
  return others;
}

// The packed weights of a fixture stand for its `dequantized.NAME` tensors, bit for bit.
Status check_dequantized(const Case& fixture, Comparison& comparison) {
  constexpr std::string_view kPrefix = "dequantized.";
  BLOCKDRAFT_ASSIGN(Checkpoint checkpoint, Checkpoint::open(fixture.folder));
  WeightStore store(std::make_shared<const Checkpoint>(std::move(checkpoint)), "");
  for (const auto& [name, tensor] : fixture.io.tensors()) {
    if (!name.starts_with(kPrefix)) continue;
    BLOCKDRAFT_ASSIGN(const int64_t others, count_other_bits(store, name.substr(kPrefix.size()), tensor));
    comparison.require(fmt::format("{}: {} elements have other bits", name, others), others == 0);
  }
  return {};
}

}  // namespace

Result<Comparison> run_drafter_case(test::DeviceContext& device, const Case& fixture) {
  BLOCKDRAFT_ASSIGN(const DrafterConfig config, read_drafter_config(fixture.folder));
  BLOCKDRAFT_ASSIGN(const WeightView embed_tokens, device.place(fixture.matrix("embed_tokens")));
  BLOCKDRAFT_ASSIGN(const WeightView lm_head, device.place(fixture.matrix("lm_head")));
  const TargetWeights target{.embed_tokens = embed_tokens,
                             .lm_head = lm_head,
                             .num_hidden_layers = config.num_target_layers.value_or(0),
                             .num_choices = embed_tokens.out_features};
  BLOCKDRAFT_ASSIGN(const std::unique_ptr<DraftModel> model,
                    DraftModel::load({fixture.folder}, config, target,
                                     {.max_sequences = kNumSlots, .max_positions = kMaxPositions}, device.loading()));
  const std::vector<float> features = fixture.floats("features");
  const int64_t columns = fixture.matrix("features").in_features;
  BLOCKDRAFT_ASSIGN(
      const ConstTensorView taps,
      device.place(view_f32(features.data(), Shape{static_cast<int64_t>(features.size()) / columns, columns})));
  Runner runner{device, fixture, *model, taps,
                Comparison(fixture.tolerance(device.context(), config.family == DrafterFamily::dflash2))};
  BLOCKDRAFT_TRY(check_dequantized(fixture, runner.comparison));
  const std::vector<int32_t> lengths = fixture.integers("context_lengths");
  const std::vector<int32_t> anchors = fixture.integers("anchors");
  int32_t grown = 0;
  for (size_t cycle = 0; cycle < lengths.size(); ++cycle) {
    const std::string name = fmt::format("cycle{}", cycle);
    if (!fixture.has(name + ".drafts")) continue;
    DraftRequest request{
        .slot = kGrowing, .anchor_id = anchors[cycle], .position = lengths[cycle], .width = model->trained_width()};
    BLOCKDRAFT_TRY(runner.extend(kGrowing, grown, lengths[cycle], 5));
    grown = lengths[cycle];
    BLOCKDRAFT_TRY(runner.check_block(request, name));

    model->reset(kFresh);
    BLOCKDRAFT_TRY(runner.extend(kFresh, 0, lengths[cycle], lengths[cycle]));
    request.slot = kFresh;
    BLOCKDRAFT_TRY(runner.check_block(request, name));
    if (cycle == 1 && fixture.has("short4.drafts")) {
      request.width = static_cast<int32_t>(fixture.integers("short4.drafts").size());
      BLOCKDRAFT_TRY(runner.check_block(request, "short4"));
    }
  }
  return runner.comparison;
}

}  // namespace blockdraft::golden
