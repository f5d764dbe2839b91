// One weight in each way to store it, and every way in which its tensors can contradict each other.
#include "nn/weight_formats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "nn/weight_store.h"
#include "ops/check_weight.h"
#include "ops/cpu/decode.h"
#include "support/expect_error.h"
#include "support/safetensors_writer.h"
#include "support/take.h"
#include "tensor/codec.h"
#include "tensor/dword_pack.h"

namespace blockdraft {
namespace {

using Tensors = std::vector<TensorToWrite>;

constexpr int64_t kRows = 2;
constexpr int64_t kColumns = 32;

TensorToWrite u8_tensor(const std::string& name, std::vector<int64_t> shape, const std::vector<uint8_t>& bytes) {
  return raw_tensor(name, "U8", std::move(shape), bytes);
}

std::vector<uint8_t> codes(size_t count, uint8_t code) { return std::vector<uint8_t>(count, code); }

// 0x21: elements 0.5, 1, 0.5, 1, ... Scales 1 (0x38) and 2 (0x40) in both rows.
Tensors modelopt() {
  return {u8_tensor("fc.weight", {kRows, kColumns / 2}, codes(32, 0x21)),
          fp8_tensor("fc.weight_scale", {kRows, 2}, {0x38, 0x40, 0x38, 0x40}),
          f32_tensor("fc.weight_scale_2", {}, {0.25f}), f32_tensor("fc.input_scale", {}, {3.0f})};
}

Tensors compressed_tensors() {
  return {u8_tensor("fc.weight_packed", {kRows, kColumns / 2}, codes(32, 0x21)),
          fp8_tensor("fc.weight_scale", {kRows, 2}, {0x38, 0x40, 0x38, 0x40}),
          f32_tensor("fc.weight_global_scale", {1}, {4.0f}), f32_tensor("fc.input_global_scale", {1}, {3.0f})};
}

// Elements 1 (0x38).
Tensors fp8(TensorToWrite scale) {
  return {fp8_tensor("fc.weight", {kRows, kColumns}, codes(64, 0x38)), std::move(scale)};
}

// Codes of -3; scales of 0.5 and 2.
Tensors int8() {
  return {raw_tensor("fc.weight", "I8", {kRows, kColumns}, codes(64, 0xfd)),
          f16_tensor("fc.weight_scale", {kRows, 1}, {0.5f, 2.0f})};
}

void erase(Tensors& tensors, const std::string& name) {
  std::erase_if(tensors, [&](const TensorToWrite& tensor) { return tensor.name == name; });
}

class WeightFormats : public ::testing::Test {
 protected:
  WeightStore store_of(const Tensors& tensors, WeightValues values = WeightValues::read) {
    write_safetensors(folder_ / "model.safetensors", tensors);
    auto checkpoint = Checkpoint::open(folder_.path());
    if (!checkpoint) throw std::runtime_error(checkpoint.error().message);
    return {std::make_shared<const Checkpoint>(std::move(checkpoint).value()), "", values};
  }

  Result<WeightView> load(const Tensors& tensors, int64_t rows = kRows, int64_t columns = kColumns) {
    stores_.push_back(std::make_unique<WeightStore>(store_of(tensors)));
    return stores_.back()->matrix("fc", rows, columns);
  }

