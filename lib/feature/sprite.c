/* Marks that are painted once: see sprite.h. They live as long as the painter of a layer. */
#include "feature/sprite.h"

#include <math.h>
#include <string.h>

#include "feature/painter_private.h"

enum {
    STEPS = 8,                   /* of a pixel */
    STEP = MC_SUBPIXELS / STEPS, /* in 1/256 pixel */
    SETS = 8,                    /* marks that are known at a time */
    SIDE_MAX = 128,              /* pixels that a mark might reach: larger ones are painted each time */
    TRIAL = 512,                 /* sprites after which is asked whether that pays */
};

/* All that a mark's look depends on; without gaps that might differ. */
typedef struct look {
    const mc_mark *mark;
    const double *dashes;
    double width, height, anchor_x, anchor_y, turn, stroke_width, dash_offset;
    mc_color fill, line;
    int kind, filled, stroked, join, cap, dash_count;
} look;

typedef struct picture {
    mc_pixels *pixels; /* NULL: not painted yet */
    int left, top;     /* of its corner, from the pixel of the point */
} picture;

typedef struct set {
    look look;
    picture pictures[STEPS][STEPS];
} set;

struct mc_sprites {
    set *sets[SETS];
    int count, next; /* next: the set that goes when there are too many */
    int painted, drawn;
};

static look
look_of(const mc_drawing *drawing)
{
    const mc_stroke *stroke = &drawing->symbol.stroke;
    look made;
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
    made.line = stroke->ink.color;
    made.kind = (int)drawing->symbol.kind;
    made.filled = drawing->symbol.fill.present;
    made.stroked = stroke->ink.present;
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
same_look(const look *a, const look *b)
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
    for (int i = 0; i < STEPS * STEPS; i++)
        mc_pixels_unref(of->pictures[i / STEPS][i % STEPS].pixels);
}

void
mc_sprites_free(mc_sprites *sprites)
{
    for (int i = 0; sprites != NULL && i < sprites->count; i++)
        free_set(sprites->sets[i]);
}

static set *
find_set(mc_painter *painter, const mc_drawing *drawing)
{
    if (painter->sprites == NULL)
        painter->sprites = apr_pcalloc(painter->pool, sizeof(*painter->sprites));
    mc_sprites *sprites = painter->sprites;
    const look wanted = look_of(drawing);
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

/* What is not empty of it; its width in whole fours, as pixels are laid over each other. */
static mc_error *
crop(picture *to, const mc_pixels *from, int middle, apr_pool_t *pool)
{
    int left = from->width, right = 0, top = from->height, bottom = 0;
    for (int y = 0; y < from->height; y++)
        for (int x = 0; x < from->width; x++)
            if (from->data[(size_t)y * from->stride + (size_t)x * 4 + 3] != 0) {
                left = x < left ? x : left;
                right = x > right ? x : right;
                top = y < top ? y : top;
                bottom = y;
            }
    int width = right < left ? 4 : (right - left + 4) & ~3, height = bottom < top ? 1 : bottom - top + 1;
    MC_TRY(mc_pixels_create(&to->pixels, width, height, true, pool));
    mc_pixels_copy(to->pixels, -left, -top, from);
    to->pixels->opacity = MC_OPACITY_UNKNOWN;
    to->left = left - middle;
    to->top = top - middle;
    return MC_OK;
}

static mc_error *
paint(picture *to, mc_painter *painter, const mc_drawing *drawing, int side, int column, int row,
      const mc_feature *feature)
{
    mc_pixels *pixels;
    int middle = side / 2;
    mc_placing placing = drawing->placing;
    placing.at = (mc_shape_point){ middle * MC_SUBPIXELS + column * STEP, middle * MC_SUBPIXELS + row * STEP };
    MC_TRY(mc_pixels_create(&pixels, side, side, true, painter->pool));
    mc_mark_place(&painter->mark, drawing->mark, &placing);
    painter->sprites->painted++;
    mc_error *error = mc_painter_shape(painter, pixels, &drawing->symbol, &painter->mark, feature);
    if (error == MC_OK)
        error = crop(to, pixels, middle, painter->pool);
    mc_pixels_unref(pixels);
    return error;
}

mc_error *
mc_sprite_draw(bool *done, mc_painter *painter, mc_pixels *pixels, const mc_drawing *drawing, mc_shape_point at,
               const mc_feature *feature)
{
    const mc_symbolizer *symbol = &drawing->symbol;
    int side = 2 * ((int)ceil(fmin(drawing->reach, SIDE_MAX)) + 1) + 1;
    *done = false;
    if (drawing->mark == NULL || symbol->fill.pattern != NULL || symbol->stroke.ink.pattern != NULL ||
        symbol->stroke.graphic != NULL || side > SIDE_MAX || side > painter->canvas->width ||
        side > painter->canvas->height)
        return MC_OK;
    set *of = find_set(painter, drawing);
    if (of == NULL)
        return MC_OK;
    int32_t x = at.x + drawing->placing.at.x + STEP / 2, y = at.y + drawing->placing.at.y + STEP / 2;
    int column = (x & (MC_SUBPIXELS - 1)) / STEP, row = (y & (MC_SUBPIXELS - 1)) / STEP;
    picture *wanted = &of->pictures[row][column];
    if (wanted->pixels == NULL)
        MC_TRY(paint(wanted, painter, drawing, side, column, row, feature));
    painter->sprites->drawn++;
    mc_pixels_over(pixels, (x >> 8) + wanted->left, (y >> 8) + wanted->top, wanted->pixels);
    *done = true;
    return MC_OK;
}
