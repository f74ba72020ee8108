/* See pattern.h. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pattern.h"

#include <apr_strings.h>
#include <pcre2.h>
#include <string.h>

#include "mapcache/error.h"

/* What one search may cost: a pattern with nested repetition must not hold a thread. */
enum { MATCH_LIMIT = 100000, DEPTH_LIMIT = 1000 };

struct mc_pattern {
    pcre2_code *code;
    pcre2_match_context *limits;
};

static apr_status_t
free_pattern(void *data)
{
    mc_pattern *pattern = data;
    pcre2_match_context_free(pattern->limits);
    pcre2_code_free(pattern->code);
    return APR_SUCCESS;
}

mc_pattern *
mc_pattern_compile(const char *text, const char **problem, apr_pool_t *pool)
{
    int error;
    PCRE2_SIZE offset;
    mc_pattern *pattern = apr_pcalloc(pool, sizeof(*pattern));
    pattern->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, PCRE2_DOLLAR_ENDONLY, &error, &offset, NULL);
    if (pattern->code == NULL) {
        PCRE2_UCHAR reason[256] = "";
        pcre2_get_error_message(error, reason, sizeof(reason));
        *problem = apr_psprintf(pool, "fails at character %lu: %s", (unsigned long)offset, (const char *)reason);
        return NULL;
    }
    pattern->limits = pcre2_match_context_create(NULL);
    MC_ASSERT(pattern->limits != NULL);
    pcre2_set_match_limit(pattern->limits, MATCH_LIMIT);
    pcre2_set_depth_limit(pattern->limits, DEPTH_LIMIT);
    apr_pool_cleanup_register(pool, pattern, free_pattern, apr_pool_cleanup_null);
    return pattern;
}

bool
mc_pattern_matches(const mc_pattern *pattern, const char *text)
{
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    MC_ASSERT(match != NULL);
    int found = pcre2_match(pattern->code, (PCRE2_SPTR)text, strlen(text), 0, 0, match, pattern->limits);
    pcre2_match_data_free(match);
    return found >= 0;
}
