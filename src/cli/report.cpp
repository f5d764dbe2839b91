#include "cli/report.h"

#include <algorithm>
#include <bit>

#include <fmt/core.h>

#include "base/json.h"

namespace blockdraft {
namespace {

std::optional<double> quotient(int64_t numerator, int64_t denominator) {
  if (denominator == 0) return std::nullopt;
  return static_cast<double>(numerator) / static_cast<double>(denominator);
}

// Characters, not bytes: names in configs may be any UTF-8.
size_t columns_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::vector<size_t> column_widths(const std::vector<TableRow>& rows) {
  std::vector<size_t> widths;
  for (const TableRow& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  return widths;
}

std::string aligned(const std::vector<TableRow>& rows, bool left) {
  const std::vector<size_t> widths = column_widths(rows);
  std::string text;
  for (const TableRow& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - columns_of(row[i]), ' ');
      if (i > 0) line += "  ";
      line += left || i == 0 ? row[i] + padding : padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

AcceptanceTotals::AcceptanceTotals(int32_t full_width) : full_width_(full_width) {}

void AcceptanceTotals::add(const Generation& generation) {
  // The first token comes out of the prompt's pass: it is the first anchor.
  int64_t anchor = generation.prompt_tokens;
  for (const CycleRecord& cycle : generation.cycles) {
    add_drafts(cycle);
    ++cycles_;
    produced_ += cycle.produced;
    drafted_ += cycle.width;
    accepted_ += cycle.accepted;
    if (full_width_ == kEveryWidth || cycle.asked == full_width_) add_full_cycle(cycle, anchor);
    anchor += cycle.produced;
  }
}

void AcceptanceTotals::add_drafts(const CycleRecord& cycle) {
  const auto width = static_cast<size_t>(cycle.width);
  const auto accepted = static_cast<size_t>(cycle.accepted);
  by_draft_.resize(std::max(by_draft_.size(), width));
  for (size_t j = 0; j < width; ++j) {
    ++by_draft_[j].verified;
    if (j <= accepted) ++by_draft_[j].reached;
    if (j < accepted) ++by_draft_[j].accepted;
  }
}

void AcceptanceTotals::add_full_cycle(const CycleRecord& cycle, int64_t anchor) {
  ++full_cycles_;
  full_produced_ += cycle.produced;
  const auto bits = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(anchor)));
  by_depth_.resize(std::max(by_depth_.size(), bits + 1));
  DepthAcceptance& depth = by_depth_[bits];
  depth.first_position = bits == 0 ? 0 : int64_t{1} << (bits - 1);
  depth.last_position = (int64_t{1} << bits) - 1;
  ++depth.cycles;
  depth.produced += cycle.produced;
}

std::optional<double> AcceptanceTotals::length() const { return quotient(full_produced_, full_cycles_); }
std::optional<double> AcceptanceTotals::length_all() const { return quotient(produced_, cycles_); }

std::vector<double> AcceptanceTotals::by_position() const {
  std::vector<double> shares;
  for (const DraftAcceptance& draft : by_draft_) shares.push_back(*quotient(draft.accepted, draft.verified));
  return shares;
}

std::vector<DepthAcceptance> AcceptanceTotals::by_depth() const {
  std::vector<DepthAcceptance> depths;
  std::ranges::copy_if(by_depth_, std::back_inserter(depths), [](const DepthAcceptance& d) { return d.cycles > 0; });
  return depths;
}

std::string acceptance_tables(const AcceptanceTotals& acceptance) {
  if (acceptance.by_draft().empty()) return "";
  std::vector<TableRow> drafts = {{"draft", "verified", "accepted", "share", "where it was reached"}};
  for (const DraftAcceptance& draft : acceptance.by_draft()) {
    drafts.push_back({std::to_string(drafts.size()), std::to_string(draft.verified), std::to_string(draft.accepted),
                      decimal(quotient(draft.accepted, draft.verified), 3),
                      decimal(quotient(draft.accepted, draft.reached), 3)});
  }
  std::vector<TableRow> depths = {{"anchor at", "passes", "tokens a pass"}};
  for (const DepthAcceptance& depth : acceptance.by_depth()) {
    depths.push_back({fmt::format("{} to {}", depth.first_position, depth.last_position), std::to_string(depth.cycles),
                      decimal(quotient(depth.produced, depth.cycles), 2)});
  }
  return table(drafts) + (depths.size() > 1 ? table(depths) : "");
}

Json json_by_depth(const AcceptanceTotals& acceptance) {
  Json list = Json::array();
  for (const DepthAcceptance& depth : acceptance.by_depth()) {
    list.push_back({{"first_position", depth.first_position},
                    {"last_position", depth.last_position},
                    {"cycles", depth.cycles},
                    {"acceptance_length", *quotient(depth.produced, depth.cycles)}});
  }
  return list;
}

int64_t plan_bytes(const std::vector<MemoryPlanItem>& plan) {
  int64_t total = 0;
  for (const MemoryPlanItem& item : plan) total += item.size_bytes;
  return total;
}

std::string human_plan(const std::vector<MemoryPlanItem>& plan) {
  std::string items;
  for (const MemoryPlanItem& item : plan) {
    items += fmt::format("{}{} {}", items.empty() ? "" : ", ", item.name, megabytes(item.size_bytes));
  }
  return fmt::format("{} ({})", megabytes(plan_bytes(plan)), items);
}

Json json_plan(const std::vector<MemoryPlanItem>& plan) {
  Json items = Json::object();
  for (const MemoryPlanItem& item : plan) items[item.name] = item.size_bytes;
  return items;
}

std::string place_of(const EngineInfo& info) {
  if (info.device.kind == Device::Kind::cuda) return fmt::format("{}, {}", name_of(info.device), info.device_name);
  return fmt::format("cpu, {} thread{}, {}", info.threads, info.threads == 1 ? "" : "s", info.cpu_isa);
}

std::string memory_plan(const EngineInfo& info) {
  return fmt::format("weights {} mapped, beside them {}", megabytes(info.mapped_bytes), human_plan(info.memory_plan));
}

Json json_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::string decimal(const std::optional<double>& value, int places) {
  return value ? fmt::format("{:.{}f}", *value, places) : "-";
}

std::string megabytes(int64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string table(const std::vector<TableRow>& rows) { return aligned(rows, false); }

std::string pairing_table(const PairingReport& report) {
  std::vector<TableRow> rows = {{"", "target has", "drafter has", ""}};
  for (const PairingLine& line : report.lines) {
    rows.push_back({line.name, line.target, line.drafter, line.fits ? "fits" : "does not fit"});
  }
  return aligned(rows, true);
}

}  // namespace blockdraft
