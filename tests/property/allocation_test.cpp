// Nothing is allocated inside a cycle. A program of its own: it counts every operator new.

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include <gtest/gtest.h>

#include "property/pairs.h"

namespace {
std::atomic<int64_t> num_allocations{0};

void* counted(std::size_t size) {
  ++num_allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace blockdraft::test {
namespace {

constexpr int64_t kMaxTokens = 96;

// Counts between the first and the last token of cycles, which are called for from inside the cycles: the first token
// of a text comes out of its prompt, and a batch is complete after the last prompt.
void expect_no_allocation(Decoder& decoder, const std::vector<std::vector<int32_t>>& prompts, int32_t width) {
  std::vector<int64_t> counts;
  counts.reserve(prompts.size() * kMaxTokens);
  std::vector<TokenRequest> requests;
  for (size_t i = 0; i < prompts.size(); ++i) {
    requests.push_back({.prompt_ids = prompts[i],
                        .max_tokens = kMaxTokens,
                        .width = width == 0 ? 0 : width - static_cast<int32_t>(i),
                        .on_token = [&counts](int32_t) {
                          counts.push_back(num_allocations);
                          return true;
                        }});
  }
  decoder.run(requests);
  ASSERT_EQ(counts.size(), prompts.size() * kMaxTokens);
  // One token of each sequence precedes the first cycle. The first text to end leaves the batch between two cycles.
  EXPECT_GT(counts[prompts.size() - 1], counts[0]) << "prompts do allocate, so the count works";
  size_t last = counts.size() - 1;
  while (counts[last] != counts[prompts.size()]) --last;
  EXPECT_GE(last, counts.size() / 2) << "allocations from token " << last << " on: " << counts[last + 1] - counts[last];
}

TEST(Allocation, ThereIsNoneInACycle) {
  const std::vector<std::vector<int32_t>> tiny_prompts = {random_prompt(1, 5), random_prompt(2, 40),
                                                          random_prompt(3, 1)};
  for (const int32_t threads : {1, 2}) {
    TokenEngineOptions options{.threads = threads,
                               .max_sequences = 3,
                               .max_positions = 200,
                               .max_width = kTinyWidth,
                               .num_choices = kTinyVocab};
    Decoder drafted(TinyPair::get().target(), TinyPair::get().drafter(), options);
    expect_no_allocation(drafted, tiny_prompts, kTinyWidth);
    Decoder windowed(TinyPair::get().target(), TinyPair::get().windowed(), options);
    expect_no_allocation(windowed, tiny_prompts, kTinyWidth);
    options.max_width = 0;
    Decoder plain(TinyPair::get().target(), options);
    expect_no_allocation(plain, tiny_prompts, 0);
  }
}

}  // namespace
}  // namespace blockdraft::test
