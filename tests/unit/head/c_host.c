#include "c_host.h"

static blockdraft_code draft(blockdraft_drafter* drafter, const float* taps, int32_t length, int32_t anchor_id,
                             int32_t* ids, float* confidences, blockdraft_error* error) {
  blockdraft_drafter_info info;
  blockdraft_context_rows rows = {0};
  blockdraft_draft_query query = {0};
  blockdraft_drafts drafts = {0};
  int64_t sequence;
  int32_t kept, found;
  blockdraft_code code = blockdraft_drafter_get_info(drafter, &info, error);
  if (code != BLOCKDRAFT_OK) return code;
  code = blockdraft_drafter_new_sequence(drafter, &sequence, error);
  if (code != BLOCKDRAFT_OK) return code;
  rows.sequence = sequence;
  rows.num_rows = length;
  code = blockdraft_drafter_extend_context(drafter, taps, length, &rows, 1, error);
  if (code != BLOCKDRAFT_OK) return code;
  query.sequence = sequence;
  query.anchor_id = anchor_id;
  query.position = length;
  query.width = info.trained_width;
  drafts.ids = ids;
  drafts.kept_widths = &kept;
  drafts.confidences = confidences;
  code = blockdraft_drafter_propose(drafter, &query, 1, &drafts, error);
  if (code != BLOCKDRAFT_OK) return code;
  if (kept != info.trained_width) return BLOCKDRAFT_NUMERIC;
  code = blockdraft_drafter_rewind(drafter, sequence, length - 1, error);
  if (code != BLOCKDRAFT_OK) return code;
  code = blockdraft_drafter_context_length(drafter, sequence, &found, error);
  if (code != BLOCKDRAFT_OK) return code;
  if (found != length - 1) return BLOCKDRAFT_NUMERIC;
  return blockdraft_drafter_release(drafter, sequence, error);
}

blockdraft_code c_host_run(const char* folder, const blockdraft_target_tensors* target, const float* taps,
                           int32_t length, int32_t anchor_id, int32_t* ids, float* confidences,
                           blockdraft_error* error) {
  blockdraft_drafter_options options = {0};
  blockdraft_drafter* drafter;
  blockdraft_code code = blockdraft_drafter_open(folder, &options, target, &drafter, error);
  if (code != BLOCKDRAFT_OK) return code;
  code = draft(drafter, taps, length, anchor_id, ids, confidences, error);
  blockdraft_drafter_close(drafter);
  return code;
}
