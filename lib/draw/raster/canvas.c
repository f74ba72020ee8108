/*
 * Canvases: see canvas.h. A colour that is laid over indexed pixels makes a new index of each pair of an index and a
 * step of coverage; the pairs are worked out as they occur.
 */
#include "draw/raster/canvas.h"

#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "draw/raster/blocks.h"
#include "memory/scratch.h"

enum { STEPS = 16, UNKNOWN = 0xffff };

/* One colour being laid over an indexed image. */
typedef struct laying {
    mc_indexed *image;
    mc_color color;
    uint16_t next[256][STEPS]; /* the index that a pair becomes; UNKNOWN */
    bool complete[256];        /* all steps of an index are known, and stand in `bytes` */
    uint8_t bytes[256][STEPS];
} laying;

static apr_status_t
free_canvas(void *data)
{
    mc_pixels_unref(((mc_canvas *)data)->pixels);
    return APR_SUCCESS;
}

static mc_canvas *
new_canvas(int width, int height, apr_pool_t *pool)
{
    mc_canvas *made = apr_pcalloc(pool, sizeof(*made));
    *made = (mc_canvas){ .width = width, .height = height, .pool = pool };
    made->mask = apr_palloc(pool, (size_t)width + MC_MASK_MARGIN);
    apr_pool_cleanup_register(pool, made, free_canvas, apr_pool_cleanup_null);
    return made;
}

mc_canvas *
mc_canvas_create(int width, int height, bool indexed, apr_pool_t *pool)
{
    mc_canvas *made = new_canvas(width, height, pool);
    made->indexable = indexed;
    return made;
}

mc_canvas *
mc_canvas_of(mc_pixels *pixels, apr_pool_t *pool)
{
    mc_canvas *made = new_canvas(pixels->width, pixels->height, pool);
    made->pixels = mc_pixels_ref(pixels);
    return made;
}

void
mc_canvas_set_ground(mc_canvas *canvas, mc_color color)
{
    memset(canvas->ground, 0, sizeof(canvas->ground));
    mc_brush_color(canvas->ground, color, 255);
    if (canvas->palette == NULL || color.alpha == 0)
        return;
    int ink = mc_ink_palette_index(canvas->palette, color);
    MC_ASSERT(ink >= 0);
    for (int y = 0; y < canvas->height; y++)
        memset(mc_indexed_row(canvas->indexed, y), canvas->palette->laid[ink][0][MC_INK_STEPS - 1],
               (size_t)canvas->width);
}

/* What was known of its pixels does not hold any more, but that nothing shines through. */
static void
mark_painted(mc_canvas *canvas)
{
    canvas->pixels->opacity = canvas->ground[3] == 255 ? MC_OPAQUE : MC_OPACITY_UNKNOWN;
}

mc_error *
mc_canvas_create_with_palette(mc_canvas **canvas, int width, int height, mc_ink_palette *palette, apr_pool_t *pool)
{
    mc_canvas *made = new_canvas(width, height, pool);
    MC_TRY(mc_indexed_create(&made->indexed, width, height, pool));
    made->palette = palette;
    made->indexed->count = palette->count;
    memcpy(made->indexed->colors, palette->colors, sizeof(palette->colors));
    *canvas = made;
    return MC_OK;
}

mc_error *
mc_canvas_indexed(mc_indexed **image, mc_canvas *canvas)
{
    if (canvas->indexable && canvas->indexed == NULL) {
        MC_TRY(mc_indexed_create(&canvas->indexed, canvas->width, canvas->height, canvas->pool));
        memcpy(canvas->indexed->colors[0], canvas->ground, sizeof(canvas->ground));
    }
    *image = canvas->indexed;
    return MC_OK;
}

mc_error *
mc_canvas_pixels(mc_pixels **pixels, mc_canvas *canvas)
{
    if (canvas->indexed != NULL) {
        MC_TRY(mc_indexed_pixels(&canvas->pixels, canvas->indexed, canvas->pool));
    } else if (canvas->pixels == NULL) {
        bool filled = canvas->ground[3] != 0;
        MC_TRY(mc_pixels_create(&canvas->pixels, canvas->width, canvas->height, !filled, canvas->pool));
        if (filled)
            mc_pixels_fill(canvas->pixels, canvas->ground);
    }
    canvas->indexed = NULL;
    canvas->palette = NULL;
    canvas->indexable = false;
    mark_painted(canvas);
    *pixels = canvas->pixels;
    return MC_OK;
}

