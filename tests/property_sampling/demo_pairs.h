// The demo target with each of its drafters, and some of its prompts.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockdraft/engine.h"

namespace blockdraft::test {

inline const std::string kTarget = BLOCKDRAFT_SOURCE_DIR "/demo/pycode-14m";
inline const std::vector<std::string> kDrafters = {"dflash", "dflash2", "dspark"};

inline std::string drafter_folder(const std::string& family) { return kTarget + "-" + family; }

inline Engine open_engine(EngineOptions options) {
  options.target = kTarget;
  options.threads = 2;
  options.max_positions = 256;
  auto engine = Engine::open(options);
  if (!engine) ADD_FAILURE() << engine.error().message;
  return std::move(engine).value();
}

inline std::vector<std::string> prompts() {
  return {"def clamp(value, low, high):\n", "class Stack:\n    def push(self, item):\n",
          "import os\n\n\ndef list_files(path):\n", "x = [1, 2, 3]\nfor i in ", "def fibonacci(n):\n    "};
}

inline std::vector<Generation> generate(Engine& engine, const std::vector<Request>& requests) {
  auto generations = engine.generate(requests);
  if (!generations) {
    ADD_FAILURE() << generations.error().message;
    return std::vector<Generation>(requests.size());
  }
  return std::move(*generations);
}

}  // namespace blockdraft::test
