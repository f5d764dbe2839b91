// The name of the JSON type, for headers; base/json.h has the rest.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace blockdraft {
using Json = nlohmann::json;
}  // namespace blockdraft
