/*
 * See pile.h. Of each stroke its vertices are kept, relative to the corner of its box, in a quarter of the memory that
 * features have; it is painted in a window of its own. Of maps on which strokes hardly meet the pile is painted from
 * the first one on, which is the same.
 */
#include "feature/pile.h"

#include <math.h>
#include <string.h>

#include "feature/bands.h"
#include "feature/blocks.h"
#include "feature/cover.h"
#include "feature/lanes.h"
#include "feature/outline_private.h"
#include "image/scratch.h"

enum {
    WINDOW = MC_COVER_MARGIN, /* pixels of its sides */
    LARGEST = WINDOW - 6,     /* of a stroke's box: its coordinates fit 16 bits */
    STROKES_MAX = 1 << 17,
    WORDS_MAX = 1 << 21,
    FIRST_ROOM = 1 << 10, /* strokes; twice as many words */
    LOOKS_MAX = 256,
    PIECES_MAX = 1 << 18,
    PIECES_OF_STROKE = WINDOW * WINDOW / MC_CANVAS_PIECE,
    FEW = 64,  /* strokes for which it is not worth to look what is hidden, */
    DEPTH = 2, /* nor where their boxes have less than so many times the map's area */
    FULL = 255,
    FULL_TINT = 248, /* the last step of a palette */
};

/* What strokes look like. */
typedef struct look {
    const mc_symbolizer *symbol;
    bool constant; /* the same for all features */
    bool thin;
    mc_color color;
    mc_pen pen;
    mc_canvas_ink ink;
} look;

/* A stroke: its box in pixels of the map, and where its vertices are. */
typedef struct stroke {
    uint32_t first; /* word: the ends of all parts but the last, then x + 65536 y from the corner, 1/256 pixel */
    int16_t left, top;
    uint8_t columns, rows, look, parts;
} stroke;

/* Coverage that is to be laid: of sixteen pixels of a row or four of four rows. */
typedef struct piece {
    uint8_t mask[MC_CANVAS_PIECE];
    int16_t x, y;
    uint8_t look;
    bool square;
} piece;

struct mc_pile {
    mc_painter *painter;
    stroke *strokes; /* of the scratch list, as the two below */
    uint32_t *words;
    piece *pieces;
    uint32_t count, room, word_count, word_room, piece_count;
    int64_t area; /* of all boxes */
    look looks[LOOKS_MAX];
    int look_count, last_look;
    mc_outline *window; /* NULL: not used so far */
    mc_cover cover;
    mc_shape shape; /* what is being painted */
    int *ends;
};

static apr_status_t
free_pile(void *data)
{
    mc_pile *pile = data;
    mc_scratch_release(pile->strokes);
    mc_scratch_release(pile->words);
    mc_scratch_release(pile->pieces);
    mc_shape_free(&pile->shape);
    return APR_SUCCESS;
}

mc_pile *
mc_pile_create(mc_painter *painter)
{
    mc_pile *made = apr_pcalloc(painter->pool, sizeof(*made));
    made->painter = painter;
    apr_pool_cleanup_register(painter->pool, made, free_pile, apr_pool_cleanup_null);
    return made;
}

/* ---- What waits ---- */

static bool
is_constant(const mc_stroke *stroke)
{
    return stroke->width_value == NULL && stroke->ink.color_value == NULL && stroke->ink.opacity == NULL;
}

static bool
looks_like(const look *known, const mc_symbolizer *symbol, double width, mc_color color)
{
    return known->symbol == symbol && known->pen.width == width && memcmp(&known->color, &color, sizeof(color)) == 0;
}

