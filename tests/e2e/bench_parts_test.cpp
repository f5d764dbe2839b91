#include "cli/bench_parts.h"

#include <cstring>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "cli/read_stream.h"

namespace blockdraft {
namespace {

constexpr EngineInfo info() {
  EngineInfo info;
  info.verify_weight_bytes = 1000;
  info.verify_kv_bytes_per_position = 2;
  info.propose_weight_bytes = 500;
  info.propose_kv_bytes_per_position = 1;
  info.context_weight_bytes = 70;
  info.head_weight_bytes = 400;
  info.verify_flops_per_row = 100;
  info.head_flops_per_row = 40;
  info.propose_flops_per_row = 50;
  info.choice_flops_per_row = 30;
  info.context_flops_per_row = 7;
  info.propose_extra_rows = 1;
  info.prefill_rows = 4;
  return info;
}

const Part& part_of(const std::vector<Part>& parts, const std::string& name) {
  for (const Part& part : parts) {
    if (part.name == name) return part;
  }
  ADD_FAILURE() << "no part " << name;
  return parts.front();
}

// Widths 3, 3, 2, 1 as at the end of a text; contexts of 0, 4, 1, 1 rows.
PartSamples one_text() {
  DecodedBatch batch;
  batch.generations.resize(1);
  batch.generations[0].prompt_tokens = 6;
  batch.generations[0].cycles = {{3, 3, 4, 3}, {3, 0, 1, 3}, {2, 0, 1, 2}, {1, 0, 1, 1}};
  batch.times = {.prefill_s = 3e-6,
                 .context_us = {9, 40, 10, 12},
                 .propose_us = {5, 7, 1, 1},
                 .verify_us = {20, 24, 2, 1},
                 .accept_us = {1, 1, 3, 3}};
  batch.times.hand_offs = 80;
  PartSamples samples;
  samples.add(batch);
  return samples;
}

TEST(Parts, TakeTheCyclesOfTheMostCommonRows) {
  const std::vector<Part> parts = drafted_parts(info(), 1, one_text());
  const Part& verify = part_of(parts, "verify");
  EXPECT_EQ(verify.rows, 4);
  EXPECT_DOUBLE_EQ(verify.us, 22);
  EXPECT_EQ(verify.bytes, 1000 + 8 * 2);  // at positions 6 and 10
  EXPECT_EQ(verify.flops, 400);
  const Part& propose = part_of(parts, "propose");
  EXPECT_EQ(propose.rows, 4);
  EXPECT_DOUBLE_EQ(propose.us, 6);
  EXPECT_EQ(propose.flops, 4 * 20 + 3 * 30) << "the anchor's row needs no head";
  const Part& context = part_of(parts, "context");
  EXPECT_EQ(context.rows, 1) << "the first cycle has none";
  EXPECT_DOUBLE_EQ(context.us, 11);
  for (const Part& part : parts) EXPECT_EQ(part.cycle_bytes, verify.bytes + propose.bytes + context.bytes);
  EXPECT_DOUBLE_EQ(median_accept_us(one_text()), 2);
  EXPECT_DOUBLE_EQ(median_cycle_us(one_text()), 26) << "of 35, 72, 16 and 17";
  EXPECT_DOUBLE_EQ(one_text().hand_offs_of_cycle(), 20);
}

TEST(Parts, CountPassesOverThePrompt) {
  const std::vector<Part> parts = plain_parts(info(), 1, one_text());
  const Part& prefill = part_of(parts, "prefill");
  EXPECT_EQ(prefill.rows, 6);
  EXPECT_DOUBLE_EQ(prefill.us, 3);
  EXPECT_EQ(prefill.bytes, 2 * 600 + 400 + (4 + 6) * 2) << "two passes, the head once";
  EXPECT_EQ(prefill.flops, 6 * 60 + 40);
  EXPECT_EQ(prefill.cycle_bytes, part_of(parts, "decode").bytes);
}

TEST(Parts, OfABatchAreOfAllItsSequences) {
  DecodedBatch batch;
  batch.generations.resize(2);
  for (Generation& generation : batch.generations) {
    generation.prompt_tokens = 6;
    generation.cycles = {{2, 0, 1, 2}, {2, 0, 1, 2}};
  }
  batch.times = {
      .prefill_s = 8e-6, .context_us = {1, 1}, .propose_us = {1, 1}, .verify_us = {30, 32}, .accept_us = {1, 1}};
  PartSamples samples;
  samples.add(batch);
  const std::vector<Part> parts = drafted_parts(info(), 2, samples);
  EXPECT_EQ(part_of(parts, "verify").rows, 6);
  EXPECT_DOUBLE_EQ(part_of(parts, "verify").us, 31);
  EXPECT_EQ(part_of(parts, "propose").rows, 6);
  EXPECT_DOUBLE_EQ(part_of(plain_parts(info(), 2, samples), "prefill").us, 4) << "one prompt";
}

TEST(Parts, FloorIsTheLargerOfTwoTimes) {
  const MachineLimits limits{.reads = {{1000, 2e9}, {100000, 1e9}}, .flops_per_s = 1e9};
  Part part{.name = "verify", .rows = 1, .us = 8, .bytes = 4000, .flops = 1000, .cycle_bytes = 900};
  EXPECT_DOUBLE_EQ(part.times_floor(limits), 4);
  EXPECT_DOUBLE_EQ(part.read_percent(limits), 25);
  EXPECT_FALSE(part.floor(limits).arithmetic_bound());
  part.cycle_bytes = 80000;  // out of slower memory
  EXPECT_DOUBLE_EQ(part.times_floor(limits), 2);
  part.flops = 8000;
  EXPECT_DOUBLE_EQ(part.times_floor(limits), 1);
  EXPECT_TRUE(part.floor(limits).arithmetic_bound());
  EXPECT_EQ(json_part(part, limits)["limit"], "arithmetic");
}

TEST(Parts, WithoutAPeakBytesAloneAreTheFloor) {
  const MachineLimits card{.reads = {{1000, 1e9}}, .flops_per_s = std::nullopt};
  const Part part{.name = "verify", .rows = 64, .us = 8, .bytes = 4000, .flops = int64_t{1} << 40, .cycle_bytes = 900};
  EXPECT_DOUBLE_EQ(part.times_floor(card), 2);
  EXPECT_FALSE(part.floor(card).arithmetic_bound());
}

TEST(ReadStream, ReadsEveryByte) {
  std::vector<std::byte> chunk(kStreamChunkBytes, std::byte{0});
  const uint64_t words = chunk.size() / sizeof(uint64_t);
  for (uint64_t word = 0; word < words; ++word) {  // a word that is left out, or read twice, shows in the sum
    std::memcpy(chunk.data() + word * sizeof(word), &word, sizeof(word));
  }
  for (const CpuIsa isa : {CpuIsa::portable, CpuIsa::avx2, CpuIsa::avx512, CpuIsa::avx512_bf16}) {
    if (isa > best_cpu_isa()) continue;
    EXPECT_EQ(read_chunk(isa, chunk.data()), words * (words - 1) / 2) << name_of(isa);
  }
}

}  // namespace
}  // namespace blockdraft
