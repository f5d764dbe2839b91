// An engine of one's own, over the public drafter and rules of acceptance only: its texts have the target's law,
// coupled and by ratio, whatever drafts. The host's target is the forward pass by its definition (NaiveTarget).

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "blockdraft/accept.h"
#include "blockdraft/drafter.h"
#include "checkpoint/checkpoint.h"
#include "property_sampling/three_tokens.h"
#include "support/naive_target.h"
#include "support/op_context.h"
#include "support/take.h"

namespace blockdraft::test {
namespace {

constexpr int64_t kTexts = 2000;
constexpr size_t kLength = 5;  // tokens of a text, so that drafts reach beyond the third

enum class Rule { sound, keeps_every_draft };

class Host {
 public:
  explicit Host(TinyFamily family, Rule rule = Rule::sound)
      : checkpoint_(take(Checkpoint::open(LawModels::get().target()))),
        target_(LawModels::get().target()),
        drafter_(
            take(Drafter::open(LawModels::get().drafter(family),
                               {.threads = 1, .max_positions = 16, .cpu_isa = name_of(float32_isa())}, tensors()))),
        rule_(rule) {}

  std::vector<int32_t> text(const Sampling& sampling, int32_t width) {
    tokens_ = kLawPrompt;
    sequence_ = take(drafter_.new_sequence());
    for (size_t i = 0; i + 1 < tokens_.size(); ++i) extend(i);
    while (remaining() > 0) cycle(sampling, width);
    EXPECT_TRUE(drafter_.release(sequence_));
    return {tokens_.begin() + static_cast<std::ptrdiff_t>(kLawPrompt.size()), tokens_.end()};
  }
  int64_t accepted() const { return accepted_; }

 private:
  // What the target says of the last token of a text.
  struct Row {
    std::vector<float> logits;  // [kLawIds]
    std::vector<float> taps;
  };

  TargetTensors tensors() const {
    const auto matrix = [&](const char* name) {
      const StoredTensor& tensor = *checkpoint_.find(name);
      return MatrixView{.data = tensor.data, .rows = tensor.shape[0], .columns = tensor.shape[1]};
    };
    return {.embed_tokens = matrix("model.embed_tokens.weight"),
            .lm_head = matrix("lm_head.weight"),
            .num_layers = 1,
            .num_real_ids = kLawIds};
  }

  const Row& after(const std::vector<int32_t>& text) {
    const auto [place, is_new] = rows_.try_emplace(text);
    if (is_new) {
      std::vector<double> logits = target_.logits(text);
      place->second.logits.assign(logits.begin(), logits.begin() + kLawIds);
      const std::vector<double> tap = target_.residual_stream(text).at(1).back();  // of layer 0
      place->second.taps.assign(tap.begin(), tap.end());
    }
    return place->second;
  }

  int64_t remaining() const { return static_cast<int64_t>(kLawPrompt.size() + kLength - tokens_.size()); }

  // Hands over the taps of one committed token.
  void extend(size_t position) {
    const std::vector<int32_t> text(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(position) + 1);
    ASSERT_TRUE(drafter_.extend_context(sequence_, after(text).taps, static_cast<int32_t>(position)));
  }

  void cycle(const Sampling& sampling, int32_t width) {
    const auto position = static_cast<int32_t>(tokens_.size()) - 1;
    const auto asked = static_cast<int32_t>(std::min<int64_t>(width, remaining() - 1));
    std::vector<Proposal> proposals(1);
    if (asked > 0) {
      const DraftQuery query{sequence_, tokens_.back(), position, asked, sampling};
      ASSERT_TRUE(drafter_.propose({&query, 1}, proposals));
    }
    const std::vector<int32_t> kept = sampling.acceptance == Acceptance::ratio
                                          ? kept_by_ratio(proposals[0], sampling, position)
                                          : kept_by_choice(proposals[0], sampling, position);
    ASSERT_FALSE(kept.empty());
    tokens_.insert(tokens_.end(), kept.begin(), kept.end());
    for (size_t i = 0; i < kept.size(); ++i) extend(static_cast<size_t>(position) + i);
  }

  // One row behind the anchor and behind each draft.
  std::vector<std::vector<float>> verify(const Proposal& proposal) {
    std::vector<int32_t> text = tokens_;
    std::vector<std::vector<float>> rows{after(text).logits};
    for (const int32_t draft : proposal.ids) {
      text.push_back(draft);
      rows.push_back(after(text).logits);
    }
    return rows;
  }

  std::vector<int32_t> kept_by_choice(const Proposal& proposal, const Sampling& sampling, int32_t position) {
    std::vector<int32_t> choices;
    for (const std::vector<float>& row : verify(proposal)) {
      choices.push_back(take(choose_token(row, sampling, ++position)));
    }
    const AcceptedDrafts kept = take(accept_greedy(proposal.ids, choices, remaining()));
    accepted_ += kept.accepted;
    return {choices.begin(), choices.begin() + kept.produced};
  }

