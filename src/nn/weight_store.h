// Turns checkpoint tensors into the views that ops take, and owns what had to be converted on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_isa.h"
#include "blockdraft/result.h"
#include "checkpoint/checkpoint.h"
#include "nn/quantize.h"
#include "nn/weight_formats.h"
#include "tensor/tensor_view.h"
#include "tensor/weight_view.h"

namespace blockdraft {

class CudaDevice;

// What linear weights are in memory.
enum class LoadFormat {
  stored,  // as their file has them
  bf16,    // to nearest even
  fp8,     // E4M3; converted ones with a scale a row
  nvfp4,
  int8,  // groups of 32 columns
};

// How weights are loaded.
struct WeightLoading {
  LoadFormat format = LoadFormat::stored;  // of linear weights, in memory
  CpuIsa isa = CpuIsa::portable;           // of the products: where it is faster, they get packs (nn/weight_packs.h)
  ThreadPool* threads = nullptr;           // convert and pack, while loading lasts; null: only the calling thread
  CudaDevice* cuda = nullptr;              // where models put what was loaded (nn/device_weights.h); null: nowhere else
};

// Whether values are looked at. `unread`: names, types and shapes are checked as ever, and what is returned has its
// shape but no data; for a checkpoint that may be without data.
enum class WeightValues { read, unread };

// One weight, norm or bias that was asked for, as the checkpoint stores it.
struct StoredWeight {
  std::string name;        // without the prefix; of a quantized one, what its codes would be called if it were not
  std::string format;      // "BF16", "F8_E4M3, a scale a row", "NVFP4 (ModelOpt)"
  int64_t parameters = 0;  // numbers of the model: two in a byte of NVFP4, none in a scale
  int64_t size_bytes = 0;  // scales included
};

// Matrices stay where they are mapped, but for those that are put into the order that products read: int8 ones, and
// linear weights in BF16 and FP8 where WeightLoading::isa wants that. Norm weights, biases and scales become float32 of
// our own (they are small). The format of a matrix is decided per tensor
// from its companions (nn/weight_formats.h); each keeps its own scales. Immutable once loading is done.
class WeightStore {
 public:
  // `prefix` is what the file puts before the names used here ("model." in some drafters); "" for none.
  WeightStore(std::shared_ptr<const Checkpoint> checkpoint, std::string prefix,
              WeightValues values = WeightValues::read);

  // Linear weights (is_quantizable) that are loaded from here on get this format, in memory of our own where they do
  // not have it yet (nn/quantize.h); the errors of two roundings add up. Their errors then also are: numeric for a
  // value that is not finite, or not in BF16.
  void convert_at_load(LoadFormat format) { loading_.format = format; }
  void convert_at_load(const WeightLoading& loading) { loading_ = loading; }
  // A loaded weight in that format, if it is to be converted whatever its name is: a head. Packed as linear weights
  // are.
  Result<WeightView> as_loaded(std::string_view name, const WeightView& weight);
  // A loaded weight, packed as linear weights are.
  Result<WeightView> packed(const WeightView& weight);
  // Of weights in memory of our own: what was converted or packed. Known without values, too.
  size_t converted_bytes() const { return converted_bytes_; }

  bool has(std::string_view name) const;
  bool has_matrix(std::string_view name) const;  // `name`.weight, packed or not
  // A norm weight [dim].
  Result<ConstTensorView> vector(std::string_view name, int64_t dim);
  // `name`.weight [out_features, in_features] with the scales that belong to it, and `name`.bias if `with_bias`.
  // Errors: those of find_weight and fp8_scales; mismatch for a wrong shape; corrupt_file for an FP8 code for NaN, in
  // weights or scales, and for a scale that is not finite or, of a whole tensor, zero; unsupported for NVFP4 rows that
  // are not whole groups of 16, and int8 ones that are not of 32; out_of_memory.
  Result<WeightView> matrix(std::string_view name, int64_t out_features, int64_t in_features, bool with_bias = false);
  // The same for a parameter whose name has no ".weight" at its end, without bias.
  Result<WeightView> parameter(std::string_view name, int64_t out_features, int64_t in_features);
  // A small tensor of any shape as contiguous float32.
  Result<ConstTensorView> tensor(std::string_view name, const Shape& shape);
  // The raw tensor, for what is not a weight (d2t).
  Result<const StoredTensor*> raw(std::string_view name);
  // Marks a tensor as known though it is not needed; all tensors of a weight. Those that are there: ignored().
  void ignore(std::string_view name);
  void ignore_matrix(std::string_view name);

  // Gives back the memory of all values, those of the checkpoint too: what was returned before is void, but for shapes.
  void forget_values();

  // Tensors of the checkpoint that nothing asked for.
  std::vector<std::string> unused() const;
  const std::vector<StoredWeight>& stored() const { return stored_; }  // what was asked for, in that order
  const std::vector<std::string>& ignored() const { return ignored_; }
  bool reads_values() const { return values_ == WeightValues::read; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }

 private:
  std::string full_name(std::string_view name) const { return prefix_ + std::string(name); }
  void note_plain(const std::string& full_name);
  Status note_matrix(const std::string& full_name, int64_t out_features, int64_t in_features);
  Result<const float*> floats(const std::string& full_name, int64_t count);
  Result<WeightView> stored_matrix(const std::string& name, int64_t out_features, int64_t in_features);
  Result<WeightView> view_of(const WeightTensors& tensors, int64_t out_features, int64_t in_features);
  Result<WeightView> converted(const std::string& name, const WeightView& weight);
  Result<QuantizedMatrix> convert(const std::string& name, const WeightView& weight) const;
  std::deque<QuantizedMatrix>::iterator find_converted(const WeightView& weight);
  Status expect_groups(const std::string& name, int64_t in_features, int64_t group, const char* format) const;
  bool is_to_convert(const WeightView& weight) const;
  WeightView keep(QuantizedMatrix matrix);
  void drop(const WeightView& weight);
  Result<WeightView> int8_matrix(const WeightTensors& tensors, int64_t out_features, int64_t in_features);
  Result<WeightView> fp8_matrix(const WeightTensors& tensors, int64_t out_features, int64_t in_features);
  Result<WeightView> nvfp4_matrix(const WeightTensors& tensors, int64_t out_features, int64_t in_features);
  Result<const StoredTensor*> codes(const std::string& name, const Shape& shape);
  Result<float> global_scale(const WeightTensors& tensors);

  std::shared_ptr<const Checkpoint> checkpoint_;
  std::string prefix_;
  WeightValues values_ = WeightValues::read;
  WeightLoading loading_;
  std::deque<std::vector<float>> owned_;
  std::deque<QuantizedMatrix> converted_;
  size_t converted_bytes_ = 0;
  std::set<std::string, std::less<>> used_;
  std::vector<StoredWeight> stored_;
  std::vector<std::string> ignored_;
};

}  // namespace blockdraft
