/* Marks that are painted once: see sprite.h. They live as long as the painter of a layer. */
#include "draw/paint/sprite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/paint/painter_private.h"

enum {
    STEPS = 8,                   /* of a pixel */
    STEP = MC_SUBPIXELS / STEPS, /* in 1/256 pixel */
    SETS = 8,                    /* marks that are known at a time */
    SIDE_MAX = 128,              /* pixels that a mark might reach: larger ones are painted each time */
    WORD = 8,                    /* pixels that are laid together */
    TRIAL = 512,                 /* sprites after which is asked whether that pays */
};

/* All that a mark's look depends on; without gaps that might differ. */
typedef struct sprite_look {
    const mc_mark *mark;
    const double *dashes;
    double width, height, anchor_x, anchor_y, turn, stroke_width, dash_offset;
    mc_color fill, line;
    int kind, filled, stroked, join, cap, dash_count;
} sprite_look;

/* A pixel of a mark that lets something through. */
typedef struct soft {
    int offset; /* from its upper left pixel, in the rows of the canvas */
    uint8_t index;
} soft;

/* Indices of the canvas' palette. */
typedef struct indices {
    uint8_t *all;   /* row by row, in whole WORDs */
    uint8_t *solid; /* 255 for each pixel that lets nothing through */
    soft *softs;    /* all others that are not empty */
    int soft_count;
} indices;

/* One of the two; neither: not painted yet. */
typedef struct picture {
    mc_pixels *pixels;
    indices indices;
    int left, top; /* of its corner, from the pixel of the point */
    int width, height;
} picture;

typedef struct set {
    sprite_look look;
    picture pictures[STEPS][STEPS];
} set;

struct mc_sprites {
    set *sets[SETS];
    int count, next; /* next: the set that goes when there are too many */
    int painted, drawn;
};

static sprite_look
look_of(const mc_drawing *drawing)
{
    const mc_stroke *stroke = &drawing->symbol.stroke;
    sprite_look made;
    memset(&made, 0, sizeof(made));
    made.mark = drawing->mark;
    made.dashes = stroke->dashes;
    made.width = drawing->placing.width;
    made.height = drawing->placing.height;
    made.anchor_x = drawing->placing.anchor_x;
    made.anchor_y = drawing->placing.anchor_y;
    made.turn = drawing->placing.turn;
    made.stroke_width = stroke->width;
    made.dash_offset = stroke->dash_offset;
    made.fill = drawing->symbol.fill.color;
    made.line = stroke->paint.color;
    made.kind = (int)drawing->symbol.kind;
    made.filled = drawing->symbol.fill.present;
    made.stroked = stroke->paint.present;
    made.join = (int)stroke->join;
    made.cap = (int)stroke->cap;
    made.dash_count = stroke->dash_count;
    return made;
}

