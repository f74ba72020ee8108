/* The texts of `subset` and `datetime` (OGC 20-058, 13.3 and 14; OGC 20-057, 13). */
#ifndef MC_SERVICE_OGCAPI_SUBSET_H
#define MC_SERVICE_OGCAPI_SUBSET_H

#include <apr_pools.h>
#include <apr_time.h>
#include <stdbool.h>
#include <stdint.h>

enum { MC_SUBSET_AXES_MAX = 16 };

/* What one axis is cut to. */
typedef struct mc_subset {
    const char *axis;
    const char *low, *high; /* NULL: open on that side ("*", "..") */
    bool interval;          /* else a point: low, which is NULL for the latest one */
} mc_subset;

/*
 * Reads AXIS(POINT), AXIS(LOW:HIGH) and more of them behind commas to the end of `list`, of which *count are there. A
 * point is a number, a text in double quotes, or an asterisk; as clients write them, also a text without quotes and
 * without colons. NULL, or what is wrong (a string constant).
 */
const char *mc_subset_parse(mc_subset list[MC_SUBSET_AXES_MAX], int *count, const char *text, apr_pool_t *pool);

/* Reads TIME, START/END, ../END or START/.., each a time as OGC 20-058, 8.2 has it, into `found`, whose axis stays.
 * NULL, or what is wrong (a string constant). */
const char *mc_subset_datetime(mc_subset *found, const char *text, apr_pool_t *pool);

/* Whether an axis is one of a CRS in degrees (Lon, Lat) or of another one (X or E, Y or N), in any case (OGC 20-058,
 * 13.3); *which is 0 for the one from west to east, 1 for the one from south to north. */
bool mc_subset_is_place(int *which, const char *axis, bool degrees);

/* Whether a text is a time of RFC 3339 or a shorter one; then the time from and until which it is, in microseconds. */
bool mc_subset_time(int64_t *start_us, int64_t *end_us, const char *text);

#endif
