// The value of a Result, where a test cannot go on without it.
#pragma once

#include <stdexcept>
#include <utility>

#include "blockdraft/result.h"

namespace blockdraft::test {

// Throws the error's message, which fails the test with it.
template <class T>
T take(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

}  // namespace blockdraft::test
