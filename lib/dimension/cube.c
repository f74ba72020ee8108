/*
 * A dimension whose values are the dates of a cube: those that are wholly stored at the moment. What a date that has
 * been corrected stands for has the number of its revision ("2024-05-01~2"), which becomes part of the keys of tiles:
 * those that were made before are not found any more.
 */
#include <apr_strings.h>
#include <string.h>

#include "dimension/dimension_base.h"
#include "mapcache/cube.h"
#include "text/time.h"

/* Dates that one request may stand for, and that capabilities list. */
enum { MOST_DATES = 20000 };

typedef struct cube_config {
    mc_dimension_common common; /* first: the common rows of the key table count from here */
    const char *cube;
} cube_config;

typedef struct cube_dimension {
    mc_dimension base; /* first */
    const mc_cube *cube;
} cube_dimension;

static const mc_key cube_keys[] = {
    MC_DIMENSION_COMMON_KEYS,
    MC_KEY_TEXT("cube", offsetof(cube_config, cube), "Name of the cube.", .flags = MC_KEY_OURS | MC_KEY_REQUIRED),
    MC_KEY_END,
};

static mc_dimension *
cube_dimension_from_config(const mc_node *node, mc_build *build)
{
    cube_config config = { 0 };
    cube_dimension *dimension = mc_dimension_create(sizeof(*dimension), &config, cube_keys, node, build);
    if (dimension == NULL)
        return NULL;
    dimension->cube =
        mc_config_find(build->cubes, "cube", config.cube, mc_node_child(node, "cube"), build->diagnostics);
    if (dimension->cube == NULL || !mc_dimension_set_common(&dimension->base, &config.common, build))
        return NULL;
    dimension->base.time = true;
    return &dimension->base;
}

static apr_array_header_t *
texts_of(const apr_array_header_t *dates, bool with_revisions, apr_pool_t *pool)
{
    apr_array_header_t *texts = apr_array_make(pool, dates->nelts, sizeof(const char *));
    for (int i = 0; i < dates->nelts; i++) {
        const mc_cube_date *date = &APR_ARRAY_IDX(dates, i, mc_cube_date);
        const char *text = mc_time_text(date->time_us, pool);
        if (with_revisions && date->revision > 0)
            text = apr_psprintf(pool, "%s%c%d", text, MC_CUBE_REVISION, date->revision);
        APR_ARRAY_PUSH(texts, const char *) = text;
    }
    return texts;
}

/* An instant that is written as a date of the cube is that one alone: midnight does not stand for its day. */
static bool
keep_exact(apr_array_header_t *dates, const mc_time_span *span, const char *value, apr_pool_t *pool)
{
    for (int i = 0; i < dates->nelts; i++) {
        mc_cube_date date = APR_ARRAY_IDX(dates, i, mc_cube_date);
        if (date.time_us == span->start_us && strcmp(mc_time_text(date.time_us, pool), value) == 0) {
            APR_ARRAY_IDX(dates, 0, mc_cube_date) = date;
            dates->nelts = 1;
            return true;
        }
    }
    return false;
}

static mc_error *
resolve_one(apr_array_header_t **values, const cube_dimension *dimension, const char *value, mc_ctx *ctx,
            apr_pool_t *pool)
{
    apr_array_header_t *spans, *dates;
    MC_TRY(mc_time_parse_list(&spans, dimension->base.name, value, apr_time_now(), pool));
    const mc_time_span *list = (const mc_time_span *)(const void *)spans->elts;
    MC_TRY(mc_cube_dates(&dates, dimension->cube, list, spans->nelts, MOST_DATES + 1, ctx, pool));
    if (dates->nelts > MOST_DATES)
        return mc_error_create(pool, MC_ERR_LIMIT, "dimension %s: more than %d dates are asked for at once",
                               dimension->base.name, (int)MOST_DATES);
    if (spans->nelts == 1)
        (void)keep_exact(dates, list, value, pool);
    *values = texts_of(dates, true, pool);
    return MC_OK;
}

/* The tiles of a map ask for the same: the cube is asked once. */
static mc_error *
cube_resolve_all(apr_array_header_t **values, mc_dimension *base, const mc_dimension_query *queries, int count,
                 mc_ctx *ctx, apr_pool_t *pool)
{
    for (int i = 0; i < count; i++) {
        int same = i;
        while (same > 0 && strcmp(queries[same - 1].value, queries[i].value) != 0)
            same--;
        if (same > 0)
            values[i] = values[same - 1];
        else
            MC_TRY(resolve_one(&values[i], (const cube_dimension *)base, queries[i].value, ctx, pool));
    }
    return MC_OK;
}

static mc_error *
cube_list(apr_array_header_t **values, mc_dimension *base, const char *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_array_header_t *dates;
    (void)tileset;
    MC_TRY(mc_cube_dates(&dates, ((const cube_dimension *)base)->cube, NULL, 0, MOST_DATES, ctx, pool));
    *values = texts_of(dates, false, pool);
    return MC_OK;
}

static mc_error *
cube_latest(const char **value, mc_dimension *base, apr_time_t now, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_array_header_t *dates;
    const mc_time_span begun = { INT64_MIN, now + 1 };
    MC_TRY(mc_cube_dates(&dates, ((const cube_dimension *)base)->cube, &begun, 1, 1, ctx, pool));
    if (dates->nelts > 0)
        *value = mc_time_text(APR_ARRAY_IDX(dates, 0, mc_cube_date).time_us, pool);
    return MC_OK;
}

static mc_error *
cube_default(const char **value, mc_dimension *base, const char *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)tileset;
    *value = base->default_value;
    return mc_dimension_is_current(*value) ? cube_latest(value, base, apr_time_now(), ctx, pool) : MC_OK;
}

const mc_dimension_ops mc_dimension_cube = {
    MC_KIND("cube", cube_keys, cube_dimension_from_config, "The dates of a cube, as times."),
    .resolve_all = cube_resolve_all,
    .list = cube_list,
    .ask_default = cube_default,
    .latest = cube_latest,
    .from_backend = true,
};
