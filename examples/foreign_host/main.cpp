// foreign_host TARGET DRAFTER MAX_TOKENS < PROMPTS
// Token ids in, token ids out; README.md of this folder says more.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>

#include <blockdraft/drafter.h>

#include "decode.h"
#include "model.h"

namespace {

std::vector<std::vector<int32_t>> read_prompts(std::istream& in, int64_t num_real_ids) {
  std::vector<std::vector<int32_t>> prompts;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::vector<int32_t> ids;
    for (int32_t id = 0; words >> id;) ids.push_back(id);
    if (ids.empty() || !words.eof()) throw std::runtime_error("expected token ids in a line, found: " + line);
    for (const int32_t id : ids) {
      if (id < 0 || id >= num_real_ids) throw std::runtime_error("no token has the id " + std::to_string(id));
    }
    prompts.push_back(std::move(ids));
  }
  if (prompts.empty()) throw std::runtime_error("expected lines of token ids on stdin, found none");
  return prompts;
}

blockdraft::MatrixView view_of(const Matrix& matrix) {
  return {.data = matrix.values.data(),
          .type = blockdraft::MatrixType::f32,
          .rows = matrix.rows,
          .columns = matrix.columns};
}

void print(const Text& text, size_t prompt_length) {
  std::printf("ids");
  for (size_t i = prompt_length; i < text.tokens.size(); ++i) std::printf(" %d", text.tokens[i]);
  std::printf("\ncycles");
  for (const Cycle& cycle : text.cycles) std::printf(" %d:%d:%d", cycle.width, cycle.accepted, cycle.produced);
  std::printf("\n");
}

int run(const char* target, const char* drafter_folder, int64_t max_tokens) {
  const Model model(target);
  const std::vector<std::vector<int32_t>> prompts = read_prompts(std::cin, model.num_real_ids());
  auto drafter = blockdraft::Drafter::open(drafter_folder, {.max_sequences = static_cast<int32_t>(prompts.size())},
                                           {.embed_tokens = view_of(model.embed_tokens()),
                                            .lm_head = view_of(model.lm_head()),
                                            .num_layers = model.num_layers(),
                                            .num_real_ids = model.num_real_ids()});
  if (!drafter) throw std::runtime_error(drafter.error().message);
  const std::vector<Text> texts = decode(model, *drafter, prompts, max_tokens);
  for (size_t i = 0; i < texts.size(); ++i) print(texts[i], prompts[i].size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const long max_tokens = argc == 4 ? std::strtol(argv[3], nullptr, 10) : 0;
  if (max_tokens < 1) {
    std::fprintf(stderr, "usage: foreign_host TARGET DRAFTER MAX_TOKENS < PROMPTS\n");
    return 2;
  }
  try {
    return run(argv[1], argv[2], max_tokens);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