static bool
same_color(const mc_color *a, const mc_color *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static bool
same_look(const sprite_look *a, const sprite_look *b)
{
    return a->mark == b->mark && a->dashes == b->dashes && a->width == b->width && a->height == b->height &&
           a->anchor_x == b->anchor_x && a->anchor_y == b->anchor_y && a->turn == b->turn &&
           a->stroke_width == b->stroke_width && a->dash_offset == b->dash_offset && same_color(&a->fill, &b->fill) &&
           same_color(&a->line, &b->line) && a->kind == b->kind && a->filled == b->filled && a->stroked == b->stroked &&
           a->join == b->join && a->cap == b->cap && a->dash_count == b->dash_count;
}

static void
free_set(set *of)
{
    for (int i = 0; i < STEPS * STEPS; i++) {
        mc_pixels_unref(of->pictures[i / STEPS][i % STEPS].pixels);
        free(of->pictures[i / STEPS][i % STEPS].indices.all);
    }
}

static apr_status_t
free_sprites(void *data)
{
    mc_sprites *sprites = data;
    for (int i = 0; i < sprites->count; i++)
        free_set(sprites->sets[i]);
    return APR_SUCCESS;
}

static set *
find_set(mc_painter *painter, const mc_drawing *drawing)
{
    if (painter->sprites == NULL) {
        painter->sprites = apr_pcalloc(painter->pool, sizeof(*painter->sprites));
        apr_pool_cleanup_register(painter->pool, painter->sprites, free_sprites, apr_pool_cleanup_null);
    }
    mc_sprites *sprites = painter->sprites;
    const sprite_look wanted = look_of(drawing);
    for (int i = 0; i < sprites->count; i++)
        if (same_look(&sprites->sets[i]->look, &wanted))
            return sprites->sets[i];
    if (sprites->painted > TRIAL && sprites->drawn < 4 * sprites->painted)
        return NULL; /* each feature looks different */
    set **place = &sprites->sets[sprites->count];
    if (sprites->count < SETS) {
        *place = apr_pcalloc(painter->pool, sizeof(**place));
        sprites->count++;
    } else {
        place = &sprites->sets[sprites->next];
        sprites->next = (sprites->next + 1) % SETS;
        free_set(*place);
        memset(*place, 0, sizeof(**place));
    }
    (*place)->look = wanted;
    return *place;
}

/* What is not empty of a canvas: its columns from *left to *right, its rows from *top to *bottom. */
static void
find_box(const mc_canvas *canvas, int *left, int *right, int *top, int *bottom)
{
    *left = canvas->width, *right = 0, *top = canvas->height, *bottom = 0;
    for (int y = 0; y < canvas->height; y++)
        for (int x = 0; x < canvas->width; x++) {
            bool empty = canvas->palette != NULL
                             ? mc_indexed_row(canvas->indexed, y)[x] == 0
                             : canvas->pixels->data[(size_t)y * canvas->pixels->stride + (size_t)x * 4 + 3] == 0;
            if (empty)
                continue;
            *left = x < *left ? x : *left;
            *right = x > *right ? x : *right;
            *top = y < *top ? y : *top;
            *bottom = y;
        }
}

/* `stride`: of the canvas that it will be laid on. */
static mc_error *
crop_indices(picture *to, const mc_canvas *from, int left, int top, size_t stride, apr_pool_t *pool)
{
    to->width = (to->width + WORD - 1) / WORD * WORD;
    size_t width = (size_t)to->width, size = width * (size_t)to->height;
    uint8_t *block = calloc(size, 2 + sizeof(soft));
    if (block == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for a mark");
    indices *made = &to->indices;
    *made = (indices){ .all = block, .solid = block + size, .softs = (soft *)(void *)(block + 2 * size) };
    for (int y = 0; y < to->height; y++)
        for (int x = 0; x < to->width && left + x < from->width; x++) {
            size_t at = (size_t)y * width + (size_t)x;
            uint8_t index = mc_indexed_row(from->indexed, top + y)[left + x];
            made->all[at] = index;
            if (from->palette->colors[index][3] == 255)
                made->solid[at] = 255;
            else if (index != 0)
                made->softs[made->soft_count++] = (soft){ (int)((size_t)y * stride) + x, index };
        }
    return MC_OK;
}

/* What is not empty of it; the width of pixels in whole fours, as they are laid over each other. */
static mc_error *
crop_sprite(picture *to, const mc_canvas *from, int middle, size_t stride, apr_pool_t *pool)
{
    int left, right, top, bottom;
    find_box(from, &left, &right, &top, &bottom);
    *to = (picture){ .left = left - middle, .top = top - middle };
    to->width = right < left ? 4 : (right - left + 4) & ~3;
    to->height = bottom < top ? 1 : bottom - top + 1;
    if (from->palette != NULL)
        return crop_indices(to, from, left, top, stride, pool);
    MC_TRY(mc_pixels_create(&to->pixels, to->width, to->height, true, pool));
    mc_pixels_copy(to->pixels, -left, -top, from->pixels);
    to->pixels->opacity = MC_OPACITY_UNKNOWN;
    return MC_OK;
}

/* On a canvas of its own, of the same kind as the map's, by a painter whose planes are no larger. */
static mc_error *
paint_sprite(picture *to, mc_painter *painter, const mc_drawing *drawing, int side, int column, int row,
             const mc_feature *feature, apr_pool_t *scratch)
{
    mc_canvas *canvas = mc_canvas_create(side, side, false, scratch);
    mc_pixels *pixels;
    int middle = side / 2;
    mc_placing placing = drawing->placing;
    placing.at = (mc_shape_point){ middle * MC_SUBPIXELS + column * STEP, middle * MC_SUBPIXELS + row * STEP };
    if (painter->canvas->palette != NULL)
        MC_TRY(mc_canvas_create_with_palette(&canvas, side, side, painter->canvas->palette, scratch));
    else
        MC_TRY(mc_canvas_pixels(&pixels, canvas));
    mc_painter *inner = mc_painter_create_inner(painter, canvas, painter->query, scratch);
    mc_mark_place(&painter->mark, drawing->mark, &placing);
    painter->sprites->painted++;
    MC_TRY(inner->paint_shape(inner, canvas, &drawing->symbol, &painter->mark, feature));
    mc_indexed *indexed = painter->canvas->indexed;
    return crop_sprite(to, canvas, middle, indexed == NULL ? 0 : indexed->stride, painter->pool);
}

static mc_error *
paint_once(picture *to, mc_painter *painter, const mc_drawing *drawing, int side, int column, int row,
           const mc_feature *feature)
{
    apr_pool_t *scratch;
    if (to->pixels != NULL || to->indices.all != NULL)
        return MC_OK;
    apr_pool_create(&scratch, painter->pool);
    mc_error *error =
        mc_error_copy(paint_sprite(to, painter, drawing, side, column, row, feature, scratch), painter->pool);
    apr_pool_destroy(scratch);
    return error;
}

/* Where it reaches over the edge of the map. */
static void
lay_clipped_sprite(mc_canvas *canvas, const picture *from, int x, int y)
{
    int first = x < 0 ? -x : 0, last = from->width < canvas->width - x ? from->width : canvas->width - x;
    int bottom = from->height < canvas->height - y ? from->height : canvas->height - y;
    for (int row = y < 0 ? -y : 0; row < bottom; row++) {
        const uint8_t *upper = from->indices.all + (size_t)row * (size_t)from->width;
        uint8_t *pixels = mc_indexed_row(canvas->indexed, y + row);
        for (int i = first; i < last; i++)
            if (upper[i] != 0)
                pixels[x + i] = mc_ink_palette_over(canvas->palette, upper[i], pixels[x + i]);
    }
}

/* Lays indices over those of a canvas. */
static void
lay_indices(mc_canvas *canvas, const picture *from, int x, int y)
{
    if (x < 0 || y < 0 || x + from->width > canvas->width || y + from->height > canvas->height) {
        lay_clipped_sprite(canvas, from, x, y);
        return;
    }
    const indices *with = &from->indices;
    uint8_t *corner = mc_indexed_row(canvas->indexed, y) + x, *row = corner;
    const uint8_t *upper = with->all, *solid = with->solid;
    for (int i = 0; i < from->height; i++, row += canvas->indexed->stride)
        for (int k = 0; k < from->width; k += WORD, upper += WORD, solid += WORD) {
            uint64_t below, above, mask;
            memcpy(&below, row + k, WORD);
            memcpy(&above, upper, WORD);
            memcpy(&mask, solid, WORD);
            below = (below & ~mask) | (above & mask);
            memcpy(row + k, &below, WORD);
        }
    for (int i = 0; i < with->soft_count; i++) {
        uint8_t *at = corner + with->softs[i].offset;
        *at = mc_ink_palette_over(canvas->palette, with->softs[i].index, *at);
    }
}

mc_error *
mc_sprite_draw(bool *done, mc_painter *painter, mc_canvas *canvas, const mc_drawing *drawing, mc_shape_point at,
               const mc_feature *feature)
{
    const mc_symbolizer *symbol = &drawing->symbol;
    int side = 2 * ((int)ceil(fmin(drawing->reach, SIDE_MAX)) + 1) + 1;
    *done = false;
    if (drawing->mark == NULL || symbol->fill.pattern != NULL || symbol->stroke.paint.pattern != NULL ||
        symbol->stroke.graphic != NULL || side > SIDE_MAX || side > painter->canvas->width ||
        side > painter->canvas->height)
        return MC_OK;
    set *of = find_set(painter, drawing);
    if (of == NULL)
        return MC_OK;
    int32_t x = at.x + drawing->placing.at.x + STEP / 2, y = at.y + drawing->placing.at.y + STEP / 2;
    int column = (x & (MC_SUBPIXELS - 1)) / STEP, row = (y & (MC_SUBPIXELS - 1)) / STEP;
    picture *wanted = &of->pictures[row][column];
    MC_TRY(paint_once(wanted, painter, drawing, side, column, row, feature));
    painter->sprites->drawn++;
    if (wanted->indices.all != NULL) {
        lay_indices(canvas, wanted, (x >> 8) + wanted->left, (y >> 8) + wanted->top);
    } else {
        mc_pixels *pixels;
        MC_TRY(mc_canvas_pixels(&pixels, canvas));
        mc_pixels_over(pixels, (x >> 8) + wanted->left, (y >> 8) + wanted->top, wanted->pixels);
    }
    *done = true;
    return MC_OK;
}
