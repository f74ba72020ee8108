/*
 * Answers counted by tileset, service and status, and how long they took, by tileset: for all processes of a server
 * together. Labels are names of the configuration and of the protocol, in bounded sets; never what a client has sent.
 */
#ifndef MC_TELEMETRY_ANSWERS_H
#define MC_TELEMETRY_ANSWERS_H

#include "base/account.h"
#include "base/metrics.h"

/* What an answer was made of: word, meaning. */
#define MC_ANSWER_RESULTS(X)                                                                                           \
    X(hit, "a stored tile that went out as it is")                                                                     \
    X(composed, "a map, or a tile of several, put together of stored tiles")                                           \
    X(stale, "what has expired went out all the same")                                                                 \
    X(waited, "the tile that another request rendered meanwhile")                                                      \
    X(rendered, "a source was asked")                                                                                  \
    X(none, "no tile and no map: a document, feature info")                                                            \
    X(error, "a status of 400 or more")

typedef enum mc_answer_result {
#define X(word, meaning) MC_ANSWER_##word,
    MC_ANSWER_RESULTS(X)
#undef X
        MC_ANSWER_RESULT_COUNT
} mc_answer_result;

const char *mc_answer_result_name(mc_answer_result result);

/* Of an account with its status: by that, by what happened, and by what was asked for. */
mc_answer_result mc_answer_classify(const mc_account *account);

/* By which name metrics know a tileset: made with the tileset. */
typedef struct mc_answer_label {
    const char *name; /* of the configuration */
    atomic_int place; /* where it was found last */
} mc_answer_label;

/* Names of tilesets of all configurations since the start at most; later ones are counted as "(other)". */
enum { MC_ANSWER_TILESETS_MAX = 1024 };

/* Bytes of a label, its end included: longer names of tilesets are cut. */
enum { MC_ANSWER_NAME_SIZE = 124 };

/* Bytes of mc_metrics_create_with. */
size_t mc_answers_size(void);

/* `label` NULL: no tileset was asked for; `several`: more than one. `metrics` may be NULL, or have no annex: nothing is
 * counted. */
void mc_answers_count(mc_metrics *metrics, mc_answer_label *label, bool several, const mc_account *account,
                      mc_answer_result result, int64_t microseconds);

/* What has been counted of one tileset. */
typedef struct mc_answer_sums {
    const char *tileset; /* its label */
    bool named;          /* false: "(none)", "(other)" or "(several)" */
    uint64_t results[MC_ANSWER_RESULT_COUNT];
    mc_histogram times;
} mc_answer_sums;

/* Calls `visit` for each tileset, and for what belongs to none, whose answers have been counted. */
void mc_answers_visit(mc_metrics *metrics, void (*visit)(void *baton, const mc_answer_sums *sums), void *baton);

/* The families responses_total, answers_total and response_seconds. */
mc_error *mc_answers_write(mc_metrics *metrics, mc_metrics_format format, mc_buf *out, apr_pool_t *pool) MC_CHECKED;

#endif
