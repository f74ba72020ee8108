/* Outlines by distance: see outline.h. All numbers are relative to a segment's first point, so that they are the same
 * in every tile. */
#include "draw/raster/outline_private.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "draw/raster/plane.h"
#include "image/blend.h"

mc_error *
mc_outline_create(mc_outline **outline, int width, int height, apr_pool_t *pool)
{
    if (width < 1 || height < 1 || width > 32768 || height > 32768)
        return mc_error_create(pool, MC_ERR_LIMIT, "a map of %dx%d pixels cannot be painted", width, height);
    mc_outline *made = apr_pcalloc(pool, sizeof(*made));
    *made = (mc_outline){ .width = width, .height = height, .top = height, .bottom = -1 };
    made->block_bits = mc_blocks_bits(width + MC_OUTLINE_ROOM);
    made->stride = ((width + MC_OUTLINE_ROOM - 1) >> made->block_bits << made->block_bits) + (1 << made->block_bits);
    made->plane = mc_plane_acquire((size_t)made->stride * (size_t)height, &made->dirty, pool);
    made->touched = apr_pcalloc(pool, sizeof(*made->touched) * (size_t)height);
    made->pairs = mc_blend_has_avx2();
    *outline = made;
    return MC_OK;
}

#ifdef __SSE4_1__
/* Coverage of `count` pixels of a row whose first centre is at (x, y), and of up to three more, which get what they
 * should: nothing. The same arithmetic as below, four pixels at a time. */
static void
cover_segment_row(uint8_t *mask, int count, float x, float y, const mc_segment *s)
{
    const __m128 zero = _mm_setzero_ps(), one = _mm_set1_ps(1), dx = _mm_set1_ps(s->dx), dy = _mm_set1_ps(s->dy);
    const __m128 reach = _mm_set1_ps(s->reach), most = _mm_set1_ps(s->most), py = _mm_set1_ps(y);
    const __m128 along_y = _mm_set1_ps(y * s->dy), inverse = _mm_set1_ps(s->per_length2);
    const __m128i low_bytes = _mm_set_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 12, 8, 4, 0);
    const __m128 lanes = _mm_set_ps(3, 2, 1, 0), steps = _mm_set1_ps(s->steps);
    const __m128i factor = _mm_set1_epi32(s->factor);
    for (int i = 0; i < count; i += 4) {
        __m128 px = _mm_add_ps(_mm_set1_ps(x), _mm_add_ps(_mm_set1_ps((float)i), lanes));
        __m128 t = _mm_mul_ps(_mm_add_ps(_mm_mul_ps(px, dx), along_y), inverse);
        t = _mm_min_ps(_mm_max_ps(t, zero), one);
        __m128 ex = _mm_sub_ps(px, _mm_mul_ps(t, dx)), ey = _mm_sub_ps(py, _mm_mul_ps(t, dy));
        __m128 distance = _mm_sqrt_ps(_mm_add_ps(_mm_mul_ps(ex, ex), _mm_mul_ps(ey, ey)));
        __m128 covered = _mm_min_ps(_mm_max_ps(_mm_sub_ps(reach, distance), zero), most);
        __m128i values = _mm_cvttps_epi32(_mm_add_ps(_mm_mul_ps(covered, steps), _mm_set1_ps(0.5F)));
        values = _mm_mullo_epi16(values, factor);
        uint32_t four;
        memcpy(&four, mask + i, 4);
        __m128i larger = _mm_max_epu8(_mm_shuffle_epi8(values, low_bytes), _mm_cvtsi32_si128((int)four));
        four = (uint32_t)_mm_cvtsi128_si32(larger);
        memcpy(mask + i, &four, 4);
    }
}
#else
static void
cover_segment_row(uint8_t *mask, int count, float x, float y, const mc_segment *s)
{
    for (int i = 0; i < count; i++) {
        float px = x + (float)i;
        float t = (px * s->dx + y * s->dy) * s->per_length2;
        t = t < 0 ? 0 : t > 1 ? 1 : t;
        float ex = px - t * s->dx, ey = y - t * s->dy;
        float covered = s->reach - sqrtf(ex * ex + ey * ey);
        covered = covered < 0 ? 0 : covered > s->most ? s->most : covered;
        uint8_t value = (uint8_t)((int)(covered * s->steps + 0.5F) * s->factor);
        mask[i] = value > mask[i] ? value : mask[i];
    }
}
#endif

