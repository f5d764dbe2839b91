// linear() in terms of a Simd struct (simd_avx512.h). Included between BLOCKDRAFT_TARGET_BEGIN and _END, in one file
// per instruction set: everything is local to it.
//
// Columns are taken Simd::kStep at a time. A sum over k runs in the lanes of a Simd::Sum, each adding its columns in
// sequence; then the lanes are added in a fixed tree. A weight is expanded in registers for up to kMaxRows rows of x.
#pragma once

namespace blockdraft::cpu {
namespace {

constexpr int64_t kFeatures = 4;       // output features worked on together
constexpr int64_t kRowsOfX = 48;       // of these rows x stays in the second-level cache while features pass
constexpr int64_t kTileFeatures = 32;  // whose weights stay in the second-level cache while rows pass
constexpr int64_t kMaxStepBytes = 256;
constexpr int64_t kCacheLine = 64;
// Bytes between what is multiplied and what is fetched. The rows of a block follow each other, so that each line of the
// weight is asked for once; a processor by itself follows four short rows at once badly.
constexpr int64_t kAhead = 4096;
constexpr int64_t kLongRow = 1024;      // bytes
constexpr int64_t kMaxExpanded = 4096;  // columns that are expanded into memory: these stay in the first-level cache

// The codes of one output feature: at(k) are elements [k, k + kStep) over unit(), partly(k, count) the same with zeros
// behind the first count. If kScalesSums, the sums over each kScaleBlock columns get scale(k). If kIsCostly, so much
// work is in at() that many rows had better share it.
template <class Simd, auto kFromCodes, int64_t kCodeBytes>
struct PlainCodes {
  static constexpr bool kScalesSums = false;
  static constexpr bool kIsCostly = false;
  const std::byte* codes;

  PlainCodes(const WeightView& weight, int64_t feature) : codes(weight.row(feature)) {}
  static float unit() { return 1.0f; }
  auto at(int64_t k) const {
    __builtin_prefetch(codes + k * kCodeBytes + kAhead);
    if constexpr (Simd::kStep * kCodeBytes > kCacheLine)
      __builtin_prefetch(codes + k * kCodeBytes + kAhead + kCacheLine);
    return kFromCodes(codes + k * kCodeBytes);
  }
  auto partly(int64_t k, int64_t count) const {
    static_assert(Simd::kStep * kCodeBytes <= kMaxStepBytes);
    std::byte copy[kMaxStepBytes] = {};
    std::memcpy(copy, codes + k * kCodeBytes, static_cast<size_t>(count * kCodeBytes));
    return kFromCodes(copy);
  }
};

template <class Simd>
struct F8Codes : PlainCodes<Simd, Simd::from_f8, 1> {
  using PlainCodes<Simd, Simd::from_f8, 1>::PlainCodes;
  static float unit() { return Simd::kF8Unit; }
};

// The features worked on together, as offsets into the slice; of a slice's end there may be fewer than kFeatures.
struct FeatureSet {
  int64_t offset[kFeatures];  // behind `count` the last one again: those sums are not used, but must not be slow ones
  int64_t count;
  bool are_adjacent;  // all of them
};

// What the finished sums of a row become.
struct Finish {
  float unit;
  const float* row_scales;  // of the slice's first feature, as bias
  const float* bias;
  bool accumulate;

