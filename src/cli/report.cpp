#include "cli/report.h"

#include <algorithm>

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

AcceptanceTotals::AcceptanceTotals(int32_t full_width)
    : full_width_(full_width), accepted_at_(static_cast<size_t>(full_width)) {}

void AcceptanceTotals::add(const Generation& generation) {
  for (const CycleRecord& cycle : generation.cycles) {
    ++cycles_;
    produced_ += cycle.produced;
    drafted_ += cycle.width;
    accepted_ += cycle.accepted;
    if (cycle.asked != full_width_) continue;
    ++full_cycles_;
    full_produced_ += cycle.produced;
    for (int32_t j = 0; j < cycle.accepted; ++j) ++accepted_at_[static_cast<size_t>(j)];
  }
}

std::optional<double> AcceptanceTotals::length() const { return quotient(full_produced_, full_cycles_); }
std::optional<double> AcceptanceTotals::length_all() const { return quotient(produced_, cycles_); }

std::vector<double> AcceptanceTotals::by_position() const {
  std::vector<double> shares;
  if (full_cycles_ == 0) return shares;
  for (const int64_t accepted : accepted_at_) shares.push_back(*quotient(accepted, full_cycles_));
  return shares;
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
  std::vector<TableRow> rows = {{"", "target", "drafter", ""}};
  for (const PairingLine& line : report.lines) {
    rows.push_back({line.name, line.target, line.drafter, line.fits ? "fits" : "does not fit"});
  }
  return aligned(rows, true);
}

}  // namespace blockdraft
