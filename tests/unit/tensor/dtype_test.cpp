#include "tensor/dtype.h"

#include <gtest/gtest.h>

namespace blockdraft {
namespace {

TEST(DType, NamesAndSizes) {
  const struct {
    DType dtype;
    const char* name;
    size_t size_bytes;
  } kExpected[] = {{DType::f32, "F32", 4},         {DType::f16, "F16", 2},     {DType::bf16, "BF16", 2},
                   {DType::f8_e4m3, "F8_E4M3", 1}, {DType::f64, "F64", 8},     {DType::i64, "I64", 8},
                   {DType::i32, "I32", 4},         {DType::i16, "I16", 2},     {DType::i8, "I8", 1},
                   {DType::u8, "U8", 1},           {DType::boolean, "BOOL", 1}};
  for (const auto& expected : kExpected) {
    EXPECT_STREQ(name_of(expected.dtype), expected.name);
    EXPECT_EQ(size_of(expected.dtype), expected.size_bytes) << expected.name;
    EXPECT_EQ(dtype_from_name(expected.name), expected.dtype) << expected.name;
  }
}

TEST(DType, OtherNamesAreNone) {
  for (const char* name : {"", "f32", "F32 ", "F8_E5M2", "F4", "U16", "U64", "bfloat16"}) {
    EXPECT_EQ(dtype_from_name(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace blockdraft