  static __m128 gather(const float* values, const FeatureSet& set) {
    if (set.are_adjacent) return _mm_loadu_ps(values + set.offset[0]);
    return _mm_setr_ps(values[set.offset[0]], values[set.offset[1]], values[set.offset[2]], values[set.offset[3]]);
  }
  void operator()(float* out, __m128 sums, const FeatureSet& set) const {
    __m128 values = _mm_mul_ps(sums, _mm_set1_ps(unit));
    if (row_scales != nullptr) values = _mm_mul_ps(values, gather(row_scales, set));
    if (bias != nullptr) values = _mm_add_ps(values, gather(bias, set));
    if (accumulate) values = _mm_add_ps(gather(out, set), values);
    if (set.are_adjacent) return _mm_storeu_ps(out + set.offset[0], values);
    alignas(16) float finished[kFeatures];
    _mm_store_ps(finished, values);
    for (int64_t i = 0; i < set.count; ++i) out[set.offset[i]] = finished[i];
  }
};

// x as the kernel reads it, rows from some row on.
template <class X>
struct RowsOfX {
  const X* first;
  int64_t stride;
};

template <class X>
RowsOfX<X> rows_of(const LinearTask& task) {
  if constexpr (std::is_same_v<X, float>) {
    return {task.args.x.row(0), task.args.x.row_stride};
  } else {
    return {task.bf16, task.bf16_stride};
  }
}

// sums[r][i] += products of row r of x and feature i over columns [begin, end).
template <class Simd, class Codes, int kRows>
inline void add_products(typename Simd::Sum (&sums)[kRows][kFeatures], const Codes (&codes)[kFeatures],
                         RowsOfX<typename Simd::X> x, int64_t begin, int64_t end) {
  int64_t k = begin;
  for (; k + Simd::kStep <= end; k += Simd::kStep) {
    const typename Simd::Value w[kFeatures] = {codes[0].at(k), codes[1].at(k), codes[2].at(k), codes[3].at(k)};
    for (int r = 0; r < kRows; ++r) {
      const auto value = Simd::load(x.first + r * x.stride + k);
      for (int64_t i = 0; i < kFeatures; ++i) sums[r][i] = Simd::multiply_add(w[i], value, sums[r][i]);
    }
  }
  if (k < end) {
    const int64_t rest = end - k;
    for (int r = 0; r < kRows; ++r) {
      const auto value = Simd::load_partly(x.first + r * x.stride + k, rest);
      for (int64_t i = 0; i < kFeatures; ++i) {
        sums[r][i] = Simd::multiply_add(codes[i].partly(k, rest), value, sums[r][i]);
      }
    }
  }
}

template <class Simd, int kRows>
inline void set_zero(typename Simd::Sum (&sums)[kRows][kFeatures]) {
  for (int r = 0; r < kRows; ++r) {
    for (int64_t i = 0; i < kFeatures; ++i) sums[r][i] = Simd::zero();
  }
}

// The same over all columns, each kScaleBlock of them with its scale.
template <class Simd, class Codes, int kRows>
inline void add_scaled_products(typename Simd::Sum (&sums)[kRows][kFeatures], const Codes (&codes)[kFeatures],
                                RowsOfX<typename Simd::X> x, int64_t in_features) {
  for (int64_t begin = 0; begin < in_features; begin += kScaleBlock) {
    typename Simd::Sum part[kRows][kFeatures];
    set_zero<Simd>(part);
    add_products<Simd>(part, codes, x, begin, begin + kScaleBlock < in_features ? begin + kScaleBlock : in_features);
    for (int64_t i = 0; i < kFeatures; ++i) {
      const auto scale = codes[i].scale(begin);
      for (int r = 0; r < kRows; ++r) sums[r][i] = Simd::add_scaled(part[r][i], scale, sums[r][i]);
    }
  }
}

// Some features of a slice with rows of x.
template <class Simd, class Codes>
struct Block {
  const LinearTask& task;
  const Slice& slice;
  const FeatureSet& features;
  const Codes (&codes)[kFeatures];
  int64_t columns;
  float unit;

  RowsOfX<typename Simd::X> rows_from(int64_t row) const {
    const auto x = rows_of<typename Simd::X>(task);
    return {x.first + row * x.stride, x.stride};
  }
};

// kRows rows of x from first_row on.
template <int kRows, class Simd, class Codes>
void multiply_block(const Block<Simd, Codes>& block, int64_t first_row) {
  typename Simd::Sum sums[kRows][kFeatures];
  set_zero<Simd>(sums);
  if constexpr (Codes::kScalesSums) {
    add_scaled_products<Simd>(sums, block.codes, block.rows_from(first_row), block.columns);
  } else {
    add_products<Simd>(sums, block.codes, block.rows_from(first_row), 0, block.columns);
  }
  const LinearArgs& args = block.task.args;
  const auto from_first = [&](const float* values) { return values == nullptr ? nullptr : values + block.slice.first; };
  const Finish finish{block.unit, from_first(block.slice.weight.row_scales), from_first(block.slice.weight.bias),
                      args.accumulate};
  for (int r = 0; r < kRows; ++r) {
    finish(args.out.row(first_row + r) + block.slice.column,
           Simd::sum_lanes(sums[r][0], sums[r][1], sums[r][2], sums[r][3]), block.features);
  }
}

// multiply_block for a number of rows known at run time, 1 to kRows.
template <int kRows, class Simd, class Codes>
void multiply_rows(const Block<Simd, Codes>& block, int64_t first_row, int64_t rows) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return multiply_rows<kRows - 1>(block, first_row, rows);
  }
  multiply_block<kRows>(block, first_row);
}

