// One fixture folder: what it holds, and what running it gives (tests/golden/README.md describes the format).
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "blockdraft/result.h"
#include "checkpoint/safetensors.h"
#include "golden/comparison.h"
#include "support/device_context.h"
#include "tensor/weight_view.h"

namespace blockdraft::golden {

struct Case {
  std::filesystem::path folder;
  Json description;    // case.json
  SafetensorsFile io;  // inputs and expectations

  bool has(const std::string& name) const { return io.find(name) != nullptr; }
  // Values in float32, whatever float type the file has; empty if absent.
  std::vector<float> floats(const std::string& name) const;
  // I32 or I64; empty if absent.
  std::vector<int32_t> integers(const std::string& name) const;
  WeightView matrix(const std::string& name) const;  // rank 2, borrowed from the file
  // The case's own, or that of the numbers of kernels and K/V if that is larger.
  double tolerance(const Context& context, bool has_convolutions = false) const {
    const bool is_bf16 = context.cuda != nullptr || context.isa == CpuIsa::avx512_bf16;
    double numbers = kFloat32Tolerance;
    if (is_bf16) numbers = has_convolutions ? kBf16ConvolvedTolerance : kBf16Tolerance;
    return std::max(description.value("tolerance", kFloat32Tolerance), numbers);
  }
};

Result<Case> read_case(const std::filesystem::path& folder);

// An error with Code::unsupported means that the device cannot do it, or that the kind is not built yet: the case is
// skipped with the message as reason. Any other error is a failure.
Result<Comparison> run_drafter_case(test::DeviceContext& device, const Case& fixture);
Result<Comparison> run_target_case(test::DeviceContext& device, const Case& fixture);

}  // namespace blockdraft::golden
