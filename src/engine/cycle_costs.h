// What the parts of a cycle take on this machine, by their numbers of rows. Pure arithmetic on times that are given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace blockdraft {

// What one cycle of a batch has to do.
struct CycleWork {
  int32_t context_rows = 0;  // committed positions that the drafter takes in
  int32_t drafts = 0;        // 0: the drafter does not run
  int32_t verify_rows = 0;   // anchors and drafts
};

struct CycleTimes {
  double context_us = 0;
  double propose_us = 0;
  double verify_us = 0;
};

// Microseconds of one part for 1 to max_rows rows. Straight lines join the numbers of rows that were measured.
class RowCosts {
 public:
  explicit RowCosts(int32_t max_rows) : us_(static_cast<size_t>(max_rows) + 1, 0.0) {}

  bool is_measured() const { return num_measured_ > 0; }
  void set(int32_t rows, double us);        // us above 0
  void scale(int32_t rows, double factor);  // of what us() says; the number counts as measured from then on
  double us(int32_t rows) const;            // 0 rows: 0. Something must be measured
  int32_t max_rows() const { return static_cast<int32_t>(us_.size()) - 1; }

 private:
  std::vector<double> us_;  // [rows]; 0: not measured
  int32_t num_measured_ = 0;
};

// Costs are relative: other programs make everything slower together, so a factor common to all parts, the load,
// follows the newest cycles and is taken out before a single number of rows is corrected. A cycle with another number
// of rows than the one before says most about the rows, further ones like it say more about the load.
class CycleCosts {
 public:
  CycleCosts(int32_t max_context_rows, int32_t max_drafts, int32_t max_verify_rows)
      : context_(max_context_rows), propose_(max_drafts), verify_(max_verify_rows) {}

  // Of a profile: replaces what is known. A part without rows is left out.
  void set(const CycleWork& work, const CycleTimes& times);
  // Of a cycle that was run. A single time counts as at most a third off, so that a pause of the process does no harm.
  void observe(const CycleWork& work, const CycleTimes& times);

  // As if the load were that of the profile.
  double us(const CycleWork& work) const;
  double context_us(int32_t rows) const;

 private:
  void correct(RowCosts& costs, int32_t rows, double us, bool is_change);

  RowCosts context_, propose_, verify_;
  double log_load_ = 0;
  CycleWork newest_;
};

}  // namespace blockdraft