/* The number of a look; -1: there is no room for one more. */
static int
find_look(mc_pile *pile, const mc_symbolizer *symbol, const mc_feature *feature)
{
    mc_painter *painter = pile->painter;
    const mc_stroke *stroke = &symbol->stroke;
    for (int i = 0; i < pile->look_count && is_constant(stroke); i++)
        if (pile->looks[i].symbol == symbol)
            return i;
    double width = mc_painter_value(painter, stroke->width_value, stroke->width, feature);
    width = width > 0 ? mc_painter_pixels(painter, symbol, width) : 0;
    mc_color color = mc_painter_ink(painter, &stroke->ink, feature);
    for (int i = 0; i < pile->look_count; i++)
        if (looks_like(&pile->looks[i], symbol, width, color))
            return i;
    if (pile->look_count == LOOKS_MAX)
        return -1;
    look *made = &pile->looks[pile->look_count];
    *made = (look){ .symbol = symbol, .color = color, .pen = mc_painter_pen(painter, symbol, width) };
    made->thin = mc_painter_is_thin(stroke, width, symbol);
    return pile->look_count++;
}

/* How far a stroke's corners at its bends lie from the line, at most, for half of its width. */
static double
reach_of_bends(const mc_shape *shape, const mc_pen *pen)
{
    double most = pen->cap == MC_CAP_SQUARE ? M_SQRT2 : 1;
    for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++])
        for (int i = begin + 2; i < shape->ends[part]; i++) {
            const mc_shape_point *p = &shape->points[i - 2];
            double ux = p[1].x - p[0].x, uy = p[1].y - p[0].y, vx = p[2].x - p[1].x, vy = p[2].y - p[1].y;
            double dot = ux * vx + uy * vy;
            bool is_blunt = dot > 0 && 4 * dot * dot >= (ux * ux + uy * uy) * (vx * vx + vy * vy); /* 60 degrees */
            most = fmax(most, is_blunt ? 1.1548 : MC_BANDS_MITRE_LIMIT);
        }
    return most;
}

/* The pixels that a stroke may touch; false: there are none on the map. */
static bool
find_box(int box[4], const mc_pile *pile, const look *of, const mc_shape *shape)
{
    const mc_canvas *canvas = pile->painter->canvas;
    int32_t minx, miny, maxx, maxy;
    if (!mc_shape_bounds(shape, &minx, &miny, &maxx, &maxy))
        return false;
    double half = of->pen.width / 2, reach = of->thin ? fmax(half, 0.5) + 1.0 / 16 : half * reach_of_bends(shape, &of->pen);
    int32_t around = (int32_t)(reach * MC_SUBPIXELS) + MC_SUBPIXELS / 2 + 2;
    box[0] = (minx - around) >> 8;
    box[1] = (miny - around) >> 8;
    box[2] = (maxx + around) >> 8;
    box[3] = (maxy + around) >> 8;
    return box[0] < canvas->width && box[1] < canvas->height && box[2] >= 0 && box[3] >= 0;
}

static bool
grow(void **block, uint32_t *room, uint32_t count, uint32_t needed, uint32_t most, size_t size)
{
    uint32_t wanted = *room == 0 ? FIRST_ROOM : *room;
    while (wanted < needed)
        wanted *= 2;
    if (wanted == *room)
        return true;
    void *grown = wanted > most ? NULL : mc_scratch_acquire(size * wanted);
    if (grown == NULL)
        return false;
    if (count > 0)
        memcpy(grown, *block, size * count);
    mc_scratch_release(*block);
    *block = grown;
    *room = wanted;
    return true;
}

/* False: it has to be laid before. */
static bool
make_room(mc_pile *pile, const mc_shape *shape)
{
    uint32_t words = pile->word_count + (uint32_t)(shape->part_count - 1 + shape->point_count);
    void *strokes = pile->strokes, *all = pile->words;
    bool fits = grow(&strokes, &pile->room, pile->count, pile->count + 1, STROKES_MAX, sizeof(stroke));
    pile->strokes = strokes;
    fits = fits && grow(&all, &pile->word_room, pile->word_count, words, WORDS_MAX, sizeof(uint32_t));
    pile->words = all;
    return fits;
}

