/*
 * Drawing labels. Glyphs become masks of coverage by our own rasteriser, upright ones at four places in a pixel; those
 * masks are kept for the process, in a table with locks of its own (memory/clock_cache.h). The glyphs of a label are
 * put together in a plane of the label's size, and the halo is what lies within its radius of that coverage: so that
 * halo and ink that are not opaque are laid once.
 */
#include <apr_strings.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "draw/label/label_private.h"
#include "memory/clock_cache.h"

enum {
    MASK_BYTES = 8 << 20, /* of kept masks */
    SMALL_SIDE = 128,
    PLACES = 4, /* of an upright glyph in a pixel */
    WIDE = 16,  /* pixels that are looked at together */
    UNDERLINE_PIECE = 512,
};

/* Coverage of one glyph, from the pixel of its origin. */
typedef struct mask {
    int left, top, width, height;
    uint8_t cover[];
} mask;

typedef struct mask_key {
    uint32_t face, index, size, place;
} mask_key;

static struct {
    pthread_once_t once;
    mc_clock_cache *table; /* of mask, by mask_key */
} masks = { .once = PTHREAD_ONCE_INIT };

/* One distance from a covered pixel: what it adds to or takes from that coverage. */
typedef struct label_painter_tap {
    int dx, dy, change;
} label_painter_tap;

struct mc_label_painter {
    mc_canvas *target;
    mc_area *small, *large; /* of one glyph; at their first use */
    mc_shape shape;
    uint8_t *plane, *halo_row; /* of one label; the plane is all 0 between labels */
    size_t room, row_room;
    int *first, *last; /* touched columns of the plane's rows */
    int row_count;
    label_painter_tap *taps; /* of the last halo */
    int tap_count;
    float tap_radius;
    apr_pool_t *pool;
};

static void
create_mask_table(void)
{
    masks.table = mc_clock_cache_create(MASK_BYTES);
}

static apr_status_t
free_label_painter(void *data)
{
    mc_label_painter *painter = data;
    mc_shape_free(&painter->shape);
    free(painter->plane);
    free(painter->halo_row);
    free(painter->first);
    free(painter->last);
    free(painter->taps);
    return APR_SUCCESS;
}

mc_label_painter *
mc_label_painter_create(mc_canvas *target, apr_pool_t *pool)
{
    mc_label_painter *painter = apr_pcalloc(pool, sizeof(*painter));
    *painter = (mc_label_painter){ .target = target, .tap_radius = -1, .pool = pool };
    apr_pool_cleanup_register(pool, painter, free_label_painter, apr_pool_cleanup_null);
    pthread_once(&masks.once, create_mask_table);
    return painter;
}

/* The outline as a shape whose upper left pixel is (0, 0); *left and *top say which pixel that is. False: no ink. */
static bool
place_outline(mc_shape *shape, int *left, int *top, int *width, int *height, const mc_glyph_outline *outline,
              const mc_placed_glyph *at)
{
    float minx = INFINITY, miny = INFINITY, maxx = -INFINITY, maxy = -INFINITY;
    float *moved = outline->points; /* in place */
    for (int i = 0; i < outline->point_count; i++) {
        float x = moved[i * 2], y = moved[i * 2 + 1];
        float px = at->x + x * at->cosine - y * at->sine, py = at->y + x * at->sine + y * at->cosine;
        moved[i * 2] = px;
        moved[i * 2 + 1] = py;
        minx = fminf(minx, px);
        maxx = fmaxf(maxx, px);
        miny = fminf(miny, py);
        maxy = fmaxf(maxy, py);
    }
    if (outline->ring_count == 0 || maxx - minx > MC_GLYPH_SIDE - 4 || maxy - miny > MC_GLYPH_SIDE - 4)
        return false;
    *left = (int)floorf(minx);
    *top = (int)floorf(miny);
    *width = (int)floorf(maxx) - *left + 2;
    *height = (int)floorf(maxy) - *top + 2;
    mc_shape_clear(shape, MC_SHAPE_POLYGONS);
    for (int ring = 0, i = 0; ring < outline->ring_count; ring++) {
        for (; i < outline->ends[ring]; i++)
            mc_shape_add(shape, (int32_t)lrintf((moved[i * 2] - (float)*left) * MC_SUBPIXELS),
                         (int32_t)lrintf((moved[i * 2 + 1] - (float)*top) * MC_SUBPIXELS));
        mc_shape_end_part(shape);
    }
    return !shape->failed && shape->part_count > 0;
}

