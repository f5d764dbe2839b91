#include "api/inspect_weights.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "nn/weight_store.h"
#include "target/target.h"

namespace blockdraft {
namespace {

struct GroupName {
  std::string_view part;  // of a tensor's name
  const char* group;
};
// The first that a name contains decides.
constexpr GroupName kGroups[] = {{"norm", "norms"},
                                 {"_conv.", "convolutions"},
                                 {"self_attn.", "attention"},
                                 {"mlp.", "mlp"},
                                 {"candidate_selector.", "selector"},
                                 {"markov_head.", "markov head"},
                                 {"confidence_head.", "confidence head"},
                                 {"embed_tokens.", "embeddings"},
                                 {"lm_head.", "output head"},
                                 {"fc.", "fc"}};

const char* group_of(std::string_view name) {
  for (const GroupName& entry : kGroups) {
    if (name.find(entry.part) != name.npos) return entry.group;
  }
  return "other";
}

void add_group(std::vector<WeightGroup>& groups, const StoredWeight& weight) {
  const char* name = group_of(weight.name);
  const auto same = [&](const WeightGroup& group) { return group.name == name && group.format == weight.format; };
  auto group = std::ranges::find_if(groups, same);
  if (group == groups.end()) group = groups.insert(groups.end(), WeightGroup{.name = name, .format = weight.format});
  ++group->tensors;
  group->parameters += weight.parameters;
  group->size_bytes += weight.size_bytes;
}

// "t2d", "lm_head.weight and 2 others"
std::string describe_unused(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  return fmt::format("{} and {} other{}", names.front(), names.size() - 1, names.size() == 2 ? "" : "s");
}

void add_lines(FolderReport& report, const WeightStore& store) {
  const Checkpoint& checkpoint = store.checkpoint();
  const std::vector<std::string> names = checkpoint.names();
  std::set<std::string> files, formats;
  for (const std::string& name : names) files.insert(checkpoint.file_of(name));
  for (const WeightGroup& group : report.groups) formats.insert(group.format);
  const auto add = [&](const char* name, std::string value) { report.lines.push_back({name, std::move(value)}); };
  add("weights", fmt::format("{} tensors, {} file{} ({})", names.size(), files.size(), files.size() == 1 ? "" : "s",
                             fmt::join(formats, "; ")));
  add("parameters", fmt::format("{}", report.parameters));
  add("bytes", fmt::format("{}", report.weight_bytes));
  std::vector<std::string> not_used = store.unused();
  not_used.insert(not_used.end(), store.ignored().begin(), store.ignored().end());
  if (!not_used.empty()) add("not used", describe_unused(not_used));
  if (report.has_tensor_data) return;
  add("tensor data", fmt::format("not there: {} of {} bytes; good enough to inspect, not to decode with",
                                 report.data_bytes, report.weight_bytes));
}

void sum_up(const WeightStore& store, FolderReport& report) {
  const Checkpoint& checkpoint = store.checkpoint();
  for (const StoredWeight& weight : store.stored()) {
    add_group(report.groups, weight);
    report.parameters += weight.parameters;
  }
  for (const std::string& name : checkpoint.names()) {
    report.weight_bytes += static_cast<int64_t>(checkpoint.find(name)->size_bytes);
  }
  report.packed_bytes = static_cast<int64_t>(store.converted_bytes());
  report.has_tensor_data = checkpoint.has_data();
  report.data_bytes = static_cast<int64_t>(checkpoint.data_bytes());
  add_lines(report, store);
}

Result<std::shared_ptr<const Checkpoint>> open_headers(const std::filesystem::path& folder) {
  BLOCKDRAFT_ASSIGN(Checkpoint checkpoint, Checkpoint::open(folder, TensorData::optional));
  return std::shared_ptr<const Checkpoint>(std::make_shared<const Checkpoint>(std::move(checkpoint)));
}

// Counts what an engine with the kernels that are chosen here would put into packs.
Result<WeightStore> open_store(std::shared_ptr<const Checkpoint> checkpoint, std::string prefix) {
  BLOCKDRAFT_ASSIGN(const CpuIsa isa, choose_cpu_isa());
  WeightStore store(std::move(checkpoint), std::move(prefix), WeightValues::unread);
  store.convert_at_load({.isa = isa});
  return store;
}

}  // namespace

Status inspect_target_weights(const std::filesystem::path& folder, const TargetConfig& config, FolderReport& report) {
  BLOCKDRAFT_ASSIGN(auto checkpoint, open_headers(folder));
  BLOCKDRAFT_ASSIGN(WeightStore store, open_store(std::move(checkpoint), ""));
  BLOCKDRAFT_TRY(check_target_tensors(store, config));
  sum_up(store, report);
  return {};
}

Result<DrafterWeights> inspect_drafter_weights(const std::filesystem::path& folder, const DrafterConfig& config,
                                               FolderReport& report) {
  BLOCKDRAFT_ASSIGN(auto checkpoint, open_headers(folder));
  BLOCKDRAFT_ASSIGN(std::string prefix, find_prefix(*checkpoint));
  BLOCKDRAFT_ASSIGN(WeightStore store, open_store(std::move(checkpoint), std::move(prefix)));
  BLOCKDRAFT_ASSIGN(DrafterWeights weights, load_drafter_weights(store, config));
  sum_up(store, report);
  return weights;
}

}  // namespace blockdraft
