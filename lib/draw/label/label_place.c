/*
 * Finding room. Each label tries its places in turn; the first one that is free and inside the map is taken: that of
 * the style, for points the eight around the point and its symbol, then moves. One that sticks out of the map is moved
 * inwards, by at most half its size, so that it stays beside what it names.
 */
#include "draw/label/label_place.h"

#include <apr_tables.h>
#include <math.h>

#include "mapcache/trace.h"

enum {
    EDGE = 1,        /* pixels of the map that no label touches */
    MOVES_MAX = 24,  /* where maxDisplacement is given */
    SLIDES_MAX = 12, /* along a line, to either side */
    REPEATS_MAX = 256,
    TRIES_MAX = 250000,  /* of all labels of a map */
    SAMPLES_OF_TRY = 64, /* of a path: what making it costs, in tries */
};

#define GENTLE 7.0      /* degrees between neighbouring glyphs */
#define CLEARANCE 2.0F  /* pixels between a symbol and its label in one of the eight places */
#define UNDERLINE 0.06F /* ems */

typedef struct known_font {
    const mc_text_symbol *symbol;
    const mc_font *font;
} known_font;

typedef struct placing {
    apr_array_header_t *fonts; /* of known_font */
    mc_label_grid *grid;
    mc_label_painter *painter;
    const mc_label_map *map;
    int width, height;
    const mc_label_candidate *candidate;
    mc_label_box own;       /* around the symbols at its point */
    bool owned;             /* there are such symbols, */
    bool over;              /* and the label is meant to lie on them */
    mc_label_layout layout; /* of the candidate */
    mc_label_spot spot;
    apr_pool_t *scratch;
    bool drawn;
    int64_t tries, left_out;
} placing;

/* How far a stretch has to go to be inside; `most` at most, else false. */
static bool
find_inward_move(float *move, float least, float greatest, int size, float most)
{
    *move = least < EDGE ? EDGE - least : greatest > (float)(size - EDGE) ? (float)(size - EDGE) - greatest : 0;
    *move = *move > 0 ? ceilf(*move) : floorf(*move); /* hinted glyphs stand on whole pixels */
    return fabsf(*move) <= most && least + *move >= EDGE && greatest + *move <= (float)(size - EDGE);
}

/* A style that puts a label beside its symbol may let the halo touch it. */
static bool
covers_own_symbol(const placing *p, float margin)
{
    float less = p->candidate->look.halo + 1 - fminf(margin, 0);
    for (int i = 0; i < p->spot.box_count; i++) {
        const mc_label_box *box = &p->spot.boxes[i];
        if (box->minx + less < p->own.maxx && box->maxx - less > p->own.minx && box->miny + less < p->own.maxy &&
            box->maxy - less > p->own.miny)
            return true;
    }
    return false;
}

static bool
spot_is_free(const placing *p)
{
    const mc_text_symbol *symbol = p->candidate->symbol;
    const mc_label_spot *spot = &p->spot;
    float margin = (float)symbol->space_around * p->candidate->unit;
    if (symbol->overlapping)
        return true;
    return mc_label_grid_is_free(p->grid, spot->boxes, spot->box_count, margin) &&
           mc_label_obstacles_allow(p->map->obstacles, spot->boxes, spot->box_count, margin,
                                    p->owned ? &p->own : NULL) &&
           (!p->owned || p->over || !covers_own_symbol(p, margin));
}

/* Whether labels of the candidate may be cut off at the edge of the map. */
static bool
may_be_cut(const placing *p)
{
    return p->map->whole && p->candidate->symbol->partial;
}

