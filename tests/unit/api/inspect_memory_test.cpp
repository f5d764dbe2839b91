// Memory plans made from headers are those of what is then opened.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "blockdraft/drafter.h"
#include "blockdraft/engine.h"
#include "blockdraft/inspect.h"
#include "checkpoint/checkpoint.h"
#include "support/expect_error.h"
#include "support/take.h"

namespace blockdraft {
namespace {

using test::take;

const std::string kDemo = BLOCKDRAFT_SOURCE_DIR "/demo/";

void expect_same(const MemoryPlanReport& planned, const EngineInfo& info) {
  EXPECT_EQ(planned.threads, info.threads);
  EXPECT_EQ(planned.max_sequences, info.max_sequences);
  EXPECT_EQ(planned.max_positions, info.max_positions);
  ASSERT_EQ(planned.items.size(), info.memory_plan.size());
  for (size_t i = 0; i < planned.items.size(); ++i) {
    EXPECT_EQ(planned.items[i].name, info.memory_plan[i].name);
    EXPECT_EQ(planned.items[i].size_bytes, info.memory_plan[i].size_bytes) << planned.items[i].name;
  }
}

TEST(InspectMemory, OfEngines) {
  for (const InspectOptions limits : {InspectOptions{.threads = 1}, InspectOptions{.threads = 3, .max_sequences = 40},
                                      InspectOptions{.threads = 2, .max_sequences = 5, .max_positions = 700}}) {
    EngineOptions options{.target = kDemo + "pycode-14m",
                          .threads = limits.threads,
                          .max_sequences = limits.max_sequences,
                          .max_positions = limits.max_positions};
    expect_same(take(inspect_folder(options.target, limits)).memory, take(Engine::open(options)).info());
    for (const char* name : {"pycode-14m-dflash", "pycode-14m-dflash2", "pycode-14m-dspark"}) {
      SCOPED_TRACE(name);
      options.drafter = kDemo + name;
      expect_same(take(inspect_pair(options.target, options.drafter, limits)).memory,
                  take(Engine::open(options)).info());
    }
  }
}

// A table of the target's size stands in for it: only its extents count.
TEST(InspectMemory, OfDraftersAlone) {
  const Checkpoint target = take(Checkpoint::open(kDemo + "pycode-14m"));
  const StoredTensor& table = *target.find("model.embed_tokens.weight");
  ASSERT_EQ(table.dtype, DType::bf16);
  const MatrixView view{
      .data = table.data, .type = MatrixType::bf16, .rows = table.shape[0], .columns = table.shape[1]};
  for (const char* name : {"pycode-14m-dflash", "pycode-14m-dflash2", "pycode-14m-dspark"}) {
    SCOPED_TRACE(name);
    const DrafterOptions options{.threads = 2, .max_sequences = 3, .max_positions = 1500};
    const Drafter drafter =
        take(Drafter::open(kDemo + name, options, {.embed_tokens = view, .lm_head = view, .num_layers = 8}));
    const MemoryPlanReport planned =
        take(inspect_folder(kDemo + name, {.threads = 2, .max_sequences = 3, .max_positions = 1500})).memory;
    const DrafterInfo& info = drafter.info();
    const bool packs = info.cpu_isa == "avx512_bf16";
    EXPECT_EQ(info.packed_bytes > 0, packs);
    ASSERT_EQ(planned.items.size(), packs ? 3u : 2u);
    EXPECT_EQ(planned.items[0].size_bytes, info.context_bytes);
    EXPECT_EQ(planned.items[1].size_bytes, info.scratch_bytes);
    EXPECT_EQ(planned.size_bytes(), info.context_bytes + info.scratch_bytes + info.packed_bytes);
  }
}

TEST(InspectMemory, LimitsOutOfRangeAreRefused) {
  for (const char* name : {"pycode-14m", "pycode-14m-dflash"}) {
    const std::string folder = kDemo + name;
    expect_error(inspect_folder(folder, {.threads = 1025}), Code::invalid_argument, {"threads", "1025"});
    expect_error(inspect_folder(folder, {.max_sequences = 0}), Code::invalid_argument, {"max_sequences", "0"});
    expect_error(inspect_folder(folder, {.max_positions = -1}), Code::invalid_argument, {"max_positions", "-1"});
  }
  expect_error(inspect_pair(kDemo + "pycode-14m", kDemo + "pycode-14m-dflash", {.max_positions = 2049}),
               Code::invalid_argument, {"max_positions", "2049", "2048"});
}

}  // namespace
}  // namespace blockdraft
