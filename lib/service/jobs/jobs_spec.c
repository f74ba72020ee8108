/* A job that a client asks for, from the fields of a JSON body. */
#include <apr_strings.h>

#include "service/jobs/jobs.h"
#include "text/json.h"

/* Bytes of a name or of a dimension's value; the finest zoom level that a request may name, in whatever grid. */
enum { TEXT_MAX = 1000, ZOOM_MAX = 1000 };

typedef struct jobs_body_params {
    const char *tileset, *grid, *target, *area, *area_srs, *request;
    apr_table_t *dimensions;
    int mode, order, minzoom, maxzoom, priority, attempts, side; /* zooms: below 0 where the body has none */
    mc_extent extent;                                            /* not valid where the body has none */
    double older, rate;
} jobs_body_params;

#define AT(field) offsetof(jobs_body_params, field)

const mc_param_row mc_job_body_params[] = {
    MC_PARAM_TEXT("tileset", AT(tileset), "The tileset.", .max = TEXT_MAX, .flags = MC_PARAM_REQUIRED,
                  .locator = "tileset", .missing = "a job needs a tileset", .missing_kind = MC_ERR_INVALID_PARAMETER),
    MC_PARAM_TEXT("grid", AT(grid), "One of its grids; the first one without it.", .max = TEXT_MAX, .locator = "grid"),
    MC_PARAM_CHOICE("mode", AT(mode), "seed|reseed|delete|transfer",
                    "What is done: missing tiles are drawn, all tiles are drawn, tiles are deleted or copied.",
                    .fallback = "seed", .locator = "mode", .refusal = "mode is seed, reseed, delete or transfer"),
    MC_PARAM_CHOICE("order", AT(order), "level|hilbert", "The order of the units of a level.", .fallback = "level",
                    .locator = "order", .refusal = "order is level or hilbert"),
    MC_PARAM_TEXT("target", AT(target), "The tileset that a transfer copies to.", .max = TEXT_MAX, .locator = "target"),
    MC_PARAM_INTEGER("minzoom", AT(minzoom), "The coarsest zoom level; the grid's without it.", .max = ZOOM_MAX,
                     .locator = "minzoom"),
    MC_PARAM_INTEGER("maxzoom", AT(maxzoom), "The finest zoom level; the grid's without it.", .max = ZOOM_MAX,
                     .locator = "maxzoom"),
    MC_PARAM_BOX("extent", AT(extent),
                 "The area in units of the grid's CRS, with the axes as the configuration has them: minx, miny, maxx, "
                 "maxy; a list of numbers, too.",
                 .locator = "extent", .refusal = "extent is four numbers: minx, miny, maxx, maxy"),
    MC_PARAM_TEXT("area", AT(area), "GeoJSON or WKT that limits the area.", .max = MC_JOBS_BODY_MAX, .locator = "area"),
    MC_PARAM_TEXT("area_srs", AT(area_srs),
                  "The CRS of `area`, x first; without it what `area` names, else degrees (GeoJSON) or the grid's CRS "
                  "(WKT).",
                  .max = TEXT_MAX, .locator = "area_srs"),
    MC_PARAM_OBJECT("dimensions", AT(dimensions), "Values of dimensions by name; the defaults without them.",
                    .max = TEXT_MAX, .locator = "dimensions"),
    MC_PARAM_NUMBER("older", AT(older), "Only tiles older than this time: seconds since 1970.", .min = 1, .max = 1e11,
                    .flags = MC_PARAM_FROM_MIN, .locator = "older",
                    .refusal = "older is a number of seconds since 1970"),
    MC_PARAM_NUMBER("rate", AT(rate), "Tiles per second of all workers together, at most; 0: no limit.", .max = 1e9,
                    .flags = MC_PARAM_FROM_MIN, .locator = "rate",
                    .refusal = "rate is a number of tiles per second up to 10^9"),
    MC_PARAM_INTEGER("priority", AT(priority), "Jobs with a higher priority come first.", .min = -MC_JOBS_PRIORITY_MAX,
                     .max = MC_JOBS_PRIORITY_MAX, .fallback = "0", .locator = "priority",
                     .refusal = "priority is a number from {min} to {max}"),
    MC_PARAM_INTEGER("attempts", AT(attempts), "How often a unit is tried; 0: three times.",
                     .max = MC_JOBS_ATTEMPTS_MAX, .fallback = "0", .locator = "attempts",
                     .refusal = "attempts is how often a unit is tried, up to {max}"),
    MC_PARAM_INTEGER("side", AT(side), "Metatiles along a unit's side; 0: by the size of the job.",
                     .max = MC_JOBS_SIDE_MAX, .fallback = "0", .locator = "side",
                     .refusal = "side is how many metatiles wide a unit is, up to {max}"),
    MC_PARAM_TEXT("request", AT(request), "The same text makes the same job only once.", .max = TEXT_MAX,
                  .locator = "request"),
    MC_PARAM_END,
};

static mc_error *
keep_job_body_field(void *fields, const char *name, const char *text)
{
    apr_table_add(fields, name, text);
    return MC_OK;
}

static mc_job_spec
job_spec_of_params(const jobs_body_params *params)
{
    static const mc_seed_order orders[] = { MC_SEED_LEVELS, MC_SEED_HILBERT }; /* as the choices of `order` */
    return (mc_job_spec){ .tileset = params->tileset,
                          .grid = params->grid,
                          .target = params->target,
                          .dimensions = params->dimensions,
                          .mode = (mc_job_mode)params->mode,
                          .has_order = true,
                          .order = orders[params->order],
                          .older = (apr_int64_t)params->older,
                          .has_zoom = params->minzoom >= 0 || params->maxzoom >= 0,
                          .minzoom = params->minzoom >= 0 ? params->minzoom : 0,
                          .maxzoom = params->maxzoom >= 0 ? params->maxzoom : ZOOM_MAX,
                          .has_extent = mc_extent_valid(&params->extent),
                          .extent = params->extent,
                          .area = params->area,
                          .area_srs = params->area_srs,
                          .rate = params->rate,
                          .priority = params->priority,
                          .attempts = params->attempts,
                          .side = params->side,
                          .request = params->request };
}

mc_error *
mc_job_spec_parse(mc_job_spec *spec, const char *bytes, size_t size, apr_pool_t *pool)
{
    jobs_body_params params = { .minzoom = -1, .maxzoom = -1 };
    apr_table_t *fields = apr_table_make(pool, 16);
    MC_TRY(mc_json_fields(bytes, size, keep_job_body_field, fields, pool));
    MC_TRY(mc_params_read_fields(&params, mc_job_body_params, fields, pool));
    *spec = job_spec_of_params(&params);
    return MC_OK;
}
