#include "decode.h"

#include <algorithm>
#include <span>
#include <stdexcept>

#include <blockdraft/accept.h>

using namespace blockdraft;

namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

void require(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

int64_t remaining(const Text& text) { return static_cast<int64_t>(text.max_length - text.tokens.size()); }

// Appends the target's tokens as far as drafts, end of text and length allow.
AcceptedDrafts commit(const Model& model, Text& text, std::span<const int32_t> drafts,
                      std::span<const int32_t> choices) {
  const AcceptedDrafts kept = value_of(accept_greedy(drafts, choices, remaining(text), model.stop_ids()));
  text.tokens.insert(text.tokens.end(), choices.begin(), choices.begin() + kept.produced);
  text.ended = kept.at_stop || kept.at_length;
  return kept;
}

// Reads the prompt; the first token comes out of its last row.
Text start(const Model& model, Drafter& drafter, const std::vector<int32_t>& prompt, int64_t max_tokens) {
  Text text;
  text.tokens = prompt;
  text.sequence = value_of(drafter.new_sequence());
  text.max_length = prompt.size() + static_cast<size_t>(max_tokens);
  const Pass pass = model.forward(text.cache, prompt, drafter.target_layer_ids());
  require(drafter.extend_context(text.sequence, pass.taps, 0));
  const int32_t choice = model.choose(&pass.hidden[pass.hidden.size() - drafter.info().hidden_size]);
  commit(model, text, {}, {&choice, 1});
  return text;
}

// Runs the anchor and its drafts, commits what the target agrees with, and returns the taps of the rows that stay.
std::vector<float> verify(const Model& model, const Drafter& drafter, Text& text, std::span<const int32_t> drafts) {
  std::vector<int32_t> rows{text.tokens.back()};
  rows.insert(rows.end(), drafts.begin(), drafts.end());
  const int64_t position = text.cache.length;
  Pass pass = model.forward(text.cache, rows, drafter.target_layer_ids());
  std::vector<int32_t> choices;
  for (size_t row = 0; row < rows.size(); ++row) {
    choices.push_back(model.choose(&pass.hidden[row * drafter.info().hidden_size]));
  }
  const AcceptedDrafts kept = commit(model, text, drafts, choices);
  text.cycles.push_back({static_cast<int32_t>(drafts.size()), kept.accepted, kept.produced});
  model.truncate(text.cache, position + kept.produced);
  pass.taps.resize(static_cast<size_t>(kept.produced * drafter.info().tap_columns));
  return std::move(pass.taps);
}

// One round for all texts that go on: drafts for all of them in one call, each verified, contexts extended in one call.
void cycle(const Model& model, Drafter& drafter, std::span<Text* const> running) {
  std::vector<DraftQuery> queries;
  std::vector<Text*> queried;
  for (Text* text : running) {
    // A cycle commits one token more than it accepts, so the last free place needs no draft.
    const auto width = static_cast<int32_t>(std::min<int64_t>(drafter.trained_width(), remaining(*text) - 1));
    if (width == 0) continue;
    queries.push_back({text->sequence, text->tokens.back(), static_cast<int32_t>(text->cache.length), width});
    queried.push_back(text);
  }
  std::vector<Proposal> proposals;
  require(drafter.propose(queries, proposals));

  std::vector<float> taps;
  std::vector<ContextRows> rows;
  for (Text* text : running) {
    const auto query = std::find(queried.begin(), queried.end(), text) - queried.begin();
    std::span<const int32_t> drafts;
    if (query < std::ssize(queried)) {
      const Proposal& proposal = proposals[static_cast<size_t>(query)];
      drafts = std::span(proposal.ids).first(static_cast<size_t>(proposal.kept_width));
    }
    const auto position = static_cast<int32_t>(text->cache.length);
    const std::vector<float> kept = verify(model, drafter, *text, drafts);
    rows.push_back({.sequence = text->sequence,
                    .first_position = position,
                    .first_row = static_cast<int64_t>(taps.size()) / drafter.info().tap_columns,
                    .num_rows = static_cast<int64_t>(kept.size()) / drafter.info().tap_columns});
    taps.insert(taps.end(), kept.begin(), kept.end());
  }
  require(drafter.extend_context(taps, rows));
}

}  // namespace

std::vector<Text> decode(const Model& model, Drafter& drafter, const std::vector<std::vector<int32_t>>& prompts,
                         int64_t max_tokens) {
  std::vector<Text> texts;
  for (const std::vector<int32_t>& prompt : prompts) texts.push_back(start(model, drafter, prompt, max_tokens));
  for (;;) {
    std::vector<Text*> running;
    for (Text& text : texts) {
      if (!text.ended) running.push_back(&text);
    }
    if (running.empty()) break;
    cycle(model, drafter, running);
  }
  for (const Text& text : texts) require(drafter.release(text.sequence));
  return texts;
}