/* What a pair becomes; -1 where that would be one colour too many. */
static int
next_of(laying *lay, uint8_t index, int step)
{
    if (lay->next[index][step] != UNKNOWN)
        return lay->next[index][step];
    uint8_t color[4];
    memcpy(color, lay->image->colors[index], 4);
    mc_brush_color(color, lay->color, (uint8_t)(step * 17));
    int number = mc_indexed_number(lay->image, color);
    if (number >= 0)
        lay->next[index][step] = (uint16_t)number;
    return number;
}

/* Works out all steps of an index that fills whole stretches, if their colours fit. */
static bool
complete_index_steps(laying *lay, uint8_t index)
{
    if (lay->complete[index])
        return true;
    if (lay->image->count + STEPS > 256)
        return false;
    for (int step = 0; step < STEPS; step++)
        lay->bytes[index][step] = (uint8_t)next_of(lay, index, step);
    return lay->complete[index] = true;
}

/* False at the first pixel that cannot be laid; *done is its number. */
static bool
lay_some(laying *lay, uint8_t *pixels, const uint8_t *mask, int count, int *done)
{
    for (int i = 0; i < count; i++) {
        if (mask[i] == 0)
            continue;
        int number = next_of(lay, pixels[i], mask[i] >> 4);
        if (number < 0) {
            *done += i;
            return false;
        }
        pixels[i] = (uint8_t)number;
    }
    *done += count;
    return true;
}

#ifdef __SSE4_1__
/* Sixteen pixels of one colour. */
static inline void
lay_even(const laying *lay, uint8_t *pixels, uint8_t index, __m128i masks)
{
    const __m128i steps = _mm_and_si128(_mm_srli_epi16(masks, 4), _mm_set1_epi8(15));
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)lay->bytes[index]);
    _mm_storeu_si128((__m128i *)(void *)pixels, _mm_shuffle_epi8(bytes, steps));
}

static bool
lay_row(laying *lay, uint8_t *pixels, const uint8_t *mask, int count, int *done)
{
    *done = 0;
    for (; *done + 16 <= count;) {
        uint8_t *at = pixels + *done;
        __m128i masks = _mm_loadu_si128((const __m128i *)(const void *)(mask + *done));
        __m128i sixteen = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i first = _mm_shuffle_epi8(sixteen, _mm_setzero_si128());
        if (_mm_testz_si128(masks, masks)) {
            *done += 16;
        } else if (_mm_movemask_epi8(_mm_cmpeq_epi8(sixteen, first)) == 0xffff && complete_index_steps(lay, *at)) {
            lay_even(lay, at, *at, masks);
            *done += 16;
        } else if (!lay_some(lay, at, mask + *done, 16, done))
            return false;
    }
    return lay_some(lay, pixels + *done, mask + *done, count - *done, done);
}
#else
static bool
lay_row(laying *lay, uint8_t *pixels, const uint8_t *mask, int count, int *done)
{
    *done = 0;
    return lay_some(lay, pixels, mask, count, done);
}
#endif

/* Lays a row of coverage; where the colours run out, the rest of it onto pixels. */
static mc_error *
lay_on(mc_canvas *canvas, laying *lay, int x, int y, const uint8_t *mask, int count)
{
    int done = 0;
    mc_pixels *pixels;
    if (canvas->indexed != NULL && lay_row(lay, mc_indexed_row(canvas->indexed, y) + x, mask, count, &done))
        return MC_OK;
    MC_TRY(mc_canvas_pixels(&pixels, canvas));
    mc_brush_row(pixels, x + done, y, mask + done, count - done, lay->color);
    return MC_OK;
}

static mc_error *
begin_color_laying(laying **lay, mc_canvas *canvas, mc_color color)
{
    mc_indexed *image;
    MC_TRY(mc_canvas_indexed(&image, canvas));
    *lay = mc_scratch_acquire(sizeof(**lay));
    if (*lay == NULL)
        return mc_error_create(canvas->pool, MC_ERR_NO_MEMORY, "no memory to lay a colour");
    (*lay)->image = image;
    (*lay)->color = color;
    memset((*lay)->next, 0xff, sizeof((*lay)->next));
    memset((*lay)->complete, 0, sizeof((*lay)->complete));
    return MC_OK;
}

/* ---- With a palette ---- */

