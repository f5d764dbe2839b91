#include "nn/batch.h"

#include <vector>

#include <gtest/gtest.h>

namespace blockdraft {
namespace {

template <class T>
std::vector<T> list(const T* values, int32_t count) {
  return {values, values + count};
}

TEST(Batch, FlattensSequences) {
  Batch batch(5, 2, 3);
  EXPECT_EQ(batch.view({}).num_rows, 0);
  EXPECT_EQ(batch.view({}).num_sequences, 0);
  const std::vector<int32_t> ids = {11, 12, 13};
  const std::vector<int32_t> first_table = {4, 5, -1};
  const std::vector<int32_t> second_table = {2, -1, -1};
  batch.add(20, 3, ids.data(), first_table.data());
  batch.add(7, 2, nullptr, second_table.data());
  const BatchView view = batch.view({});
  ASSERT_EQ(view.num_rows, 5);
  ASSERT_EQ(view.num_sequences, 2);
  EXPECT_EQ(list(view.token_ids, 5), (std::vector<int32_t>{11, 12, 13, 0, 0}));
  EXPECT_EQ(list(view.positions, 5), (std::vector<int32_t>{20, 21, 22, 7, 8}));
  EXPECT_EQ(list(view.first_row, 3), (std::vector<int32_t>{0, 3, 5}));
  EXPECT_EQ(view.page_table_stride, 3);
  EXPECT_EQ(list(view.page_tables, 6), (std::vector<int32_t>{4, 5, -1, 2, -1, -1}));
}

// Nothing moves when it is filled again: the arrays may be known to a captured graph.
TEST(Batch, StaysWhereItIs) {
  Batch batch(4, 2, 1);
  const std::vector<int32_t> ids = {1, 2, 3, 4};
  const int32_t page = 0;
  batch.add(0, 1, ids.data(), &page);
  const BatchView before = batch.view({});
  batch.clear();
  EXPECT_EQ(batch.view({}).num_rows, 0);
  batch.add(0, 2, ids.data(), &page);
  batch.add(9, 2, ids.data(), &page);
  const BatchView after = batch.view({});
  EXPECT_EQ(before.token_ids, after.token_ids);
  EXPECT_EQ(before.positions, after.positions);
  EXPECT_EQ(before.first_row, after.first_row);
  EXPECT_EQ(before.page_tables, after.page_tables);
}

TEST(BatchDeathTest, HoldsNoMoreThanItWasMadeFor) {
  Batch batch(3, 1, 1);
  const std::vector<int32_t> ids = {1, 2, 3, 4};
  const int32_t page = 0;
  EXPECT_DEATH(batch.add(0, 4, ids.data(), &page), "capacity");
  batch.add(0, 2, ids.data(), &page);
  EXPECT_DEATH(batch.add(0, 1, ids.data(), &page), "capacity");
}

}  // namespace
}  // namespace blockdraft