static void
put(mc_pile *pile, int number, const mc_shape *shape, const int box[4])
{
    stroke *s = &pile->strokes[pile->count++];
    *s = (stroke){ .first = pile->word_count, .left = (int16_t)box[0], .top = (int16_t)box[1], .look = (uint8_t)number };
    s->columns = (uint8_t)(box[2] - box[0] + 1);
    s->rows = (uint8_t)(box[3] - box[1] + 1);
    s->parts = (uint8_t)shape->part_count;
    uint32_t *word = pile->words + pile->word_count;
    for (int i = 0; i + 1 < shape->part_count; i++)
        *word++ = (uint32_t)shape->ends[i];
    for (int i = 0; i < shape->point_count; i++)
        *word++ = (uint32_t)(shape->points[i].x - (box[0] << 8)) | (uint32_t)(shape->points[i].y - (box[1] << 8)) << 16;
    pile->word_count = (uint32_t)(word - pile->words);
    pile->area += (int64_t)s->columns * s->rows;
}

/* What mc_bands_add or mc_outline_add paint of lines alone. */
static bool
is_plain(const mc_symbolizer *symbol, const mc_geometry *geometry)
{
    const mc_stroke *stroke = &symbol->stroke;
    return symbol->kind == MC_SYMBOL_LINE && stroke->ink.present && stroke->graphic == NULL &&
           stroke->ink.pattern == NULL && stroke->dashes == NULL && symbol->offset == 0 &&
           !mc_painter_is_moved(symbol) && geometry->shapes[MC_SHAPE_POLYGONS].part_count == 0 &&
           geometry->shapes[MC_SHAPE_LINES].part_count > 0 && geometry->shapes[MC_SHAPE_LINES].part_count < 256;
}

mc_error *
mc_pile_take(bool *taken, mc_pile *pile, mc_canvas *canvas, const mc_symbolizer *symbol, const mc_feature *feature)
{
    int box[4];
    *taken = false;
    int number = is_plain(symbol, feature->geometry) ? find_look(pile, symbol, feature) : -1;
    if (number < 0 || pile->looks[number].pen.width > MC_BANDS_WIDEST)
        return mc_pile_lay(pile, canvas);
    const look *of = &pile->looks[number];
    const mc_shape *shape =
        mc_painter_straight(pile->painter, symbol, &feature->geometry->shapes[MC_SHAPE_LINES]);
    if (!(of->pen.width > 0) || !find_box(box, pile, of, shape)) {
        *taken = true;
        return MC_OK;
    }
    if (box[2] - box[0] >= LARGEST || box[3] - box[1] >= LARGEST)
        return mc_pile_lay(pile, canvas);
    if (!make_room(pile, shape)) {
        look kept = *of;
        MC_TRY(mc_pile_lay(pile, canvas));
        pile->looks[number = pile->look_count++] = kept;
        if (!make_room(pile, shape))
            return MC_OK;
    }
    put(pile, number, shape, box);
    *taken = true;
    return MC_OK;
}

/* ---- Laying ---- */

static inline mc_shape_point
point_of(uint32_t word)
{
    return (mc_shape_point){ (int32_t)(word & 0xffff), (int32_t)(word >> 16) };
}

/* The stroke that a number stands for, relative to the corner of its box. */
static const mc_shape *
shape_of(mc_pile *pile, uint32_t number)
{
    const stroke *s = &pile->strokes[number];
    uint32_t end = number + 1 < pile->count ? s[1].first : pile->word_count;
    const uint32_t *word = pile->words + s->first;
    mc_shape *shape = &pile->shape;
    int points = (int)(end - s->first) - (s->parts - 1);
    mc_shape_clear(shape, MC_SHAPE_LINES);
    if (!mc_shape_reserve(shape, points))
        return NULL;
    for (int i = 0; i + 1 < s->parts; i++)
        pile->ends[i] = (int)*word++;
    pile->ends[s->parts - 1] = points;
    for (int i = 0; i < points; i++, word++)
        shape->points[i] = point_of(*word);
    shape->point_count = points;
    return shape;
}