static mc_error *
area_for(mc_area **area, mc_label_painter *painter, int width, int height)
{
    bool small = width <= SMALL_SIDE && height <= SMALL_SIDE;
    mc_area **kept = small ? &painter->small : &painter->large;
    int side = small ? SMALL_SIDE : MC_GLYPH_SIDE;
    if (*kept == NULL)
        MC_TRY(mc_area_create(kept, side, side, painter->pool));
    *area = *kept;
    return MC_OK;
}

/* The mask of an outline at a place in the map, in memory of the caller's (free). NULL: no memory. */
static mc_error *
make_outline_mask(mask **made, mc_label_painter *painter, const mc_glyph_outline *outline, const mc_placed_glyph *at)
{
    mc_area *area;
    int left, top, width, height;
    *made = NULL;
    if (!place_outline(&painter->shape, &left, &top, &width, &height, outline, at))
        width = height = left = top = 0;
    MC_TRY(area_for(&area, painter, width, height));
    mask *result = calloc(1, sizeof(*result) + (size_t)width * (size_t)height);
    if (result == NULL)
        return MC_OK;
    *result = (mask){ left, top, width, height };
    *made = result;
    if (width == 0)
        return MC_OK;
    mc_area_add(area, &painter->shape, 0, 0);
    for (int y = area->top; y <= area->bottom; y++) {
        uint8_t row[MC_GLYPH_SIDE + MC_MASK_MARGIN];
        int x, count;
        mc_area_take_row(area, y, MC_NON_ZERO, row, &x, &count);
        if (y < height && count > 0 && x < width)
            memcpy(result->cover + (size_t)y * (size_t)width + x, row, (size_t)(count < width - x ? count : width - x));
    }
    mc_area_done(area);
    return MC_OK;
}

static mc_error *
make_mask(mask **made, mc_label_painter *painter, const mc_placed_glyph *at, float size, bool upright,
          apr_pool_t *scratch)
{
    mc_glyph_outline outline;
    *made = NULL;
    MC_TRY(mc_text_outline(&outline, at->face, at->index, size, upright, scratch));
    return make_outline_mask(made, painter, &outline, at);
}

/* Room for a plane of that size, all 0, with WIDE pixels of margin on all sides that halos read. */
static bool
plane_for(mc_label_painter *painter, size_t stride, int rows)
{
    size_t wanted = stride * (size_t)rows;
    if (wanted > painter->room) {
        free(painter->plane);
        painter->plane = calloc(1, wanted);
        painter->room = painter->plane == NULL ? 0 : wanted;
    }
    if (stride > painter->row_room) {
        free(painter->halo_row);
        painter->halo_row = malloc(stride);
        painter->row_room = painter->halo_row == NULL ? 0 : stride;
    }
    if (rows > painter->row_count) {
        free(painter->first);
        free(painter->last);
        painter->first = malloc(sizeof(int) * (size_t)rows);
        painter->last = malloc(sizeof(int) * (size_t)rows);
        painter->row_count = painter->first == NULL || painter->last == NULL ? 0 : rows;
    }
    if (painter->plane == NULL || painter->halo_row == NULL || painter->row_count < rows)
        return false;
    for (int y = 0; y < rows; y++) {
        painter->first[y] = INT32_MAX;
        painter->last[y] = -1;
    }
    return true;
}

/* A label's plane: where it lies on the map and how it is stored. */
typedef struct sheet {
    int left, top, width, height;
    size_t stride; /* width and a margin on both sides */
} sheet;

static uint8_t *
label_ink_row(const mc_label_painter *painter, const sheet *on, int y)
{
    return painter->plane + (size_t)y * on->stride + WIDE;
}

/* Adds a mask; where glyphs overlap, what both cover is covered. */
static void
stamp_glyph_mask(mc_label_painter *painter, const sheet *on, const mask *glyph, int x, int y)
{
    x += glyph->left - on->left;
    y += glyph->top - on->top;
    int from = x < 0 ? -x : 0, to = glyph->width < on->width - x ? glyph->width : on->width - x;
    for (int row = y < 0 ? -y : 0; row < glyph->height && y + row < on->height && from < to; row++) {
        const uint8_t *source = glyph->cover + (size_t)row * (size_t)glyph->width;
        uint8_t *target = label_ink_row(painter, on, y + row) + x;
        for (int i = from; i < to; i++) {
            int sum = target[i] + source[i];
            target[i] = (uint8_t)(sum > 255 ? 255 : sum);
        }
        painter->first[y + row] = x + from < painter->first[y + row] ? x + from : painter->first[y + row];
        painter->last[y + row] = x + to - 1 > painter->last[y + row] ? x + to - 1 : painter->last[y + row];
    }
}

