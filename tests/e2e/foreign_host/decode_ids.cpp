// decode_ids TARGET DRAFTER MAX_TOKENS < PROMPTS: what examples/foreign_host does, by the library's own engine.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "blockdraft/engine.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  std::vector<blockdraft::Request> requests;
  for (std::string line; std::getline(std::cin, line);) {
    blockdraft::Request request;
    request.max_tokens = std::strtol(argv[3], nullptr, 10);
    std::istringstream words(line);
    for (int32_t id = 0; words >> id;) request.prompt_ids.push_back(id);
    requests.push_back(std::move(request));
  }
  auto engine = blockdraft::Engine::open(
      {.target = argv[1], .drafter = argv[2], .max_sequences = static_cast<int32_t>(requests.size())});
  if (!engine) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    return 1;
  }
  const auto generations = engine->generate(requests);
  if (!generations) {
    std::fprintf(stderr, "%s\n", generations.error().message.c_str());
    return 1;
  }
  for (const blockdraft::Generation& generation : *generations) {
    std::printf("ids");
    for (const int32_t id : generation.ids) std::printf(" %d", id);
    std::printf("\ncycles");
    for (const blockdraft::CycleRecord& cycle : generation.cycles) {
      std::printf(" %d:%d:%d", cycle.width, cycle.accepted, cycle.produced);
    }
    std::printf("\n");
  }
}