/* The steps of an ink that is laid. */
static const uint8_t (*steps_of(const mc_canvas *canvas, mc_color color))[MC_INK_STEPS]
{
    int ink = mc_ink_palette_index(canvas->palette, color);
    MC_ASSERT(ink >= 0);
    return canvas->palette->laid[ink];
}

/* The nearest of 16 steps. */
static inline unsigned
step_of(unsigned mask)
{
    return (mask - (mask >> 4) + 8) >> 4;
}

#ifdef __SSE4_1__
/* The nearest of 16 steps of each mask. */
static inline __m128i
steps_of_masks(__m128i masks)
{
    const __m128i low = _mm_set1_epi8(15);
    __m128i high = _mm_and_si128(_mm_srli_epi16(masks, 4), low);
    return _mm_and_si128(_mm_srli_epi16(_mm_add_epi8(_mm_sub_epi8(masks, high), _mm_set1_epi8(8)), 4), low);
}

/* Where sixteen pixels and masks are found in an ink's table. */
static inline void
places_of(uint16_t at[16], __m128i sixteen, __m128i masks)
{
    const __m128i zero = _mm_setzero_si128(), step = steps_of_masks(masks);
    __m128i first = _mm_srli_epi16(_mm_unpacklo_epi8(zero, sixteen), 4);
    __m128i last = _mm_srli_epi16(_mm_unpackhi_epi8(zero, sixteen), 4);
    _mm_storeu_si128((__m128i *)(void *)at, _mm_or_si128(first, _mm_unpacklo_epi8(step, zero)));
    _mm_storeu_si128((__m128i *)(void *)(at + 8), _mm_or_si128(last, _mm_unpackhi_epi8(step, zero)));
}

/* Sixteen pixels of many colours: looked up without a branch, as which of them are covered cannot be foreseen; but of
 * short strokes the last eight are often none of them. */
static inline void
tint_each(uint8_t *pixels, __m128i sixteen, __m128i masks, const uint8_t (*steps)[MC_INK_STEPS])
{
    uint16_t at[16];
    const uint8_t *table = steps[0];
    places_of(at, sixteen, masks);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        pixels[i] = table[at[i]];
    if (_mm_extract_epi64(masks, 1) == 0)
        return;
#pragma GCC unroll 8
    for (int i = 8; i < 16; i++)
        pixels[i] = table[at[i]];
}

/* Sixteen pixels: of one colour, wholly covered, or each by itself. */
static inline void
tint_sixteen(uint8_t *pixels, const uint8_t *mask, const uint8_t (*steps)[MC_INK_STEPS])
{
    const __m128i all = _mm_set1_epi8(-1), zero = _mm_setzero_si128();
    __m128i masks = _mm_loadu_si128((const __m128i *)(const void *)mask);
    __m128i *at = (__m128i *)(void *)pixels;
    if (_mm_testz_si128(masks, masks))
        return;
    __m128i sixteen = _mm_loadu_si128(at);
    if (_mm_testc_si128(masks, all)) {
        _mm_storeu_si128(at, _mm_set1_epi8((char)steps[0][MC_INK_STEPS - 1]));
    } else if (_mm_movemask_epi8(_mm_cmpeq_epi8(sixteen, _mm_shuffle_epi8(sixteen, zero))) == 0xffff) {
        __m128i known = _mm_loadu_si128((const __m128i *)(const void *)steps[*pixels]);
        _mm_storeu_si128(at, _mm_shuffle_epi8(known, steps_of_masks(masks)));
    } else
        tint_each(pixels, sixteen, masks, steps);
}
#endif

static void
tint_row(uint8_t *pixels, const uint8_t *mask, int count, const uint8_t (*steps)[MC_INK_STEPS])
{
    int i = 0;
#ifdef __SSE4_1__
    for (; i + 16 <= count; i += 16)
        tint_sixteen(pixels + i, mask + i, steps);
#endif
    for (; i < count; i++)
        pixels[i] = steps[pixels[i]][step_of(mask[i])];
}

static void
fill_tinted(mc_canvas *canvas, mc_area *coverage, mc_fill_rule rule, mc_color color)
{
    const uint8_t(*steps)[MC_INK_STEPS] = steps_of(canvas, color);
    for (int y = coverage->top; y <= coverage->bottom; y++) {
        int x = 0, count;
        mc_area_take_row(coverage, y, rule, canvas->mask, &x, &count);
        tint_row(mc_indexed_row(canvas->indexed, y) + x, canvas->mask, count, steps);
    }
    mc_area_done(coverage);
}

