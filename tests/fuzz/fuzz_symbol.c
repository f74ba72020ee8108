/*
 * Any text as an SVG with placeholders, and as a mark in well-known text. What is filled into a picture ends no
 * attribute and opens no element; a mark has its points within its reach, and parts that follow each other.
 */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "draw/symbol/mark.h"
#include "draw/symbol/picture.h"
#include "fuzz_support.h"

/* How often a character is in a text. */
static size_t
count_character(const char *text, char wanted)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += *text == wanted;
    return count;
}

/* The first line is a value, the rest is the picture. */
static void
fill_picture(const char *text, apr_pool_t *pool)
{
    static const char *const names[] = { "fill", "outline", "stroke-width", "text" };
    size_t line = strcspn(text, "\n");
    const char *value = apr_pstrmemdup(pool, text, line);
    const char *svg = text[line] == '\0' ? "" : text + line + 1;
    const char *const values[] = { value, "#ff0000", "2.5", NULL };
    for (int count = 0; count <= 4; count += 4) {
        const char *filled = mc_svg_fill_in(svg, names, values, count, pool);
        for (const char *ends = "\"'<>;&\n"; *ends != '\0'; ends++)
            MC_ASSERT(count_character(filled, *ends) <= count_character(svg, *ends));
        for (const char *ends = "\"'<>"; *ends != '\0'; ends++)
            MC_ASSERT(count_character(filled, *ends) == count_character(svg, *ends));
    }
}

static void
place_mark(const char *text, apr_pool_t *pool)
{
    static mc_shape shape;
    const mc_mark *mark = mc_mark_of_wkt(apr_pstrcat(pool, "wkt://", text, NULL), pool);
    if (mark == NULL)
        return;
    int before = 0;
    for (int part = 0; part < mark->part_count; part++) {
        MC_ASSERT(mark->ends[part] > before);
        before = mark->ends[part];
    }
    for (int i = 0; i < before; i++)
        MC_ASSERT(hypot(mark->points[2 * i], mark->points[2 * i + 1]) <= mark->reach * (1 + 1e-9));
    mc_shape_clear(&shape, mark->open ? MC_SHAPE_LINES : MC_SHAPE_POLYGONS);
    mc_mark_place(&shape, mark, &(mc_placing){ { 1000, 1000 }, 20, 30, 0.5, 0.5, 33 });
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    const char *text = apr_pstrmemdup(pool, (const char *)data, size);
    fill_picture(text, pool);
    place_mark(text, pool);
    apr_pool_destroy(pool);
    return 0;
}