  std::vector<std::unique_ptr<WeightStore>> stores_;
  TempDir folder_;
};

std::vector<float> row_of(const WeightView& weight, int64_t row) {
  EXPECT_TRUE(is_valid_weight(weight));
  std::vector<float> values(static_cast<size_t>(weight.in_features));
  cpu::decode_row(weight, row, values.data());
  return values;
}

TEST_F(WeightFormats, FieldFault8_BothFamiliesOfNvfp4AreTheSameWeight) {
  for (const Tensors& tensors : {modelopt(), compressed_tensors()}) {
    const auto weight = load(tensors);
    ASSERT_TRUE(weight) << weight.error().message;
    for (int64_t n = 0; n < kRows; ++n) {
      const std::vector<float> row = row_of(*weight, n);
      for (int64_t k = 0; k < kColumns; ++k) {
        const float code = k % 2 == 0 ? 0.5f : 1.0f;
        EXPECT_EQ(row[static_cast<size_t>(k)], code * (k < 16 ? 1.0f : 2.0f) * 0.25f);
      }
    }
    EXPECT_EQ(weight->size_bytes(), 32 + 4 + 4);
    EXPECT_TRUE(stores_.back()->unused().empty());  // input scales included
  }
}

TEST_F(WeightFormats, PackedWeightsStayWhereTheyAreMapped) {
  const auto weight = load(compressed_tensors());
  ASSERT_TRUE(weight) << weight.error().message;
  const Checkpoint& checkpoint = stores_.back()->checkpoint();
  EXPECT_EQ(weight->data, checkpoint.find("fc.weight_packed")->data);
  EXPECT_EQ(weight->group_scales, checkpoint.find("fc.weight_scale")->data);
}

TEST_F(WeightFormats, Int8WithAScaleForEachGroup) {
  const auto weight = load(int8());
  ASSERT_TRUE(weight) << weight.error().message;
  EXPECT_EQ(row_of(*weight, 0), std::vector<float>(kColumns, -1.5f));
  EXPECT_EQ(row_of(*weight, 1), std::vector<float>(kColumns, -6.0f));
  EXPECT_TRUE(stores_.back()->unused().empty());
  EXPECT_EQ(static_cast<int64_t>(stores_.back()->converted_bytes()), weight->size_bytes()) << "in memory of our own";
  WeightStore unread = store_of(int8(), WeightValues::unread);
  ASSERT_TRUE(unread.matrix("fc", kRows, kColumns));
  EXPECT_EQ(unread.converted_bytes(), stores_.back()->converted_bytes());
}

TEST_F(WeightFormats, Int8ConvertedAtLoadKeepsOneCopy) {
  for (const auto& [format, bytes] : {std::pair{LoadFormat::bf16, 128u}, std::pair{LoadFormat::fp8, 64u + 8u}}) {
    WeightStore store = store_of(int8());
    store.convert_at_load(format);
    const auto weight = store.matrix("fc", kRows, kColumns);
    ASSERT_TRUE(weight) << weight.error().message;
    for (const float value : row_of(*weight, 1)) EXPECT_NEAR(value, -6.0f, 1e-6f);
    EXPECT_EQ(store.converted_bytes(), bytes);
  }
  WeightStore same = store_of(int8());
  same.convert_at_load(LoadFormat::int8);
  ASSERT_TRUE(same.matrix("fc", kRows, kColumns));
  EXPECT_EQ(same.converted_bytes(), static_cast<size_t>(int8_bytes(kRows, kColumns)));
}

// Products with avx512_bf16 read packs: a copy whose memory is counted, also where values are not read.
TEST_F(WeightFormats, PacksForTheInstructionSetThatWantsThem) {
  ThreadPool threads(2);
  for (const int64_t columns : {1, 3, 32, 37, 100}) {
    for (const int64_t rows : {1, 16, 50}) {
      std::vector<float> values;
      for (int64_t i = 0; i < rows * columns; ++i) values.push_back(static_cast<float>(i % 199) - 99.0f);
      const Tensors tensors{bf16_tensor("fc.weight", {rows, columns}, values)};
      WeightStore store = store_of(tensors);
      store.convert_at_load({.isa = CpuIsa::avx512_bf16, .threads = &threads});
      const auto weight = store.matrix("fc", rows, columns);
      ASSERT_TRUE(weight) << weight.error().message;
      EXPECT_TRUE(weight->is_packed);
      for (int64_t n = 0; n < rows; ++n) {
        for (int64_t k = 0; k < columns; ++k) {
          const std::byte* code = weight->data + dword_code_offset(DType::bf16, columns, n, k);
          ASSERT_EQ(float_from_bf16(load_unaligned<uint16_t>(code)), values[static_cast<size_t>(n * columns + k)]);
        }
      }
      EXPECT_EQ(static_cast<int64_t>(store.converted_bytes()), weight->size_bytes());
      WeightStore unread = store_of(tensors, WeightValues::unread);
      unread.convert_at_load({.isa = CpuIsa::avx512_bf16});
      ASSERT_TRUE(unread.matrix("fc", rows, columns));
      EXPECT_EQ(unread.converted_bytes(), store.converted_bytes());
      WeightStore mapped = store_of(tensors);
      mapped.convert_at_load({.isa = CpuIsa::avx512});
      EXPECT_EQ(test::take(mapped.matrix("fc", rows, columns)).data, mapped.checkpoint().find("fc.weight")->data);
    }
  }
}

// What was converted is packed in its place: one copy, with its scales.
TEST_F(WeightFormats, ConvertedWeightsArePackedInPlace) {
  ThreadPool threads(2);
  WeightStore rows = store_of(int8());
  rows.convert_at_load({.format = LoadFormat::fp8, .threads = &threads});
  WeightStore packs = store_of(int8());
  packs.convert_at_load({.format = LoadFormat::fp8, .isa = CpuIsa::avx512_bf16, .threads = &threads});
  const WeightView by_rows = test::take(rows.matrix("fc", kRows, kColumns));
  const WeightView packed = test::take(packs.matrix("fc", kRows, kColumns));
  EXPECT_TRUE(packed.is_packed);
  for (int64_t n = 0; n < kRows; ++n) {
    EXPECT_EQ(packed.row_scales[n], by_rows.row_scales[n]);
    for (int64_t k = 0; k < kColumns; ++k) {
      EXPECT_EQ(packed.data[dword_code_offset(DType::f8_e4m3, kColumns, n, k)], by_rows.row(n)[k]);
    }
  }
  EXPECT_EQ(static_cast<int64_t>(packs.converted_bytes()), packed.size_bytes());
}

// A head by its name is not quantized; as_loaded makes a copy of it.
TEST_F(WeightFormats, AHeadBecomesACopy) {
  ThreadPool threads(2);
  WeightStore store = store_of({bf16_tensor("embed_tokens.weight", {1, 32}, std::vector<float>(32, 2.0f))});
  store.convert_at_load({.format = LoadFormat::int8, .threads = &threads});
  const auto table = store.matrix("embed_tokens", 1, 32);
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->data, store.checkpoint().find("embed_tokens.weight")->data);
  const auto head = store.as_loaded("embed_tokens", *table);
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->dtype, DType::i8);
  for (const float value : row_of(*head, 0)) EXPECT_NEAR(value, 2.0f, 1e-3f);
  store.convert_at_load(LoadFormat::bf16);
  EXPECT_EQ(store.as_loaded("embed_tokens", *table)->data, table->data);
}