/* Only the blocks that are in use, which become empty. */
static void
outline_tinted(mc_canvas *canvas, mc_outline *outline, mc_color color)
{
    const uint8_t(*steps)[MC_INK_STEPS] = steps_of(canvas, color);
    for (int y = outline->top; y <= outline->bottom; y++) {
        uint8_t *mask = outline->plane + (size_t)y * (size_t)outline->stride;
        uint8_t *pixels = mc_indexed_row(canvas->indexed, y);
        for (uint64_t bits = outline->touched[y]; bits != 0;) {
            int begin, end;
            mc_blocks_take(&bits, outline->block_bits, &begin, &end);
            tint_row(pixels + begin, mask + begin, (end < canvas->width ? end : canvas->width) - begin, steps);
            memset(mask + begin, 0, (size_t)(end - begin));
        }
        outline->touched[y] = 0;
    }
    mc_outline_done(outline);
}

static void
tint_over(mc_canvas *lower, const mc_canvas *upper)
{
    for (int y = 0; y < lower->height; y++) {
        uint8_t *below = mc_indexed_row(lower->indexed, y);
        const uint8_t *above = mc_indexed_row(upper->indexed, y);
        for (int x = 0; x < lower->width; x++) {
            uint64_t eight;
            for (; x + 8 < lower->width && (memcpy(&eight, above + x, 8), eight == 0);)
                x += 8; /* most of it is empty */
            if (above[x] != 0)
                below[x] = mc_ink_palette_over(lower->palette, above[x], below[x]);
        }
    }
}

/* ---- Of any kind ---- */

mc_error *
mc_canvas_fill(mc_canvas *canvas, mc_area *coverage, mc_fill_rule rule, mc_color color)
{
    laying *lay;
    mc_error *error = MC_OK;
    if (canvas->palette != NULL) {
        fill_tinted(canvas, coverage, rule, color);
        return MC_OK;
    }
    if (canvas->pixels != NULL) {
        mark_painted(canvas);
        mc_brush_fill(canvas->pixels, coverage, rule, color, canvas->mask);
        return MC_OK;
    }
    MC_TRY(begin_color_laying(&lay, canvas, color));
    for (int y = coverage->top; y <= coverage->bottom; y++) {
        int x, count;
        mc_area_take_row(coverage, y, rule, canvas->mask, &x, &count);
        if (count > 0 && error == MC_OK)
            error = lay_on(canvas, lay, x, y, canvas->mask, count);
    }
    mc_area_done(coverage);
    mc_scratch_release(lay);
    return error;
}

/* Sums in 255 steps as steps of 17. */
static void
make_coarse(const mc_outline *outline)
{
    for (int y = outline->top; y <= outline->bottom && outline->coarse && outline->summed; y++) {
        int x, count;
        const uint8_t *mask = mc_outline_row(outline, y, &x, &count);
        uint8_t *row = outline->plane + (mask - outline->plane);
        for (int i = 0; i < count; i++)
            row[i] = (uint8_t)(step_of(row[i]) * 17);
    }
}

mc_error *
mc_canvas_outline(mc_canvas *canvas, mc_outline *outline, mc_color color)
{
    laying *lay;
    mc_error *error = MC_OK;
    if (canvas->palette != NULL) {
        outline_tinted(canvas, outline, color);
        return MC_OK;
    }
    make_coarse(outline);
    if (canvas->pixels != NULL) {
        mark_painted(canvas);
        mc_brush_outline(canvas->pixels, outline, color);
        return MC_OK;
    }
    MC_TRY(begin_color_laying(&lay, canvas, color));
    for (int y = outline->top; y <= outline->bottom; y++) {
        int x, count;
        const uint8_t *mask = mc_outline_row(outline, y, &x, &count);
        if (count > 0 && error == MC_OK)
            error = lay_on(canvas, lay, x, y, mask, count);
        mc_outline_clear_row(outline, y);
    }
    mc_outline_done(outline);
    mc_scratch_release(lay);
    return error;
}

void
mc_canvas_row(mc_canvas *canvas, int x, int y, const uint8_t *mask, int count, mc_color color)
{
    MC_ASSERT(canvas->palette != NULL || canvas->pixels != NULL);
    if (canvas->palette != NULL)
        tint_row(mc_indexed_row(canvas->indexed, y) + x, mask, count, steps_of(canvas, color));
    else
        mc_brush_row(canvas->pixels, x, y, mask, count, color);
}

