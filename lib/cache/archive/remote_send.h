/* Requests for parts of a file behind HTTP. */
#ifndef MC_CACHE_ARCHIVE_REMOTE_SEND_H
#define MC_CACHE_ARCHIVE_REMOTE_SEND_H

#include "cache/archive/ranges.h"
#include "http/http.h"

/* A part that is asked for, and the answer. */
typedef struct mc_range_ask {
    uint64_t offset;
    size_t size;
    mc_http_reply reply;
    mc_error *error;
} mc_range_ask;

/*
 * Asks for all parts together; `validator` is the state of the file that they must be of (NULL: any), by its ETag or
 * (`modified`) the time of its last change. Those that fail for a passing reason are asked for again, at most twice.
 * Any other status is an answer. A server that has failed several times in a row is left alone: MC_ERR_UNAVAILABLE.
 * The first error is the one of all.
 */
mc_error *mc_ranges_send(mc_range_ask *asks, int count, const mc_ranged_file *file, const char *validator,
                         bool modified, apr_pool_t *pool) MC_CHECKED;

#endif
