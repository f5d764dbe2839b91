// A value inside a JSON document together with its name, so that every complaint can name file, key, value found and
// value expected.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/json.h"
#include "blockdraft/result.h"

namespace blockdraft {

// Borrows the document, which must outlive it.
class JsonPart {
 public:
  JsonPart(const Json* value, std::string file, std::string name)
      : value_(value), file_(std::move(file)), name_(std::move(name)) {}

  bool is_absent() const { return value_ == nullptr; }
  bool is_null() const { return value_ == nullptr || value_->is_null(); }
  bool is_empty_string() const {
    return value_ != nullptr && value_->is_string() && value_->get_ref<const std::string&>().empty();
  }
  const Json* value() const { return value_; }

  // "FILE: key 'NAME'"; how messages begin.
  std::string origin() const;
  // "FILE: key 'NAME' is FOUND, expected EXPECTED"
  Error wrong(std::string_view expected, Code code = Code::corrupt_file) const;

  JsonPart at(std::string_view key) const;  // absent if this is no object or has no such key
  JsonPart at(size_t index) const;          // precondition: a list with more elements

  Result<bool> boolean() const;
  Result<std::string> string() const;
  Result<int64_t> integer(int64_t min, int64_t max) const;
  Result<size_t> list_size() const;

  // An object whose keys are all among `known`; another key is unsupported.
  Status expect_object(std::initializer_list<std::string_view> known) const;
  // Absent, null or exactly `value`.
  Status expect_inactive(const Json& value, std::string_view expected) const;

 private:
  const Json* value_;  // null if absent
  std::string file_;
  std::string name_;
};

}  // namespace blockdraft
