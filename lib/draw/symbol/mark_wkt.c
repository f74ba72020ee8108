/* Marks that are geometries in well-known text (OGC 06-103r4, 7), as GeoServer has them: wkt://LINESTRING(0 0, 1 1). */
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "draw/symbol/mark.h"

#define SCHEME "wkt://"

enum { POINTS_MAX = 4096, PARTS_MAX = 512, DEPTH_MAX = 6, ARC_STEPS = 24 /* of a half circle */ };

#define FARTHEST 64.0 /* from the anchor, in units of the size */

typedef struct wkt_reader {
    const char *at;
    double (*points)[2];
    int *ends;
    int point_count, part_count;
    bool failed;
} wkt_reader;

/* What an element of a geometry is. */
typedef enum wkt_kind { PART, ARC, JOINED } wkt_kind;

typedef struct wkt_name {
    const char *name;
    wkt_kind kind;
    bool open;
} wkt_name;

static const wkt_name names[] = { { "LINESTRING", PART, true },        { "MULTILINESTRING", PART, true },
                                  { "POLYGON", PART, false },          { "MULTIPOLYGON", PART, false },
                                  { "CIRCULARSTRING", ARC, true },     { "COMPOUNDCURVE", JOINED, true },
                                  { "MULTICURVE", PART, true },        { "CURVEPOLYGON", PART, false },
                                  { "MULTISURFACE", PART, false },     { "LINEARRING", PART, false },
                                  { "GEOMETRYCOLLECTION", PART, true } };

static void
skip_wkt_blanks(wkt_reader *reader)
{
    reader->at += strspn(reader->at, " \t\r\n");
}

static bool
take_wkt_character(wkt_reader *reader, char c)
{
    skip_wkt_blanks(reader);
    if (*reader->at != c)
        return false;
    reader->at++;
    return true;
}

/* The name that an element begins with, or NULL. */
static const wkt_name *
take_wkt_name(wkt_reader *reader)
{
    skip_wkt_blanks(reader);
    size_t size = strcspn(reader->at, " \t\r\n(),0123456789+-.");
    const wkt_name *found = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i].name) == size && strncasecmp(names[i].name, reader->at, size) == 0)
            found = &names[i];
    reader->failed |= size > 0 && found == NULL;
    reader->at += size;
    return found;
}

static void
add_wkt_point(wkt_reader *reader, double x, double y)
{
    if (reader->point_count == POINTS_MAX || !(fabs(x) < 1e9) || !(fabs(y) < 1e9)) {
        reader->failed = true;
        return;
    }
    reader->points[reader->point_count][0] = x;
    reader->points[reader->point_count++][1] = y;
}

/* One vertex: two numbers; further ones (Z, M) are passed over. */
static bool
read_wkt_vertex(wkt_reader *reader, double vertex[2])
{
    int count = 0;
    for (skip_wkt_blanks(reader); count < 4 && strchr("0123456789+-.", *reader->at) != NULL && *reader->at != '\0';
         skip_wkt_blanks(reader)) {
        char *end;
        double value = strtod(reader->at, &end);
        if (end == reader->at)
            break;
        reader->at = end;
        if (count < 2)
            vertex[count] = value;
        count++;
    }
    reader->failed |= count < 2;
    return !reader->failed;
}

/* From the last point through `middle` to `end` on a circle, as chords. A straight line where there is none. */
static void
add_wkt_arc(wkt_reader *reader, const double middle[2], const double end[2])
{
    const double *begin = reader->points[reader->point_count - 1];
    double ax = middle[0] - begin[0], ay = middle[1] - begin[1], bx = end[0] - begin[0], by = end[1] - begin[1];
    bool whole = bx == 0 && by == 0; /* the middle is opposite */
    double d = 2 * (ax * by - ay * bx), a2 = ax * ax + ay * ay, b2 = bx * bx + by * by;
    double x = whole ? ax / 2 : (by * a2 - ay * b2) / d, y = whole ? ay / 2 : (ax * b2 - bx * a2) / d;
    double radius = hypot(x, y), from = atan2(-y, -x), to = atan2(by - y, bx - x), between = atan2(ay - y, ax - x);
    if (!isfinite(radius) || (a2 == 0 && whole)) {
        add_wkt_point(reader, middle[0], middle[1]);
        add_wkt_point(reader, end[0], end[1]);
        return;
    }
    bool left = whole || fmod(between - from + 4 * M_PI, 2 * M_PI) < fmod(to - from + 4 * M_PI, 2 * M_PI);
    double turn = whole ? 2 * M_PI : fmod((left ? to - from : from - to) + 4 * M_PI, 2 * M_PI);
    int steps = (int)ceil(turn / M_PI * ARC_STEPS);
    x += begin[0];
    y += begin[1];
    for (int i = 1; i < steps; i++) {
        double angle = from + (left ? turn : -turn) * i / steps;
        add_wkt_point(reader, x + radius * cos(angle), y + radius * sin(angle));
    }
    add_wkt_point(reader, end[0], end[1]);
}

