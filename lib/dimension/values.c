/* A dimension whose values are listed in the configuration (docs/reference/configuration.md 7.3). */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "dimension/dimension_base.h"

typedef struct values_config {
    mc_dimension_common common; /* first: the common rows of the key table count from here */
    apr_array_header_t *nodes;  /* of const mc_node * */
    bool case_sensitive;
} values_config;

typedef struct values_dimension {
    mc_dimension base;
    apr_array_header_t *values; /* of const char * */
    bool case_sensitive;
} values_dimension;

static const mc_key values_keys[] = {
    MC_DIMENSION_COMMON_KEYS,
    MC_KEY_TEXT("value", offsetof(values_config, nodes), "A value that clients may ask for.",
                .flags = MC_KEY_REQUIRED | MC_KEY_REPEATABLE),
    MC_KEY_BOOL("case_sensitive", offsetof(values_config, case_sensitive),
                "Compare values by case. Without it the client's spelling becomes part of the cache key.",
                .fallback = "false"),
    MC_KEY_END,
};

static mc_dimension *
values_from_config(const mc_node *node, mc_build *build)
{
    values_config config = { 0 };
    values_dimension *dimension = mc_dimension_create(sizeof(*dimension), &config, values_keys, node, build);
    if (dimension == NULL || !mc_dimension_set_common(&dimension->base, &config.common, build))
        return NULL;
    dimension->case_sensitive = config.case_sensitive;
    dimension->values = apr_array_make(build->pool, config.nodes->nelts, sizeof(const char *));
    for (int i = 0; i < config.nodes->nelts; i++) {
        const mc_node *value = APR_ARRAY_IDX(config.nodes, i, const mc_node *);
        if (value->text == NULL || *value->text == '\0') {
            mc_complain(build->diagnostics, MC_REFUSED, value, "an empty value cannot be asked for");
            return NULL;
        }
        APR_ARRAY_PUSH(dimension->values, const char *) = value->text;
    }
    return &dimension->base;
}

static mc_error *
values_resolve(apr_array_header_t **values, mc_dimension *base, const mc_dimension_query *query, mc_ctx *ctx,
               apr_pool_t *pool)
{
    (void)ctx;
    const values_dimension *dimension = (const values_dimension *)base;
    for (int i = 0; i < dimension->values->nelts; i++) {
        const char *value = APR_ARRAY_IDX(dimension->values, i, const char *);
        if (dimension->case_sensitive ? strcmp(value, query->value) == 0 : strcasecmp(value, query->value) == 0) {
            *values = apr_array_make(pool, 1, sizeof(const char *));
            APR_ARRAY_PUSH(*values, const char *) = query->value;
            return MC_OK;
        }
    }
    return mc_error_located(pool, MC_ERR_INVALID_DIMENSION, base->name, "dimension %s has no value \"%s\"", base->name,
                            query->value);
}

static mc_error *
values_list(apr_array_header_t **values, mc_dimension *base, const char *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)tileset;
    (void)ctx;
    *values = apr_array_copy(pool, ((const values_dimension *)base)->values);
    return MC_OK;
}

const mc_dimension_ops mc_dimension_values = {
    MC_KIND("values", values_keys, values_from_config, "Values that are listed in the configuration."),
    .resolve = values_resolve,
    .list = values_list,
};
