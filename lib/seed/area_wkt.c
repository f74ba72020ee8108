/* Well-known text of geometries (OGC 06-103r4, 7.2), one after the other; Z and M are passed over. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "seed/area_private.h"

enum { DEPTH_MAX = 32, WORD_MAX = 32 };

static void
read_area_wkt_word(char word[WORD_MAX], mc_areas_text *text)
{
    size_t size = 0;
    mc_areas_skip(text);
    while (text->at < text->end && size < WORD_MAX - 1 &&
           ((*text->at >= 'A' && *text->at <= 'Z') || (*text->at >= 'a' && *text->at <= 'z')))
        word[size++] = *text->at++;
    word[size] = '\0';
}

static mc_error *
expect_area_wkt_char(mc_areas_text *text, char wanted)
{
    return mc_areas_take(text, wanted) ? MC_OK : mc_areas_fail(text, "\"%c\" is expected", wanted);
}

/* "x y", and up to two more numbers. */
static mc_error *
read_vertex(mc_areas_text *text)
{
    double xy[2], more;
    MC_TRY(mc_areas_number(&xy[0], text));
    MC_TRY(mc_areas_number(&xy[1], text));
    for (int i = 0; i < 2; i++) {
        mc_areas_skip(text);
        if (text->at == text->end || strchr(",)", *text->at) != NULL)
            break;
        MC_TRY(mc_areas_number(&more, text));
    }
    mc_points_add(&text->points, xy[0], xy[1]);
    return MC_OK;
}

static bool
skip_area_wkt_empty(mc_areas_text *text)
{
    const char *before = text->at;
    char word[WORD_MAX];
    read_area_wkt_word(word, text);
    if (strcasecmp(word, "EMPTY") == 0)
        return true;
    text->at = before;
    return false;
}

/* "(x y, x y)" or EMPTY. */
static mc_error *
read_area_wkt_line(mc_areas_text *text, mc_region_kind kind)
{
    text->points.count = 0;
    if (skip_area_wkt_empty(text))
        return MC_OK;
    MC_TRY(expect_area_wkt_char(text, '('));
    do {
        bool wrapped = kind == MC_REGION_POINT && mc_areas_take(text, '('); /* MULTIPOINT ((1 2), (3 4)) */
        if (!skip_area_wkt_empty(text))
            MC_TRY(read_vertex(text));
        if (wrapped)
            MC_TRY(expect_area_wkt_char(text, ')'));
    } while (mc_areas_take(text, ','));
    MC_TRY(expect_area_wkt_char(text, ')'));
    return mc_areas_add(text, kind, 0, text->points.count);
}

/* "(line, line)": the first ring of a polygon is its outer one. */
static mc_error *
read_area_wkt_lines(mc_areas_text *text, mc_region_kind first, mc_region_kind others)
{
    if (skip_area_wkt_empty(text))
        return MC_OK;
    MC_TRY(expect_area_wkt_char(text, '('));
    mc_region_kind kind = first;
    do {
        MC_TRY(read_area_wkt_line(text, kind));
        kind = others;
    } while (mc_areas_take(text, ','));
    return expect_area_wkt_char(text, ')');
}

static mc_error *
read_polygons(mc_areas_text *text)
{
    if (skip_area_wkt_empty(text))
        return MC_OK;
    MC_TRY(expect_area_wkt_char(text, '('));
    do
        MC_TRY(read_area_wkt_lines(text, MC_REGION_RING, MC_REGION_HOLE));
    while (mc_areas_take(text, ','));
    return expect_area_wkt_char(text, ')');
}

static mc_error *read_area_wkt_geometry(mc_areas_text *text, int depth);

static mc_error *
read_collection(mc_areas_text *text, int depth)
{
    if (skip_area_wkt_empty(text))
        return MC_OK;
    MC_TRY(expect_area_wkt_char(text, '('));
    do
        MC_TRY(read_area_wkt_geometry(text, depth + 1));
    while (mc_areas_take(text, ','));
    return expect_area_wkt_char(text, ')');
}

/* "POLYGON Z", "POLYGONZM": what it has besides x and y. */
static void
drop_dimensions(char word[WORD_MAX], mc_areas_text *text)
{
    size_t size = strlen(word);
    while (size > 4 && (word[size - 1] == 'Z' || word[size - 1] == 'z' || ((word[size - 1] | 32) == 'm')))
        word[--size] = '\0';
    const char *before = text->at;
    char next[WORD_MAX];
    read_area_wkt_word(next, text);
    if (strcasecmp(next, "Z") != 0 && strcasecmp(next, "M") != 0 && strcasecmp(next, "ZM") != 0)
        text->at = before;
}

static mc_error *
read_area_wkt_geometry(mc_areas_text *text, int depth)
{
    char word[WORD_MAX];
    if (depth > DEPTH_MAX)
        return mc_areas_fail(text, "collections are nested too deeply");
    read_area_wkt_word(word, text);
    drop_dimensions(word, text);
    if (strcasecmp(word, "POINT") == 0 || strcasecmp(word, "MULTIPOINT") == 0)
        return read_area_wkt_line(text, MC_REGION_POINT);
    if (strcasecmp(word, "LINESTRING") == 0)
        return read_area_wkt_line(text, MC_REGION_LINE);
    if (strcasecmp(word, "MULTILINESTRING") == 0)
        return read_area_wkt_lines(text, MC_REGION_LINE, MC_REGION_LINE);
    if (strcasecmp(word, "POLYGON") == 0 || strcasecmp(word, "TRIANGLE") == 0)
        return read_area_wkt_lines(text, MC_REGION_RING, MC_REGION_HOLE);
    if (strcasecmp(word, "MULTIPOLYGON") == 0)
        return read_polygons(text);
    if (strcasecmp(word, "GEOMETRYCOLLECTION") == 0)
        return read_collection(text, depth);
    return mc_areas_fail(text, "\"%s\" is no geometry of WKT that can be read (GeoJSON begins with \"{\")", word);
}

/* "SRID=4326;" */
static mc_error *
read_srid(mc_areas_text *text)
{
    double number;
    char srs[sizeof(text->srs)];
    MC_TRY(expect_area_wkt_char(text, '='));
    MC_TRY(mc_areas_number(&number, text));
    MC_TRY(expect_area_wkt_char(text, ';'));
    if (number < 1 || number > 999999 || number != (int)number)
        return mc_areas_fail(text, "this is no code of a CRS");
    apr_snprintf(srs, sizeof(srs), "EPSG:%d", (int)number);
    if (text->srs[0] != '\0' && strcmp(text->srs, srs) != 0)
        return mc_areas_fail(text, "all geometries must be in the same CRS");
    memcpy(text->srs, srs, sizeof(srs));
    return MC_OK;
}

mc_error *
mc_areas_wkt(mc_areas_text *text)
{
    for (;;) {
        mc_areas_take(text, ';');
        mc_areas_skip(text);
        if (text->at == text->end)
            return MC_OK;
        if (text->end - text->at > 5 && strncasecmp(text->at, "SRID", 4) == 0) {
            text->at += 4;
            MC_TRY(read_srid(text));
        }
        MC_TRY(read_area_wkt_geometry(text, 0));
    }
}
