/*
 * Times as clients write them (docs/reference/configuration.md 7.5): instants and ranges of ISO 8601, and lists of
 * them, as half-open intervals.
 */
#ifndef MC_TEXT_TIME_H
#define MC_TEXT_TIME_H

#include <apr_tables.h>
#include <apr_time.h>

#include "mapcache/error.h"

/* start <= t < end; microseconds since 1970, UTC. An end before the start holds nothing. */
typedef struct mc_time_span {
    int64_t start_us, end_us;
} mc_time_span;

/* Items of one list. */
#define MC_TIME_ITEMS_MAX 256

/*
 * One item: an instant ("2010", "2010-03", "2010-03-04", "2010-03-04T12Z", "...T12:30Z", "...T12:30:15Z",
 * "...T12:30:15.250Z", Z or an offset as +01:00, +0100, +01), or a range "instant/instant", "instant--instant",
 * "instant/duration", "duration/instant"; behind it a resolution ("/P1D") may follow, which is checked and changes
 * nothing. "current" in a range is `now`. An instant stands for its whole period: "2010-03" is March.
 * NULL, or what is wrong (a string constant).
 */
const char *mc_time_parse(mc_time_span *span, const char *text, size_t size, apr_time_t now);

/* A list by commas: an array of mc_time_span. MC_ERR_INVALID_DIMENSION with `dimension` as locator. */
mc_error *mc_time_parse_list(apr_array_header_t **spans, const char *dimension, const char *text, apr_time_t now,
                             apr_pool_t *pool) MC_CHECKED;

/* Moves a time by so many times a duration ("P1M", "PT6H") at once: once P1M from the 31st of January is the last day
 * of February, twice is the 31st of March. NULL, or what is wrong (a string constant): also with a duration of nothing.
 */
const char *mc_time_step(int64_t *time_us, const char *duration, int times);

/* An instant as mc_time_parse reads it again: "2010-03-04" at midnight, else "2010-03-04T12:30:15Z" with as many digits
 * of the second as are needed. UTC, years 0 to 9999. */
const char *mc_time_text(int64_t time_us, apr_pool_t *pool);

#endif
