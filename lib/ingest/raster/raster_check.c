/* What all readers refuse. */
#include <apr_strings.h>
#include <stdarg.h>

#include "ingest/raster/raster.h"

mc_error *
mc_raster_broken(apr_pool_t *pool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *reason = apr_pvsprintf(pool, format, args);
    va_end(args);
    return mc_error_create(pool, MC_ERR_CORRUPT, "%s", reason);
}

mc_error *
mc_raster_check_size(int64_t width, int64_t height, apr_pool_t *pool)
{
    if (width < 1 || height < 1 || width > mc_raster_side_max || height > mc_raster_side_max ||
        width * height > MC_RASTER_PIXELS_MAX)
        return mc_raster_broken(pool, "%.0f x %.0f pixels are no size that can be read", (double)width, (double)height);
    return MC_OK;
}
