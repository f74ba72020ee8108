/* Which part of the work a span belongs to, by how its name begins. */
#include <string.h>

#include "seed/worker_pool_private.h"

static const struct {
    const char *begin;
    mc_seed_part part;
} spans[] = {
    { "mapcache_http_request", MC_SEED_ORIGIN }, /* stays the first */
    { "mapcache_postgis_", MC_SEED_ORIGIN },
    { "mapcache_shapefile_", MC_SEED_ORIGIN },
    { "mc_postgres_connect", MC_SEED_ORIGIN },
    { "_mapcache_imageio_png_decode", MC_SEED_DECODE },
    { "_mapcache_imageio_jpeg_decode", MC_SEED_DECODE },
    { "_mapcache_imageio_png_encode", MC_SEED_ENCODE },
    { "_mapcache_imageio_jpeg_encode", MC_SEED_ENCODE },
    { "mapcache_mvt_finish", MC_SEED_ENCODE },
    { "mapcache_cache_", MC_SEED_STORE },
    { "_mapcache_cache_", MC_SEED_STORE },
    { "mc_coverage_", MC_SEED_STORE },
    { "mc_footprint", MC_SEED_STORE },
    { "mapcache_locker_", MC_SEED_WAIT },
    { "mapcache_flight_", MC_SEED_WAIT },
};

typedef struct parts_sums {
    float *seconds; /* by part */
    float http;
} parts_sums;

static void
add_span_time(void *baton, const char *name, int64_t microseconds)
{
    parts_sums *sums = baton;
    float seconds = (float)microseconds * 1e-6F;
    mc_seed_part part = MC_SEED_DRAW;
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
        if (strncmp(name, spans[i].begin, strlen(spans[i].begin)) == 0)
            part = spans[i].part;
    sums->seconds[part] += seconds;
    if (strcmp(name, spans[0].begin) == 0)
        sums->http += seconds;
}

float
mc_seed_parts_take(float seconds[MC_SEED_PART_COUNT], mc_trace *trace)
{
    parts_sums sums = { seconds, 0 };
    mc_trace_take_own(trace, add_span_time, &sums);
    return sums.http;
}
