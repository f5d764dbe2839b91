// Input: the text of a config.json. Every key is read as every type.
#include <limits>
#include <string_view>

#include "base/json.h"
#include "checkpoint/config_reader.h"
#include "expect.h"

namespace blockdraft {
namespace {

template <class T>
bool check_result(const Result<T>& result) {
  if (!result) check_message(result.error());
  return result.ok();
}

int depth_of(const Json& value) {
  if (!value.is_structured()) return 0;
  int deepest = 0;
  for (const Json& child : value) deepest = std::max(deepest, depth_of(child));
  return deepest + 1;
}

void read_lists(const ConfigReader& config, const std::string& key) {
  check_result(config.optional_strings(key));
  const auto integers = config.optional_integers(key, {.min = -5, .max = 1000});
  if (check_result(integers) && *integers) {
    for (const int64_t value : **integers) CHECK(value >= -5 && value <= 1000);
  }
}

void read_scalars(const ConfigReader& config, const std::string& key) {
  check_result(config.optional_boolean(key));
  check_result(config.string(key));
  const auto number = config.number(key);
  check_result(number);
  const auto integer = config.integer(key, kExtent);
  if (check_result(integer)) {
    CHECK(*integer >= kExtent.min && *integer <= kExtent.max);
    CHECK(number.ok() && *number == static_cast<double>(*integer));
  }
  CHECK(check_result(config.optional_integer(key)) || config.has(key));
}

void read_all(const ConfigReader& config, const Json& object) {
  for (const auto& [key, value] : object.items()) {
    CHECK(config.has(key) == !value.is_null());
    read_scalars(config, key);
    read_lists(config, key);
    const auto nested = config.optional_object(key);
    if (check_result(nested) && *nested) read_all(**nested, value);
  }
  check_result(config.integer("hidden_size"));
}

}  // namespace
}  // namespace blockdraft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace blockdraft;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = parse_json(text, "config.json");
  if (!json) {
    check_message(json.error());
    return 0;
  }
  CHECK(Json::accept(text));  // stricter than the library, never laxer
  CHECK(depth_of(*json) <= kMaxJsonDepth);
  const auto again = parse_json(json->dump(), "config.json");
  CHECK(again.ok() && *again == *json);
  CHECK(json_excerpt(*json).size() <= kMaxExcerpt + 3);
  if (json->is_object()) read_all(ConfigReader(*json, "config.json"), *json);
  return 0;
}