TEST_F(WeightFormats, Fp8ScaleOfTheWholeTensor) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, std::vector<int64_t>{1}}) {
    for (const char* name : {"fc.weight_scale", "fc.weight_scale_inv"}) {
      const auto weight = load(fp8(f32_tensor(name, shape, {0.5f})));
      ASSERT_TRUE(weight) << weight.error().message;
      for (int64_t n = 0; n < kRows; ++n) EXPECT_EQ(row_of(*weight, n), std::vector<float>(kColumns, 0.5f));
    }
  }
}

TEST_F(WeightFormats, Fp8ScaleOfEachRow) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{2}, std::vector<int64_t>{2, 1}}) {
    for (const TensorToWrite& scale :
         {f32_tensor("fc.weight_scale", shape, {0.5f, 3.0f}), bf16_tensor("fc.weight_scale", shape, {0.5f, 3.0f})}) {
      const auto weight = load(fp8(scale));
      ASSERT_TRUE(weight) << weight.error().message;
      EXPECT_EQ(row_of(*weight, 0), std::vector<float>(kColumns, 0.5f));
      EXPECT_EQ(row_of(*weight, 1), std::vector<float>(kColumns, 3.0f));
    }
  }
}

TEST_F(WeightFormats, Fp8ScalesOfBlocksAreMultipliersUnderBothNames) {
  constexpr int64_t kManyRows = 130;
  constexpr int64_t kManyColumns = 257;
  for (const char* name : {"fc.weight_scale", "fc.weight_scale_inv"}) {
    const auto weight = load({fp8_tensor("fc.weight", {kManyRows, kManyColumns}, codes(130 * 257, 0x38)),
                              f32_tensor(name, {2, 3}, {1, 2, 3, 4, 5, 6})},
                             kManyRows, kManyColumns);
    ASSERT_TRUE(weight) << weight.error().message;
    for (const int64_t n : {0, 127, 128, 129}) {
      const std::vector<float> row = row_of(*weight, n);
      for (int64_t k = 0; k < kManyColumns; ++k) {
        ASSERT_EQ(row[static_cast<size_t>(k)], static_cast<float>(1 + n / 128 * 3 + k / 128)) << n << ", " << k;
      }
    }
  }
}

TEST_F(WeightFormats, OneRowOrOneBlockIsUnambiguous) {
  const auto row =
      load({fp8_tensor("fc.weight", {1, 32}, codes(32, 0x38)), f32_tensor("fc.weight_scale", {1, 1}, {2})}, 1);
  ASSERT_TRUE(row) << row.error().message;
  EXPECT_EQ(row_of(*row, 0), std::vector<float>(32, 2.0f));
  const auto block = load(fp8(f32_tensor("fc.weight_scale_inv", {1, 1}, {2})));
  ASSERT_TRUE(block) << block.error().message;
  EXPECT_EQ(row_of(*block, 1), std::vector<float>(32, 2.0f));
}