static void
paint_in_window(mc_pile *pile, uint32_t number)
{
    const look *of = &pile->looks[pile->strokes[number].look];
    const mc_shape *own = shape_of(pile, number);
    if (own == NULL)
        return;
    mc_shape shape = *own;
    shape.ends = pile->ends;
    shape.part_count = pile->strokes[number].parts;
    if (of->thin)
        mc_outline_add(pile->window, &shape, (float)of->pen.width);
    else
        MC_ASSERT(mc_bands_add(pile->window, &shape, &of->pen));
}

/* Which of four pixels of a row cannot be seen any more. */
static inline unsigned
of_row(const mc_pile *pile, int x, int y)
{
    return y < 0 || y >= pile->cover.height ? 15 : (unsigned)mc_cover_get(&pile->cover, x, y) & 15;
}

/* Lays sixteen pixels of the window. */
static void
lay_now(mc_pile *pile, mc_canvas *canvas, const stroke *s, int x, int y, const uint8_t *mask)
{
    mc_canvas_piece(canvas, x, y, mask, &pile->looks[s->look].ink);
}

/* Keeps what can be seen of them. */
static void
lay_later(mc_pile *pile, mc_canvas *canvas, const stroke *s, int x, int y, const uint8_t *mask)
{
    const look *of = &pile->looks[s->look];
    if (y < 0 || y >= canvas->height)
        return;
    unsigned hidden = (unsigned)mc_cover_get(&pile->cover, x, y) & 0xffff;
    if ((mc_lanes_from(mask, 1) & ~hidden) == 0)
        return;
    piece *made = &pile->pieces[pile->piece_count++];
    mc_lanes_without(made->mask, mask, hidden);
    made->x = (int16_t)x;
    made->y = (int16_t)y;
    made->look = s->look;
    made->square = false;
    if (of->color.alpha == 255)
        mc_cover_add(&pile->cover, x, y, mc_lanes_from(mask, of->ink.steps != NULL ? FULL_TINT : FULL));
}

/* Lays a stroke that is one short thin line, which the process has painted already; false where it is not. */
static bool
lay_stamp(mc_pile *pile, mc_canvas *canvas, uint32_t number, bool now)
{
    const stroke *s = &pile->strokes[number];
    const look *of = &pile->looks[s->look];
    uint32_t end = number + 1 < pile->count ? s[1].first : pile->word_count;
    if (!of->thin || of->pen.width > 1 || !pile->window->coarse || s->parts != 1 || end - s->first != 2)
        return false;
    int left, top;
    uint8_t most;
    mc_shape_point a = point_of(pile->words[s->first]), b = point_of(pile->words[s->first + 1]);
    const uint8_t *stamp = a.y < b.y || (a.y == b.y && a.x <= b.x)
                               ? mc_outline_stamp_of(&left, &top, &most, a, b, (float)of->pen.width)
                               : mc_outline_stamp_of(&left, &top, &most, b, a, (float)of->pen.width);
    if (stamp == NULL)
        return false;
    piece made = { .x = (int16_t)(s->left + left), .y = (int16_t)(s->top + top), .look = s->look, .square = true };
    mc_lanes_most(made.mask, stamp, most);
    if (now) {
        mc_canvas_square(canvas, made.x, made.y, made.mask, &of->ink);
        return true;
    }
    unsigned hidden = 0;
    for (int row = 0; row < MC_CANVAS_SQUARE; row++)
        hidden |= of_row(pile, made.x, made.y + row) << row * MC_CANVAS_SQUARE;
    unsigned seen = mc_lanes_from(made.mask, 1) & ~hidden;
    if (seen == 0)
        return true;
    mc_lanes_without(made.mask, made.mask, hidden);
    pile->pieces[pile->piece_count++] = made;
    unsigned full = of->color.alpha == 255 ? mc_lanes_from(made.mask, FULL_TINT) : 0;
    for (int row = 0; row < MC_CANVAS_SQUARE && full != 0; row++, full >>= MC_CANVAS_SQUARE)
        if ((full & 15) != 0)
            mc_cover_add(&pile->cover, made.x, made.y + row, full & 15);
    return true;
}

