/* World files and GeoTIFF tags: numbers from outside that say where an image lies. */
#include "ingest/raster/georeference.h"

#include <math.h>
#include <string.h>

#include "text/text.h"

#define COORDINATE_MAX 1e12 /* units of any CRS */

enum { MODEL_TYPE = 1024, RASTER_TYPE = 1025, GEOGRAPHIC_CRS = 2048, PROJECTED_CRS = 3072 };
enum { PIXEL_IS_POINT = 2, MODEL_GEOGRAPHIC = 2, USER_DEFINED = 32767 };

/* MC_ERR_CORRUPT unless pixels have an area and all numbers are finite. */
static mc_error *
check_affine(const double affine[6], apr_pool_t *pool)
{
    for (int i = 0; i < 6; i++)
        if (!isfinite(affine[i]) || fabs(affine[i]) > COORDINATE_MAX)
            return mc_error_create(pool, MC_ERR_CORRUPT, "its position is no number that a CRS could have");
    double area = affine[1] * affine[5] - affine[2] * affine[4];
    double longest = fmax(hypot(affine[1], affine[4]), hypot(affine[2], affine[5]));
    if (!(fabs(area) > longest * longest * 1e-9))
        return mc_error_create(pool, MC_ERR_CORRUPT, "its pixels have no area: a size in x or in y is 0");
    return MC_OK;
}

/* The next line without blanks around it; false at the end. */
static bool
next_line(char *line, size_t room, const char **at, const char *end)
{
    const char *from = *at;
    if (from >= end)
        return false;
    while (*at < end && **at != '\n' && **at != '\r')
        ++*at;
    const char *to = *at;
    if (*at < end)
        *at += *at + 1 < end && (*at)[0] == '\r' && (*at)[1] == '\n' ? 2 : 1;
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
        to--;
    size_t length = (size_t)(to - from);
    if (length >= room)
        length = room - 1;
    memcpy(line, from, length);
    line[length] = '\0';
    return true;
}

/* The number of a line; a comma may stand for the point, as some programs write it. */
static bool
parse_number(double *value, char *line)
{
    char *comma = strchr(line, ',');
    if (comma != NULL && strchr(line, '.') == NULL)
        *comma = '.';
    return mc_parse_double(value, line[0] == '+' ? line + 1 : line);
}

mc_error *
mc_world_file_parse(double affine[6], const char *text, size_t size, apr_pool_t *pool)
{
    const char *at = text, *end = text + size;
    char line[80];
    double values[6];
    int count = 0, number = 0;
    while (count < 6 && next_line(line, sizeof(line), &at, end)) {
        number++;
        if (line[0] == '\0')
            continue;
        if (!parse_number(&values[count], line))
            return mc_error_create(pool, MC_ERR_CORRUPT, "line %d: \"%s\" is no number", number,
                                   mc_message_text(line, 40, pool));
        count++;
    }
    if (count < 6)
        return mc_error_create(pool, MC_ERR_CORRUPT, "it has %d of the 6 numbers of a world file", count);
    affine[1] = values[0];
    affine[4] = values[1];
    affine[2] = values[2];
    affine[5] = values[3];
    affine[0] = values[4] - values[0] / 2 - values[2] / 2;
    affine[3] = values[5] - values[1] / 2 - values[3] / 2;
    return check_affine(affine, pool);
}

/* The value of a key that stands in the directory itself; -1 where there is none. */
static int
key_value(const mc_geotiff_tags *tags, int key)
{
    size_t count = tags->key_count < 4 ? 0 : tags->keys[3];
    for (size_t i = 0; i < count && (i + 2) * 4 <= tags->key_count; i++) {
        const uint16_t *entry = tags->keys + (i + 1) * 4;
        if (entry[0] == key && entry[1] == 0)
            return entry[3];
    }
    return -1;
}

static int
geotiff_epsg_code(const mc_geotiff_tags *tags)
{
    int model = key_value(tags, MODEL_TYPE);
    int projected = key_value(tags, PROJECTED_CRS), geographic = key_value(tags, GEOGRAPHIC_CRS);
    int code = model == MODEL_GEOGRAPHIC ? geographic : projected;
    if (model < 0 && projected < 0)
        code = geographic;
    return code > 0 && code != USER_DEFINED ? code : 0;
}

static bool
from_scale(double affine[6], const mc_geotiff_tags *tags)
{
    const double *tie = tags->tiepoints;
    if (tags->scale_count < 2 || tags->tiepoint_count < 6)
        return false;
    affine[1] = tags->scale[0];
    affine[2] = affine[4] = 0;
    affine[5] = -tags->scale[1];
    affine[0] = tie[3] - tie[0] * affine[1];
    affine[3] = tie[4] - tie[1] * affine[5];
    return true;
}

static bool
from_matrix(double affine[6], const mc_geotiff_tags *tags)
{
    const double *m = tags->matrix;
    if (tags->matrix_count < 16)
        return false;
    affine[0] = m[3];
    affine[1] = m[0];
    affine[2] = m[1];
    affine[3] = m[7];
    affine[4] = m[4];
    affine[5] = m[5];
    return true;
}

mc_error *
mc_geotiff_read(bool *found, double affine[6], int *epsg, const mc_geotiff_tags *tags, apr_pool_t *pool)
{
    *epsg = geotiff_epsg_code(tags);
    *found = from_matrix(affine, tags) || from_scale(affine, tags);
    if (!*found && tags->tiepoint_count >= 12)
        return mc_error_create(pool, MC_ERR_CORRUPT,
                               "it has control points instead of a position: rectify it first (gdalwarp)");
    if (!*found)
        return MC_OK;
    /* Coordinates are those of pixel centres then (OGC 19-008r4, 7.5.2). */
    if (key_value(tags, RASTER_TYPE) == PIXEL_IS_POINT) {
        affine[0] -= (affine[1] + affine[2]) / 2;
        affine[3] -= (affine[4] + affine[5]) / 2;
    }
    return check_affine(affine, pool);
}