/* Whether the spot, moved inwards if need be, is inside and free; then it is drawn. */
static mc_error *
try_label_spot(placing *p, bool may_move)
{
    const mc_text_symbol *symbol = p->candidate->symbol;
    mc_label_spot *spot = &p->spot;
    float dx = 0, dy = 0;
    p->tries++;
    if (spot->glyph_count == 0)
        return MC_OK;
    const mc_label_box *all = &spot->bounds;
    float wide = may_move ? (all->maxx - all->minx) / 2 : 0, high = may_move ? (all->maxy - all->miny) / 2 : 0;
    if (!may_be_cut(p) && (!find_inward_move(&dx, floorf(all->minx), ceilf(all->maxx), p->width, wide) ||
                           !find_inward_move(&dy, floorf(all->miny), ceilf(all->maxy), p->height, high)))
        return MC_OK;
    if (dx != 0 || dy != 0)
        mc_label_spot_move(spot, dx, dy);
    if (!spot_is_free(p))
        return MC_OK;
    if (p->candidate->shield != NULL)
        MC_TRY(mc_label_shield_draw(p->map->shields, p->candidate->shield, spot, p->scratch));
    MC_TRY(mc_label_painter_draw(p->painter, spot, &p->candidate->look, p->scratch));
    if (!symbol->overlapping)
        mc_label_grid_take(p->grid, spot->boxes, spot->box_count);
    p->drawn = true;
    return MC_OK;
}

/* Once the text has its place. */
static void
put_shield(placing *p)
{
    if (p->candidate->shield != NULL && p->spot.glyph_count > 0)
        mc_label_shield_put(&p->spot, p->candidate->shield, &p->layout);
}

/* ---- At a point ---- */

/* The label's box with its anchor beside a point. */
static void
put_at(placing *p, double x, double y, float anchor_x, float moved_x)
{
    const mc_label_candidate *c = p->candidate;
    float left = (float)x + moved_x - anchor_x * p->layout.width;
    float top = (float)y + c->moved[1] - (1 - c->anchor[1]) * p->layout.height;
    const float around[2] = { (float)x + moved_x, (float)y + c->moved[1] };
    mc_label_at(&p->spot, &p->layout, left, top, c->angle, around, c->look.halo);
    put_shield(p);
}

static bool
sticks_out(const placing *p)
{
    if (may_be_cut(p))
        return false;
    return p->spot.bounds.minx < EDGE || p->spot.bounds.maxx > (float)(p->width - EDGE);
}

/* Places around the first one, on three rings. */
static mc_error *
place_around(placing *p)
{
    const mc_label_candidate *c = p->candidate;
    float most = (float)c->symbol->max_displacement * c->unit, at[2] = { 0, 0 };
    if (most <= 0)
        return MC_OK;
    put_at(p, c->at[0], c->at[1], c->anchor[0], c->moved[0]);
    for (int i = 0; i < MOVES_MAX && !p->drawn; i++) {
        float radius = most * (float)(i / 8 + 1) / (MOVES_MAX / 8), angle = (float)(i % 8) * (float)(M_PI / 4);
        float x = radius * cosf(angle), y = rintf(-radius * sinf(angle)); /* baselines stay on whole pixels */
        mc_label_spot_move(&p->spot, x - at[0], y - at[1]);
        at[0] = x;
        at[1] = y;
        MC_TRY(try_label_spot(p, false));
    }
    return MC_OK;
}

/* The place that the style says, or that on the other side of the point where the label would stick out. */
static void
put_as_styled(placing *p)
{
    const mc_label_candidate *c = p->candidate;
    put_at(p, c->at[0], c->at[1], c->anchor[0], c->moved[0]);
    if (c->kind != MC_SHAPE_POINTS || !sticks_out(p))
        return;
    put_at(p, c->at[0], c->at[1], 1 - c->anchor[0], -c->moved[0]);
    if (sticks_out(p))
        put_at(p, c->at[0], c->at[1], c->anchor[0], c->moved[0]);
}

/* Whether the style puts the middle of the label about where a point is. */
static bool
is_centred_on(const placing *p, double x, double y, float width, float height)
{
    return fabs(x - (double)p->spot.middle[0]) <= width / 4 + 1 &&
           fabs(y - (double)p->spot.middle[1]) <= height / 4 + 1;
}

