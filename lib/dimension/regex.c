/* A dimension whose values match a regular expression (docs/reference/configuration.md 7.3): PCRE2, searched, not
 * anchored. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <apr_strings.h>
#include <pcre2.h>
#include <string.h>

#include "dimension/dimension_base.h"

/* What one match may cost: a pattern with nested repetition must not hold a thread. */
#define MATCH_LIMIT 100000
#define DEPTH_LIMIT 1000

typedef struct regex_config {
    mc_dimension_common common; /* first: the common rows of the key table count from here */
    const char *pattern;
} regex_config;

typedef struct regex_dimension {
    mc_dimension base;
    const char *pattern;
    pcre2_code *code; /* read-only once compiled: shared by all threads */
    pcre2_match_context *limits;
} regex_dimension;

static const mc_key regex_keys[] = {
    MC_DIMENSION_COMMON_KEYS,
    MC_KEY_TEXT("regex", offsetof(regex_config, pattern),
                "Pattern (PCRE2) that a value must contain; anchor it with ^ and $ to match the whole value.",
                .flags = MC_KEY_REQUIRED),
    MC_KEY_END,
};

static apr_status_t
free_code(void *data)
{
    regex_dimension *dimension = data;
    pcre2_match_context_free(dimension->limits);
    pcre2_code_free(dimension->code);
    return APR_SUCCESS;
}

static mc_dimension *
regex_from_config(const mc_node *node, mc_build *build)
{
    regex_config config = { 0 };
    int code;
    PCRE2_SIZE offset;
    regex_dimension *dimension = mc_dimension_create(sizeof(*dimension), &config, regex_keys, node, build);
    if (dimension == NULL || !mc_dimension_set_common(&dimension->base, &config.common, build))
        return NULL;
    dimension->pattern = config.pattern;
    if (config.common.nearest)
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "<nearest> does nothing here: a regular expression has no list of values");
    dimension->code =
        pcre2_compile((PCRE2_SPTR)config.pattern, PCRE2_ZERO_TERMINATED, PCRE2_DOLLAR_ENDONLY, &code, &offset, NULL);
    if (dimension->code == NULL) {
        PCRE2_UCHAR reason[256] = "";
        pcre2_get_error_message(code, reason, sizeof(reason));
        mc_complain(build->diagnostics, MC_REFUSED, node, "the regular expression \"%s\" fails at character %lu: %s",
                    config.pattern, (unsigned long)offset, (const char *)reason);
        return NULL;
    }
    dimension->limits = pcre2_match_context_create(NULL);
    pcre2_set_match_limit(dimension->limits, MATCH_LIMIT);
    pcre2_set_depth_limit(dimension->limits, DEPTH_LIMIT);
    apr_pool_cleanup_register(build->pool, dimension, free_code, apr_pool_cleanup_null);
    return &dimension->base;
}

static mc_error *
regex_resolve(apr_array_header_t **values, mc_dimension *base, const mc_dimension_query *query, mc_ctx *ctx,
              apr_pool_t *pool)
{
    (void)ctx;
    const regex_dimension *dimension = (const regex_dimension *)base;
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    MC_ASSERT(match != NULL);
    int found =
        pcre2_match(dimension->code, (PCRE2_SPTR)query->value, strlen(query->value), 0, 0, match, dimension->limits);
    pcre2_match_data_free(match);
    if (found < 0)
        return mc_error_located(pool, MC_ERR_INVALID_DIMENSION, base->name, "dimension %s does not accept \"%s\"",
                                base->name, query->value);
    *values = apr_array_make(pool, 1, sizeof(const char *));
    APR_ARRAY_PUSH(*values, const char *) = query->value;
    return MC_OK;
}

static mc_error *
regex_list(apr_array_header_t **values, mc_dimension *base, const char *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)tileset;
    (void)ctx;
    *values = apr_array_make(pool, 1, sizeof(const char *));
    APR_ARRAY_PUSH(*values, const char *) = ((const regex_dimension *)base)->pattern;
    return MC_OK;
}

const mc_dimension_ops mc_dimension_regex = {
    MC_KIND("regex", regex_keys, regex_from_config, "Values that match a regular expression."),
    .resolve = regex_resolve,
    .list = regex_list,
};
