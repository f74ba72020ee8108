/* What all dimensions have in common: their attributes, the spans. */
#include "mapcache/dimension.h"

#include <apr_strings.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "dimension/dimension_base.h"
#include "mapcache/trace.h"
#include "text/text.h"
#include "text/time.h"

typedef struct by_map {
    bool wanted;
    int minzoom;
} by_map;

const mc_key mc_dimension_by_map_keys[] = {
    MC_KEY_BOOL("", offsetof(by_map, wanted), "true or false.", .fallback = "false"),
    MC_KEY_INT("@minzoom", offsetof(by_map, minzoom), "First level of the grid at which it is done.", .max = INT_MAX,
               .fallback = "0"),
    MC_KEY_END,
};

void *
mc_dimension_create(size_t size, void *config, const mc_key *keys, const mc_node *node, mc_build *build)
{
    return mc_config_read(config, node, keys, build->diagnostics) ? apr_pcalloc(build->pool, size) : NULL;
}

bool
mc_dimension_set_common(mc_dimension *dimension, const mc_dimension_common *common, mc_build *build)
{
    by_map by_map = { false, 0 };
    if (common->wms_querybymap != NULL &&
        !mc_config_read(&by_map, common->wms_querybymap, mc_dimension_by_map_keys, build->diagnostics))
        return false;
    dimension->name = common->name;
    dimension->unit = common->unit;
    dimension->default_value = common->default_value;
    dimension->time = common->time;
    dimension->nearest = common->nearest;
    dimension->periods = common->periods;
    dimension->query_by_map = by_map.wanted;
    dimension->query_by_map_minzoom = by_map.minzoom;
    return true;
}

/* Whoever asks: a client, a job, an option of a command. */
static mc_error *
check_value_text(const mc_dimension *dimension, const char *value, apr_pool_t *pool)
{
    size_t most = dimension->ops->from_backend ? MC_DIMENSION_ASKED_MAX : MC_DIMENSION_VALUE_MAX;
    if (value != NULL && mc_text_has_controls(value))
        return mc_error_located(pool, MC_ERR_INVALID_DIMENSION, dimension->name,
                                "the value of dimension %s holds a control character", dimension->name);
    if (value == NULL || strnlen(value, most + 1) <= most)
        return MC_OK;
    return mc_error_located(pool, MC_ERR_INVALID_DIMENSION, dimension->name,
                            "the value of dimension %s is longer than %lu bytes", dimension->name, (unsigned long)most);
}

mc_error *
mc_dimension_resolve(apr_array_header_t **values, mc_dimension *dimension, const mc_dimension_query *query, mc_ctx *ctx,
                     apr_pool_t *pool)
{
    return mc_dimension_resolve_all(values, dimension, query, 1, ctx, pool);
}

mc_error *
mc_dimension_resolve_all(apr_array_header_t **values, mc_dimension *dimension, const mc_dimension_query *queries,
                         int count, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_ABOUT(ctx, "mapcache_dimension_get_entries_for_value", dimension->name);
    for (int i = 0; i < count; i++)
        if (i == 0 || queries[i].value != queries[i - 1].value)
            MC_TRY(check_value_text(dimension, queries[i].value, pool));
    if (dimension->ops->resolve_all != NULL)
        return dimension->ops->resolve_all(values, dimension, queries, count, ctx, pool);
    for (int i = 0; i < count; i++)
        MC_TRY(dimension->ops->resolve(&values[i], dimension, &queries[i], ctx, pool));
    return MC_OK;
}

mc_error *
mc_dimension_insert(bool *inserted, mc_dimension *dimension, const mc_dimension_query *query, mc_ctx *ctx,
                    apr_pool_t *pool)
{
    *inserted = false;
    if (dimension->ops->insert == NULL)
        return MC_OK;
    MC_TRY(check_value_text(dimension, query->value, pool));
    return dimension->ops->insert(inserted, dimension, query, ctx, pool);
}

apr_time_t
mc_dimension_changed(const mc_dimension *dimension)
{
    return dimension->ops->changed == NULL ? 0 : dimension->ops->changed(dimension);
}

void
mc_dimension_forget(mc_dimension *dimension)
{
    if (dimension->ops->forget != NULL)
        dimension->ops->forget(dimension);
}

bool
mc_dimension_by_extent(const mc_dimension *dimension)
{
    return dimension->ops->by_extent != NULL && dimension->ops->by_extent(dimension);
}

mc_error *
mc_dimension_list(apr_array_header_t **values, mc_dimension *dimension, const char *tileset, mc_ctx *ctx,
                  apr_pool_t *pool)
{
    return dimension->ops->list(values, dimension, tileset, ctx, pool);
}

bool
mc_dimension_is_current(const char *value)
{
    return strcasecmp(value, "current") == 0 || strcasecmp(value, "latest") == 0;
}

mc_error *
mc_dimension_settle(const char **value, mc_dimension *dimension, const char *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_array_header_t *listed;
    apr_time_t now = apr_time_now();
    int64_t latest = INT64_MIN;
    if (!dimension->time || *value == NULL || !mc_dimension_is_current(*value))
        return MC_OK;
    *value = dimension->default_value;
    listed = apr_array_make(pool, 0, sizeof(const char *));
    if (dimension->ops->latest != NULL)
        MC_TRY(dimension->ops->latest(value, dimension, now, ctx, pool));
    else
        MC_TRY(mc_dimension_list(&listed, dimension, tileset, ctx, pool));
    for (int i = 0; i < listed->nelts; i++) {
        mc_time_span span;
        const char *text = APR_ARRAY_IDX(listed, i, const char *);
        if (mc_time_parse(&span, text, strlen(text), now) == NULL && span.start_us <= now && span.start_us >= latest) {
            latest = span.start_us;
            *value = text;
        }
    }
    if (mc_dimension_is_current(*value))
        return mc_error_located(pool, MC_ERR_INVALID_DIMENSION, dimension->name, "dimension %s has no current value",
                                dimension->name);
    return MC_OK;
}

mc_error *
mc_dimension_default(const char **value, mc_dimension *dimension, const char *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    *value = dimension->default_value;
    if (dimension->ops->ask_default == NULL)
        return MC_OK;
    return dimension->ops->ask_default(value, dimension, tileset, ctx, pool);
}