static void
end_wkt_part(wkt_reader *reader, int begin)
{
    if (reader->point_count == begin)
        return;
    if (reader->part_count == PARTS_MAX)
        reader->failed = true;
    else
        reader->ends[reader->part_count++] = reader->point_count;
}

/* Vertices with commas between them, up to the closing bracket. */
static void
read_wkt_vertices(wkt_reader *reader, bool arcs)
{
    double vertex[2], middle[2] = { 0, 0 };
    for (int i = 0; !reader->failed && read_wkt_vertex(reader, vertex); i++) {
        if (arcs && i > 0 && i % 2 == 1)
            memcpy(middle, vertex, sizeof(middle));
        else if (arcs && i > 0)
            add_wkt_arc(reader, middle, vertex);
        else
            add_wkt_point(reader, vertex[0], vertex[1]);
        if (!take_wkt_character(reader, ','))
            break;
    }
}

/* An element: a name, where there is one, and what stands in its brackets. `joined`: its points belong to the part that
 * is being made. */
static void
read_wkt_element(wkt_reader *reader, const wkt_name *name, bool joined, int depth)
{
    const int begin = reader->point_count;
    skip_wkt_blanks(reader);
    if (depth > DEPTH_MAX || !take_wkt_character(reader, '(')) {
        reader->failed = true;
        return;
    }
    skip_wkt_blanks(reader);
    if (*reader->at != '(' && strchr("0123456789+-.", *reader->at) != NULL) {
        read_wkt_vertices(reader, name != NULL && name->kind == ARC);
        if (!joined)
            end_wkt_part(reader, begin);
    } else {
        bool join = joined || (name != NULL && name->kind == JOINED);
        do
            read_wkt_element(reader, take_wkt_name(reader), join, depth + 1);
        while (!reader->failed && take_wkt_character(reader, ','));
        if (join && !joined)
            end_wkt_part(reader, begin);
    }
    reader->failed |= !take_wkt_character(reader, ')');
}

/* Puts the points into units of the size, y downwards. False where the geometry has no size. */
static bool
scale_wkt_points(mc_mark *mark, wkt_reader *reader)
{
    double least[2] = { INFINITY, INFINITY }, most[2] = { -INFINITY, -INFINITY };
    for (int i = 0; i < reader->point_count * 2; i++) {
        least[i % 2] = fmin(least[i % 2], reader->points[i / 2][i % 2]);
        most[i % 2] = fmax(most[i % 2], reader->points[i / 2][i % 2]);
    }
    double size = most[1] > least[1] ? most[1] - least[1] : most[0] - least[0];
    for (int i = 0; size > 0 && i < reader->point_count; i++) {
        reader->points[i][0] /= size;
        reader->points[i][1] /= -size;
        mark->reach = fmax(mark->reach, hypot(reader->points[i][0], reader->points[i][1]));
    }
    return size > 0 && mark->reach <= FARTHEST;
}

const mc_mark *
mc_mark_of_wkt(const char *name, apr_pool_t *pool)
{
    if (strncasecmp(name, SCHEME, strlen(SCHEME)) != 0)
        return NULL;
    wkt_reader reader = { .at = name + strlen(SCHEME) };
    reader.points = apr_palloc(pool, sizeof(*reader.points) * POINTS_MAX);
    reader.ends = apr_palloc(pool, sizeof(*reader.ends) * PARTS_MAX);
    const wkt_name *first = take_wkt_name(&reader);
    if (first == NULL)
        return NULL;
    read_wkt_element(&reader, first, false, 0);
    skip_wkt_blanks(&reader);
    if (reader.failed || *reader.at != '\0' || reader.part_count == 0)
        return NULL;
    mc_mark *made = apr_palloc(pool, sizeof(*made));
    *made = (mc_mark){ .name = name,
                       .open = first->open,
                       .points = reader.points[0],
                       .ends = reader.ends,
                       .part_count = reader.part_count };
    return scale_wkt_points(made, &reader) ? made : NULL;
}
