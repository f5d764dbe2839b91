// Draft sources for tests: random numbers, drafts that are always wrong, and drafts that are right as far as a script
// says. All of them also check what an engine tells them of the text.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "draft/draft_source.h"
#include "target/target.h"

namespace blockdraft::test {

// Asks for the embeddings as taps and reads the token ids of the context off them, so it knows what an engine took the
// context to be, and checks that it is told of every position once, in order.
class WatchingDrafts : public DraftSource {
 public:
  WatchingDrafts(const Target& target, int32_t width);

  int32_t trained_width() const override { return width_; }
  std::span<const int32_t> target_layer_ids() const override { return kEmbeddings; }
  void extend_context(Context& context, ConstTensorView taps, std::span<const TapRows> rows) override;
  Status propose(Context& context, std::span<const DraftRequest> requests, const Drafts& drafts) override;
  void reset(int32_t slot) override;
  size_t state_bytes() const override { return 0; }
  size_t scratch_bytes(int32_t) const override { return 0; }

 protected:
  // Guesses for what follows `text`, whose last id is the anchor. `round` counts the slot's calls since reset.
  virtual void draft(std::span<const int32_t> text, int32_t round, std::span<int32_t> drafts) = 0;

 private:
  static constexpr int32_t kEmbeddings[] = {-1};
  struct Watched {
    std::vector<int32_t> context;
    int32_t rounds = 0;
  };

  int32_t width_;
  std::map<std::string, int32_t> ids_;  // bytes of an embedding row to its id
  std::map<int32_t, Watched> slots_;
};

class RandomDrafts : public WatchingDrafts {
 public:
  RandomDrafts(const Target& target, int32_t width, uint32_t seed);

 protected:
  void draft(std::span<const int32_t> text, int32_t round, std::span<int32_t> drafts) override;

 private:
  std::mt19937 generator_;
  std::uniform_int_distribution<int32_t> id_;
};

// Prompts and how plain decoding continues them, far enough for all that a test asks.
using PlainTexts = std::vector<std::vector<int32_t>>;

// What plain decoding puts after `text`, which must be the beginning of one of `texts`.
std::span<const int32_t> continuation(const PlainTexts& texts, std::span<const int32_t> text);

// Draft number accepts[round % size] of a block is wrong, all others are right. More than the width: none is wrong.
class ScriptedDrafts : public WatchingDrafts {
 public:
  ScriptedDrafts(const Target& target, int32_t width, PlainTexts texts, std::vector<int32_t> accepts);

 protected:
  void draft(std::span<const int32_t> text, int32_t round, std::span<int32_t> drafts) override;

 private:
  PlainTexts texts_;
  std::vector<int32_t> accepts_;
  int64_t vocab_;
};

// Every draft of every block differs from the target's token.
class AlwaysWrongDrafts : public WatchingDrafts {
 public:
  AlwaysWrongDrafts(const Target& target, int32_t width, PlainTexts texts, uint32_t seed);

 protected:
  void draft(std::span<const int32_t> text, int32_t round, std::span<int32_t> drafts) override;

 private:
  PlainTexts texts_;
  std::mt19937 generator_;
  int64_t vocab_;
};

}  // namespace blockdraft::test
