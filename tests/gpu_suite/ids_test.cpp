// Token ids that go from op to op on the card, against the CPU.
#include "ops/ids.h"

#include <gtest/gtest.h>

#include "gpu_suite/card.h"
#include "ops/copy_rows.h"

namespace blockdraft {
namespace {

using test::Matrix;
using test::OnCard;

using Ids = std::vector<int32_t>;

constexpr int64_t kCounts[] = {1, 31, 128, 129, 1000};  // a block of the kernels has 128 threads

// From -1 to most.
Ids random_ids(std::mt19937& generator, int64_t count, int32_t most) {
  std::uniform_int_distribution<int32_t> id(-1, most);
  Ids ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(id(generator));
  return ids;
}

TEST(GatherIds, LeavesWhatHasNoIndex) {
  std::mt19937 generator(1);
  OnCard on;
  for (const int64_t count : kCounts) {
    const Ids ids = random_ids(generator, 77, 4000);
    const Ids index = random_ids(generator, count, 76);
    Ids expected = random_ids(generator, count, 9);
    int32_t* out = on.upload(expected);
    gather_ids(on.card(), out, on.upload(ids), on.upload(index), count);
    gather_ids(on.cpu(), expected.data(), ids.data(), index.data(), count);
    EXPECT_EQ(on.download(out, count), expected);
  }
}

TEST(GatherIds, OfNothingIsNothing) {
  OnCard on;
  gather_ids(on.card(), nullptr, nullptr, nullptr, 0);
  map_ids(on.card(), nullptr, on.upload(Ids{1}), nullptr, 0);
  on.synchronize();
}

// With and without a table, with and without `newest`; negative ids stay, and so does what is newest then.
TEST(MapIds, MapsAsTheCpuDoes) {
  std::mt19937 generator(2);
  OnCard on;
  for (const int64_t count : kCounts) {
    const Ids table = random_ids(generator, 50, 4000);  // which has -1 in it, too: newest stays
    for (const bool has_table : {false, true}) {
      for (const bool has_newest : {false, true}) {
        Ids ids = random_ids(generator, count, 49);
        Ids newest = random_ids(generator, count, 9);
        int32_t* ids_on_card = on.upload(ids);
        int32_t* newest_on_card = on.upload(newest);
        map_ids(on.card(), ids_on_card, has_table ? on.upload(table) : nullptr, has_newest ? newest_on_card : nullptr,
                count);
        map_ids(on.cpu(), ids.data(), has_table ? table.data() : nullptr, has_newest ? newest.data() : nullptr, count);
        EXPECT_EQ(on.download(ids_on_card, count), ids) << has_table << has_newest;
        EXPECT_EQ(on.download(newest_on_card, count), newest) << has_table << has_newest;
      }
    }
  }
}

TEST(SetZero, ClearsItsRowsAlone) {
  std::mt19937 generator(3);
  OnCard on;
  const Matrix x = Matrix::random(generator, 9, 130);
  const TensorView all = on.upload(x);
  set_zero(on.card(), rows_of(all, 2, 5));
  const Matrix found = on.download(all);
  for (int64_t r = 0; r < 9; ++r) {
    for (int64_t c = 0; c < 130; ++c) {
      const bool is_cleared = r >= 2 && r < 7;
      ASSERT_EQ(found.row(r)[c], is_cleared ? 0.0f : x.row(r)[c]) << "row " << r << ", column " << c;
    }
  }
}

}  // namespace
}  // namespace blockdraft
