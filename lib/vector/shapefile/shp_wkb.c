/* See shp_wkb.h. Vertices of shapefiles and of little-endian WKB are the same bytes. */
#include "vector/shapefile/shp_wkb.h"

#include "base/bytes.h"
#include "vector/shapefile/shp_private.h"

enum { WKB_HEAD_POINT = 1, WKB_HEAD_LINE, WKB_HEAD_POLYGON, WKB_HEAD_POINTS, WKB_HEAD_LINES, WKB_HEAD_POLYGONS };

/* The parts of a record; all counts fit it. */
typedef struct shp_parts {
    const uint8_t *begins, *vertices;
    uint32_t parts, points;
} shp_parts;

static void
append_word(mc_wkb_buffer *wkb, uint32_t word)
{
    uint8_t bytes[4];
    (void)mc_store_little32(bytes, word);
    mc_wkb_append(wkb, bytes, sizeof(bytes));
}

static void
append_wkb_head(mc_wkb_buffer *wkb, uint32_t type)
{
    const uint8_t little = 1;
    mc_wkb_append(wkb, &little, 1);
    append_word(wkb, type);
}

static void
append_vertices(mc_wkb_buffer *wkb, const shp_parts *p, uint32_t begin, uint32_t end)
{
    append_word(wkb, end - begin);
    mc_wkb_append(wkb, p->vertices + (size_t)begin * 16, (size_t)(end - begin) * 16);
}

static uint32_t
part_begin(const shp_parts *p, uint32_t part)
{
    return part < p->parts ? mc_little32(p->begins + (size_t)part * 4) : p->points;
}

static bool
find_shp_parts(shp_parts *p, const mc_shp_record *record)
{
    if (record->size < PARTS_AT + 8)
        return false;
    p->parts = mc_little32(record->content + PARTS_AT);
    p->points = mc_little32(record->content + PARTS_AT + 4);
    if (PARTS_AT + 8 + (uint64_t)p->parts * 4 + (uint64_t)p->points * 16 > record->size)
        return false;
    p->begins = record->content + PARTS_AT + 8;
    p->vertices = p->begins + (size_t)p->parts * 4;
    for (uint32_t i = 0; i < p->parts; i++)
        if (part_begin(p, i) > part_begin(p, i + 1) || part_begin(p, i + 1) > p->points)
            return false;
    return p->parts > 0;
}

/* Twice the area of a ring, with the sign of its direction. */
static double
signed_ring_area(const shp_parts *p, uint32_t begin, uint32_t end)
{
    double area = 0;
    const uint8_t *first = p->vertices + (size_t)begin * 16;
    for (uint32_t i = begin + 1; i + 1 < end; i++) {
        const uint8_t *a = p->vertices + (size_t)i * 16, *b = a + 16;
        const double x0 = mc_little_double(first), y0 = mc_little_double(first + 8);
        area += (mc_little_double(a) - x0) * (mc_little_double(b + 8) - y0) -
                (mc_little_double(b) - x0) * (mc_little_double(a + 8) - y0);
    }
    return area;
}

static bool
is_ring_turned(const shp_parts *p, uint32_t ring)
{
    return signed_ring_area(p, part_begin(p, ring), part_begin(p, ring + 1)) < 0;
}

static void
append_polygons(mc_wkb_buffer *wkb, const shp_parts *p)
{
    uint32_t polygons = 0;
    const bool first = is_ring_turned(p, 0); /* rings that are turned as the first one begin a polygon of their own */
    for (uint32_t i = 0; i < p->parts; i++)
        polygons += is_ring_turned(p, i) == first;
    if (polygons > 1) {
        append_wkb_head(wkb, WKB_HEAD_POLYGONS);
        append_word(wkb, polygons);
    }
    for (uint32_t i = 0, end; i < p->parts; i = end) {
        for (end = i + 1; end < p->parts && is_ring_turned(p, end) != first;)
            end++;
        append_wkb_head(wkb, WKB_HEAD_POLYGON);
        append_word(wkb, end - i);
        for (uint32_t ring = i; ring < end; ring++)
            append_vertices(wkb, p, part_begin(p, ring), part_begin(p, ring + 1));
    }
}

static void
append_lines(mc_wkb_buffer *wkb, const shp_parts *p)
{
    if (p->parts > 1) {
        append_wkb_head(wkb, WKB_HEAD_LINES);
        append_word(wkb, p->parts);
    }
    for (uint32_t i = 0; i < p->parts; i++) {
        append_wkb_head(wkb, WKB_HEAD_LINE);
        append_vertices(wkb, p, part_begin(p, i), part_begin(p, i + 1));
    }
}

static bool
append_points(mc_wkb_buffer *wkb, const mc_shp_record *record)
{
    if (record->size < PARTS_AT + 4)
        return false;
    const uint32_t count = mc_little32(record->content + PARTS_AT);
    if (PARTS_AT + 4 + (uint64_t)count * 16 > record->size)
        return false;
    append_wkb_head(wkb, WKB_HEAD_POINTS);
    append_word(wkb, count);
    for (uint32_t i = 0; i < count; i++) {
        append_wkb_head(wkb, WKB_HEAD_POINT);
        mc_wkb_append(wkb, record->content + PARTS_AT + 4 + (size_t)i * 16, 16);
    }
    return true;
}

bool
mc_shp_to_wkb(mc_wkb_buffer *wkb, const mc_shp_record *record)
{
    shp_parts parts;
    const int kind = shp_record_kind(record);
    if (kind == SHP_POINT && record->size >= 20) {
        append_wkb_head(wkb, WKB_HEAD_POINT);
        mc_wkb_append(wkb, record->content + 4, 16);
        return !wkb->failed;
    }
    if (kind == SHP_MULTIPOINT)
        return append_points(wkb, record) && !wkb->failed;
    if ((kind != SHP_LINE && kind != SHP_POLYGON) || !find_shp_parts(&parts, record))
        return false;
    (kind == SHP_LINE ? append_lines : append_polygons)(wkb, &parts);
    return !wkb->failed;
}