static mc_segment
make_outline_segment(const mc_outline *outline, mc_shape_point a, mc_shape_point b, float pen)
{
    const float unit = 1.0F / MC_SUBPIXELS;
    mc_segment s = { .dx = (float)(b.x - a.x) * unit, .dy = (float)(b.y - a.y) * unit };
    float length2 = s.dx * s.dx + s.dy * s.dy, height = fabsf(s.dy);
    s.per_length2 = length2 > 0 ? 1 / length2 : 0;
    s.most = pen < 1 ? pen : 1;
    s.reach = pen < 1 ? 1 : pen / 2 + 0.5F;
    s.steps = outline->coarse ? 15 : 255;
    s.factor = outline->coarse ? 17 : 1;
    if (height >= 0.5F && fabsf(s.dx) >= 1) { /* else four pixels are all that there can be in a row */
        s.slope = s.dx / s.dy;
        s.half = s.reach * sqrtf(length2) / height;
    }
    s.left = (s.dx < 0 ? s.dx : 0) - s.reach;
    s.right = (s.dx > 0 ? s.dx : 0) + s.reach;
    s.ax = a.x >> 8;
    s.ay = a.y >> 8;
    s.fx = (float)(a.x & (MC_SUBPIXELS - 1)) * unit;
    s.fy = (float)(a.y & (MC_SUBPIXELS - 1)) * unit;
    return s;
}

static void
add_segment_row(mc_outline *outline, const mc_segment *s, int row)
{
    float y = (float)(row - s->ay) + 0.5F - s->fy;
    int first, last;
    mc_segment_columns(&first, &last, y, s);
    first = first < 0 ? 0 : first;
    last = last >= outline->width ? outline->width - 1 : last;
    if (first > last)
        return;
    cover_segment_row(outline->plane + (size_t)row * (size_t)outline->stride + first, last - first + 1,
                      (float)(first - s->ax) + 0.5F - s->fx, y, s);
    outline->touched[row] |= mc_blocks_of(first, first + ((last - first) | MC_OUTLINE_MARGIN), outline->block_bits);
}

void
mc_outline_add_line(mc_outline *outline, mc_shape_point a, mc_shape_point b, float pen)
{
    if (a.y > b.y || (a.y == b.y && a.x > b.x)) { /* both directions give the same to the last bit */
        mc_shape_point swap = a;
        a = b;
        b = swap;
    }
    if (outline->coarse && pen <= 1 && b.y - a.y < MC_SUBPIXELS && mc_outline_stamp(outline, a, b, pen))
        return;
    int32_t reach = pen < 1 ? MC_SUBPIXELS : (int32_t)(pen / 2 * MC_SUBPIXELS) + MC_SUBPIXELS / 2 + 1;
    int32_t right = outline->width * MC_SUBPIXELS + reach;
    int top = (a.y - reach) >> 8, bottom = (b.y + reach) >> 8;
    top = top < 0 ? 0 : top;
    bottom = bottom >= outline->height ? outline->height - 1 : bottom;
    if (top > bottom || (a.x < -reach && b.x < -reach) || (a.x > right && b.x > right))
        return;
    mc_segment s = make_outline_segment(outline, a, b, pen);
    outline->dirty = true;
    outline->top = top < outline->top ? top : outline->top;
    outline->bottom = bottom > outline->bottom ? bottom : outline->bottom;
    if (outline->pairs)
        top = mc_outline_rows_avx2(outline, &s, top, bottom);
    for (int row = top; row <= bottom; row++)
        add_segment_row(outline, &s, row);
}

void
mc_outline_add(mc_outline *outline, const mc_shape *shape, float pen)
{
    int begin = 0;
    for (int part = 0; part < shape->part_count; part++) {
        int end = shape->ends[part];
        if (shape->kind == MC_SHAPE_POLYGONS)
            mc_outline_add_line(outline, shape->points[end - 1], shape->points[begin], pen);
        for (int i = begin + 1; i < end; i++)
            mc_outline_add_line(outline, shape->points[i - 1], shape->points[i], pen);
        begin = end;
    }
}

const uint8_t *
mc_outline_row(const mc_outline *outline, int y, int *x, int *count)
{
    uint64_t bits = outline->touched[y];
    *x = *count = 0;
    if (bits != 0) {
        int end = (64 - __builtin_clzll(bits)) << outline->block_bits;
        *x = __builtin_ctzll(bits) << outline->block_bits;
        *count = (end < outline->width ? end : outline->width) - *x;
    }
    return outline->plane + (size_t)y * (size_t)outline->stride + *x;
}

void
mc_outline_clear_row(mc_outline *outline, int y)
{
    uint8_t *row = outline->plane + (size_t)y * (size_t)outline->stride;
    for (uint64_t bits = outline->touched[y]; bits != 0;) {
        int begin, end;
        mc_blocks_take(&bits, outline->block_bits, &begin, &end);
        memset(row + begin, 0, (size_t)(end - begin));
    }
    outline->touched[y] = 0;
}

void
mc_outline_done(mc_outline *outline)
{
    outline->top = outline->height;
    outline->bottom = -1;
    outline->dirty = outline->summed = false;
}
