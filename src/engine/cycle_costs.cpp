#include "engine/cycle_costs.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace blockdraft {
namespace {

constexpr double kMostOff = 0.3;          // of a single time, as a logarithm
constexpr double kLoadStep = 0.1;         // the load follows within ten cycles
constexpr double kChangedRowsStep = 0.1;  // the first cycle with this number of rows ...
constexpr double kSameRowsStep = 0.01;    // ... and further ones

}  // namespace

void RowCosts::set(int32_t rows, double us) {
  CHECK(rows >= 1 && rows <= max_rows() && us > 0);
  double& cost = us_[static_cast<size_t>(rows)];
  if (cost == 0) ++num_measured_;
  cost = us;
}

void RowCosts::scale(int32_t rows, double factor) { set(rows, us(rows) * factor); }

double RowCosts::us(int32_t rows) const {
  if (rows <= 0) return 0;
  CHECK(is_measured());
  const auto wanted = static_cast<size_t>(std::min(rows, max_rows()));
  size_t below = wanted;
  while (below > 0 && us_[below] == 0) --below;
  size_t above = wanted;
  while (above < us_.size() && us_[above] == 0) ++above;
  if (below == 0) return us_[above];
  if (above == us_.size()) return us_[below] * static_cast<double>(wanted) / static_cast<double>(below);
  if (above == below) return us_[wanted];
  const double part = static_cast<double>(wanted - below) / static_cast<double>(above - below);
  return us_[below] + part * (us_[above] - us_[below]);
}

void CycleCosts::set(const CycleWork& work, const CycleTimes& times) {
  if (work.context_rows > 0) context_.set(work.context_rows, times.context_us);
  if (work.drafts > 0) propose_.set(work.drafts, times.propose_us);
  if (work.verify_rows > 0) verify_.set(work.verify_rows, times.verify_us);
}

void CycleCosts::correct(RowCosts& costs, int32_t rows, double us, bool is_change) {
  if (rows <= 0 || us <= 0) return;
  if (!costs.is_measured()) {
    costs.set(rows, us / std::exp(log_load_));
    return;
  }
  const double off = std::clamp(std::log(us / costs.us(rows)) - log_load_, -kMostOff, kMostOff);
  costs.scale(std::min(rows, costs.max_rows()), std::exp(off * (is_change ? kChangedRowsStep : kSameRowsStep)));
}

void CycleCosts::observe(const CycleWork& work, const CycleTimes& times) {
  const bool is_change = work.verify_rows != newest_.verify_rows || work.drafts != newest_.drafts;
  newest_ = work;
  const double off = std::log(times.verify_us / verify_.us(work.verify_rows)) - log_load_;
  correct(verify_, work.verify_rows, times.verify_us, is_change);
  correct(propose_, work.drafts, times.propose_us, is_change);
  correct(context_, work.context_rows, times.context_us, is_change);
  log_load_ += kLoadStep * std::clamp(off, -kMostOff, kMostOff);
}

double CycleCosts::us(const CycleWork& work) const {
  return context_us(work.context_rows) + (work.drafts > 0 ? propose_.us(work.drafts) : 0) +
         verify_.us(work.verify_rows);
}

double CycleCosts::context_us(int32_t rows) const { return context_.is_measured() ? context_.us(rows) : 0; }

}  // namespace blockdraft
