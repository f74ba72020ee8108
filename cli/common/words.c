/* See words.h. */
#include "words.h"

#include <apr_strings.h>

const char *
mc_cli_size_words(double bytes, apr_pool_t *pool)
{
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
    size_t unit = 0;
    /* What would be printed as 1000.0 is one of the next unit. */
    while (bytes >= (unit == 0 ? 1000 : 999.95) && unit + 1 < sizeof(units) / sizeof(units[0])) {
        bytes /= 1000;
        unit++;
    }
    return apr_psprintf(pool, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

const char *
mc_cli_count_words(int64_t count, const char *noun, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%" APR_INT64_T_FMT " %s%s", count, noun, count == 1 ? "" : "s");
}

const char *
mc_cli_duration_words(double seconds, apr_pool_t *pool)
{
    apr_int64_t whole = (apr_int64_t)seconds;
    if (whole >= 360000)
        return apr_psprintf(pool, "%" APR_INT64_T_FMT " days", whole / 86400);
    if (whole >= 3600)
        return apr_psprintf(pool, "%" APR_INT64_T_FMT " h %02d min", whole / 3600, (int)(whole / 60 % 60));
    if (whole >= 60)
        return apr_psprintf(pool, "%" APR_INT64_T_FMT " min %02d s", whole / 60, (int)(whole % 60));
    return apr_psprintf(pool, "%" APR_INT64_T_FMT " s", whole);
}
