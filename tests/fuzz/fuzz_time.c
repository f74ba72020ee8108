/* Times of clients: no text breaks the reader, what it accepts lies inside the years it knows, a list is its items, and
 * an instant written out again means the same. */
#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuzz_support.h"
#include "text/time.h"

static apr_pool_t *pool;
static const apr_time_t now = INT64_C(1795291200250000);
static const int64_t bound = INT64_C(4000000000000000000); /* some hundred thousand years */

int LLVMFuzzerInitialize(int *count, char ***values);
int
LLVMFuzzerInitialize(int *count, char ***values)
{
    (void)count;
    (void)values;
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : 1;
}

/* The same interval from the C library's calendar. */
static void
check_written_again(const mc_time_span *span)
{
    struct tm date;
    char text[64];
    mc_time_span again;
    time_t seconds = (time_t)(span->start_us / 1000000);
    if (span->start_us % 1000000 != 0 || gmtime_r(&seconds, &date) == NULL || date.tm_year < -1900 ||
        date.tm_year > 9999 - 1900)
        return;
    snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02dZ", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday,
             date.tm_hour, date.tm_min, date.tm_sec);
    MC_ASSERT(mc_time_parse(&again, text, strlen(text), now) == NULL);
    MC_ASSERT(again.start_us == span->start_us && again.end_us == span->start_us + 1000000);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_array_header_t *spans;
    char *text = apr_pstrmemdup(pool, (const char *)data, size);
    char *exact = malloc(size > 0 ? size : 1); /* no byte behind it: reading on is seen */
    mc_time_span span;
    memcpy(exact, data, size);
    if (mc_time_parse(&span, exact, size, now) == NULL) {
        MC_ASSERT(span.start_us > -bound && span.start_us < bound && span.end_us > -bound && span.end_us < bound);
        check_written_again(&span);
    }
    free(exact);
    mc_error *error = mc_time_parse_list(&spans, "TIME", text, now, pool);
    if (error == MC_OK)
        MC_ASSERT(spans->nelts > 0 && spans->nelts <= MC_TIME_ITEMS_MAX);
    else
        MC_ASSERT(error->kind == MC_ERR_INVALID_DIMENSION && strlen(error->message) < 1000);
    apr_pool_clear(pool);
    return 0;
}
