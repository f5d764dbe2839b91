// Errors as values. Every function of blockdraft that can fail because of its input returns a Result.
//
//   auto engine = blockdraft::Engine::open(options);
//   if (!engine) return report(engine.error().message);
//   engine->generate(...);
//
// This header is the one public header that all of src/ may include: the type exists once.
// Thread safety: as std::variant.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace blockdraft {

enum class Code {
  invalid_argument,  // a flag, request field or option has a value outside its range
  not_found,         // a file, folder, tensor or key that must exist does not
  corrupt_file,      // a file contradicts its own format
  unsupported,       // well-formed, but a kind that blockdraft does not implement
  mismatch,          // two things that must fit do not: target and drafter, tensor and config
  limit_exceeded,    // a prompt or request larger than the engine was opened for
  out_of_memory,     // the memory plan does not fit
  io_error,          // the operating system refused
  numeric,           // a model produced a value that is not a number
};

struct Error {
  Code code = Code::invalid_argument;
  std::string message;  // names the item, the value found and the value expected; one line, no trailing period
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Precondition of value(), * and ->: ok(). Of error(): !ok(). A broken precondition throws bad_variant_access.
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return error_.value(); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace blockdraft
