/* The drafter alone for C, and for every language that can call C: the functions of drafter.h and accept.h with an
 * opaque handle. What those headers say of shapes, positions, ownership and threads holds here too.
 *
 *   blockdraft_error error;
 *   blockdraft_drafter* drafter;
 *   if (blockdraft_drafter_open("Qwen3-8B-DFlash", &options, &target, &drafter, &error) != BLOCKDRAFT_OK) {
 *     fprintf(stderr, "%s\n", error.message);
 *   }
 *
 * Every function that can fail returns a code and, if `error` is not NULL, says in it what was found and what was
 * expected. A struct of zeros asks for the default of every option. No function prints, ends the process or lets a C++
 * exception out. Pointers named "out" are written only on success. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum blockdraft_code {
  BLOCKDRAFT_OK = 0,
  BLOCKDRAFT_INVALID_ARGUMENT = 1, /* an option, view or query has a value outside its range, or a pointer is NULL */
  BLOCKDRAFT_NOT_FOUND = 2,        /* a file, folder, tensor or key that must exist does not */
  BLOCKDRAFT_CORRUPT_FILE = 3,     /* a file contradicts its own format */
  BLOCKDRAFT_UNSUPPORTED = 4,      /* well-formed, but a kind that blockdraft does not implement */
  BLOCKDRAFT_MISMATCH = 5,         /* the drafter does not fit the target, or a tensor its config */
  BLOCKDRAFT_LIMIT_EXCEEDED = 6,   /* more than the drafter was opened for */
  BLOCKDRAFT_OUT_OF_MEMORY = 7,
  BLOCKDRAFT_IO_ERROR = 8, /* the operating system refused */
  BLOCKDRAFT_NUMERIC = 9   /* the drafter produced a value that is not a number */
} blockdraft_code;

typedef struct blockdraft_error {
  char message[1024]; /* one line, ends with a zero byte; a longer message is cut */
} blockdraft_error;

typedef enum blockdraft_matrix_type {
  BLOCKDRAFT_BF16 = 0,
  BLOCKDRAFT_F16 = 1,
  BLOCKDRAFT_F32 = 2,
  BLOCKDRAFT_FP8_E4M3 = 3
} blockdraft_matrix_type;

/* [rows, columns], row-major without gaps, in the caller's memory. */
typedef struct blockdraft_matrix {
  const void* data; /* needs no alignment */
  int32_t type;     /* a blockdraft_matrix_type */
  int64_t rows;
  int64_t columns;
  const float* row_scales; /* [rows] with BLOCKDRAFT_FP8_E4M3, else NULL */
} blockdraft_matrix;

/* The memory behind the matrices must stay valid and unchanged until blockdraft_drafter_close. */
typedef struct blockdraft_target_tensors {
  blockdraft_matrix embed_tokens; /* [vocabulary, hidden size] */
  blockdraft_matrix lm_head;      /* [vocabulary, hidden size] */
  int64_t num_layers;             /* decoder layers of the target */
  int64_t num_real_ids;           /* ids from here on are padding and never drafted; 0: there are none */
  float embedding_scale;          /* what the target multiplies embedding rows by; 0: 1 */
} blockdraft_target_tensors;

typedef struct blockdraft_drafter_options {
  int32_t threads;            /* 0: one per physical core */
  int32_t max_sequences;      /* open at once; 0: 1 */
  int64_t max_positions;      /* of a sequence, drafts included; 0: max_position_embeddings, at most 4096 */
  float confidence_threshold; /* drafts from the first with less on do not count as worth verifying; 0: all do */
  const char* cpu_isa;        /* kernels to use: "portable", "avx2", "avx512" or "avx512_bf16"; NULL or "": what the
                                 environment variable BLOCKDRAFT_CPU_ISA says, or the last of these that the processor has */
} blockdraft_drafter_options;

/* Pointers are valid until blockdraft_drafter_close. */
typedef struct blockdraft_drafter_info {
  const char* kind;                /* "DFlash", "DFlash2" or "DSpark" */
  int32_t trained_width;           /* the largest width of a query */
  const int32_t* target_layer_ids; /* [num_target_layer_ids] in the order of the columns of the taps */
  int32_t num_target_layer_ids;
  int64_t hidden_size;    /* of the target */
  int64_t tap_columns;    /* floats a position: num_target_layer_ids * hidden_size */
  int32_t has_confidence; /* 1 or 0 */
  int32_t block_size;
  int32_t mask_token_id;
  int32_t shifted; /* 1: row i of the block guesses the token after it; 0: its own */
  int32_t window;  /* context positions that some layer can see at most; 0: all of them */
  int32_t threads;
  const char* cpu_isa;
  int32_t max_sequences;
  int64_t max_positions;
  int32_t num_warnings; /* of blockdraft_drafter_warning */
} blockdraft_drafter_info;

/* Rows first_row .. first_row + num_rows - 1 of a taps matrix belong to positions first_position ... of a sequence. */
typedef struct blockdraft_context_rows {
  int64_t sequence;
  int32_t first_position;
  int64_t first_row;
  int64_t num_rows;
} blockdraft_context_rows;

typedef enum blockdraft_acceptance { BLOCKDRAFT_COUPLED = 0, BLOCKDRAFT_RATIO = 1 } blockdraft_acceptance;

/* How tokens are drawn; all zeros: the most likely one is taken. */
typedef struct blockdraft_sampling {
  float temperature;
  int32_t top_k; /* 0: all */
  float top_p;   /* 0: 1, which is off */
  float min_p;
  uint64_t seed;
  uint32_t choice;    /* tells texts of the same seed apart */
  int32_t acceptance; /* a blockdraft_acceptance */
} blockdraft_sampling;

