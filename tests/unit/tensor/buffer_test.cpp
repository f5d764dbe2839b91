#include "tensor/buffer.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace blockdraft {
namespace {

constexpr auto kUnit = static_cast<int64_t>(Arena::kAlignment / sizeof(float));  // floats that leave no gap

Arena make_arena(size_t size_bytes) { return Arena(Buffer::allocate(size_bytes, "arena").value()); }

bool is_aligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % Arena::kAlignment == 0; }

TEST(Buffer, IsZeroedAndAligned) {
  Buffer buffer = Buffer::allocate(100'000 * sizeof(float), "test").value();
  EXPECT_EQ(buffer.size_bytes(), 100'000 * sizeof(float));
  EXPECT_TRUE(is_aligned(buffer.data()));
  for (int i = 0; i < 100'000; ++i) ASSERT_EQ(buffer.f32()[i], 0.0f) << i;
  buffer.f32()[99'999] = 2.0f;
  EXPECT_EQ(std::as_const(buffer).f32()[99'999], 2.0f);
}

TEST(Buffer, OfNoBytesIsNull) {
  const Buffer buffer = Buffer::allocate(0, "test").value();
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(buffer.size_bytes(), 0u);
  EXPECT_EQ(Buffer().data(), nullptr);
}

TEST(Buffer, MovesWithItsMemory) {
  Buffer a = Buffer::allocate(64, "a").value();
  Buffer b = Buffer::allocate(128, "b").value();
  const void* address = b.data();
  a = std::move(b);
  EXPECT_EQ(a.data(), address);
  EXPECT_EQ(a.size_bytes(), 128u);
  const Buffer c = std::move(a);
  EXPECT_EQ(c.data(), address);
  EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(a.size_bytes(), 0u);
}

TEST(Buffer, WhatTheSystemCannotGiveIsAnError) {
  expect_error(Buffer::allocate(size_t{1} << 62, "page pool"), Code::out_of_memory,
               {"page pool", "4611686018427387904 bytes"});
}

// Only touched pages take memory: a plan may reserve more than the machine has.
TEST(Buffer, ReservesMoreThanItUses) {
  Buffer buffer = Buffer::allocate(size_t{1} << 38, "reserved").value();
  buffer.f32()[size_t{1} << 35] = 1.0f;
  EXPECT_EQ(buffer.f32()[size_t{1} << 35], 1.0f);
}

TEST(Arena, GivesDisjointAlignedMemory) {
  Arena arena = make_arena(4096);
  const TensorView a = arena.take_f32({3, 5});
  int32_t* b = arena.take_i32(1);
  const TensorView c = arena.take_f32({2});
  EXPECT_TRUE(is_aligned(a.data) && is_aligned(b) && is_aligned(c.data));
  EXPECT_EQ(a.shape, (Shape{3, 5}));
  EXPECT_EQ(a.row_stride, 5);
  EXPECT_GE(reinterpret_cast<std::byte*>(b) - static_cast<std::byte*>(a.data), 15 * 4);
  EXPECT_GE(static_cast<std::byte*>(c.data) - reinterpret_cast<std::byte*>(b), 4);
  EXPECT_EQ(arena.used_bytes(), 3 * Arena::kAlignment);
  EXPECT_EQ(arena.size_bytes(), 4096u);
}

TEST(Arena, ScopesGiveBackAndThePeakStays) {
  Arena arena = make_arena(4096);
  arena.take_f32({kUnit});
  void* first = nullptr;
  {
    const ArenaScope outer(arena);
    first = arena.take_f32({kUnit}).data;
    {
      const ArenaScope inner(arena);
      arena.take_f32({3 * kUnit});
    }
    EXPECT_EQ(arena.used_bytes(), 2 * Arena::kAlignment);
  }
  EXPECT_EQ(arena.used_bytes(), Arena::kAlignment);
  EXPECT_EQ(arena.peak_bytes(), 5 * Arena::kAlignment);
  EXPECT_EQ(arena.take_f32({kUnit}).data, first);
}

TEST(Arena, BytesForAPlanAreWhatTakingUses) {
  for (const int64_t elements : {int64_t{0}, int64_t{1}, kUnit - 1, kUnit, kUnit + 1, int64_t{1000}}) {
    Arena arena = make_arena(8192);
    arena.take_f32({elements});
    EXPECT_EQ(arena.used_bytes(), arena_bytes_f32(elements)) << elements;
  }
}

TEST(Arena, ElementsOfOtherTypesTakeTheirSize) {
  Arena arena = make_arena(4096);
  const TensorView view = arena.take(DType::bf16, {2, kUnit});
  EXPECT_EQ(view.dtype, DType::bf16);
  EXPECT_EQ(view.row_stride, kUnit);
  EXPECT_EQ(arena.used_bytes(), Arena::kAlignment);
}

TEST(Arena, ToTheLastByte) {
  Arena arena = make_arena(2 * Arena::kAlignment);
  arena.take_f32({kUnit});
  arena.take_f32({kUnit});
  EXPECT_EQ(arena.used_bytes(), arena.size_bytes());
}

TEST(ArenaDeathTest, RunningOutIsABug) {
  Arena arena = make_arena(2 * Arena::kAlignment);
  arena.take_f32({kUnit + 1});
  EXPECT_DEATH(arena.take_i32(1), "CHECK.*capacity_");
}

}  // namespace
}  // namespace blockdraft