TEST_F(WeightFormats, FieldFault8_EachTensorDecidesForItself) {
  Tensors tensors = modelopt();
  tensors.push_back(bf16_tensor("q_proj.weight", {1, 2}, {1, 2}));
  tensors.push_back(fp8_tensor("k_proj.weight", {1, 2}, {0x38, 0x40}));
  tensors.push_back(f32_tensor("k_proj.weight_scale", {1}, {0.5f}));
  tensors.push_back(u8_tensor("codebook_packed", {1, 8}, codes(8, 0x22)));
  tensors.push_back(fp8_tensor("codebook_scale", {1, 1}, {0x38}));
  tensors.push_back(f32_tensor("codebook_global_scale", {1}, {2.0f}));
  WeightStore store = store_of(tensors);
  EXPECT_TRUE(store.matrix("fc", kRows, kColumns));
  const auto q = store.matrix("q_proj", 1, 2);
  const auto k = store.matrix("k_proj", 1, 2);
  const auto codebook = store.parameter("codebook", 1, 16);
  ASSERT_TRUE(q && k && codebook);
  EXPECT_EQ(row_of(*q, 0), (std::vector<float>{1, 2}));
  EXPECT_EQ(row_of(*k, 0), (std::vector<float>{0.5f, 1}));
  EXPECT_EQ(row_of(*codebook, 0), std::vector<float>(16, 0.5f));
  EXPECT_TRUE(store.has_matrix("fc"));
  EXPECT_FALSE(store.has_matrix("fc2"));
}

TEST_F(WeightFormats, ConvertedAtLoad) {
  std::vector<float> values{6, 0.5f, -3, 4, 1, 2, 1.5f, 0, 6, 0.5f, -3, 4, 1, 2, 1.5f, -0.5f};
  values.insert(values.end(), values.begin(), values.end());
  const Tensors tensors{f32_tensor("q_proj.weight", {1, 32}, values), bf16_tensor("q_proj.bias", {1}, {7}),
                        bf16_tensor("lm_head.weight", {1, 32}, values)};
  for (const auto& [format, dtype] :
       {std::pair{LoadFormat::bf16, DType::bf16}, std::pair{LoadFormat::fp8, DType::f8_e4m3},
        std::pair{LoadFormat::nvfp4, DType::u8}, std::pair{LoadFormat::int8, DType::i8}}) {
    WeightStore store = store_of(tensors);
    store.convert_at_load(format);
    const auto q = store.matrix("q_proj", 1, 32, true);
    const auto head = store.matrix("lm_head", 1, 32);
    ASSERT_TRUE(q && head);
    const WeightStore moved = std::move(store);  // the views stay good
    EXPECT_EQ(q->dtype, dtype);
    EXPECT_EQ(q->bias[0], 7.0f);
    const std::vector<float> row = row_of(*q, 0);
    for (size_t k = 0; k < row.size(); ++k)
      EXPECT_NEAR(row[k], values[k], (dtype == DType::i8 ? 0.024f : 1e-6f) + 0.04f * std::abs(values[k]));
    EXPECT_EQ(head->data, moved.checkpoint().find("lm_head.weight")->data);
    EXPECT_EQ(static_cast<int64_t>(moved.converted_bytes()), q->size_bytes() - 4 - (dtype == DType::u8 ? 4 : 0))
        << "all but the bias and the scale of the whole tensor, which are not in an array of their own";
    EXPECT_TRUE(moved.unused().empty());
  }
}

TEST_F(WeightFormats, RoundedToBf16AtLoad) {
  WeightStore store =
      store_of({f32_tensor("q_proj.weight", {1, 2}, {1.0f + 0x1p-8f, 1.0f + 0x1.8p-8f}),
                bf16_tensor("k_proj.weight", {1, 2}, {1, 2}), f32_tensor("v_proj.weight", {1, 1}, {3.4e38f})});
  store.convert_at_load(LoadFormat::bf16);
  const auto q = store.matrix("q_proj", 1, 2);
  const auto k = store.matrix("k_proj", 1, 2);
  ASSERT_TRUE(q && k);
  EXPECT_EQ(row_of(*q, 0), (std::vector<float>{1, 1.0f + 0x1p-7f})) << "to nearest even";
  EXPECT_EQ(k->data, store.checkpoint().find("k_proj.weight")->data);
  EXPECT_EQ(store.converted_bytes(), 4u);
  expect_error(store.matrix("v_proj", 1, 1), Code::numeric, {"'v_proj.weight'", "too large for BF16"});
}