/* One of the eight places around a point and its symbol; dx, dy: -1, 0, 1. */
static void
put_beside(placing *p, int dx, int dy)
{
    const mc_label_candidate *c = p->candidate;
    float x = (float)c->at[0], y = (float)c->at[1], width = p->layout.width, height = p->layout.height;
    float gap = fmaxf(fabsf(c->moved[0]), fabsf(c->moved[1])), left = gap, right = gap, up = gap, down = gap;
    if (p->owned) {
        left = fmaxf(gap, x - p->own.minx + CLEARANCE);
        right = fmaxf(gap, p->own.maxx - x + CLEARANCE);
        up = fmaxf(gap, y - p->own.miny + CLEARANCE);
        down = fmaxf(gap, p->own.maxy - y + CLEARANCE);
    }
    float corner_x = dx > 0 ? x + right : dx < 0 ? x - left - width : x - width / 2;
    float beside = dx == 0 ? 1 : 0.5F; /* how far up or down it goes */
    float corner_y = dy < 0 ? y - up * beside - height : dy > 0 ? y + down * beside : y - height / 2;
    const float around[2] = { x, y };
    mc_label_at(&p->spot, &p->layout, corner_x, corner_y, 0, around, c->look.halo);
    put_shield(p);
}

/* The eight usual places around a point. */
static mc_error *
place_beside(placing *p)
{
    static const signed char places[8][2] = { { 1, -1 }, { 1, 1 },  { -1, -1 }, { -1, 1 },
                                              { 1, 0 },  { -1, 0 }, { 0, -1 },  { 0, 1 } };
    for (int i = 0; i < 8 && !p->drawn; i++) {
        put_beside(p, places[i][0], places[i][1]);
        MC_TRY(try_label_spot(p, false));
    }
    return MC_OK;
}

/* Below or above the symbols that are in the way, for a label that stands on an area or a line. */
static mc_error *
place_past_symbols(placing *p)
{
    mc_label_box taken;
    put_as_styled(p);
    if (p->spot.box_count != 1 || !p->spot.upright)
        return MC_OK;
    const mc_label_box box = p->spot.boxes[0];
    float height = box.maxy - box.miny;
    const mc_label_box within = { box.minx, box.miny - height, box.maxx, box.maxy + height };
    if (!mc_label_obstacles_inside(&taken, p->map->obstacles, &within))
        return MC_OK;
    float down = ceilf(taken.maxy - box.miny), up = floorf(taken.miny - box.maxy);
    mc_label_spot_move(&p->spot, 0, down);
    if (down <= 2 * height)
        MC_TRY(try_label_spot(p, false));
    if (p->drawn || -up > 2 * height)
        return MC_OK;
    mc_label_spot_move(&p->spot, 0, up - down);
    return try_label_spot(p, false);
}

static mc_error *
place_point(placing *p)
{
    const mc_label_candidate *c = p->candidate;
    p->owned = mc_label_obstacles_at(&p->own, p->map->obstacles, c->at);
    put_as_styled(p);
    float width = p->layout.width, height = p->layout.height;
    bool centred = is_centred_on(p, c->at[0], c->at[1], width, height);
    p->over = p->owned && c->symbol->anchored &&
              is_centred_on(p, (p->own.minx + p->own.maxx) / 2, (p->own.miny + p->own.maxy) / 2,
                            p->own.maxx - p->own.minx, p->own.maxy - p->own.miny);
    MC_TRY(try_label_spot(p, false));
    if (!p->drawn && c->kind == MC_SHAPE_POINTS && c->angle == 0 && !p->over && (!centred || p->owned))
        MC_TRY(place_beside(p));
    if (!p->drawn && c->kind != MC_SHAPE_POINTS && !p->over)
        MC_TRY(place_past_symbols(p));
    if (p->drawn)
        return MC_OK;
    put_as_styled(p);
    MC_TRY(try_label_spot(p, true));
    return p->drawn ? MC_OK : place_around(p);
}