static mc_error *
stamp_upright(mc_label_painter *painter, const sheet *on, const mc_placed_glyph *glyph, float size, apr_pool_t *scratch)
{
    int places = (int)lrintf(glyph->x * PLACES);
    int x = places >= 0 ? places / PLACES : -((PLACES - 1 - places) / PLACES), y = (int)lrintf(glyph->y);
    mask_key key = { glyph->face, glyph->index, (uint32_t)lrintf(size * 64), (uint32_t)(places - x * PLACES) };
    mc_clock_cache_entry *entry;
    mask *found = mc_clock_cache_get(masks.table, &entry, &key, sizeof(key));
    if (found != NULL) {
        stamp_glyph_mask(painter, on, found, x, y);
        mc_clock_cache_release(entry);
        return MC_OK;
    }
    const mc_placed_glyph origin = { glyph->face, glyph->index, (float)key.place / PLACES, 0, 1, 0 };
    MC_TRY(make_mask(&found, painter, &origin, size, true, scratch));
    if (found == NULL)
        return MC_OK;
    stamp_glyph_mask(painter, on, found, x, y);
    mc_clock_cache_put(masks.table, &key, sizeof(key), found,
                       sizeof(*found) + (size_t)found->width * (size_t)found->height, free);
    return MC_OK;
}

static mc_error *
stamp_turned(mc_label_painter *painter, const sheet *on, const mc_placed_glyph *glyph, float size, apr_pool_t *scratch)
{
    mask *made;
    MC_TRY(make_mask(&made, painter, glyph, size, false, scratch));
    if (made != NULL)
        stamp_glyph_mask(painter, on, made, 0, 0);
    free(made);
    return MC_OK;
}

/* A piece of the line under a text; an upright one has its edges on whole pixels. */
static mc_error *
stamp_underline(mc_label_painter *painter, const sheet *on, const mc_label_stroke *piece, bool upright)
{
    static const mc_placed_glyph as_it_is = { 0, 0, 0, 0, 1, 0 };
    float length = hypotf(piece->x1 - piece->x0, piece->y1 - piece->y0), half = piece->width / 2;
    int count = (int)ceilf(length / UNDERLINE_PIECE);
    if (!(length > 0))
        return MC_OK;
    float across[2] = { -(piece->y1 - piece->y0) / length * half, (piece->x1 - piece->x0) / length * half };
    float down = upright ? rintf(piece->y0 - half) + half - piece->y0 : 0;
    for (int i = 0; i < count; i++) {
        float from = (float)i / (float)count, to = (float)(i + 1) / (float)count;
        float x0 = piece->x0 + (piece->x1 - piece->x0) * from, y0 = piece->y0 + (piece->y1 - piece->y0) * from + down;
        float x1 = piece->x0 + (piece->x1 - piece->x0) * to, y1 = piece->y0 + (piece->y1 - piece->y0) * to + down;
        float corners[8] = { x0 - across[0], y0 - across[1], x1 - across[0], y1 - across[1],
                             x1 + across[0], y1 + across[1], x0 + across[0], y0 + across[1] };
        int end = 4;
        mask *made;
        MC_TRY(make_outline_mask(&made, painter, &(mc_glyph_outline){ corners, &end, 4, 1 }, &as_it_is));
        if (made != NULL)
            stamp_glyph_mask(painter, on, made, 0, 0);
        free(made);
    }
    return MC_OK;
}

/* A pixel that is covered to c has its ink up to c - 1/2 from its centre in the direction of a pixel at distance d:
 * that one lies in the halo as far as radius + c - d says. */
static bool
make_taps(mc_label_painter *painter, float radius)
{
    if (painter->tap_radius == radius)
        return true;
    int reach = (int)ceilf(radius);
    free(painter->taps);
    painter->taps = malloc(sizeof(label_painter_tap) * (size_t)((2 * reach + 1) * (2 * reach + 1)));
    painter->tap_count = 0;
    painter->tap_radius = -1;
    if (painter->taps == NULL)
        return false;
    for (int dy = -reach; dy <= reach; dy++)
        for (int dx = -reach; dx <= reach; dx++) {
            int change = (int)lrintf(255 * (radius - hypotf((float)dx, (float)dy)));
            if (change > -255)
                painter->taps[painter->tap_count++] = (label_painter_tap){ dx, dy, change > 255 ? 255 : change };
        }
    painter->tap_radius = radius;
    return true;
}

/* into[i] = the most of what is there and what the tap makes of from[i]. Both may be read and written up to the next
 * multiple of WIDE. */
