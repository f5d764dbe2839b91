// A Qwen3 forward pass by its definition: the whole text for every token, no cache, no pages, no batch, in double.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "support/naive_weights.h"
#include "target/target_config.h"

namespace blockdraft::test {

using Rows = std::vector<std::vector<double>>;

class NaiveTarget {
 public:
  explicit NaiveTarget(const std::filesystem::path& folder);

  // One row per id: the residual stream after the embeddings (entry 0) and after every layer (entry layer + 1).
  std::vector<Rows> residual_stream(std::span<const int32_t> ids) const;
  // Logits of the last id.
  std::vector<double> logits(std::span<const int32_t> ids) const;

 private:
  const NaiveMatrix& at(const std::string& name) const { return weights_.at(name); }
  std::vector<double> product(const std::string& weight, const std::vector<double>& x) const;
  std::vector<double> normed(const std::vector<double>& x, const std::string& weight) const;
  std::vector<double> heads(const std::string& prefix, const std::string& name, const std::vector<double>& x,
                            size_t position) const;
  Rows attention(const std::string& prefix, const Rows& x) const;
  std::vector<double> mlp(const std::string& prefix, const std::vector<double>& x) const;

  TargetConfig config_;
  std::map<std::string, NaiveMatrix> weights_;
};

}  // namespace blockdraft::test
