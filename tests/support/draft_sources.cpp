#include "support/draft_sources.h"

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

#include "ops/embedding.h"
#include "support/op_context.h"

namespace blockdraft::test {
namespace {

std::string bytes_of(const float* row, int64_t columns) {
  return std::string(reinterpret_cast<const char*>(row), static_cast<size_t>(columns) * sizeof(float));
}

}  // namespace

WatchingDrafts::WatchingDrafts(const Target& target, int32_t width) : width_(width) {
  const WeightView table = target.embed_tokens();
  OpContext context;
  Matrix row(1, table.in_features);
  for (int32_t id = 0; id < table.out_features; ++id) {
    embedding(context, row.view(), &id, table, target.embedding_scale());
    ids_.emplace(bytes_of(row.row(0), table.in_features), id);
  }
}

void WatchingDrafts::extend_context(Context&, ConstTensorView taps, std::span<const TapRows> rows) {
  for (const TapRows& part : rows) {
    std::vector<int32_t>& context = slots_[part.slot].context;
    EXPECT_EQ(part.first_position, static_cast<int32_t>(context.size())) << "slot " << part.slot;
    EXPECT_GT(part.num_rows, 0);
    for (int32_t row = part.first_row; row < part.first_row + part.num_rows; ++row) {
      const auto id = ids_.find(bytes_of(taps.row(row), taps.dim(1)));
      ASSERT_NE(id, ids_.end()) << "tap row " << row << " is no embedding";
      context.push_back(id->second);
    }
  }
}

Status WatchingDrafts::propose(Context&, std::span<const DraftRequest> requests, const Drafts& drafts) {
  std::span<int32_t> ids = drafts.ids;
  for (const DraftRequest& request : requests) {
    Watched& slot = slots_[request.slot];
    EXPECT_EQ(request.position, static_cast<int32_t>(slot.context.size())) << "slot " << request.slot;
    EXPECT_GE(request.width, 1);
    EXPECT_LE(request.width, width_);
    std::vector<int32_t> text = slot.context;
    text.push_back(request.anchor_id);
    draft(text, slot.rounds++, ids.first(static_cast<size_t>(request.width)));
    ids = ids.subspan(static_cast<size_t>(request.width));
  }
  EXPECT_TRUE(ids.empty());
  propose_all(requests, drafts.widths);
  return {};
}

void WatchingDrafts::reset(int32_t slot) { slots_.erase(slot); }

RandomDrafts::RandomDrafts(const Target& target, int32_t width, uint32_t seed)
    : WatchingDrafts(target, width),
      generator_(seed),
      id_(0, static_cast<int32_t>(target.embed_tokens().out_features) - 1) {}

void RandomDrafts::draft(std::span<const int32_t>, int32_t, std::span<int32_t> drafts) {
  for (int32_t& id : drafts) id = id_(generator_);
}

std::span<const int32_t> continuation(const PlainTexts& texts, std::span<const int32_t> text) {
  for (const std::vector<int32_t>& known : texts) {
    if (known.size() >= text.size() && std::ranges::equal(std::span(known).first(text.size()), text)) {
      return std::span(known).subspan(text.size());
    }
  }
  throw std::runtime_error("a context that is not the beginning of any plain text");
}

ScriptedDrafts::ScriptedDrafts(const Target& target, int32_t width, PlainTexts texts, std::vector<int32_t> accepts)
    : WatchingDrafts(target, width),
      texts_(std::move(texts)),
      accepts_(std::move(accepts)),
      vocab_(target.embed_tokens().out_features) {}

void ScriptedDrafts::draft(std::span<const int32_t> text, int32_t round, std::span<int32_t> drafts) {
  const std::span<const int32_t> right = continuation(texts_, text);
  if (right.size() < drafts.size()) throw std::runtime_error("the plain text is too short for the script");
  std::ranges::copy(right.first(drafts.size()), drafts.begin());
  const auto spoiled = static_cast<size_t>(accepts_[static_cast<size_t>(round) % accepts_.size()]);
  if (spoiled < drafts.size()) drafts[spoiled] = static_cast<int32_t>((drafts[spoiled] + 1) % vocab_);
}

AlwaysWrongDrafts::AlwaysWrongDrafts(const Target& target, int32_t width, PlainTexts texts, uint32_t seed)
    : WatchingDrafts(target, width),
      texts_(std::move(texts)),
      generator_(seed),
      vocab_(target.embed_tokens().out_features) {}

void AlwaysWrongDrafts::draft(std::span<const int32_t> text, int32_t, std::span<int32_t> drafts) {
  const std::span<const int32_t> right = continuation(texts_, text);
  if (right.size() < drafts.size()) throw std::runtime_error("the plain text is too short");
  std::uniform_int_distribution<int64_t> distance(1, vocab_ - 1);
  for (size_t i = 0; i < drafts.size(); ++i) {
    drafts[i] = static_cast<int32_t>((right[i] + distance(generator_)) % vocab_);
  }
}

}  // namespace blockdraft::test
