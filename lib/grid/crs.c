/* Names of coordinate reference systems, and which axis comes first. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "grid/axes.h"
#include "mapcache/grid.h"
#include "text/text.h"

static int
compare_codes(const void *a, const void *b)
{
    int left = *(const int *)a;
    int right = *(const int *)b;
    return (left > right) - (left < right);
}

bool
mc_crs_axes_swapped(int epsg)
{
    return bsearch(&epsg, mc_axes_swapped_codes, (size_t)mc_axes_swapped_code_count, sizeof(int), compare_codes) !=
           NULL;
}

double
mc_crs_metres_per_unit(int epsg)
{
    const mc_axes_unit *unit = bsearch(&epsg, mc_axes_units, (size_t)mc_axes_unit_count, sizeof(*unit), compare_codes);
    return unit == NULL ? 1 : unit->metres;
}

static const char *
skip_crs_prefix(const char *text, const char *prefix)
{
    size_t size = strlen(prefix);
    return strncasecmp(text, prefix, size) == 0 ? text + size : NULL;
}

static bool
is_crs84(const char *srs)
{
    static const char *const names[] = {
        "CRS:84",
        "OGC:CRS84",
        "urn:ogc:def:crs:OGC::CRS84",
        "urn:ogc:def:crs:OGC:1.3:CRS84",
        "urn:ogc:def:crs:OGC:2:84",
        "http://www.opengis.net/def/crs/OGC/1.3/CRS84",
        "https://www.opengis.net/def/crs/OGC/1.3/CRS84",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcasecmp(srs, names[i]) == 0)
            return true;
    return false;
}

int
mc_crs_epsg(const char *srs, bool *xy_order)
{
    if (xy_order != NULL)
        *xy_order = false;
    if (srs == NULL)
        return 0;
    if (is_crs84(srs)) {
        if (xy_order != NULL)
            *xy_order = true;
        return 4326;
    }
    /* Of the last two, a version stands between the authority and the code; in a URN it may be empty. */
    static const struct {
        const char *prefix;
        char version_end;
    } forms[] = {
        { "EPSG:", '\0' },
        { "urn:ogc:def:crs:EPSG:", ':' },
        { "urn:x-ogc:def:crs:EPSG:", ':' },
        { "http://www.opengis.net/def/crs/EPSG/", '/' },
        { "https://www.opengis.net/def/crs/EPSG/", '/' },
        { "http://www.opengis.net/gml/srs/epsg.xml#", '\0' },
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        const char *rest = skip_crs_prefix(srs, forms[i].prefix);
        if (rest != NULL && forms[i].version_end != '\0') {
            rest = strchr(rest, forms[i].version_end);
            rest = rest == NULL ? NULL : rest + 1;
        }
        int code;
        if (rest != NULL && *rest >= '0' && *rest <= '9' && mc_parse_int(&code, rest, 1, 999999999))
            return code;
    }
    return 0;
}