// Rows [begin, end) of x, in blocks of nearly the same number of rows.
template <class Simd, class Codes>
void multiply_all_rows(const Block<Simd, Codes>& block, int64_t begin, int64_t end) {
  int64_t blocks = (end - begin + Simd::kMaxRows - 1) / Simd::kMaxRows;
  for (int64_t row = begin; row < end; --blocks) {
    const int64_t rows = (end - row + blocks - 1) / blocks;
    multiply_rows<Simd::kMaxRows>(block, row, rows);
    row += rows;
  }
}

// multiply_all_rows, the codes expanded into memory first: the same values, and so the same sums.
template <class Simd, class Codes>
void multiply_expanded(const Block<Simd, Codes>& block, int64_t begin, int64_t end) {
  alignas(64) typename Simd::X values[kFeatures][kMaxExpanded];
  const int64_t whole = block.columns / Simd::kStep * Simd::kStep;
  int64_t columns = whole;
  for (int64_t i = 0; i < kFeatures; ++i) {
    for (int64_t k = 0; k < whole; k += Simd::kStep) Simd::store(values[i] + k, block.codes[i].at(k));
  }
  if (whole < block.columns) {
    columns += Simd::kStep;
    for (int64_t i = 0; i < kFeatures; ++i) {
      Simd::store(values[i] + whole, block.codes[i].partly(whole, block.columns - whole));
    }
  }
  using Expanded = typename Simd::Expanded;
  const Expanded codes[kFeatures] = {Expanded(values[0]), Expanded(values[1]), Expanded(values[2]),
                                     Expanded(values[3])};
  multiply_all_rows(Block<Simd, Expanded>{block.task, block.slice, block.features, codes, columns, block.unit}, begin,
                    end);
}

template <class Simd, class Codes>
void multiply_features(const LinearTask& task, const Slice& slice, const FeatureSet& set, int64_t begin, int64_t end) {
  const auto codes_of = [&](int64_t i) { return Codes(slice.weight, slice.first + set.offset[i]); };
  const Codes codes[kFeatures] = {codes_of(0), codes_of(1), codes_of(2), codes_of(3)};
  const int64_t columns = slice.weight.in_features;
  const Block<Simd, Codes> block{task, slice, set, codes, columns, codes[0].unit()};
  if constexpr (Codes::kIsCostly) {
    if (end - begin > Simd::kMaxRows && columns <= kMaxExpanded) return multiply_expanded(block, begin, end);
  }
  multiply_all_rows(block, begin, end);
}

// Features first, first + stride, ... below last.
inline FeatureSet feature_set(int64_t first, int64_t last, int64_t stride) {
  FeatureSet set{};
  for (int64_t i = 0; i < kFeatures; ++i) {
    const int64_t offset = first + i * stride;
    if (offset < last) set.count = i + 1;
    set.offset[i] = offset < last ? offset : set.offset[set.count - 1];
  }
  set.are_adjacent = stride == 1 && set.count == kFeatures;
  return set;
}

// Few rows pass by all features of the slice; many pass by a tile of features at a time, so that the weights come out
// of memory once. Features of a set lie a quarter of the tile apart where rows are long: four places are read from
// front to back, which processors do faster than one; short rows would pay more for what is scattered then.
template <class Simd, class Codes>
void multiply_slice(const LinearTask& task, const Slice& slice) {
  const int64_t num_rows = task.args.x.dim(0);
  const int64_t tile_features = num_rows <= kRowsOfX ? slice.count : kTileFeatures;
  for (int64_t tile = 0; tile < slice.count; tile += tile_features) {
    const int64_t tile_end = tile + tile_features < slice.count ? tile + tile_features : slice.count;
    const int64_t num_sets = (tile_end - tile + kFeatures - 1) / kFeatures;
    const bool apart = slice.weight.row_bytes() >= kLongRow;
    for (int64_t begin = 0; begin < num_rows; begin += kRowsOfX) {
      const int64_t end = begin + kRowsOfX < num_rows ? begin + kRowsOfX : num_rows;
      for (int64_t n = 0; n < num_sets; ++n) {
        const FeatureSet set =
            apart ? feature_set(tile + n, tile_end, num_sets) : feature_set(tile + n * kFeatures, tile_end, 1);
        multiply_features<Simd, Codes>(task, slice, set, begin, end);
      }
    }
  }
}

}  // namespace
}  // namespace blockdraft::cpu
