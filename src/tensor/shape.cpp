#include "tensor/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace blockdraft {

std::string to_string(std::span<const int64_t> dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

}  // namespace blockdraft