TEST_F(WeightFormats, ConvertedAtLoadFromAnotherQuantizedFormat) {
  const Tensors stored = fp8(f32_tensor("fc.weight_scale", {2, 1}, {1, 1}));
  WeightStore same = store_of(stored);
  same.convert_at_load(LoadFormat::fp8);
  const auto weight = same.matrix("fc", kRows, kColumns);
  ASSERT_TRUE(weight) << weight.error().message;
  EXPECT_EQ(weight->data, same.checkpoint().find("fc.weight")->data);
  EXPECT_EQ(same.converted_bytes(), 0u);
  // Codes of 1 times a scale of 0.5 a row: every format has 0.5.
  for (const auto& [format, dtype] :
       {std::pair{LoadFormat::bf16, DType::bf16}, std::pair{LoadFormat::nvfp4, DType::u8}}) {
    WeightStore other = store_of(fp8(f32_tensor("fc.weight_scale", {2, 1}, {0.5f, 0.5f})));
    other.convert_at_load(format);
    const auto converted = other.matrix("fc", kRows, kColumns);
    ASSERT_TRUE(converted) << converted.error().message;
    EXPECT_EQ(converted->dtype, dtype);
    EXPECT_EQ(row_of(*converted, 1), std::vector<float>(kColumns, 0.5f));
    EXPECT_TRUE(other.unused().empty());
  }
  WeightStore narrow = store_of({bf16_tensor("fc.weight", {1, 8}, std::vector<float>(8, 1.0f))});
  narrow.convert_at_load(LoadFormat::nvfp4);
  expect_error(narrow.matrix("fc", 1, 8), Code::unsupported, {"'fc.weight'", "rows of 8", "multiple of 16"});
  WeightStore broken = store_of({bf16_tensor("fc.weight", {1, 2}, {1, std::nanf("")})});
  narrow.convert_at_load(LoadFormat::int8);
  expect_error(narrow.matrix("fc", 1, 8), Code::unsupported, {"'fc.weight'", "rows of 8", "multiple of 32 for int8"});
  broken.convert_at_load(LoadFormat::fp8);
  expect_error(broken.matrix("fc", 1, 2), Code::numeric, {"'fc.weight'", "finite"});
}

// The reference quantized dflash_plain.
TEST(WeightFormatsOfTheReference, Fp8AtLoadToTheBit) {
  const auto open = [](const char* name) {
    auto checkpoint = Checkpoint::open(std::string(BLOCKDRAFT_SOURCE_DIR "/tests/golden/") + name);
    if (!checkpoint) throw std::runtime_error(checkpoint.error().message);
    return std::make_shared<const Checkpoint>(std::move(checkpoint).value());
  };
  const auto reference = open("dflash_fp8_row");
  WeightStore stored(reference, "");
  WeightStore converted(open("dflash_plain"), "");
  converted.convert_at_load(LoadFormat::fp8);
  int64_t bytes = 0;
  for (const std::string& name : reference->names()) {
    const StoredTensor& codes = *reference->find(name);
    if (codes.dtype != DType::f8_e4m3) continue;
    const auto expected = stored.parameter(name, codes.shape[0], codes.shape[1]);
    const auto found = converted.parameter(name, codes.shape[0], codes.shape[1]);
    ASSERT_TRUE(expected && found) << name;
    EXPECT_EQ(std::memcmp(found->data, expected->data, codes.size_bytes), 0) << name;
    EXPECT_TRUE(std::equal(found->row_scales, found->row_scales + codes.shape[0], expected->row_scales)) << name;
    bytes += found->size_bytes();
  }
  EXPECT_GT(bytes, 0);
  EXPECT_EQ(static_cast<int64_t>(converted.converted_bytes()), bytes);
}

// A change that makes the tensors contradictory, and what the error must say.
struct Broken {
  const char* what;
  Tensors tensors;
  Code code;
  std::vector<std::string> parts;
  int64_t columns = kColumns;
};

Tensors with(Tensors tensors, TensorToWrite tensor) {
  erase(tensors, tensor.name);
  tensors.push_back(std::move(tensor));
  return tensors;
}

Tensors without(Tensors tensors, const std::string& name) {
  erase(tensors, name);
  return tensors;
}