static void
spread_halo_row(uint8_t *into, const uint8_t *from, int count, int change)
{
#ifdef __SSE4_1__
    const __m128i zero = _mm_setzero_si128();
    const __m128i more = _mm_set1_epi8((char)(change > 0 ? change : 0));
    const __m128i less = _mm_set1_epi8((char)(change < 0 ? -change : 0));
    for (int i = 0; i < count; i += WIDE) {
        __m128i cover = _mm_loadu_si128((const __m128i *)(const void *)(from + i));
        __m128i value = _mm_subs_epu8(_mm_adds_epu8(cover, more), less);
        value = _mm_andnot_si128(_mm_cmpeq_epi8(cover, zero), value);
        __m128i *most = (__m128i *)(void *)(into + i);
        _mm_storeu_si128(most, _mm_max_epu8(_mm_loadu_si128(most), value));
    }
#else
    for (int i = 0; i < count; i++) {
        int value = from[i] == 0 ? 0 : from[i] + change;
        value = value > 255 ? 255 : value;
        into[i] = (uint8_t)(value > into[i] ? value : into[i]);
    }
#endif
}

/* What of a row is on the map. */
static void
lay_label_row(mc_label_painter *painter, int x, int y, const uint8_t *row, int count, mc_color color)
{
    int from = x < 0 ? -x : 0, to = count < painter->target->width - x ? count : painter->target->width - x;
    if (y >= 0 && y < painter->target->height && from < to)
        mc_canvas_row(painter->target, x + from, y, row + from, to - from, color);
}

static void
lay_halo(mc_label_painter *painter, const sheet *on, mc_color color)
{
    int reach = (int)ceilf(painter->tap_radius);
    for (int y = 0; y < on->height; y++) {
        int first = INT32_MAX, last = -1;
        for (int row = y - reach < 0 ? 0 : y - reach; row <= y + reach && row < on->height; row++) {
            first = painter->first[row] < first ? painter->first[row] : first;
            last = painter->last[row] > last ? painter->last[row] : last;
        }
        if (last < first)
            continue;
        first = first - reach < 0 ? 0 : first - reach;
        last = last + reach >= on->width ? on->width - 1 : last + reach;
        int count = last - first + 1;
        memset(painter->halo_row, 0, (size_t)count);
        for (int i = 0; i < painter->tap_count; i++) {
            const label_painter_tap *t = &painter->taps[i];
            int row = y - t->dy;
            if (row >= 0 && row < on->height && painter->last[row] >= 0)
                spread_halo_row(painter->halo_row, label_ink_row(painter, on, row) + first - t->dx, count, t->change);
        }
        lay_label_row(painter, on->left + first, on->top + y, painter->halo_row, count, color);
    }
}

static void
lay_fill(mc_label_painter *painter, const sheet *on, mc_color color)
{
    for (int y = 0; y < on->height; y++) {
        if (painter->last[y] < 0)
            continue;
        uint8_t *row = label_ink_row(painter, on, y) + painter->first[y];
        int count = painter->last[y] - painter->first[y] + 1;
        lay_label_row(painter, on->left + painter->first[y], on->top + y, row, count, color);
        memset(row, 0, (size_t)count);
    }
}

mc_error *
mc_label_painter_draw(mc_label_painter *painter, const mc_label_spot *spot, const mc_label_look *look,
                      apr_pool_t *scratch)
{
    /* Only what may reach the map: labels that may be cut off can be of any size. */
    const float beside = MC_HALO_MAX + 2;
    float left = fmaxf(spot->bounds.minx, -beside), top = fmaxf(spot->bounds.miny, -beside);
    float right = fminf(spot->bounds.maxx, (float)painter->target->width + beside);
    float bottom = fminf(spot->bounds.maxy, (float)painter->target->height + beside);
    if (!(left < right) || !(top < bottom))
        return MC_OK;
    sheet on = { (int)floorf(left), (int)floorf(top), 0, 0, 0 };
    on.width = (int)ceilf(right) - on.left;
    on.height = (int)ceilf(bottom) - on.top;
    on.stride = (size_t)on.width + 4 * WIDE;
    if (!plane_for(painter, on.stride, on.height))
        return mc_error_create(scratch, MC_ERR_NO_MEMORY, "no memory for a label of %dx%d pixels", on.width, on.height);
    for (int i = 0; i < spot->glyph_count; i++)
        MC_TRY((spot->upright ? stamp_upright : stamp_turned)(painter, &on, &spot->glyphs[i], look->size, scratch));
    for (int i = 0; i < spot->underline_count; i++)
        MC_TRY(stamp_underline(painter, &on, &spot->underline[i], spot->upright));
    if (look->halo > 0 && make_taps(painter, look->halo))
        lay_halo(painter, &on, look->halo_color);
    lay_fill(painter, &on, look->fill);
    return MC_OK;
}