typedef void taker(mc_pile *pile, mc_canvas *canvas, const stroke *s, int x, int y, const uint8_t *mask);

/* Paints a stroke and empties the window again. */
static void
take_stroke(mc_pile *pile, mc_canvas *canvas, uint32_t number, taker *take)
{
    const stroke *s = &pile->strokes[number];
    mc_outline *window = pile->window;
    window->cover_left = s->left;
    window->cover_top = s->top;
    paint_in_window(pile, number);
    for (int row = window->top; row <= window->bottom; row++) {
        uint8_t *mask = window->plane + (size_t)row * (size_t)window->stride;
        for (uint64_t bits = window->touched[row]; bits != 0;) {
            int begin, end;
            mc_blocks_take(&bits, window->shift, &begin, &end);
            for (int x = begin; x < end; x += MC_CANVAS_PIECE)
                take(pile, canvas, s, s->left + x, s->top + row, mask + x);
            memset(mask + begin, 0, (size_t)(end - begin));
        }
        window->touched[row] = 0;
    }
    mc_outline_done(window);
}

static bool
is_hidden(const mc_pile *pile, const stroke *s)
{
    return mc_cover_hides(&pile->cover, s->left, s->top, s->columns, s->rows);
}

static mc_error *
prepare(mc_pile *pile, mc_canvas *canvas, bool search)
{
    apr_pool_t *pool = pile->painter->pool;
    if (pile->window == NULL) {
        MC_TRY(mc_outline_create(&pile->window, WINDOW, WINDOW, pool));
        pile->ends = apr_palloc(pool, sizeof(int) * 256);
    }
    pile->window->coarse = canvas->tints != NULL;
    for (int i = 0; i < pile->look_count; i++)
        pile->looks[i].ink = mc_canvas_ink_of(canvas, pile->looks[i].color);
    if (search && pile->cover.words == NULL)
        mc_cover_create(&pile->cover, canvas->width, canvas->height, pool);
    else if (search)
        mc_cover_clear(&pile->cover);
    if (search && pile->pieces == NULL)
        pile->pieces = mc_scratch_acquire(sizeof(piece) * PIECES_MAX);
    pile->piece_count = 0;
    return MC_OK;
}

/* From the last stroke on; how many are left where there is no room for more. */
static uint32_t
search_all(mc_pile *pile, mc_canvas *canvas)
{
    uint32_t left = pile->count;
    for (; left > 0 && pile->piece_count + PIECES_OF_STROKE <= PIECES_MAX; left--)
        if (!is_hidden(pile, &pile->strokes[left - 1]) && !lay_stamp(pile, canvas, left - 1, false))
            take_stroke(pile, canvas, left - 1, lay_later);
    return left;
}

mc_error *
mc_pile_lay(mc_pile *pile, mc_canvas *canvas)
{
    if (pile->count == 0) {
        pile->look_count = 0;
        return MC_OK;
    }
    int64_t map = (int64_t)canvas->width * canvas->height;
    bool search = pile->count >= FEW && pile->area > DEPTH * map;
    MC_TRY(prepare(pile, canvas, search));
    search = search && pile->pieces != NULL;
    pile->window->cover = search ? &pile->cover : NULL;
    uint32_t left = search ? search_all(pile, canvas) : pile->count;
    for (uint32_t i = 0; i < left; i++)
        if ((!search || !is_hidden(pile, &pile->strokes[i])) && !lay_stamp(pile, canvas, i, true))
            take_stroke(pile, canvas, i, lay_now);
    for (uint32_t i = pile->piece_count; i-- > 0;) {
        const piece *at = &pile->pieces[i];
        (at->square ? mc_canvas_square : mc_canvas_piece)(canvas, at->x, at->y, at->mask, &pile->looks[at->look].ink);
    }
    pile->count = pile->word_count = 0;
    pile->look_count = 0;
    pile->area = 0;
    return MC_OK;
}