std::vector<Broken> broken_nvfp4() {
  const auto f32 = [](const std::string& name, float value) { return f32_tensor(name, {1}, {value}); };
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<Broken> cases{
      {"packed and not",
       with(compressed_tensors(), bf16_tensor("fc.weight", {2, 32}, std::vector<float>(64))),
       Code::mismatch,
       {"'fc.weight'", "'fc.weight_packed'", "both"}},
      {"both global scales",
       with(modelopt(), f32("fc.weight_global_scale", 4)),
       Code::mismatch,
       {"'fc.weight_scale_2'", "'fc.weight_global_scale'", "both"}},
      {"multiplier beside packed",
       without(with(compressed_tensors(), f32("fc.weight_scale_2", 4)), "fc.weight_global_scale"),
       Code::mismatch,
       {"'fc.weight_packed'", "'fc.weight_scale_2'"}},
      {"divisor beside U8",
       without(with(modelopt(), f32("fc.weight_global_scale", 4)), "fc.weight_scale_2"),
       Code::mismatch,
       {"'fc.weight'", "'fc.weight_global_scale'"}},
      {"no multiplier", without(modelopt(), "fc.weight_scale_2"), Code::not_found, {"'fc.weight_scale_2'", "U8"}},
      {"no divisor",
       without(compressed_tensors(), "fc.weight_global_scale"),
       Code::not_found,
       {"'fc.weight_global_scale'"}},
      {"no group scales", without(modelopt(), "fc.weight_scale"), Code::not_found, {"'fc.weight_scale'"}},
      {"U8 alone", {modelopt()[0]}, Code::not_found, {"'fc.weight'", "U8", "'fc.weight_scale'"}},
      {"group scales F32",
       with(modelopt(), f32_tensor("fc.weight_scale", {2, 2}, {1, 1, 1, 1})),
       Code::unsupported,
       {"'fc.weight_scale'", "F32", "expected F8_E4M3"}},
      {"groups of 32",
       with(modelopt(), fp8_tensor("fc.weight_scale", {2, 1}, {0x38, 0x38})),
       Code::mismatch,
       {"'fc.weight_scale'", "[2, 1]", "[2, 2]"}},
      {"inverse block scale",
       with(modelopt(), f32("fc.weight_scale_inv", 1)),
       Code::mismatch,
       {"'fc.weight_scale'", "'fc.weight_scale_inv'"}},
      {"NaN group scale",
       with(modelopt(), fp8_tensor("fc.weight_scale", {2, 2}, {0x38, 0xff, 0x38, 0x38})),
       Code::corrupt_file,
       {"'fc.weight_scale'", "NaN"}},
      {"not packed",
       with(modelopt(), u8_tensor("fc.weight", {2, 32}, codes(64, 0))),
       Code::mismatch,
       {"'fc.weight'", "[2, 32]", "[2, 16]"}},
      {"packed as I8",
       with(compressed_tensors(), raw_tensor("fc.weight_packed", "I8", {2, 16}, codes(32, 0))),
       Code::unsupported,
       {"'fc.weight_packed'", "I8", "U8"}},
      {"odd rows", modelopt(), Code::unsupported, {"'fc.weight'", "31", "multiple of 16"}, 31},
      {"half a group", modelopt(), Code::unsupported, {"'fc.weight'", "24", "multiple of 16"}, 24},
      {"two multipliers",
       with(modelopt(), f32_tensor("fc.weight_scale_2", {2}, {1, 1})),
       Code::mismatch,
       {"'fc.weight_scale_2'", "[2]", "1 elements"}},
  };
  for (const float value : {0.0f, -0.0f, inf, std::nanf("")}) {
    cases.push_back({"multiplier",
                     with(modelopt(), f32("fc.weight_scale_2", value)),
                     Code::corrupt_file,
                     {"'fc.weight_scale_2'", "finite"}});
    cases.push_back({"divisor",
                     with(compressed_tensors(), f32("fc.weight_global_scale", value)),
                     Code::corrupt_file,
                     {"'fc.weight_global_scale'", "finite"}});
  }
  cases.push_back({"divisor with an infinite reciprocal",
                   with(compressed_tensors(), f32("fc.weight_global_scale", 1e-45f)),
                   Code::corrupt_file,
                   {"'fc.weight_global_scale'", "finite"}});
  return cases;
}

