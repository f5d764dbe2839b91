// The card itself: memory, copies, errors.
#include <gtest/gtest.h>

#include "gpu_suite/card.h"

namespace blockdraft {
namespace {

using test::Card;

TEST(CudaDevice, SaysWhichCardsThereAre) {
  for (const int index : {-1, 1000}) {
    const auto device = CudaDevice::open(index);
    ASSERT_FALSE(device.ok());
    EXPECT_EQ(device.error().code, Code::not_found);
    EXPECT_NE(device.error().message.find(std::to_string(index)), std::string::npos);
  }
}

TEST(CudaDevice, MemoryIsZeroedAlignedAndCopied) {
  CudaDevice& device = Card::device();
  Buffer memory = Buffer::allocate_on(device, 1000, "a test").value();
  Buffer pinned = Buffer::allocate_pinned(device, 1000, "a test").value();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 256, 0u);
  std::vector<uint8_t> bytes(1000, 1);
  device.copy_to_host(bytes.data(), memory.data(), 1000, "zeros");
  ASSERT_TRUE(device.synchronize().ok());
  EXPECT_EQ(bytes, std::vector<uint8_t>(1000, 0));
  std::memset(pinned.data(), 7, 1000);
  device.copy_to_device(memory.data(), pinned.data(), 1000, "sevens");
  device.copy_to_host(bytes.data(), memory.data(), 1000, "sevens");
  ASSERT_TRUE(device.synchronize().ok());
  EXPECT_EQ(bytes, std::vector<uint8_t>(1000, 7));
}

TEST(CudaDevice, OutOfMemorySaysWhatHowMuchAndWhatIsFree) {
  const auto buffer = Buffer::allocate_on(Card::device(), size_t{1} << 50, "far too much");
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.error().code, Code::out_of_memory);
  for (const char* part : {"far too much", "1125899906842624", "free"}) {
    EXPECT_NE(buffer.error().message.find(part), std::string::npos) << buffer.error().message;
  }
  EXPECT_TRUE(Card::device().synchronize().ok());
}

TEST(CudaDevice, AFailedCallIsTheNextSynchronizesError) {
  CudaDevice& device = Card::device();
  device.note(1, "what failed first");
  device.note(2, "what failed next");
  const Status status = device.synchronize();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("what failed first"), std::string::npos);
  EXPECT_TRUE(device.synchronize().ok());
}

}  // namespace
}  // namespace blockdraft
