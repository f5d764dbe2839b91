#include "head/target_views.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"

namespace blockdraft {
namespace {

// Ids are 32-bit numbers, and extents above this are mistakes.
constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();

std::optional<DType> dtype_of(MatrixType type) {
  switch (type) {
    case MatrixType::bf16:
      return DType::bf16;
    case MatrixType::f16:
      return DType::f16;
    case MatrixType::f32:
      return DType::f32;
    case MatrixType::fp8_e4m3:
      return DType::f8_e4m3;
  }
  return {};  // a number of a C caller that is none of them
}

Status check_extent(const char* name, const char* extent, int64_t value) {
  if (value >= 1 && value <= kMaxExtent) return {};
  return make_error(Code::invalid_argument, "{}: {} is {}, expected 1 to {}", name, extent, value, kMaxExtent);
}

Result<WeightView> weight_view(const char* name, const MatrixView& view) {
  const std::optional<DType> dtype = dtype_of(view.type);
  if (!dtype) {
    return make_error(Code::invalid_argument, "{}: type is {}, expected bf16, f16, f32 or fp8_e4m3", name,
                      static_cast<int>(view.type));
  }
  BLOCKDRAFT_TRY(check_extent(name, "rows", view.rows));
  BLOCKDRAFT_TRY(check_extent(name, "columns", view.columns));
  if (view.data == nullptr) return make_error(Code::invalid_argument, "{}: data is null, expected a matrix", name);
  const bool wants_scales = *dtype == DType::f8_e4m3;
  if (wants_scales != (view.row_scales != nullptr)) {
    return make_error(Code::invalid_argument, "{}: type is {}, row_scales is {}, expected {}", name, name_of(*dtype),
                      view.row_scales == nullptr ? "null" : "given", wants_scales ? "one scale a row" : "null");
  }
  return WeightView{.data = static_cast<const std::byte*>(view.data),
                    .dtype = *dtype,
                    .out_features = view.rows,
                    .in_features = view.columns,
                    .row_scales = view.row_scales};
}

}  // namespace

Result<TargetWeights> target_weights(const TargetTensors& target) {
  TargetWeights weights{.embedding_scale = target.embedding_scale, .num_hidden_layers = target.num_layers};
  BLOCKDRAFT_ASSIGN(weights.embed_tokens, weight_view("embed_tokens", target.embed_tokens));
  BLOCKDRAFT_ASSIGN(weights.lm_head, weight_view("lm_head", target.lm_head));
  if (target.lm_head.columns != target.embed_tokens.columns) {
    return make_error(Code::invalid_argument, "lm_head: columns is {}, expected {}, those of embed_tokens",
                      target.lm_head.columns, target.embed_tokens.columns);
  }
  const int64_t most = std::min(target.embed_tokens.rows, target.lm_head.rows);
  weights.num_choices = target.num_real_ids == 0 ? most : target.num_real_ids;
  if (weights.num_choices < 1 || weights.num_choices > most) {
    return make_error(Code::invalid_argument, "num_real_ids is {}, expected 1 to {}, or 0 for all", target.num_real_ids,
                      most);
  }
  BLOCKDRAFT_TRY(check_extent("target", "num_layers", target.num_layers));
  if (!std::isfinite(target.embedding_scale)) {
    return make_error(Code::invalid_argument, "embedding_scale is {}, expected a number", target.embedding_scale);
  }
  return weights;
}

}  // namespace blockdraft
