/* What questions to databases were answered with: remembered for the request and for the process. */
#ifndef MC_DIMENSION_QUERY_ANSWERS_H
#define MC_DIMENSION_QUERY_ANSWERS_H

#include "dimension/query.h"

struct mc_query_rows {
    apr_pool_t *pool;
    apr_array_header_t *values; /* of const char * */
    int most;
    bool first_only; /* further rows are not looked at */
    const char *dimension;
};

/* What a question was answered with. Of the request: in its pool, or in an entry of the process's table that the pool
 * holds. */
typedef struct mc_query_answer {
    const char *const *values;
    int count; /* -1: not asked yet */
} mc_query_answer;

/* The time of the request, the same in all of its questions. */
apr_time_t mc_query_request_time(mc_ctx *ctx);

/*
 * The answers to `count` questions: from this request, from the process, and what is left in one batch from the back
 * end. They live as long as the request. MC_ERR_IO: the catalogue is not there, or that of the back end.
 */
mc_error *mc_query_answer_all(mc_query_answer **answers, mc_query_dimension *dimension, mc_query_kind kind,
                              const mc_query_binds *binds, int count, mc_ctx *ctx) MC_CHECKED;

#endif
