/*
 * GeoJSON (RFC 7946), read as a stream: of a file of any size only the vertices of one geometry are kept. A member
 * "crs" of older files is heeded.
 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "seed/area_private.h"

enum { DEPTH_MAX = 64, NAME_MAX_SIZE = 128, NESTED_MAX = 4 };

/* A line of positions: where it begins in the list of vertices, and whether it is the first of its list. */
typedef struct json_line {
    size_t first;
    bool leads;
} json_line;

/* The coordinates that were read last. */
typedef struct coordinates {
    int kind; /* 0: a position, 1: a list of these, ...; -1: an empty list */
    json_line *lines;
    size_t count, room;
} coordinates;

typedef struct area_json_reader {
    mc_areas_text *text;
    coordinates found;
} area_json_reader;

static const struct {
    const char *name;
    int kind; /* of its coordinates */
    mc_region_kind first, others;
} types[] = {
    { "Point", 0, MC_REGION_POINT, MC_REGION_POINT },
    { "MultiPoint", 1, MC_REGION_POINT, MC_REGION_POINT },
    { "LineString", 1, MC_REGION_LINE, MC_REGION_LINE },
    { "MultiLineString", 2, MC_REGION_LINE, MC_REGION_LINE },
    { "Polygon", 2, MC_REGION_RING, MC_REGION_HOLE },
    { "MultiPolygon", 3, MC_REGION_RING, MC_REGION_HOLE },
    { "GeometryCollection", -2, MC_REGION_POINT, MC_REGION_POINT },
    { "Feature", -2, MC_REGION_POINT, MC_REGION_POINT },
    { "FeatureCollection", -2, MC_REGION_POINT, MC_REGION_POINT },
};

static mc_error *
expect_area_json_char(mc_areas_text *text, char wanted)
{
    return mc_areas_take(text, wanted) ? MC_OK : mc_areas_fail(text, "\"%c\" is expected", wanted);
}

/* Names that matter here are short and have no escapes; others are cut. */
static mc_error *
read_string(char out[NAME_MAX_SIZE], mc_areas_text *text)
{
    size_t size = 0;
    MC_TRY(expect_area_json_char(text, '"'));
    for (; text->at < text->end && *text->at != '"'; text->at++) {
        if ((unsigned char)*text->at < ' ')
            break;
        if (*text->at == '\\' && text->end - text->at > 1)
            text->at++;
        if (size < NAME_MAX_SIZE - 1)
            out[size++] = *text->at;
    }
    out[size] = '\0';
    return mc_areas_take(text, '"') ? MC_OK : mc_areas_fail(text, "a string does not end");
}

static mc_error *
skip_area_json_scalar(mc_areas_text *text)
{
    static const char *const words[] = { "true", "false", "null" };
    double number;
    for (size_t i = 0; i < 3; i++) {
        size_t size = strlen(words[i]);
        if ((size_t)(text->end - text->at) >= size && memcmp(text->at, words[i], size) == 0) {
            text->at += size;
            return MC_OK;
        }
    }
    return mc_areas_number(&number, text);
}

static mc_error *
skip_value(mc_areas_text *text, int depth)
{
    char ignored[NAME_MAX_SIZE];
    if (depth > DEPTH_MAX)
        return mc_areas_fail(text, "values are nested too deeply");
    bool object = mc_areas_take(text, '{');
    if (!object && !mc_areas_take(text, '['))
        return text->at < text->end && *text->at == '"' ? read_string(ignored, text) : skip_area_json_scalar(text);
    char end = object ? '}' : ']';
    if (mc_areas_take(text, end))
        return MC_OK;
    do {
        if (object) {
            MC_TRY(read_string(ignored, text));
            MC_TRY(expect_area_json_char(text, ':'));
        }
        MC_TRY(skip_value(text, depth + 1));
    } while (mc_areas_take(text, ','));
    return expect_area_json_char(text, end);
}

/* ---- coordinates */

static mc_error *
read_position(mc_areas_text *text)
{
    double xy[2], more;
    MC_TRY(mc_areas_number(&xy[0], text));
    MC_TRY(expect_area_json_char(text, ','));
    MC_TRY(mc_areas_number(&xy[1], text));
    while (mc_areas_take(text, ','))
        MC_TRY(mc_areas_number(&more, text));
    mc_points_add(&text->points, xy[0], xy[1]);
    return expect_area_json_char(text, ']');
}

static void
begin_line(coordinates *found, size_t first, bool leads)
{
    if (found->count == found->room) {
        found->room = found->room == 0 ? 64 : found->room * 2;
        found->lines = realloc(found->lines, found->room * sizeof(json_line));
        MC_ASSERT(found->lines != NULL);
    }
    found->lines[found->count++] = (json_line){ first, leads };
}

