/* Outlines of glyphs by FreeType, with their curves cut into lines that are off by less than a 30th of a pixel. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "draw/font/fonts.h"

#include FT_OUTLINE_H

enum { POINTS_MAX = 1 << 16, STEPS_MAX = 16 };

/* Rings while they are made; FreeType's units are 1/64 pixel, y upwards. */
typedef struct pen {
    mc_glyph_outline *outline;
    int point_room, ring_room;
    float x, y; /* where it is */
    apr_pool_t *pool;
} pen;

static void *
grow_outline_array(const void *old, int count, int *room, size_t size, apr_pool_t *pool)
{
    *room = *room == 0 ? 64 : *room * 2;
    void *made = apr_palloc(pool, size * (size_t)*room);
    if (count > 0)
        memcpy(made, old, size * (size_t)count);
    return made;
}

static int
add_outline_point(pen *to, float x, float y)
{
    mc_glyph_outline *outline = to->outline;
    to->x = x;
    to->y = y;
    if (outline->point_count == POINTS_MAX)
        return 1;
    if (outline->point_count == to->point_room)
        outline->points =
            grow_outline_array(outline->points, outline->point_count, &to->point_room, sizeof(float) * 2, to->pool);
    outline->points[outline->point_count * 2] = x / 64;
    outline->points[outline->point_count * 2 + 1] = -y / 64;
    outline->point_count++;
    return 0;
}

/* Rings of fewer than three points hold nothing. */
static void
end_ring(pen *to)
{
    mc_glyph_outline *outline = to->outline;
    int begin = outline->ring_count == 0 ? 0 : outline->ends[outline->ring_count - 1];
    if (outline->point_count - begin < 3) {
        outline->point_count = begin;
        return;
    }
    if (outline->ring_count == to->ring_room)
        outline->ends = grow_outline_array(outline->ends, outline->ring_count, &to->ring_room, sizeof(int), to->pool);
    outline->ends[outline->ring_count++] = outline->point_count;
}

static int
move_to(const FT_Vector *p, void *baton)
{
    end_ring(baton);
    return add_outline_point(baton, (float)p->x, (float)p->y);
}

static int
line_to(const FT_Vector *p, void *baton)
{
    return add_outline_point(baton, (float)p->x, (float)p->y);
}

/* How many lines stand for a curve whose control point is that far from its chord (1/64 pixel): the error falls with
 * the square of their number. */
static int
steps_for(float bend)
{
    float steps = ceilf(sqrtf(bend / 4));
    return steps < 1 ? 1 : steps > STEPS_MAX ? STEPS_MAX : (int)steps;
}

static int
conic_to(const FT_Vector *control, const FT_Vector *end, void *baton)
{
    pen *to = baton;
    float x0 = to->x, y0 = to->y, x1 = (float)control->x, y1 = (float)control->y, x2 = (float)end->x,
          y2 = (float)end->y;
    int steps = steps_for(hypotf(x0 - 2 * x1 + x2, y0 - 2 * y1 + y2) / 2);
    int failed = 0;
    for (int i = 1; i <= steps && failed == 0; i++) {
        float t = (float)i / (float)steps, s = 1 - t;
        failed =
            add_outline_point(to, s * s * x0 + 2 * s * t * x1 + t * t * x2, s * s * y0 + 2 * s * t * y1 + t * t * y2);
    }
    return failed;
}

static int
cubic_to(const FT_Vector *control1, const FT_Vector *control2, const FT_Vector *end, void *baton)
{
    pen *to = baton;
    float x0 = to->x, y0 = to->y, x1 = (float)control1->x, y1 = (float)control1->y;
    float x2 = (float)control2->x, y2 = (float)control2->y, x3 = (float)end->x, y3 = (float)end->y;
    float first = hypotf(x0 - 2 * x1 + x2, y0 - 2 * y1 + y2), second = hypotf(x1 - 2 * x2 + x3, y1 - 2 * y2 + y3);
    int steps = steps_for(1.5F * fmaxf(first, second));
    int failed = 0;
    for (int i = 1; i <= steps && failed == 0; i++) {
        float t = (float)i / (float)steps, s = 1 - t;
        float a = s * s * s, b = 3 * s * s * t, c = 3 * s * t * t, d = t * t * t;
        failed = add_outline_point(to, a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3);
    }
    return failed;
}

/* With the face's lock held; false where the font has no such outline. */
static bool
load_glyph_outline(mc_face *face, uint32_t glyph, float size, bool hinted)
{
    FT_Face font = face->outlines;
    /* The automatic hinter in its light form moves nothing sideways, so that advances stay as they are. */
    FT_Int32 flags = FT_LOAD_NO_BITMAP | (hinted ? FT_LOAD_TARGET_LIGHT : FT_LOAD_NO_HINTING);
    if (FT_Set_Char_Size(font, 0, (FT_F26Dot6)lrintf(size * 64), 72, 72) != 0 ||
        FT_Load_Glyph(font, glyph, flags) != 0 || font->glyph->format != FT_GLYPH_FORMAT_OUTLINE)
        return false;
    FT_Outline *outline = &font->glyph->outline;
    if (face->embolden) {
        FT_Pos more = (FT_Pos)lrintf(size * 64 / 24);
        FT_Outline_EmboldenXY(outline, more, more);
    }
    if (face->slant != 0) {
        FT_Matrix matrix = { 0x10000, (FT_Fixed)lrint(face->slant * 0x10000), 0, 0x10000 };
        FT_Outline_Transform(outline, &matrix);
    }
    return true;
}

mc_error *
mc_outline_glyph(mc_glyph_outline *outline, uint32_t number, uint32_t glyph, float size, bool hinted, apr_pool_t *pool)
{
    static const FT_Outline_Funcs functions = { move_to, line_to, conic_to, cubic_to, 0, 0 };
    MC_ASSERT(size > 0 && size <= MC_FONT_SIZE_MAX);
    mc_face *face = mc_fonts_face(number);
    *outline = (mc_glyph_outline){ 0 };
    pen to = { .outline = outline, .pool = pool };
    pthread_mutex_lock(&face->lock);
    if (load_glyph_outline(face, glyph, size, hinted) &&
        FT_Outline_Decompose(&face->outlines->glyph->outline, &functions, &to) == 0)
        end_ring(&to);
    else
        outline->point_count = outline->ring_count = 0;
    pthread_mutex_unlock(&face->lock);
    return MC_OK;
}
