// What a draft source is given of the target, layer by layer and position by position, through prompts of several
// passes, verified blocks and rejected rows.

#include <map>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "property/pairs.h"
#include "support/naive_target.h"
#include "support/op_context.h"

namespace blockdraft::test {
namespace {

// Proposes what a script says, and keeps the taps of the layers that it asks for.
class KeepsTaps : public DraftSource {
 public:
  KeepsTaps(std::vector<int32_t> layer_ids, int64_t prompt_length, std::vector<int32_t> text)
      : layer_ids_(std::move(layer_ids)), prompt_length_(prompt_length), text_(std::move(text)) {}

  int32_t trained_width() const override { return kTinyWidth; }
  std::span<const int32_t> target_layer_ids() const override { return layer_ids_; }
  void extend_context(Context&, ConstTensorView taps, std::span<const TapRows> rows) override {
    for (const TapRows& part : rows) {
      for (int32_t i = 0; i < part.num_rows; ++i) {
        EXPECT_EQ(part.first_position + i, static_cast<int32_t>(taps_.size()));
        const float* row = taps.row(part.first_row + i);
        taps_.emplace_back(row, row + taps.dim(1));
      }
    }
  }
  // Three right drafts, then wrong ones.
  Status propose(Context&, std::span<const DraftRequest> requests, const Drafts& drafts) override {
    const auto next = static_cast<size_t>(requests[0].position + 1 - prompt_length_);
    for (size_t i = 0; i < drafts.ids.size(); ++i) {
      drafts.ids[i] = static_cast<int32_t>((text_[next + i] + (i < 3 ? 0 : 1)) % kTinyVocab);
    }
    propose_all(requests, drafts.widths);
    return {};
  }
  void reset(int32_t) override {}
  size_t state_bytes() const override { return 0; }
  size_t scratch_bytes(int32_t) const override { return 0; }

  const std::vector<std::vector<float>>& taps() const { return taps_; }

 private:
  std::vector<int32_t> layer_ids_;
  int64_t prompt_length_;
  std::vector<int32_t> text_;
  std::vector<std::vector<float>> taps_;
};

// Inner layers, the first, the last, the embeddings; in no order.
TEST(Taps, FieldFault1_AreOfTheLayersAndPositionsAsked) {
  constexpr int64_t kPrompt = 300;  // two passes
  constexpr int64_t kText = 40;
  const PlainTexts texts = plain_texts(TinyPair::get().target(), {random_prompt(61, kPrompt)}, kText, float32_isa());
  const std::vector<int32_t>& text = texts[0];
  const std::vector<Rows> stream = NaiveTarget(TinyPair::get().target()).residual_stream(text);
  for (const std::vector<int32_t>& layer_ids : std::vector<std::vector<int32_t>>{{2, 0}, {3, -1, 1}, {3}, {0}}) {
    KeepsTaps* source = nullptr;
    Decoder decoder(TinyPair::get().target(),
                    {.threads = 1,
                     .isa = float32_isa(),
                     .max_positions = kPrompt + kText,
                     .max_width = 6,
                     .num_choices = kTinyVocab},
                    [&](const Target&) -> std::unique_ptr<DraftSource> {
                      auto made = std::make_unique<KeepsTaps>(layer_ids, kPrompt,
                                                              std::vector<int32_t>(text.begin() + kPrompt, text.end()));
                      source = made.get();
                      return made;
                    });
    const TokenRequest request{
        .prompt_ids = {text.begin(), text.begin() + kPrompt}, .max_tokens = kText - 6, .width = 6};
    EXPECT_EQ(decoder.run(request).ids, expected_ids(text, request));
    ASSERT_GT(source->taps().size(), static_cast<size_t>(kPrompt + 20));
    for (size_t position = 0; position < source->taps().size(); ++position) {
      const std::vector<float>& found = source->taps()[position];
      const size_t hidden = found.size() / layer_ids.size();
      for (size_t i = 0; i < found.size(); ++i) {
        const auto layer = static_cast<size_t>(layer_ids[i / hidden] + 1);
        ASSERT_NEAR(static_cast<double>(found[i]), stream[layer][position][i % hidden], 1e-3)
            << "layer " << layer_ids[i / hidden] << ", position " << position;
      }
    }
  }
}

}  // namespace
}  // namespace blockdraft::test