/* A list of lists; *kind is 1 more than that of what it holds. */
static mc_error *
read_area_json_list(int *kind, area_json_reader *in, bool leads, int depth)
{
    mc_areas_text *text = in->text;
    size_t before = text->points.count, lines = in->found.count;
    *kind = -1;
    if (depth > NESTED_MAX)
        return mc_areas_fail(text, "coordinates are nested too deeply");
    MC_TRY(expect_area_json_char(text, '['));
    if (mc_areas_take(text, ']'))
        return MC_OK;
    if (text->at < text->end && *text->at != '[') {
        *kind = 0;
        return read_position(text);
    }
    int held = -1;
    do {
        int one;
        MC_TRY(read_area_json_list(&one, in, in->found.count == lines, depth + 1));
        if (one >= 0 && held >= 0 && one != held)
            return mc_areas_fail(text, "coordinates are nested unevenly");
        held = one >= 0 ? one : held;
    } while (mc_areas_take(text, ','));
    if (held == 0)
        begin_line(&in->found, before, leads);
    *kind = held < 0 ? -1 : held + 1;
    return expect_area_json_char(text, ']');
}

static mc_error *
read_coordinates(area_json_reader *in)
{
    in->text->points.count = 0;
    in->found.count = 0;
    return read_area_json_list(&in->found.kind, in, true, 0);
}

static mc_error *
add_area_json_geometry(area_json_reader *in, const char *type)
{
    size_t row = 0, rows = sizeof(types) / sizeof(types[0]);
    mc_areas_text *text = in->text;
    coordinates *found = &in->found;
    while (row < rows && strcmp(types[row].name, type) != 0)
        row++;
    if (row == rows || (found->kind >= 0 && found->kind != types[row].kind))
        return mc_areas_fail(text, "coordinates do not fit the type \"%s\"", type);
    if (found->kind == 0)
        return mc_areas_add(text, MC_REGION_POINT, 0, text->points.count);
    for (size_t i = 0; i < found->count; i++) {
        size_t first = found->lines[i].first,
               end = i + 1 < found->count ? found->lines[i + 1].first : text->points.count;
        MC_TRY(mc_areas_add(text, found->lines[i].leads ? types[row].first : types[row].others, first, end - first));
    }
    return MC_OK;
}

/* ---- objects */

/* {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::2056"}} of the specification of 2008. */
static mc_error *
read_area_json_crs(mc_areas_text *text)
{
    const char *begin = text->at;
    MC_TRY(skip_value(text, 0));
    static const char wanted[] = "\"properties\"";
    for (const char *at = begin; text->at - at > (ptrdiff_t)sizeof(wanted); at++)
        if (memcmp(at, wanted, sizeof(wanted) - 1) == 0) {
            mc_areas_text inner = *text;
            char name[NAME_MAX_SIZE];
            inner.end = text->at;
            inner.at = at + sizeof(wanted) - 1;
            if (!mc_areas_take(&inner, ':') || !mc_areas_take(&inner, '{'))
                break;
            MC_TRY(read_string(name, &inner));
            MC_TRY(expect_area_json_char(&inner, ':'));
            if (strcmp(name, "name") != 0)
                break;
            MC_TRY(read_string(name, &inner));
            apr_cpystrn(text->srs, name, sizeof(text->srs));
            return MC_OK;
        }
    return MC_OK; /* null: unknown, so that the rule for files without one holds */
}

static mc_error *read_object(area_json_reader *in, int depth);

static mc_error *
read_objects(area_json_reader *in, int depth)
{
    MC_TRY(expect_area_json_char(in->text, '['));
    if (mc_areas_take(in->text, ']'))
        return MC_OK;
    do
        MC_TRY(read_object(in, depth));
    while (mc_areas_take(in->text, ','));
    return expect_area_json_char(in->text, ']');
}

static mc_error *
read_member(area_json_reader *in, const char *name, char type[NAME_MAX_SIZE], bool *located, int depth)
{
    mc_areas_text *text = in->text;
    mc_areas_skip(text);
    if (strcmp(name, "type") == 0 && text->at < text->end && *text->at == '"')
        return read_string(type, text);
    if (strcmp(name, "coordinates") == 0) {
        *located = true;
        return read_coordinates(in);
    }
    if (strcmp(name, "geometry") == 0 && text->at < text->end && *text->at == '{')
        return read_object(in, depth + 1);
    if (strcmp(name, "features") == 0 || strcmp(name, "geometries") == 0)
        return read_objects(in, depth + 1);
    if (strcmp(name, "crs") == 0)
        return read_area_json_crs(text);
    return skip_value(text, depth);
}

static mc_error *
read_object(area_json_reader *in, int depth)
{
    mc_areas_text *text = in->text;
    char name[NAME_MAX_SIZE], type[NAME_MAX_SIZE] = "";
    bool located = false;
    if (depth > DEPTH_MAX)
        return mc_areas_fail(text, "objects are nested too deeply");
    MC_TRY(expect_area_json_char(text, '{'));
    if (!mc_areas_take(text, '}')) {
        do {
            MC_TRY(read_string(name, text));
            MC_TRY(expect_area_json_char(text, ':'));
            MC_TRY(read_member(in, name, type, &located, depth));
        } while (mc_areas_take(text, ','));
        MC_TRY(expect_area_json_char(text, '}'));
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].name, type) == 0)
            return located ? add_area_json_geometry(in, type) : MC_OK;
    return mc_areas_fail(text, "the type \"%s\" is none of GeoJSON", type);
}

mc_error *
mc_areas_json(mc_areas_text *text)
{
    area_json_reader in = { .text = text };
    mc_error *error = read_object(&in, 0);
    free(in.found.lines);
    MC_TRY(error);
    mc_areas_skip(text);
    return text->at == text->end ? MC_OK : mc_areas_fail(text, "something follows the value");
}