mc_canvas_ink
mc_canvas_ink_of(const mc_canvas *canvas, mc_color color)
{
    MC_ASSERT(canvas->palette != NULL || canvas->pixels != NULL);
    return (mc_canvas_ink){ color, canvas->palette != NULL ? steps_of(canvas, color) : NULL };
}

/* What of a row lies on the canvas. */
static void
lay_part(mc_canvas *canvas, int x, int y, const uint8_t *mask, int count, const mc_canvas_ink *ink)
{
    int first = x < 0 ? -x : 0;
    count = x + count > canvas->width ? canvas->width - x : count;
    if (y < 0 || y >= canvas->height || first >= count)
        return;
    if (ink->steps != NULL)
        tint_row(mc_indexed_row(canvas->indexed, y) + x + first, mask + first, count - first, ink->steps);
    else
        mc_brush_row(canvas->pixels, x + first, y, mask + first, count - first, ink->color);
}

void
mc_canvas_column(mc_canvas *canvas, int x, int y, int rows, uint8_t *masks, size_t stride, const mc_canvas_ink *ink)
{
#ifdef __SSE4_1__
    if (ink->steps != NULL && x >= 0 && y >= 0 && x + MC_CANVAS_PIECE <= canvas->width && y + rows <= canvas->height) {
        uint8_t *pixels = mc_indexed_row(canvas->indexed, y) + x;
        for (int row = 0; row < rows; row++, pixels += canvas->indexed->stride, masks += stride) {
            tint_sixteen(pixels, masks, ink->steps);
            _mm_storeu_si128((__m128i *)(void *)masks, _mm_setzero_si128());
        }
        return;
    }
#endif
    for (int row = 0; row < rows; row++, masks += stride) {
        lay_part(canvas, x, y + row, masks, MC_CANVAS_PIECE, ink);
        memset(masks, 0, MC_CANVAS_PIECE);
    }
}

#ifdef __SSE4_1__
static void
tint_square(uint8_t *pixels, size_t stride, const uint8_t *mask, const uint8_t (*steps)[MC_INK_STEPS])
{
    int rows[MC_CANVAS_SQUARE];
    uint16_t at[MC_CANVAS_PIECE];
    const uint8_t *table = steps[0];
    for (size_t row = 0; row < MC_CANVAS_SQUARE; row++)
        memcpy(&rows[row], pixels + row * stride, sizeof(*rows));
    places_of(at, _mm_setr_epi32(rows[0], rows[1], rows[2], rows[3]),
              _mm_loadu_si128((const __m128i *)(const void *)mask));
    for (size_t row = 0; row < MC_CANVAS_SQUARE; row++) {
        const uint16_t *four = at + row * MC_CANVAS_SQUARE;
        uint32_t word = (uint32_t)table[four[0]] | (uint32_t)table[four[1]] << 8 | (uint32_t)table[four[2]] << 16 |
                        (uint32_t)table[four[3]] << 24;
        memcpy(pixels + row * stride, &word, sizeof(word)); /* at once: it may be read at once, too */
    }
}
#endif

void
mc_canvas_square(mc_canvas *canvas, int x, int y, const uint8_t mask[MC_CANVAS_PIECE], const mc_canvas_ink *ink)
{
#ifdef __SSE4_1__
    if (ink->steps != NULL && x >= 0 && y >= 0 && x + MC_CANVAS_SQUARE <= canvas->width &&
        y + MC_CANVAS_SQUARE <= canvas->height) {
        tint_square(mc_indexed_row(canvas->indexed, y) + x, (size_t)canvas->indexed->stride, mask, ink->steps);
        return;
    }
#endif
    for (int row = 0; row < MC_CANVAS_SQUARE; row++)
        lay_part(canvas, x, y + row, mask + (size_t)row * MC_CANVAS_SQUARE, MC_CANVAS_SQUARE, ink);
}

mc_error *
mc_canvas_over(mc_canvas *lower, mc_canvas *upper)
{
    mc_pixels *to, *from;
    if (lower->palette != NULL && lower->palette == upper->palette) {
        tint_over(lower, upper);
        return MC_OK;
    }
    MC_TRY(mc_canvas_pixels(&from, upper));
    MC_TRY(mc_canvas_pixels(&to, lower));
    mc_pixels_over(to, 0, 0, from);
    return MC_OK;
}
