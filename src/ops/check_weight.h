// What the ops ask of a weight.
#pragma once

#include "tensor/weight_view.h"

namespace blockdraft {

// A type that the kernels read, and exactly the scales that the type needs.
inline bool is_valid_weight(const WeightView& weight) {
  if (weight.data == nullptr || weight.out_features <= 0 || weight.in_features <= 0) return false;
  if (weight.is_packed && !has_dword_packs(weight.dtype)) return false;
  const bool by_row = weight.row_scales != nullptr;
  const bool by_block = weight.block_scales != nullptr;
  const bool by_group = weight.group_scales != nullptr;
  switch (weight.dtype) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return !by_row && !by_block && !by_group;
    case DType::f8_e4m3:
      return by_row != by_block && !by_group;
    case DType::u8:
      return by_group && !by_row && !by_block && weight.in_features % kScaleGroup == 0;
    case DType::i8:
      return !by_row && !by_block && !by_group && weight.in_features % kInt8Group == 0;
    default:
      return false;
  }
}

}  // namespace blockdraft
