#include "ops/ids.h"

#include <vector>

#include <gtest/gtest.h>

#include "support/op_context.h"

namespace blockdraft {
namespace {

using test::OpContext;
using Ids = std::vector<int32_t>;

TEST(GatherIds, TakesByIndexAndLeavesWhereThereIsNone) {
  OpContext context;
  const Ids ids = {10, 11, 12};
  const Ids index = {2, -1, 0, 0, -1};
  Ids out = {5, 6, 7, 8, 9};
  gather_ids(context, out.data(), ids.data(), index.data(), 5);
  EXPECT_EQ(out, (Ids{12, 6, 10, 10, 9}));
  gather_ids(context, nullptr, nullptr, nullptr, 0);
}

TEST(MapIds, GoesByTheTableAndKeepsTheNewest) {
  OpContext context;
  const Ids table = {100, 101, 102};
  Ids ids = {2, -1, 0};
  Ids newest = {7, 8, 9};
  map_ids(context, ids.data(), table.data(), newest.data(), 3);
  EXPECT_EQ(ids, (Ids{102, -1, 100}));
  EXPECT_EQ(newest, (Ids{102, 8, 100}));
}

TEST(MapIds, WithoutATableIdsStay) {
  OpContext context;
  Ids ids = {2, -1, 0};
  Ids newest = {7, 8, 9};
  map_ids(context, ids.data(), nullptr, newest.data(), 3);
  EXPECT_EQ(ids, (Ids{2, -1, 0}));
  EXPECT_EQ(newest, (Ids{2, 8, 0}));
  map_ids(context, ids.data(), nullptr, nullptr, 3);
  EXPECT_EQ(ids, (Ids{2, -1, 0}));
}

}  // namespace
}  // namespace blockdraft
