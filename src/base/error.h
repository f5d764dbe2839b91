// Making and passing on errors: the two things every fallible function does.
#pragma once

#include <utility>

#include <fmt/core.h>

#include "blockdraft/result.h"

namespace blockdraft {

// make_error(Code::mismatch, "{}: tensor '{}' has shape {}, expected {}", file, name, found, expected)
template <class... Args>
Error make_error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace blockdraft

// Leaves the function with the error of a Status, if it has one.
#define BLOCKDRAFT_TRY(expression)                                              \
  do {                                                                          \
    if (auto try_status = (expression); !try_status) return try_status.error(); \
  } while (false)

#define BLOCKDRAFT_CONCAT_INNER(a, b) a##b
#define BLOCKDRAFT_CONCAT(a, b) BLOCKDRAFT_CONCAT_INNER(a, b)
#define BLOCKDRAFT_ASSIGN_INNER(temporary, declaration, expression) \
  auto temporary = (expression);                                    \
  if (!temporary) return temporary.error();                         \
  declaration = std::move(temporary).value()

// BLOCKDRAFT_ASSIGN(auto file, MappedFile::open(path)): declares file, or leaves the function with the error.
#define BLOCKDRAFT_ASSIGN(declaration, expression) \
  BLOCKDRAFT_ASSIGN_INNER(BLOCKDRAFT_CONCAT(try_result_, __LINE__), declaration, expression)
