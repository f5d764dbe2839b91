// What `bench` says of a card: only a machine that has one could show it.
#include "cli/bench_report.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace blockdraft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

DecodedBatch three_cycles(int32_t width) {
  DecodedBatch batch;
  batch.generations.resize(1);
  batch.generations[0].prompt_tokens = 10;
  for (int i = 0; i < 3; ++i) batch.generations[0].cycles.push_back({width, width, width + 1, width});
  batch.times = {
      .context_us = {0, 10, 10}, .propose_us = {50, 50, 50}, .verify_us = {200, 200, 200}, .accept_us = {7, 7, 7}};
  return batch;
}

BenchResult on(Device device, const char* name) {
  BenchResult result;
  result.info.device = device;
  result.info.device_name = name;
  result.info.threads = 4;
  result.info.cpu_isa = "avx2";
  result.info.verify_weight_bytes = 400'000;
  result.info.prefill_rows = 256;
  result.plain.parts.add(three_cycles(0));
  result.drafted.emplace_back(7).parts.add(three_cycles(7));
  return result;
}

TEST(BenchReport, OfACardCountsNoArithmetic) {
  const BenchResult result = on(Device::cuda(1), "NVIDIA H200");
  const MachineLimits limits{.reads = {{int64_t{2} << 30, 4e9}}, .flops_per_s = std::nullopt};
  const Json json = json_bench(result, limits);
  EXPECT_EQ(json["device"], "cuda:1");
  EXPECT_EQ(json["device_name"], "NVIDIA H200");
  EXPECT_TRUE(json["peak_gflops"].is_null());
  EXPECT_EQ(json["rest_us"], 7);
  EXPECT_EQ(json["cycle_us"], 267);
  EXPECT_EQ(json["verify_floor_us"], 100);
  const std::string text = human_bench(result, limits);
  EXPECT_THAT(text, HasSubstr(" on cuda:1, NVIDIA H200; "));
  EXPECT_THAT(text, HasSubstr("reading 2147.5 MB at 4.0 GB/s.\n"));
  EXPECT_THAT(text, HasSubstr("Arithmetic is not counted"));
  EXPECT_THAT(text, HasSubstr("rest is the time of a cycle less context, propose and verify"));
  EXPECT_THAT(text,
              HasSubstr("A pass of the target over 8 rows: 0.4 MB take 100 us to read; the pass takes 200 us.\n"));
}

TEST(BenchReport, OfTheCpuHasAPeak) {
  const BenchResult result = on(Device::cpu(), "cpu");
  const MachineLimits limits{.reads = {{1'000'000, 4e9}}, .flops_per_s = 5e9};
  const Json json = json_bench(result, limits);
  EXPECT_EQ(json["device"], "cpu");
  EXPECT_EQ(json["peak_gflops"], 5);
  EXPECT_TRUE(json["rest_us"].is_null());
  const std::string text = human_bench(result, limits);
  EXPECT_THAT(text, HasSubstr(" on cpu, 4 threads, avx2; "));
  EXPECT_THAT(text, HasSubstr("multiplying and adding at 5.0 GFLOP/s"));
  EXPECT_THAT(text, Not(HasSubstr("rest is")));
}

}  // namespace
}  // namespace blockdraft
