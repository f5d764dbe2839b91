#include "unit/head/head_fixture.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "support/op_context.h"
#include "tensor/codec.h"

namespace blockdraft {

HeadFixture::HeadFixture(const std::string& name)
    : folder_(std::string(BLOCKDRAFT_SOURCE_DIR "/tests/golden/") + name),
      io_(SafetensorsFile::open(folder_ + "/io.safetensors").value()) {
  const StoredTensor& features = tensor("features");
  CHECK(features.dtype == DType::bf16);
  columns_ = features.shape[1];
  for (int64_t i = 0; i < features.num_elements(); ++i) {
    features_.push_back(float_from_bf16(load_unaligned<uint16_t>(features.data + 2 * i)));
  }
  const std::vector<int32_t> lengths = integers("context_lengths");
  const std::vector<int32_t> anchors = integers("anchors");
  for (size_t k = 0; k < lengths.size(); ++k) {
    cycles_.push_back({lengths[k], anchors[k], integers("cycle" + std::to_string(k) + ".drafts")});
  }
}

const StoredTensor& HeadFixture::tensor(const std::string& name) const {
  const StoredTensor* found = io_.find(name);
  CHECK(found != nullptr);
  return *found;
}

MatrixView HeadFixture::matrix(const std::string& name) const {
  const StoredTensor& found = tensor(name);
  CHECK(found.dtype == DType::bf16 && found.shape.size() == 2);
  return {.data = found.data, .type = MatrixType::bf16, .rows = found.shape[0], .columns = found.shape[1]};
}

std::vector<int32_t> HeadFixture::integers(const std::string& name) const {
  const StoredTensor& found = tensor(name);
  CHECK(found.dtype == DType::i32);
  std::vector<int32_t> values;
  for (int64_t i = 0; i < found.num_elements(); ++i) values.push_back(load_unaligned<int32_t>(found.data + 4 * i));
  return values;
}

std::vector<float> HeadFixture::recorded(const std::string& name) const {
  const StoredTensor& found = tensor(name);
  CHECK(found.dtype == DType::f32);
  std::vector<float> values;
  for (int64_t i = 0; i < found.num_elements(); ++i) values.push_back(load_unaligned<float>(found.data + 4 * i));
  return values;
}

TargetTensors HeadFixture::tensors() const {
  return {.embed_tokens = matrix("embed_tokens"), .lm_head = matrix("lm_head"), .num_layers = 6};
}

Drafter HeadFixture::open(DrafterOptions options) const {
  if (options.cpu_isa.empty()) options.cpu_isa = name_of(test::float32_isa());
  Result<Drafter> drafter = try_open(options);
  EXPECT_TRUE(drafter) << drafter.error().message;
  return std::move(drafter).value();
}

std::span<const float> HeadFixture::taps(int64_t first, int64_t count) const {
  return std::span(features_).subspan(static_cast<size_t>(first * columns_), static_cast<size_t>(count * columns_));
}

Proposal propose_one(Drafter& drafter, const DraftQuery& query) {
  std::vector<Proposal> proposals;
  const Status status = drafter.propose({&query, 1}, proposals);
  EXPECT_TRUE(status) << status.error().message;
  return proposals.empty() ? Proposal{} : proposals.front();
}

}  // namespace blockdraft
