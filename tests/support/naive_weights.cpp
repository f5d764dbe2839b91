#include "support/naive_weights.h"

#include "checkpoint/checkpoint.h"
#include "support/stored_weight.h"
#include "support/take.h"

namespace blockdraft::test {

std::map<std::string, NaiveMatrix> naive_weights(const std::filesystem::path& folder) {
  std::map<std::string, NaiveMatrix> weights;
  const Checkpoint checkpoint = take(Checkpoint::open(folder));
  for (const std::string& name : checkpoint.names()) {
    const StoredTensor& stored = *checkpoint.find(name);
    NaiveMatrix matrix{.rows = stored.shape[0], .columns = stored.num_elements() / stored.shape[0]};
    const StoredTensor* scale = checkpoint.find(name + "_scale");
    for (int64_t i = 0; i < stored.num_elements(); ++i) {
      double value = value_of_code(stored.dtype, stored.data, i);
      if (scale != nullptr) {
        value *= value_of_code(scale->dtype, scale->data, i / matrix.columns);
      }
      matrix.values.push_back(static_cast<float>(value));
    }
    weights.emplace(name, std::move(matrix));
  }
  return weights;
}

std::vector<double> naive_product(const NaiveMatrix& weight, const std::vector<double>& x) {
  std::vector<double> y(static_cast<size_t>(weight.rows));
  for (size_t n = 0; n < y.size(); ++n) {
    const float* row = weight.row(static_cast<int64_t>(n));
    for (size_t k = 0; k < x.size(); ++k) y[n] += static_cast<double>(row[k]) * x[k];
  }
  return y;
}

}  // namespace blockdraft::test