/* ---- Along a line ---- */

static mc_error *
try_along(placing *p, const mc_label_path *path, float middle, double max_angle)
{
    const mc_label_candidate *c = p->candidate;
    const mc_label_course course = { c->offset, (float)(max_angle * M_PI / 180), c->look.halo,
                                     c->symbol->curved && c->shield == NULL, c->symbol->any_direction };
    p->drawn = false;
    if (c->standing) {
        float at[2];
        mc_label_path_point(at, path, middle);
        put_at(p, (double)at[0], (double)at[1], c->anchor[0], c->moved[0]);
        return try_label_spot(p, false);
    }
    p->tries++;
    if (!mc_label_along(&p->spot, &p->layout, path, middle, &course))
        return MC_OK;
    put_shield(p);
    return try_label_spot(p, false);
}

/* Near `middle`, farther and farther from it up to `reach`. */
static mc_error *
slide_bent(placing *p, const mc_label_path *path, float middle, float reach, double max_angle)
{
    float step = fmaxf(p->layout.size, reach / SLIDES_MAX);
    MC_TRY(try_along(p, path, middle, max_angle));
    for (int i = 1; i <= SLIDES_MAX && (float)i * step <= reach && !p->drawn; i++) {
        MC_TRY(try_along(p, path, middle + (float)i * step, max_angle));
        if (!p->drawn)
            MC_TRY(try_along(p, path, middle - (float)i * step, max_angle));
    }
    return MC_OK;
}

/* Where the line is nearly straight, else where it bends as much as may be. */
static mc_error *
slide_along_line(placing *p, const mc_label_path *path, float middle, float reach)
{
    double most = p->candidate->symbol->max_angle;
    MC_TRY(slide_bent(p, path, middle, reach, fmin(most, GENTLE)));
    return p->drawn || most <= GENTLE || p->candidate->standing ? MC_OK : slide_bent(p, path, middle, reach, most);
}

static mc_error *
place_on_path(placing *p, const mc_label_path *path)
{
    const mc_text_symbol *symbol = p->candidate->symbol;
    float unit = p->candidate->unit, width = p->layout.width;
    float step = symbol->repeat > 0 ? (float)symbol->repeat * unit : width + (float)symbol->gap * unit;
    bool repeated = symbol->repeated || symbol->repeat > 0;
    if (!repeated)
        return slide_along_line(p, path, path->length / 2, (path->length - width) / 2);
    step = fmaxf(step, width + p->layout.size);
    float first = symbol->repeat > 0 ? fmodf(path->length / 2, step) /* so that one is in the middle */
                                     : (float)symbol->initial_gap * unit + width / 2;
    first = fmaxf(first, width / 2);
    for (int i = 0; i < REPEATS_MAX && p->tries <= TRIES_MAX && first + (float)i * step + width / 2 <= path->length;
         i++)
        MC_TRY(slide_along_line(p, path, first + (float)i * step, (step - width) / 2));
    return MC_OK;
}

/* On the part from point `begin` to `end`. */
static mc_error *
place_on_part(placing *p, int begin, int end)
{
    const mc_label_candidate *c = p->candidate;
    mc_label_path path;
    mc_label_path_make(&path, c->points + (size_t)begin * 2, end - begin, p->layout.size, c->symbol->generalize,
                       p->scratch);
    p->tries += path.count / SAMPLES_OF_TRY;
    if (path.length >= p->layout.width)
        return place_on_path(p, &path);
    /* An upright label need not fit on its line: the longest one has it in its middle. */
    return c->standing && begin == c->longest_begin ? try_along(p, &path, path.length / 2, 0) : MC_OK;
}