/* probabilities[i] is that of ids[i], or of id i if `ids` is NULL; all other ids have 0. count 0: nothing was drawn. */
typedef struct blockdraft_token_law {
  const int32_t* ids; /* [count] or NULL */
  const float* probabilities;
  size_t count;
} blockdraft_token_law;

/* Asks for guesses for positions position + 1 .. position + width. */
typedef struct blockdraft_draft_query {
  int64_t sequence;
  int32_t anchor_id; /* the newest committed token */
  int32_t position;  /* of the anchor: the end of the sequence's context */
  int32_t width;     /* 1 to trained_width */
  blockdraft_sampling sampling;
} blockdraft_draft_query;

/* Arrays of the caller for all that is proposed, one query after the other. Each but `ids` may be NULL. */
typedef struct blockdraft_drafts {
  int32_t* ids;               /* [sum of the widths] */
  int32_t* kept_widths;       /* [num_queries] leading drafts that are worth verifying */
  float* confidences;         /* [sum of the widths]; stays as it is without a confidence head */
  blockdraft_token_law* laws; /* [sum of the widths] what each draft was drawn from, with BLOCKDRAFT_RATIO; count 0
                                 otherwise. Their arrays are the drafter's, until its next propose or close */
} blockdraft_drafts;

typedef struct blockdraft_drafter blockdraft_drafter;

/* `folder` is UTF-8. `options` may be NULL: all defaults. */
blockdraft_code blockdraft_drafter_open(const char* folder, const blockdraft_drafter_options* options,
                                        const blockdraft_target_tensors* target, blockdraft_drafter** out,
                                        blockdraft_error* error);
void blockdraft_drafter_close(blockdraft_drafter* drafter); /* NULL: nothing happens */
blockdraft_code blockdraft_drafter_get_info(const blockdraft_drafter* drafter, blockdraft_drafter_info* out,
                                            blockdraft_error* error);

/* What the config leaves open or says twice, one line each: 0 to num_warnings - 1, else NULL. Valid until
 * blockdraft_drafter_close. */
const char* blockdraft_drafter_warning(const blockdraft_drafter* drafter, int32_t index);

blockdraft_code blockdraft_drafter_new_sequence(blockdraft_drafter* drafter, int64_t* out, blockdraft_error* error);
blockdraft_code blockdraft_drafter_release(blockdraft_drafter* drafter, int64_t sequence, blockdraft_error* error);
blockdraft_code blockdraft_drafter_context_length(const blockdraft_drafter* drafter, int64_t sequence, int32_t* out,
                                                  blockdraft_error* error);

/* taps: [tap_rows, tap_columns]. rows: [num_rows], each of another sequence. */
blockdraft_code blockdraft_drafter_extend_context(blockdraft_drafter* drafter, const float* taps, int64_t tap_rows,
                                                  const blockdraft_context_rows* rows, size_t num_rows,
                                                  blockdraft_error* error);

/* queries: [num_queries], each of another sequence. */
blockdraft_code blockdraft_drafter_propose(blockdraft_drafter* drafter, const blockdraft_draft_query* queries,
                                           size_t num_queries, const blockdraft_drafts* out, blockdraft_error* error);

blockdraft_code blockdraft_drafter_rewind(blockdraft_drafter* drafter, int64_t sequence, int32_t position,
                                          blockdraft_error* error);

typedef struct blockdraft_accepted_drafts {
  int32_t accepted;  /* leading drafts that are kept, whether or not they fit */
  int32_t produced;  /* tokens to append */
  int32_t at_stop;   /* 1: the last of them is a stop token */
  int32_t at_length; /* 1: none may follow */
} blockdraft_accepted_drafts;

/* drafts: [num_drafts]; choices: [num_drafts + 1], the target's own tokens; stop_ids: [num_stop_ids]. The tokens to
 * append are choices[0 .. produced - 1]. */
blockdraft_code blockdraft_accept_greedy(const int32_t* drafts, size_t num_drafts, const int32_t* choices,
                                         int64_t remaining, const int32_t* stop_ids, size_t num_stop_ids,
                                         blockdraft_accepted_drafts* out, blockdraft_error* error);

/* The target's token of a position, by logits [num_ids]. `sampling` may be NULL: all zeros. */
blockdraft_code blockdraft_choose_token(const float* logits, size_t num_ids, const blockdraft_sampling* sampling,
                                        int32_t position, int32_t* out, blockdraft_error* error);

/* logits [num_ids] to the law that `sampling` draws from, in place; after a failure the row is unspecified. */
blockdraft_code blockdraft_to_probabilities(float* logits, size_t num_ids, const blockdraft_sampling* sampling,
                                            blockdraft_error* error);

typedef struct blockdraft_ratio_trial {
  const int32_t* drafts;            /* [num_drafts] */
  const blockdraft_token_law* laws; /* [num_drafts] of blockdraft_drafts; count 0: the draft was certain */
  size_t num_drafts;
  float* probabilities; /* [num_drafts + 1, num_ids], the target's laws; the row of the first draft that is not kept is
                           overwritten */
  size_t num_ids;
  int32_t position; /* of the anchor */
  uint64_t seed;    /* of the query's sampling */
  uint32_t choice;  /* the same */
  int64_t remaining;
  const int32_t* stop_ids; /* [num_stop_ids] */
  size_t num_stop_ids;
} blockdraft_ratio_trial;

/* tokens: [num_drafts + 1], of which the first `produced` are written. */
blockdraft_code blockdraft_accept_ratio(const blockdraft_ratio_trial* trial, int32_t* tokens,
                                        blockdraft_accepted_drafts* out, blockdraft_error* error);

#ifdef __cplusplus
}
#endif
