// The test of the tests of laws: an acceptance rule that is wrong in a way in which such rules have been wrong, and the
// statistic that text_law_test.cpp accepts for the right one exceeds its limit. The product has no switch for this:
// what is falsified is what the engine is told of the drafts' laws, or which row of the target it reads.

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "property_sampling/three_tokens.h"
#include "support/forwarding_target.h"

namespace blockdraft::test {
namespace {

constexpr int64_t kTexts = 12000;
using Row = std::vector<float>;

// A sound drafter that hands out other laws than those that it drew from.
class FalseLaws : public DraftSource {
 public:
  // Changes drafts and laws of one block; each law is a row of kLawIds probabilities.
  using Falsify = std::function<void(std::span<int32_t> drafts, std::span<Row> laws)>;

  FalseLaws(std::unique_ptr<DraftSource> inner, Falsify falsify)
      : inner_(std::move(inner)), falsify_(std::move(falsify)) {}

  int32_t trained_width() const override { return inner_->trained_width(); }
  std::span<const int32_t> target_layer_ids() const override { return inner_->target_layer_ids(); }
  void extend_context(Context& context, ConstTensorView taps, std::span<const TapRows> rows) override {
    inner_->extend_context(context, taps, rows);
  }
  Status propose(Context& context, std::span<const DraftRequest> requests, const Drafts& drafts) override {
    const Status status = inner_->propose(context, requests, drafts);
    if (!status) return status;
    rows_.assign(drafts.ids.size(), Row(kLawIds));
    size_t first = 0;
    for (const DraftRequest& request : requests) {
      const auto width = static_cast<size_t>(request.width);
      for (size_t i = first; i < first + width; ++i) {
        const ProbabilityRow& law = drafts.laws[i];
        for (int64_t c = 0; c < law.count; ++c) {
          rows_[i][static_cast<size_t>(law.ids == nullptr ? c : law.ids[c])] = law.values[c];
        }
      }
      falsify_(drafts.ids.subspan(first, width), std::span(rows_).subspan(first, width));
      first += width;
    }
    for (size_t i = 0; i < rows_.size(); ++i) drafts.laws[i] = {.values = rows_[i].data(), .count = kLawIds};
    return {};
  }
  void reset(int32_t slot) override { inner_->reset(slot); }
  size_t law_bytes(int64_t drafts) const override { return inner_->law_bytes(drafts); }
  size_t state_bytes() const override { return inner_->state_bytes(); }
  size_t scratch_bytes(int32_t num_threads) const override { return inner_->scratch_bytes(num_threads); }

 private:
  std::unique_ptr<DraftSource> inner_;
  Falsify falsify_;
  std::vector<Row> rows_;
};

ChiSquare statistic_of(Decoder& decoder, AcceptanceRule acceptance) {
  const SamplingParams sampling{.temperature = 1.0f, .acceptance = acceptance};
  const ThreeTokens drawn = draw_three_tokens(decoder, sampling, kTexts, {kLawWidth});
  return chi_square(drawn.counts, law_of_three_tokens(sampling));
}

class BrokenRule : public testing::TestWithParam<TinyFamily> {
 protected:
  static ChiSquare with_laws(const FalseLaws::Falsify& falsify) {
    Decoder decoder(LawModels::get().target(), law_options(),
                    [&](const Target& target) -> std::unique_ptr<DraftSource> {
                      return std::make_unique<FalseLaws>(law_drafter(GetParam())(target), falsify);
                    });
    return statistic_of(decoder, AcceptanceRule::ratio);
  }
  static void expect_noticed(const ChiSquare& found) { EXPECT_GT(found.statistic, found.limit(kOneIn10000)); }
};

TEST_P(BrokenRule, IsNoticedOnlyIfItIsBroken) {
  const ChiSquare sound = with_laws([](std::span<int32_t>, std::span<Row>) {});
  EXPECT_LT(sound.statistic, sound.limit(kOneIn10000));
}

// q = 0: u * q < p whatever p is.
TEST_P(BrokenRule, EveryDraftIsAccepted) {
  expect_noticed(with_laws([](std::span<int32_t>, std::span<Row> laws) {
    for (Row& law : laws) std::ranges::fill(law, 0.0f);
  }));
}

// The test of the draft is right, but what comes in its place is drawn from p without the draft, not from p - q.
TEST_P(BrokenRule, TheResidualIsNotReducedByTheLaw) {
  expect_noticed(with_laws([](std::span<int32_t> drafts, std::span<Row> laws) {
    for (size_t i = 0; i < drafts.size(); ++i) {
      for (int32_t id = 0; id < kLawIds; ++id) {
        if (id != drafts[i]) laws[i][static_cast<size_t>(id)] = 0.0f;
      }
    }
  }));
}

TEST_P(BrokenRule, TheLawIsThatOfTheNextDraft) {
  expect_noticed(
      with_laws([](std::span<int32_t>, std::span<Row> laws) { std::ranges::rotate(laws, laws.begin() + 1); }));
}

// The most likely id instead of a drawn one. Its law is that of certainty; the row it was taken from is none.
TEST_P(BrokenRule, FieldFault15_DraftsThatWereNotDrawnNeedTheLawOfCertainty) {
  const auto propose_best = [](std::span<int32_t> drafts, std::span<Row> laws) {
    // The first only: what follows was proposed for another predecessor.
    drafts[0] = static_cast<int32_t>(std::ranges::max_element(laws[0]) - laws[0].begin());
  };
  expect_noticed(with_laws(propose_best));
  const ChiSquare certain = with_laws([&](std::span<int32_t> drafts, std::span<Row> laws) {
    propose_best(drafts, laws);
    std::ranges::fill(laws[0], 0.0f);
    laws[0][static_cast<size_t>(drafts[0])] = 1.0f;
  });
  EXPECT_LT(certain.statistic, certain.limit(kOneIn10000));
}

// Coupled acceptance knows no q; here each row of a verification reads the target's row before it.
class RowBefore : public ForwardingTarget {
 public:
  using ForwardingTarget::ForwardingTarget;
  void forward(Context& context, const TargetPass& pass) override {
    ForwardingTarget::forward(context, pass);
    int64_t first = 0;
    for (const SequenceRows& rows : pass.sequences) {
      const auto count = static_cast<int64_t>(rows.token_ids.size());
      if (pass.hidden.dim(0) < first + count) return;  // a prompt: only its last row is read
      for (int64_t row = first + count - 1; row > first; --row) {
        std::copy_n(pass.hidden.row(row - 1), pass.hidden.dim(1), pass.hidden.row(row));
      }
      first += count;
    }
  }
};

TEST_P(BrokenRule, TheTargetsRowIsTheOneBefore) {
  for (const AcceptanceRule acceptance : {AcceptanceRule::coupled, AcceptanceRule::ratio}) {
    Decoder decoder(std::make_unique<RowBefore>(open_target(LawModels::get().target(), law_options())), law_options(),
                    law_drafter(GetParam()));
    expect_noticed(statistic_of(decoder, acceptance));
  }
}
INSTANTIATE_TEST_SUITE_P(, BrokenRule, testing::Values(TinyFamily::dflash, TinyFamily::dflash2, TinyFamily::dspark),
                         [](const auto& suite) { return name_of(suite.param); });

}  // namespace
}  // namespace blockdraft::test