  std::vector<int32_t> kept_by_ratio(const Proposal& proposal, const Sampling& sampling, int32_t position) {
    if (rule_ == Rule::keeps_every_draft && !proposal.ids.empty()) return proposal.ids;
    std::vector<float> probabilities;
    for (std::vector<float>& row : verify(proposal)) {
      EXPECT_TRUE(to_probabilities(row, sampling));
      probabilities.insert(probabilities.end(), row.begin(), row.end());
    }
    std::vector<int32_t> tokens;
    const AcceptedDrafts kept = take(accept_ratio({.drafts = proposal.ids,
                                                   .laws = proposal.laws,
                                                   .probabilities = probabilities,
                                                   .position = position,
                                                   .seed = sampling.seed,
                                                   .remaining = remaining()},
                                                  tokens));
    accepted_ += kept.accepted;
    return tokens;
  }

  Checkpoint checkpoint_;
  NaiveTarget target_;
  Drafter drafter_;
  Rule rule_;
  std::map<std::vector<int32_t>, Row> rows_;
  SequenceId sequence_{};
  std::vector<int32_t> tokens_;
  int64_t accepted_ = 0;
};

Sampling sampling_of(const SamplingParams& params, Acceptance acceptance) {
  return {.temperature = params.temperature,
          .top_k = params.top_k,
          .top_p = params.top_p,
          .min_p = params.min_p,
          .acceptance = acceptance};
}

// Penalties and biases are the host's own business.
std::vector<LawCase> host_cases() {
  std::vector<LawCase> cases = law_cases();
  std::erase_if(cases, [](const LawCase& law_case) {
    return law_case.sampling.penalizes() || !law_case.sampling.logit_bias.empty();
  });
  return cases;
}

std::vector<int64_t> count_three_tokens(Host& host, Sampling sampling) {
  std::vector<int64_t> counts(kLawIds * kLawIds * kLawIds);
  for (int64_t i = 0; i < kTexts; ++i) {
    sampling.seed = static_cast<uint64_t>(i);
    const std::vector<int32_t> ids = host.text(sampling, i % 2 == 0 ? 1 : kLawWidth);
    ++counts[static_cast<size_t>((ids[0] * kLawIds + ids[1]) * kLawIds + ids[2])];
  }
  return counts;
}

class HostLaw : public testing::TestWithParam<TinyFamily> {};

TEST_P(HostLaw, IsTheTargets) {
  ASSERT_GE(host_cases().size(), 4u);
  for (const Acceptance acceptance : {Acceptance::coupled, Acceptance::ratio}) {
    Host host(GetParam());
    for (const LawCase& law_case : host_cases()) {
      SCOPED_TRACE(law_case.name);
      const std::vector<int64_t> counts = count_three_tokens(host, sampling_of(law_case.sampling, acceptance));
      expect_law(counts, law_of_three_tokens(law_case.sampling), kOneIn10000);
    }
    EXPECT_GT(host.accepted(), kTexts) << "the drafter took part";
  }
}

TEST_P(HostLaw, OfAHostThatTestsNothingIsAnother) {
  Host host(GetParam(), Rule::keeps_every_draft);
  const LawCase law_case = host_cases().front();
  const ChiSquare found = chi_square(count_three_tokens(host, sampling_of(law_case.sampling, Acceptance::ratio)),
                                     law_of_three_tokens(law_case.sampling));
  EXPECT_GT(found.statistic, found.limit(kOneInAMillion));
}

TEST_P(HostLaw, TheTextOfASeedIsThatOfPlainDecodingAndOfTheEngine) {
  Host host(GetParam());
  Decoder decoder(LawModels::get().target(), law_options(), law_drafter(GetParam()));
  for (const LawCase& law_case : host_cases()) {
    Sampling sampling = sampling_of(law_case.sampling, Acceptance::coupled);
    TokenRequest request{
        .prompt_ids = kLawPrompt, .max_tokens = kLength, .width = kLawWidth, .sampling = law_case.sampling};
    for (uint64_t seed = 0; seed < 50; ++seed) {
      sampling.seed = request.sampling.seed = seed;
      const std::vector<int32_t> plain = host.text(sampling, 0);
      EXPECT_EQ(host.text(sampling, kLawWidth), plain) << law_case.name << ", seed " << seed;
      EXPECT_EQ(decoder.run(request).ids, plain) << law_case.name << ", seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, HostLaw, testing::Values(TinyFamily::dflash, TinyFamily::dflash2, TinyFamily::dspark),
                         [](const auto& suite) { return name_of(suite.param); });

}  // namespace
}  // namespace blockdraft::test
