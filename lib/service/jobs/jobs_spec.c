/* A job that a client asks for, from JSON. Every field has one row; an unknown one is an error. */
#include <apr_strings.h>
#include <string.h>

#include "service/jobs/jobs.h"
#include "text/json.h"
#include "text/text.h"

/* Longest name or value, in bytes. */
enum { TEXT_MAX = 1000, DIMENSIONS_MAX = 64 };

typedef struct jobs_spec_reader {
    mc_job_spec *spec;
    apr_table_t *dimensions;
    apr_pool_t *pool;
} jobs_spec_reader;

static bool
set_text(const char **field, const char *text, apr_pool_t *pool)
{
    *field = apr_pstrdup(pool, text);
    return *text != '\0' && strlen(text) <= TEXT_MAX;
}

static bool
set_zoom(mc_job_spec *spec, int *zoom, const char *text)
{
    if (!spec->has_zoom)
        spec->maxzoom = 1000;
    spec->has_zoom = true;
    return mc_parse_int(zoom, text, 0, 1000);
}

static bool
set_job_request_extent(mc_job_spec *spec, const char *text)
{
    double numbers[4];
    int found;
    spec->has_extent = true;
    if (!mc_parse_doubles(numbers, 4, &found, text, ",") || found != 4)
        return false;
    spec->extent = (mc_extent){ numbers[0], numbers[1], numbers[2], numbers[3] };
    return true;
}

static bool
set_older(mc_job_spec *spec, const char *text)
{
    double seconds;
    if (!mc_parse_double(&seconds, text) || seconds < 1 || seconds > 1e11)
        return false;
    spec->older = (apr_int64_t)seconds;
    return true;
}

enum {
    TILESET,
    GRID,
    TARGET,
    MODE,
    ORDER,
    MINZOOM,
    MAXZOOM,
    EXTENT,
    OLDER,
    RATE,
    PRIORITY,
    ATTEMPTS,
    SIDE,
    REQUEST,
    AREA,
    AREA_SRS,
    FIELDS
};
static const char *const fields[FIELDS] = { "tileset", "grid",    "target", "mode",    "order",    "minzoom",
                                            "maxzoom", "extent",  "older",  "rate",    "priority", "attempts",
                                            "side",    "request", "area",   "area_srs" };

/* False where the value cannot be used. Bounds of numbers are checked with the job (mc_job_make). */
static bool
set_field(mc_job_spec *spec, int field, const char *text, apr_pool_t *pool)
{
    switch (field) {
    case TILESET:
        return set_text(&spec->tileset, text, pool);
    case GRID:
        return set_text(&spec->grid, text, pool);
    case TARGET:
        return set_text(&spec->target, text, pool);
    case MODE:
        return mc_job_mode_parse(&spec->mode, text);
    case ORDER:
        return spec->has_order = mc_job_order_parse(&spec->order, text);
    case MINZOOM:
        return set_zoom(spec, &spec->minzoom, text);
    case MAXZOOM:
        return set_zoom(spec, &spec->maxzoom, text);
    case EXTENT:
        return set_job_request_extent(spec, text);
    case OLDER:
        return set_older(spec, text);
    case RATE:
        return mc_parse_double(&spec->rate, text);
    case PRIORITY:
        return mc_parse_int(&spec->priority, text, INT32_MIN, INT32_MAX);
    case ATTEMPTS:
        return mc_parse_int(&spec->attempts, text, INT32_MIN, INT32_MAX);
    case SIDE:
        return mc_parse_int(&spec->side, text, INT32_MIN, INT32_MAX);
    case AREA:
        spec->area = apr_pstrdup(pool, text); /* as long as the body may be */
        return *text != '\0';
    case AREA_SRS:
        return set_text(&spec->area_srs, text, pool);
    default:
        return set_text(&spec->request, text, pool);
    }
}

static mc_error *
visit_job_request_field(void *baton, const char *name, const char *text)
{
    static const char prefix[] = "dimensions.";
    jobs_spec_reader *reader = baton;
    apr_pool_t *pool = reader->pool;
    if (strncmp(name, prefix, sizeof(prefix) - 1) == 0 && strlen(text) <= TEXT_MAX &&
        apr_table_elts(reader->dimensions)->nelts < DIMENSIONS_MAX) {
        apr_table_set(reader->dimensions, name + sizeof(prefix) - 1, text);
        return MC_OK;
    }
    for (int i = 0; i < FIELDS; i++)
        if (strcmp(name, fields[i]) == 0) {
            if (set_field(reader->spec, i, text, pool))
                return MC_OK;
            return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, fields[i], "%s cannot be \"%s\"", fields[i],
                                    mc_message_text(text, 100, pool));
        }
    return mc_error_create(pool, MC_ERR_BAD_REQUEST, "a job has no field \"%s\"", mc_message_text(name, 100, pool));
}

mc_error *
mc_job_spec_parse(mc_job_spec *spec, const char *bytes, size_t size, apr_pool_t *pool)
{
    jobs_spec_reader reader = { spec, apr_table_make(pool, 4), pool };
    *spec = (mc_job_spec){ .dimensions = reader.dimensions };
    MC_TRY(mc_json_fields(bytes, size, visit_job_request_field, &reader, pool));
    if (spec->tileset == NULL)
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "tileset", "a job needs a tileset");
    return MC_OK;
}