std::vector<Broken> broken_fp8() {
  const TensorToWrite scale = f32_tensor("fc.weight_scale", {2, 1}, {1, 1});
  const Tensors good = fp8(scale);
  return {
      {"no scale", without(good, "fc.weight_scale"), Code::not_found, {"'fc.weight'", "F8_E4M3", "'fc.weight_scale'"}},
      {"both names",
       with(good, f32_tensor("fc.weight_scale_inv", {2, 1}, {1, 1})),
       Code::mismatch,
       {"'fc.weight_scale'", "'fc.weight_scale_inv'"}},
      {"columns",
       fp8(f32_tensor("fc.weight_scale", {1, 32}, std::vector<float>(32, 1.0f))),
       Code::mismatch,
       {"'fc.weight_scale'", "[1, 32]", "[2, 1]", "[1, 1]"}},
      {"rows, one too many", fp8(f32_tensor("fc.weight_scale", {3}, {1, 1, 1})), Code::mismatch, {"[3]", "[2, 1]"}},
      {"three dimensions", fp8(f32_tensor("fc.weight_scale", {2, 1, 1}, {1, 1})), Code::mismatch, {"[2, 1, 1]"}},
      {"NaN code",
       with(good, fp8_tensor("fc.weight", {2, 32}, codes(64, 0x7f))),
       Code::corrupt_file,
       {"'fc.weight'", "NaN"}},
      {"scale of FP8",
       fp8(fp8_tensor("fc.weight_scale", {2, 1}, {0x38, 0x38})),
       Code::unsupported,
       {"'fc.weight_scale'", "F8_E4M3", "expected F32"}},
      {"scale not finite",
       fp8(f32_tensor("fc.weight_scale", {2, 1}, {1, std::nanf("")})),
       Code::corrupt_file,
       {"'fc.weight_scale'", "finite"}},
      {"with a second scale",
       with(good, f32_tensor("fc.weight_scale_2", {}, {1})),
       Code::mismatch,
       {"'fc.weight_scale_2'", "F8_E4M3"}},
      {"one scale of zero",
       fp8(f32_tensor("fc.weight_scale", {}, {0})),
       Code::corrupt_file,
       {"'fc.weight_scale'", "0"}},
      {"wrong shape",
       with(good, fp8_tensor("fc.weight", {32, 2}, codes(64, 0x38))),
       Code::mismatch,
       {"'fc.weight'", "[32, 2]", "[2, 32]"}},
  };
}

// Tensors and what they count for.
TEST_F(WeightFormats, StoredWeightsAreCounted) {
  const std::vector<uint8_t> ones = codes(64, 0x38);
  const auto fp8_of = [&](TensorToWrite scale) {
    return Tensors{fp8_tensor("fc.weight", {2, 32}, ones), std::move(scale), f32_tensor("fc.input_scale", {}, {1})};
  };
  struct Case {
    Tensors tensors;
    const char* format;
    int64_t size_bytes;
  };
  for (const Case& c : {Case{modelopt(), "NVFP4 (ModelOpt)", 32 + 4 + 4 + 4},
                        Case{compressed_tensors(), "NVFP4 (compressed-tensors)", 32 + 4 + 4 + 4},
                        Case{fp8_of(f32_tensor("fc.weight_scale", {}, {1})), "F8_E4M3, one scale", 64 + 4 + 4},
                        Case{fp8_of(f32_tensor("fc.weight_scale", {2}, {1, 1})), "F8_E4M3, a scale a row", 64 + 8 + 4},
                        Case{int8(), "I8, a scale for 32 columns", 64 + 4},
                        Case{{bf16_tensor("fc.weight", {2, 32}, std::vector<float>(64))}, "BF16", 128}}) {
    for (const WeightValues values : {WeightValues::read, WeightValues::unread}) {
      WeightStore store = store_of(c.tensors, values);
      const auto weight = store.matrix("fc", kRows, kColumns);
      ASSERT_TRUE(weight) << weight.error().message;
      ASSERT_EQ(store.stored().size(), 1u);
      EXPECT_EQ(store.stored()[0].name, "fc.weight");
      EXPECT_EQ(store.stored()[0].format, c.format);
      EXPECT_EQ(store.stored()[0].parameters, 64);
      EXPECT_EQ(store.stored()[0].size_bytes, c.size_bytes);
    }
  }
  WeightStore blocks = store_of(
      {fp8_tensor("fc.weight", {130, 2}, codes(260, 0x38)), f32_tensor("fc.weight_scale_inv", {2, 1}, {1, 1})});
  ASSERT_TRUE(blocks.matrix("fc", 130, 2));
  EXPECT_EQ(blocks.stored()[0].format, "F8_E4M3, a scale a 128x128 block");
}

// The codes are looked at in blocks of thousands.
TEST_F(WeightFormats, ACodeForNaNIsFoundWhereverItIs) {
  constexpr int64_t kMany = 1300;
  const auto with_code_at = [](size_t index, uint8_t code) {
    std::vector<uint8_t> all = codes(kMany * kColumns, 0x7e);  // the largest number
    all[index] = code;
    return Tensors{fp8_tensor("fc.weight", {kMany, kColumns}, all), f32_tensor("fc.weight_scale", {1}, {1})};
  };
  for (const size_t index : {size_t{0}, size_t{16383}, size_t{16384}, size_t{kMany * kColumns - 1}}) {
    for (const uint8_t code : {uint8_t{0x7f}, uint8_t{0xff}}) {
      expect_error(load(with_code_at(index, code), kMany), Code::corrupt_file, {"'fc.weight'", "NaN"});
    }
    EXPECT_TRUE(load(with_code_at(index, 0xfe), kMany));
  }
}

