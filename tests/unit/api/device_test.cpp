#include "blockdraft/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/has_cuda.h"
#include "blockdraft/engine.h"

namespace blockdraft {
namespace {

using ::testing::HasSubstr;

constexpr int32_t kNoSuchCard = 7777;

TEST(Device, HasANameThatGivesItBack) {
  for (const Device device : {Device::cpu(), Device::cuda(0), Device::cuda(12)}) {
    EXPECT_EQ(device_from_name(name_of(device)), device) << name_of(device);
  }
  EXPECT_EQ(name_of(Device::cpu()), "cpu");
  EXPECT_EQ(name_of(Device::cuda(3)), "cuda:3");
  EXPECT_EQ(device_from_name("cuda"), Device::cuda(0));
}

TEST(Device, OtherNamesAreNone) {
  for (const char* name :
       {"", "CPU", "gpu", "cpu:0", "cuda:", "cuda:-1", "cuda:+1", "cuda:1x", "cuda: 1", "cuda1", "cuda:99999999999"}) {
    EXPECT_FALSE(device_from_name(name).has_value()) << name;
  }
}

TEST(Device, ACardThatIsNotThereIsRefusedBeforeAnythingIsRead) {
  const auto engine = Engine::open({.target = "no such folder", .device = Device::cuda(kNoSuchCard)});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, Code::unsupported);
  EXPECT_THAT(engine.error().message, HasSubstr("option device: "));
  if (!kHasCuda) {
    EXPECT_THAT(engine.error().message, HasSubstr("cuda:7777: this build has no CUDA backend"));
  }
}

TEST(Device, BandwidthIsThatOfACard) {
  const auto of_cpu = measure_read_bandwidth(Device::cpu());
  ASSERT_FALSE(of_cpu);
  EXPECT_EQ(of_cpu.error().code, Code::invalid_argument);
  const auto of_none = measure_read_bandwidth(Device::cuda(kNoSuchCard));
  ASSERT_FALSE(of_none);
  EXPECT_EQ(of_none.error().code, Code::unsupported);
}

}  // namespace
}  // namespace blockdraft