/* On each part where labels are repeated, else on the longest one. */
static mc_error *
place_line(placing *p)
{
    const mc_label_candidate *c = p->candidate;
    bool all = c->symbol->repeated || c->symbol->repeat > 0 || c->symbol->label_all;
    if (!all)
        return place_on_part(p, c->longest_begin, c->longest_end);
    for (int i = 0, begin = 0; i < c->end_count; begin = c->ends[i++])
        MC_TRY(place_on_part(p, begin, c->ends[i]));
    return MC_OK;
}

/* ---- All of them ---- */

/* Lines begin at the side where the anchor is. */
static float
text_alignment(const mc_label_candidate *c)
{
    return fminf(1, fmaxf(0, c->anchor[0]));
}

/* Whether it could be drawn at all. */
static bool
glyphs_can_be_drawn(const placing *p)
{
    for (int i = 0; i < p->layout.count; i++) {
        const mc_label_glyph *g = &p->layout.glyphs[i];
        if (g->right - g->left > MC_GLYPH_SIDE - 8 || g->bottom - g->top > MC_GLYPH_SIDE - 8)
            return false;
    }
    return p->layout.count > 0;
}

/* Looked up once for each symbol. */
static mc_error *
font_of(const mc_font **font, placing *p, const mc_text_symbol *symbol)
{
    for (int i = 0; i < p->fonts->nelts; i++) {
        const known_font *known = &APR_ARRAY_IDX(p->fonts, i, known_font);
        *font = known->font;
        if (known->symbol == symbol)
            return MC_OK;
    }
    MC_TRY(mc_text_font(font, &symbol->font, p->scratch));
    APR_ARRAY_PUSH(p->fonts, known_font) = (known_font){ symbol, *font };
    return MC_OK;
}

static mc_error *
place_candidate(placing *p, const mc_label_candidate *c)
{
    const mc_font *font;
    if (p->tries > TRIES_MAX) {
        p->left_out++;
        return MC_OK;
    }
    MC_TRY(font_of(&font, p, c->symbol));
    MC_TRY(mc_label_lay_out(&p->layout, font, c->text, c->look.size, (float)c->symbol->auto_wrap * c->unit,
                            text_alignment(c), p->scratch));
    p->candidate = c;
    p->drawn = false;
    if (!glyphs_can_be_drawn(p))
        return MC_OK;
    p->spot.glyphs = apr_palloc(p->scratch, sizeof(mc_placed_glyph) * (size_t)(p->layout.count + 1));
    p->spot.boxes = apr_palloc(p->scratch, sizeof(mc_label_box) * (size_t)(p->layout.count + 2));
    p->layout.underline = c->symbol->underlined ? fmaxf(1, rintf(p->layout.size * UNDERLINE)) : 0;
    p->spot.underline =
        apr_palloc(p->scratch, sizeof(mc_label_stroke) * (size_t)(mc_label_underline_pieces(&p->layout) + 1));
    p->owned = p->over = false;
    return c->along || c->standing ? place_line(p) : place_point(p);
}

mc_error *
mc_labels_place(mc_label_candidate *const *list, int count, const mc_label_map *map, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_canvas *target = map->target;
    placing p = { .map = map, .width = target->width, .height = target->height };
    p.fonts = apr_array_make(pool, 4, sizeof(known_font));
    p.grid = mc_label_grid_create(target->width, target->height, pool);
    p.painter = mc_label_painter_create(target, pool);
    apr_pool_create(&p.scratch, pool);
    mc_error *error = MC_OK;
    for (int i = 0; i < count && error == MC_OK; i++) {
        error = mc_error_copy(place_candidate(&p, list[i]), pool);
        apr_pool_clear(p.scratch);
        if (error == MC_OK && i % 64 == 0)
            error = mc_ctx_check(ctx, pool);
    }
    apr_pool_destroy(p.scratch);
    if (p.left_out > 0)
        mc_log_write(ctx, MC_LOG_WARN,
                     "%" APR_INT64_T_FMT " labels are left out: %d places have been tried for those before them",
                     p.left_out, TRIES_MAX);
    return error;
}