TEST_F(WeightFormats, AnIgnoredWeightIsIgnoredWithAllItsTensors) {
  for (const Tensors& tensors : {modelopt(), compressed_tensors(), fp8(f32_tensor("fc.weight_scale", {}, {1})),
                                 fp8(f32_tensor("fc.weight_scale_inv", {1, 1}, {1}))}) {
    WeightStore store = store_of(tensors);
    EXPECT_EQ(store.unused().size(), tensors.size());
    store.ignore_matrix("fc");
    EXPECT_TRUE(store.unused().empty());
    EXPECT_TRUE(store.stored().empty());
  }
}

std::vector<Broken> broken_int8() {
  const std::vector<uint16_t> infinity{0x3c00, 0x7c00};
  return {
      {"no scale", without(int8(), "fc.weight_scale"), Code::not_found, {"'fc.weight'", "I8", "'fc.weight_scale'"}},
      {"a scale a row",
       with(int8(), f16_tensor("fc.weight_scale", {2}, {1, 1})),
       Code::mismatch,
       {"'fc.weight_scale'", "[2]", "[2, 1]"}},
      {"another group size",
       with(int8(), f16_tensor("fc.weight_scale", {2, 2}, {1, 1, 1, 1})),
       Code::mismatch,
       {"'fc.weight_scale'", "[2, 2]", "[2, 1]"}},
      {"scales of another type",
       with(int8(), bf16_tensor("fc.weight_scale", {2, 1}, {1, 1})),
       Code::unsupported,
       {"'fc.weight_scale'", "BF16", "expected F16"}},
      {"an infinite scale",
       with(int8(), raw_tensor("fc.weight_scale", "F16", {2, 1}, infinity)),
       Code::corrupt_file,
       {"'fc.weight_scale'", "not finite"}},
      {"a divisor",
       with(int8(), f32_tensor("fc.weight_global_scale", {1}, {1})),
       Code::mismatch,
       {"'fc.weight_global_scale'", "I8"}},
      {"wrong shape",
       with(int8(), raw_tensor("fc.weight", "I8", {32, 2}, codes(64, 1))),
       Code::mismatch,
       {"'fc.weight'", "[32, 2]", "[2, 32]"}},
      {"part of a group", int8(), Code::unsupported, {"'fc.weight'", "rows of 48", "multiple of 32"}, 48},
  };
}

std::vector<Broken> broken_plain() {
  const TensorToWrite weight = bf16_tensor("fc.weight", {2, 32}, std::vector<float>(64, 1.0f));
  return {
      {"nothing", {bf16_tensor("other", {1}, {1})}, Code::not_found, {"fc.weight"}},
      {"a scale",
       {weight, f32_tensor("fc.weight_scale", {2, 1}, {1, 1})},
       Code::mismatch,
       {"'fc.weight_scale'", "not quantized"}},
      {"a global scale",
       {weight, f32_tensor("fc.weight_global_scale", {1}, {1})},
       Code::mismatch,
       {"'fc.weight_global_scale'", "not quantized"}},
      {"integers",
       {raw_tensor("fc.weight", "I16", {2, 32}, std::vector<uint16_t>(64, 1))},
       Code::unsupported,
       {"'fc.weight'", "I16", "BF16, F16, F32, F8_E4M3"}},
  };
}

TEST_F(WeightFormats, ContradictionsAreRefusedByName) {
  for (const auto& cases : {broken_nvfp4(), broken_fp8(), broken_int8(), broken_plain()}) {
    for (const Broken& broken : cases) {
      SCOPED_TRACE(broken.what);
      const auto weight = load(broken.tensors, kRows, broken.columns);
      if (broken.code != Code::corrupt_file) {  // what is wrong is not a value: it shows without them
        WeightStore unread = store_of(broken.tensors, WeightValues::unread);
        expect_error(unread.matrix("fc", kRows, broken.columns), broken.code, {broken.parts.front()});
      }
      expect_error(weight, broken.code, {});
      for (const std::string& part : broken.parts) expect_error(weight, broken.code, {part});
      expect_error(weight, broken.code, {folder_.path().string()});
    }
  }
}

}  // namespace
}  // namespace blockdraft
