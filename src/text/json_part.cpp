#include "text/json_part.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"

namespace blockdraft {
namespace {

std::string describe(const Json* value) {
  if (value == nullptr) return "absent";
  return json_excerpt(*value);
}

}  // namespace

std::string JsonPart::origin() const { return fmt::format("{}: key '{}'", file_, printable(name_)); }

Error JsonPart::wrong(std::string_view expected, Code code) const {
  return make_error(code, "{} is {}, expected {}", origin(), describe(value_), expected);
}

JsonPart JsonPart::at(std::string_view key) const {
  const Json* found = nullptr;
  if (value_ != nullptr && value_->is_object()) {
    if (const auto it = value_->find(key); it != value_->end()) found = &*it;
  }
  return {found, file_, name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key)};
}

JsonPart JsonPart::at(size_t index) const { return {&(*value_)[index], file_, fmt::format("{}[{}]", name_, index)}; }

Result<bool> JsonPart::boolean() const {
  if (is_absent() || !value_->is_boolean()) return wrong("true or false");
  return value_->get<bool>();
}

Result<std::string> JsonPart::string() const {
  if (is_absent() || !value_->is_string()) return wrong("a string");
  return value_->get<std::string>();
}

Result<int64_t> JsonPart::integer(int64_t min, int64_t max) const {
  const bool fits = !is_absent() && value_->is_number_integer() &&
                    (!value_->is_number_unsigned() || value_->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
  if (!fits || value_->get<int64_t>() < min || value_->get<int64_t>() > max) {
    return wrong(fmt::format("an integer from {} to {}", min, max));
  }
  return value_->get<int64_t>();
}

Result<size_t> JsonPart::list_size() const {
  if (is_absent() || !value_->is_array()) return wrong("a list");
  return value_->size();
}

Status JsonPart::expect_object(std::initializer_list<std::string_view> known) const {
  if (is_absent() || !value_->is_object()) return wrong("an object");
  for (const auto& item : value_->items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
      return at(item.key()).wrong("no such key", Code::unsupported);
    }
  }
  return {};
}

Status JsonPart::expect_inactive(const Json& value, std::string_view expected) const {
  if (is_null() || *value_ == value) return {};
  return wrong(expected, Code::unsupported);
}

}  // namespace blockdraft
