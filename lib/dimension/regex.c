/* A dimension whose values match a regular expression (docs/reference/configuration.md 7.3): PCRE2, searched, not
 * anchored. */
#include "dimension/dimension_base.h"
#include "text/pattern.h"

typedef struct regex_config {
    mc_dimension_common common; /* first: the common rows of the key table count from here */
    const char *pattern;
} regex_config;

typedef struct regex_dimension {
    mc_dimension base;
    const mc_pattern *pattern;
} regex_dimension;

static const mc_key regex_keys[] = {
    MC_DIMENSION_COMMON_KEYS,
    MC_KEY_TEXT("regex", offsetof(regex_config, pattern),
                "Pattern (PCRE2) that a value must contain; anchor it with ^ and $ to match the whole value.",
                .flags = MC_KEY_REQUIRED),
    MC_KEY_END,
};

static mc_dimension *
regex_from_config(const mc_node *node, mc_build *build)
{
    regex_config config = { 0 };
    const char *problem;
    regex_dimension *dimension = mc_dimension_create(sizeof(*dimension), &config, regex_keys, node, build);
    if (dimension == NULL || !mc_dimension_set_common(&dimension->base, &config.common, build))
        return NULL;
    if (config.common.nearest)
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "<nearest> does nothing here: a regular expression has no list of values");
    dimension->base.nearest = false;
    dimension->pattern = mc_pattern_compile(config.pattern, &problem, build->pool);
    if (dimension->pattern == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "the regular expression \"%s\" %s", config.pattern, problem);
        return NULL;
    }
    return &dimension->base;
}

static mc_error *
regex_resolve(apr_array_header_t **values, mc_dimension *base, const mc_dimension_query *query, mc_ctx *ctx,
              apr_pool_t *pool)
{
    (void)ctx;
    const regex_dimension *dimension = (const regex_dimension *)base;
    if (!mc_pattern_matches(dimension->pattern, query->value))
        return mc_error_located(pool, MC_ERR_INVALID_DIMENSION, base->name, "dimension %s does not accept \"%s\"",
                                base->name, query->value);
    *values = apr_array_make(pool, 1, sizeof(const char *));
    APR_ARRAY_PUSH(*values, const char *) = query->value;
    return MC_OK;
}

/* A pattern is no value: a client could not ask for it. */
static mc_error *
regex_list(apr_array_header_t **values, mc_dimension *base, const char *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)tileset;
    (void)ctx;
    *values = apr_array_make(pool, 1, sizeof(const char *));
    APR_ARRAY_PUSH(*values, const char *) = base->default_value;
    return MC_OK;
}

const mc_dimension_ops mc_dimension_regex = {
    MC_KIND("regex", regex_keys, regex_from_config, "Values that match a regular expression."),
    .resolve = regex_resolve,
    .list = regex_list,
};
