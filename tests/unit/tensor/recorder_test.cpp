#include "tensor/recorder.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace blockdraft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsNull;

TEST(Recorder, AppendsTheRowsOfAView) {
  Recorder recorder;
  const Context context{.recorder = &recorder};
  const std::vector<float> values = {1, 2, -1, 3, 4, -1};  // a column of the wider matrix is not part of the view
  record(context, "x", {values.data(), DType::f32, Shape{2, 2}, 3});
  record(context, "x", {values.data(), DType::f32, Shape{1, 2}, 3});
  record_layer(context, "h", 3, {values.data(), DType::f32, Shape{1, 3, 2}, 6});
  const std::vector<int32_t> ids = {7, 8};
  record(context, "ids", ids);
  const RecordedTensor& x = *recorder.find("x");
  EXPECT_THAT(x.floats, ElementsAre(1, 2, 3, 4, 1, 2));
  EXPECT_THAT(x.shape(), ElementsAre(3, 2));
  EXPECT_EQ(x.bytes().size(), 6 * sizeof(float));
  EXPECT_THAT(recorder.find("h.3")->shape(), ElementsAre(1, 3, 2));
  EXPECT_THAT(recorder.find("ids")->integers, ElementsAre(7, 8));
  EXPECT_THAT(recorder.find("ids")->shape(), ElementsAre(2));
  EXPECT_EQ(recorder.find("ids")->dtype, DType::i32);
  recorder.clear();
  EXPECT_THAT(recorder.find("x"), IsNull());
}

TEST(Recorder, RowsMayComeInAnOrderOfTheirOwn) {
  Recorder recorder;
  const std::vector<float> late = {3, 4};
  const std::vector<float> early = {1, 2};
  recorder.put("x", 2, late);
  recorder.put("x", 0, early);
  EXPECT_THAT(recorder.find("x")->floats, ElementsAre(1, 2, 0, 0, 3, 4));
  EXPECT_THAT(recorder.find("x")->shape(), ElementsAre(3, 2));
}

TEST(Recorder, NoneRecordsNothing) {
  const Context context;
  const float value = 1;
  record(context, "x", view_f32(&value, Shape{1, 1}));
  record_layer(context, "x", 0, view_f32(&value, Shape{1, 1}));
}

}  // namespace
}  // namespace blockdraft
