/* Reading a map from the blocks of an overview: see postgis_levels.h and level_blocks.h. */
#include <apr_strings.h>
#include <math.h>

#include "mapcache/trace.h"
#include "text/text.h"
#include "vector/levels/level_blocks.h"
#include "vector/postgis/postgis_levels.h"

/* Features after which what was needed for them is given back. */
enum { LEVEL_BATCH = 64 };

typedef struct level_reading {
    mc_feature_reading *base;
    mc_level_window *window;
    double box[4]; /* of the map with its margin, in 1/256 pixel: left, top, right, bottom */
    int64_t features;
    bool ids; /* the value behind the attributes is the feature's number */
    apr_pool_t *scratch;
} level_reading;

static const char *
level_sql(const mc_level_use *use, apr_pool_t *pool)
{
    return apr_psprintf(pool,
                        "SELECT part, features FROM " MC_LEVELS_SCHEMA
                        ".%s WHERE box && ST_MakeEnvelope($1, $2, $3, $4, %d) ORDER BY part",
                        mc_sql_name(use->name, pool), use->srid);
}

static void
place_level_box(level_reading *r)
{
    const mc_pixel_grid *grid = &r->base->map->pixel_grid;
    const mc_extent *box = &r->base->map->box;
    r->box[0] = ((box->minx - grid->x0) * grid->per_x - (double)grid->left) * MC_SUBPIXELS;
    r->box[1] = ((grid->y0 - box->maxy) * grid->per_y - (double)grid->top) * MC_SUBPIXELS;
    r->box[2] = ((box->maxx - grid->x0) * grid->per_x - (double)grid->left) * MC_SUBPIXELS;
    r->box[3] = ((grid->y0 - box->miny) * grid->per_y - (double)grid->top) * MC_SUBPIXELS;
}

/* Cells reach beyond the map, and so do the features in them. */
static bool
is_in_level_box(const level_reading *r)
{
    int32_t bounds[4];
    return mc_geometry_bounds(&r->base->geometry, &bounds[0], &bounds[1], &bounds[2], &bounds[3]) &&
           bounds[0] <= r->box[2] && bounds[2] >= r->box[0] && bounds[1] <= r->box[3] && bounds[3] >= r->box[1];
}

/* A null is what the table gives for it (mc_postgis_whole). */
static int64_t
read_level_id(const level_reading *r, const mc_level_feature *feature)
{
    int64_t id = 0;
    const char *text = r->ids ? feature->values[r->base->map->attribute_count] : NULL;
    return text != NULL && mc_parse_int64(&id, text, INT64_MIN, INT64_MAX) ? id : 0;
}

static mc_error *
visit_level_feature(level_reading *r, const mc_level_feature *feature)
{
    mc_feature_reading *base = r->base;
    mc_error *error = (feature->packed ? mc_twkb_read : mc_wkb_read)(&base->geometry, feature->geometry, feature->size,
                                                                     &base->map->pixel_grid, r->scratch);
    if ((error == MC_OK && !is_in_level_box(r)) || !mc_reading_draws(base, error, r->scratch))
        return MC_OK;
    r->features++;
    return mc_reading_visit(base, read_level_id(r, feature), feature->values);
}

static mc_error *
visit_level_window(level_reading *r)
{
    mc_level_feature feature;
    for (int64_t i = 1; mc_level_window_next(&feature, r->window); i++) {
        MC_TRY(mc_error_copy(visit_level_feature(r, &feature), r->base->ctx->pool));
        if (i % LEVEL_BATCH == 0)
            apr_pool_clear(r->scratch);
    }
    mc_level_window_clear(r->window);
    return MC_OK;
}

static bool
is_block_row(const mc_postgres_row *row)
{
    return row->columns == 2 && row->fields[0].size == 4 && row->fields[1].size >= 0;
}

/* A window is whole when a row of the next one comes. */
static mc_error *
read_level_rows(level_reading *r, mc_postgres_result *result, apr_pool_t *pool)
{
    const mc_postgres_row *row;
    char part[4];
    bool begun = false;
    for (;;) {
        MC_TRY(mc_postgres_next(&row, result));
        if (row == NULL)
            return visit_level_window(r);
        if (!is_block_row(row))
            return mc_error_create(pool, MC_ERR_CORRUPT, "an overview of layer \"%s\" is broken", r->base->layer);
        if (begun && memcmp(part, row->fields[0].data, sizeof(part)) != 0)
            MC_TRY(visit_level_window(r));
        memcpy(part, row->fields[0].data, sizeof(part));
        begun = true;
        MC_TRY(mc_error_copy(mc_level_window_add(r->window, row->fields[1].data, (size_t)row->fields[1].size), pool));
    }
}

static void
trace_level(const level_reading *r, const mc_level_use *use, const mc_postgres_result *result)
{
    const mc_ctx *ctx = r->base->ctx;
    if (ctx->trace != NULL)
        mc_trace_say(ctx->trace, "database:",
                     apr_psprintf(ctx->pool,
                                  "%" APR_INT64_T_FMT " bytes, %" APR_INT64_T_FMT " features, overview %s of layer %s",
                                  mc_postgres_traffic_of(result).bytes, (apr_int64_t)r->features, use->name,
                                  r->base->layer));
}

static mc_postgres_param
level_coordinate(double value, apr_pool_t *pool)
{
    return (mc_postgres_param){ .value = mc_double_text('g', 17, value, pool), .type = MC_POSTGRES_FLOAT8 };
}

mc_error *
mc_levels_read(int64_t *features, mc_feature_reading *reading, const mc_level_use *use, bool ids,
               const char *connection, apr_pool_t *pool)
{
    level_reading r = { .base = reading,
                        .window = mc_level_window_create(reading->map->attribute_count + ids, pool),
                        .ids = ids };
    const mc_extent *box = &reading->map->box;
    const mc_postgres_param params[] = { level_coordinate(box->minx, pool), level_coordinate(box->miny, pool),
                                         level_coordinate(box->maxx, pool), level_coordinate(box->maxy, pool) };
    const mc_postgres_query query = {
        .connection = connection, .sql = level_sql(use, pool), .params = params, .param_count = 4, .binary = true
    };
    mc_postgres_result *result = NULL;
    place_level_box(&r);
    apr_pool_create(&r.scratch, pool);
    mc_error *error = mc_postgres_start(&result, reading->ctx->process->postgres, &query, reading->ctx, pool);
    if (error == MC_OK)
        error = read_level_rows(&r, result, pool);
    if (error == MC_OK)
        trace_level(&r, use, result);
    else
        error =
            mc_error_wrap(pool, error, error->kind, "layer \"%s\" cannot be read from its overview", reading->layer);
    mc_postgres_end(result);
    apr_pool_destroy(r.scratch);
    *features = r.features;
    return error;
}
