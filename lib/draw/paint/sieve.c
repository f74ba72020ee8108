/*
 * Each feature is painted by itself, the topmost one first, onto a small transparent canvas: its alpha says what it
 * covers. A plane holds for each pixel what still shines through all features above. Where nothing shines through in
 * any pixel that a feature would touch, the feature is hidden. That is done for pixels that lie as those of the plane
 * do, and for pixels that lie half a pixel beside these: what is hidden by many features that cover a part of a pixel
 * each depends on where the pixels lie.
 */
#include "draw/paint/sieve.h"

#include <math.h>
#include <string.h>

#include "base/budget.h"
#include "draw/paint/painter_private.h"
#include "draw/paint/sieve_private.h"
#include "draw/paint/sieve_rows.h"

enum {
    EASY = 2, /* lattices that do where few features lie in a pixel */
    /* Of 65,535, which nothing hides: where that much shines through, or less, what lies below cannot be seen. */
    HIDDEN = 5 * 257,
    HIDDEN_IN_CROWD = 257 / 3,
    /* Alpha below that, of 255, hides only a part (MC_SIEVE_WEAK) where maps are painted in steps of 17. */
    FAINT = 5 * 17 - 8,
    FAINT_IN_CROWD = 10 * 17 - 8,
};
/* Half pixels by which a lattice lies to the left of the plane's own and above it. */
static const int lattice_shifts[MC_SIEVE_LATTICES][2] = { { 0, 0 }, { 1, 1 }, { 1, 0 }, { 0, 1 } };

bool
mc_sieve_hides(const mc_style *style, double scale)
{
    int passes = 0;
    bool sorted = false, whole = false;
    for (int p = 0; p < style->pass_count; p++) {
        const mc_style_pass *pass = &style->passes[p];
        bool shows = false;
        for (int r = 0; r < pass->rule_count; r++) {
            const mc_rule_style *rule = &pass->rules[r];
            bool paints = rule->symbolizer_count > 0 && mc_rule_applies(rule, scale);
            shows |= paints;
            whole |= paints && rule->symbolizers[0].fill.present && rule->symbolizers[0].stroke.paint.present &&
                     mc_painter_pass_is_merged(pass, scale); /* all outlines lie over all areas */
        }
        passes += shows;
        sorted |= shows && pass->sort_count > 0;
    }
    return passes == 1 && !sorted && !whole;
}

/* Pixels around a feature that are looked at. */
static int
whole_margin(double margin)
{
    return (int)ceil(margin) + 1;
}

int
mc_sieve_margin(const mc_style *style, double scale)
{
    return whole_margin(mc_painter_margin(style, scale)) + 1;
}

/* Thin strokes have no sharp corners. */
static double
rule_margin(const mc_rule_style *rule, double scale)
{
    double most = 1;
    for (int i = 0; i < rule->symbolizer_count; i++) {
        const mc_symbolizer *symbol = &rule->symbolizers[i];
        const double width = symbol->stroke.width * mc_uom_pixels(symbol->uom, scale);
        if (symbol->kind == MC_SYMBOL_POINT || symbol->stroke.graphic != NULL || symbol->stroke.width_value != NULL ||
            mc_painter_is_moved(symbol) || symbol->offset != 0 || !mc_painter_is_thin(&symbol->stroke, width, symbol))
            return mc_painter_rule_margin(rule, scale);
        most = fmax(most, width / 2 + 0.5);
    }
    return most;
}

static void
find_rule_margins(mc_sieve *sieve, const mc_style *style, double scale, apr_pool_t *pool)
{
    sieve->margins = apr_palloc(pool, sizeof(*sieve->margins) * (size_t)(style->pass_count + 1));
    sieve->reaches = apr_palloc(pool, sizeof(*sieve->reaches) * (size_t)(style->pass_count + 1));
    sieve->halves = apr_palloc(pool, sizeof(*sieve->halves) * (size_t)(style->pass_count + 1));
    for (int p = 0; p < style->pass_count; p++) {
        const mc_style_pass *pass = &style->passes[p];
        sieve->margins[p] = apr_palloc(pool, sizeof(**sieve->margins) * (size_t)(pass->rule_count + 1));
        for (int r = 0; r < pass->rule_count; r++)
            sieve->margins[p][r] = whole_margin(rule_margin(&pass->rules[r], scale));
        sieve->reaches[p] = apr_palloc(pool, sizeof(**sieve->reaches) * (size_t)(pass->rule_count + 1));
        for (int r = 0; r < pass->rule_count; r++)
            sieve->reaches[p][r] = whole_margin(mc_sieve_rule_reach(&pass->rules[r], scale));
        sieve->halves[p] = apr_palloc(pool, sizeof(**sieve->halves) * (size_t)(pass->rule_count + 1));
        for (int r = 0; r < pass->rule_count; r++)
            sieve->halves[p][r] = mc_sieve_rule_half(&pass->rules[r], scale);
    }
    sieve->margin = whole_margin(mc_painter_margin(style, scale));
}

/* Maps of few opaque colours have a palette (draw/raster/ink_palette.h): what is laid over a pixel faintly may leave
 * its colour as it is, however often that is done. */
static bool
is_painted_by_steps(const mc_style *style, double scale)
{
    mc_painter_needs needs = { .merged = true, .suits = true };
    mc_painter_needs_add(&needs, style, scale);
    return needs.suits;
}

static apr_status_t
give_sieve_memory(void *data)
{
    mc_budget_give(((mc_sieve *)data)->counted);
    return APR_SUCCESS;
}

void
mc_sieve_charge(mc_sieve *sieve, size_t bytes)
{
    if (!sieve->budgeted)
        return;
    mc_budget_charge(bytes);
    sieve->counted += bytes;
}

static mc_error *
take_sieve_memory(mc_sieve *sieve, size_t bytes, apr_pool_t *pool)
{
    if (!sieve->budgeted)
        return MC_OK;
    if (!mc_budget_take_of_half(bytes))
        return mc_budget_error(bytes, pool);
    sieve->counted = bytes;
    apr_pool_cleanup_register(pool, sieve, give_sieve_memory, apr_pool_cleanup_null);
    return MC_OK;
}

static mc_error *
create_planes(mc_sieve *made, const mc_style *style, double scale, apr_pool_t *pool)
{
    made->stride = (size_t)made->width + MC_SIEVE_BLOCK;
    const size_t pixels = made->stride * (size_t)made->height;
    /* strokes are straightened by the thinning, as on maps */
    made->query = (mc_feature_query){ .pixel_grid = { .per_x = 1, .per_y = 1, .thinning = MC_SIEVE_THINNING },
                                      .resolution = 1,
                                      .scale = scale,
                                      .density = 1 };
    find_rule_margins(made, style, scale, pool);
    MC_TRY(mc_pixels_create(&made->pixels, MC_SIEVE_SCRATCH, MC_SIEVE_SCRATCH, true, pool));
    mc_pixels_attach(made->pixels, pool);
    MC_TRY(mc_painter_create(&made->painter, style, made->pixels, &made->query, true, pool));
    MC_TRY(take_sieve_memory(made, pixels * (1 + sizeof(*made->shines[0]) * (size_t)made->lattices), pool));
    made->open = apr_palloc(pool, pixels);
    memset(made->open, 1, pixels);
    for (int i = 0; i < made->lattices; i++) {
        made->alpha[i] = apr_palloc(pool, MC_SIEVE_SCRATCH * MC_SIEVE_SCRATCH);
        made->shines[i] = apr_palloc(pool, sizeof(*made->shines[i]) * pixels);
        memset(made->shines[i], 0xff, sizeof(*made->shines[i]) * pixels);
    }
    return MC_OK;
}

bool
mc_sieve_fits(double width, double height)
{
    return width >= 1 && height >= 1 && width * height <= MC_SIEVE_PIXELS_MAX &&
           (width + MC_SIEVE_BLOCK) * height <= 2.0 * MC_SIEVE_PIXELS_MAX;
}

mc_error *
mc_sieve_create(mc_sieve **sieve, const mc_style *style, double scale, int traits, int width, int height,
                apr_pool_t *pool)
{
    const bool crowded = (traits & MC_SIEVE_CROWDED) != 0;
    mc_sieve *made = apr_pcalloc(pool, sizeof(*made));
    if (!mc_sieve_fits(width, height))
        return mc_error_create(pool, MC_ERR_LIMIT, "a sieve of %d x %d pixels is too large", width, height);
    made->pool = pool;
    made->width = width;
    made->height = height;
    made->crowded = crowded;
    made->budgeted = (traits & MC_SIEVE_BUDGETED) != 0;
    made->lattices = crowded ? MC_SIEVE_LATTICES : EASY;
    made->hidden = crowded ? HIDDEN_IN_CROWD : HIDDEN;
    made->faint = is_painted_by_steps(style, scale) ? (crowded ? FAINT_IN_CROWD : FAINT) : 0;
    made->rules = apr_pcalloc(pool, sizeof(mc_rules *) * (size_t)(style->pass_count + 1));
    for (int p = 0; p < style->pass_count; p++) {
        made->rules[made->rule_count++] = mc_rules_create(&style->passes[p], scale, pool);
        made->merged |= mc_painter_pass_is_merged(&style->passes[p], scale);
    }
    made->hides = mc_sieve_hides(style, scale);
    if (made->hides)
        MC_TRY(create_planes(made, style, scale, pool));
    apr_pool_create(&made->scratch, pool);
    *sieve = made;
    return MC_OK;
}

/* How far what is painted of a feature reaches over its geometry. */
typedef struct painted_reach {
    int margin;   /* of the box in which it is painted */
    double exact; /* pixels; INFINITY: that is not known */
} painted_reach;

/* Whether a rule of any pass draws the feature, and how far that reaches; of a feature without geometry, how far it can
 * reach exactly, and with a margin but for tips of lines that bend sharply. */
static bool
is_drawn_by_rule(painted_reach *reach, mc_sieve *sieve, const mc_feature *feature)
{
    const bool anywhere = feature->geometry == NULL;
    const double mitre = anywhere ? MC_SIEVE_MITRE : sieve->hides ? mc_sieve_mitre(feature->geometry) : 0;
    int **margins = anywhere || (sieve->closed && mitre <= M_SQRT2 * (1 + 1e-9)) ? sieve->reaches : sieve->margins;
    bool drawn = false;
    *reach = (painted_reach){ 0 };
    for (int p = 0; p < sieve->rule_count; p++) {
        mc_rules_find(sieve->rules[p], feature, sieve->scratch);
        for (int r = mc_rules_next(sieve->rules[p], 0); r >= 0; r = mc_rules_next(sieve->rules[p], r + 1)) {
            drawn = true;
            if (sieve->hides && margins[p][r] > reach->margin)
                reach->margin = margins[p][r];
            if (sieve->hides)
                reach->exact = fmax(reach->exact, sieve->halves[p][r] * mitre);
        }
    }
    apr_pool_clear(sieve->scratch);
    return drawn;
}

/* With a pixel more on the left and above, for the lattices that lie there. False: it sticks out of the plane, or is
 * large. *cut: it sticks out of a plane that is closed. */
static bool
find_sieve_box(mc_sieve_box *box, bool *cut, const mc_sieve *sieve, const int32_t bounds[4], int margin)
{
    *box = (mc_sieve_box){ (bounds[0] >> 8) - margin, (bounds[1] >> 8) - margin, (bounds[2] >> 8) + 2 + margin,
                           (bounds[3] >> 8) + 2 + margin };
    *cut = mc_sieve_clip_box(box, sieve);
    return (!*cut || sieve->closed) && box->x1 - box->x0 <= MC_SIEVE_SCRATCH - MC_SIEVE_BLOCK &&
           box->y1 - box->y0 <= MC_SIEVE_SCRATCH;
}

bool
mc_sieve_hides_bounds(const mc_sieve *sieve, const int32_t bounds[4])
{
    mc_sieve_box box;
    bool cut;
    return sieve->hides && find_sieve_box(&box, &cut, sieve, bounds, sieve->margin) && mc_sieve_hides_box(sieve, &box);
}

static void
move_geometry(mc_geometry *geometry, int x, int y)
{
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0; i < geometry->shapes[kind].point_count; i++) {
            geometry->shapes[kind].points[i].x += x;
            geometry->shapes[kind].points[i].y += y;
        }
}

/* Paints the feature with the corner of the box at that of the canvas, as pixels of a lattice. */
static mc_error *
paint_alone(mc_sieve *sieve, const mc_feature *feature, const mc_sieve_box *box, int lattice, mc_ctx *ctx)
{
    const int x = lattice_shifts[lattice][0] * (MC_SUBPIXELS / 2) - box->x0 * MC_SUBPIXELS;
    const int y = lattice_shifts[lattice][1] * (MC_SUBPIXELS / 2) - box->y0 * MC_SUBPIXELS;
    mc_feature moved = *feature;
    moved.query = &sieve->query;
    move_geometry(feature->geometry, x, y);
    mc_error *error = mc_painter_visit(sieve->painter, &moved, ctx);
    move_geometry(feature->geometry, -x, -y);
    return error;
}

/* Pixels of a row of the box, in whole blocks: what is behind the box has no alpha. */
int
mc_sieve_row_length(const mc_sieve_box *box)
{
    return (box->x1 - box->x0 + MC_SIEVE_BLOCK - 1) / MC_SIEVE_BLOCK * MC_SIEVE_BLOCK;
}

uint16_t *
mc_sieve_shines_row(const mc_sieve *sieve, int lattice, const mc_sieve_box *box, int y)
{
    return sieve->shines[lattice] + (size_t)y * sieve->stride + (size_t)box->x0;
}

/* While the feature is painted, what it may be laid over comes from memory. */
static void
fetch_box(const mc_sieve *sieve, const mc_sieve_box *box)
{
    for (int i = 0; i < sieve->lattices; i++)
        for (int y = box->y0; y < box->y1; y++) {
            const uint16_t *row = mc_sieve_shines_row(sieve, i, box, y);
            __builtin_prefetch(row, 1);
            __builtin_prefetch(row + (box->x1 - box->x0), 1);
        }
}

/* Where the canvas shows the corner of a box, when the feature was painted for the box `whole`. */
static uint8_t *
painted_at(const mc_sieve *sieve, const mc_sieve_box *whole, const mc_sieve_box *box)
{
    return sieve->pixels->data + (size_t)(box->y0 - whole->y0) * sieve->pixels->stride +
           (size_t)(box->x0 - whole->x0) * MC_SIEVE_BYTES;
}

/* Whether the feature, which was painted, is seen in a pixel of the box. Empties the canvas. */
static bool
is_seen_in_box(mc_sieve *sieve, int lattice, const mc_sieve_box *whole, const mc_sieve_box *box)
{
    const int count = mc_sieve_row_length(box);
    bool seen = false;
    uint8_t *alpha = sieve->alpha[lattice], *painted = painted_at(sieve, whole, box);
    for (int y = box->y0; y < box->y1; y++, alpha += count, painted += sieve->pixels->stride) {
        take_alpha(alpha, painted, count);
        seen = seen || is_row_seen(mc_sieve_shines_row(sieve, lattice, box, y), alpha, count, sieve->hidden);
    }
    return seen;
}

/* Lays what was painted over a lattice. */
void
mc_sieve_lay_painted(const mc_sieve *sieve, uint16_t *const *planes, int lattice, const mc_sieve_box *box)
{
    const int count = mc_sieve_row_length(box);
    const uint8_t *alpha = sieve->alpha[lattice];
    for (int y = box->y0; y < box->y1; y++, alpha += count) {
        uint16_t *row = planes[lattice] + (size_t)y * sieve->stride + (size_t)box->x0;
        if (sieve->merged)
            lay_merged_row(row, alpha, count);
        else
            lay_shines(row, alpha, count, sieve->faint);
    }
}

void
mc_sieve_note_open(const mc_sieve *sieve, const mc_sieve_box *box)
{
    for (int y = box->y0; y < box->y1; y++)
        for (int i = 0; i < sieve->lattices; i++)
            note_open_row(sieve->open + (size_t)y * sieve->stride + box->x0, mc_sieve_shines_row(sieve, i, box, y),
                          box->x1 - box->x0, sieve->hidden, i > 0);
}

/* Shrinks the box to what was painted for the first lattice, with a pixel more on all sides for the others: small
 * features are painted by how far they are from the middle of a pixel. Symbols may reach farther than they mostly do:
 * where lines bend sharply. False: nothing was painted. */
static bool
shrink_box(mc_sieve_box *box, const mc_sieve *sieve)
{
    const mc_sieve_box whole = *box;
    const int count = mc_sieve_row_length(box);
    uint32_t columns[MC_SIEVE_SCRATCH] = { 0 };
    int top = -1, bottom = -1, left = 0, right = count;
    for (int y = 0; y < whole.y1 - whole.y0; y++)
        if (add_row(columns, sieve->pixels->data + (size_t)y * sieve->pixels->stride, count)) {
            top = top < 0 ? y : top;
            bottom = y;
        }
    if (top < 0)
        return false;
    while (columns[left] == 0)
        left++;
    while (columns[right - 1] == 0)
        right--;
    *box = (mc_sieve_box){ whole.x0 + left - (left > 0), whole.y0 + top - (top > 0), whole.x0 + right + 1,
                           whole.y0 + bottom + 2 };
    box->x1 = box->x1 > whole.x1 ? whole.x1 : box->x1;
    box->y1 = box->y1 > whole.y1 ? whole.y1 : box->y1;
    return box->x0 < box->x1; /* of what sticks out of the plane, something may lie just beside the box */
}

/* Of what sticks out of the plane, something may lie beside the box. */
static void
clear_canvas(const mc_sieve *sieve)
{
    memset(sieve->pixels->data, 0, MC_SIEVE_SCRATCH * (size_t)sieve->pixels->stride);
}

mc_error *
mc_sieve_keeps(bool *keeps, mc_sieve *sieve, const mc_feature *feature, mc_ctx *ctx)
{
    int32_t bounds[4];
    painted_reach reach;
    mc_sieve_box box;
    bool cut;
    *keeps = is_drawn_by_rule(&reach, sieve, feature);
    if (!*keeps || !sieve->hides ||
        !mc_geometry_bounds(feature->geometry, &bounds[0], &bounds[1], &bounds[2], &bounds[3]) ||
        !find_sieve_box(&box, &cut, sieve, bounds, reach.margin)) /* is kept, and hides nothing */
        return MC_OK;
    *keeps = false;
    if (mc_sieve_hides_box(sieve, &box) || mc_sieve_hides_painted(sieve, feature->geometry, bounds, reach.exact))
        return MC_OK;
    const mc_sieve_box whole = box;
    MC_TRY(paint_alone(sieve, feature, &whole, 0, ctx));
    const bool painted = shrink_box(&box, sieve), hidden = !painted || mc_sieve_hides_box(sieve, &box);
    if (!hidden)
        fetch_box(sieve, &box);
    if (painted)
        *keeps = is_seen_in_box(sieve, 0, &whole, &box);
    if (cut)
        clear_canvas(sieve);
    for (int i = 1; i < sieve->lattices && !hidden; i++) {
        MC_TRY(paint_alone(sieve, feature, &whole, i, ctx));
        *keeps |= is_seen_in_box(sieve, i, &whole, &box);
        if (cut)
            clear_canvas(sieve);
    }
    for (int i = 0; i < sieve->lattices && *keeps; i++)
        mc_sieve_lay_painted(sieve, sieve->shines, i, &box);
    if (*keeps)
        mc_sieve_note_open(sieve, &box);
    return MC_OK;
}

/* Takes the alpha of what was painted for the box `whole` from the canvas, which is empty then. */
static void
take_box_alpha(const mc_sieve *sieve, int lattice, const mc_sieve_box *whole, const mc_sieve_box *box)
{
    const int count = mc_sieve_row_length(box);
    uint8_t *alpha = sieve->alpha[lattice], *painted = painted_at(sieve, whole, box);
    for (int y = box->y0; y < box->y1; y++, alpha += count, painted += sieve->pixels->stride)
        take_alpha(alpha, painted, count);
}

mc_error *
mc_sieve_paint(mc_sieve_box *box, mc_sieve *sieve, const mc_feature *feature, mc_ctx *ctx)
{
    int32_t bounds[4];
    painted_reach reach;
    bool cut, painted = true;
    const bool fits = is_drawn_by_rule(&reach, sieve, feature) && sieve->hides &&
                      mc_geometry_bounds(feature->geometry, &bounds[0], &bounds[1], &bounds[2], &bounds[3]) &&
                      find_sieve_box(box, &cut, sieve, bounds, reach.margin) && !mc_sieve_hides_box(sieve, box) &&
                      !mc_sieve_hides_painted(sieve, feature->geometry, bounds, reach.exact);
    const mc_sieve_box whole = *box;
    for (int i = 0; fits && painted && i < sieve->lattices; i++) {
        MC_TRY(paint_alone(sieve, feature, &whole, i, ctx));
        painted = i > 0 || shrink_box(box, sieve);
        if (painted)
            take_box_alpha(sieve, i, &whole, box);
        if (cut)
            clear_canvas(sieve);
        painted = painted && (i > 0 || !mc_sieve_hides_box(sieve, box));
    }
    if (!fits || !painted)
        *box = (mc_sieve_box){ 0 };
    return MC_OK;
}

bool
mc_sieve_draws(mc_sieve *sieve, const mc_feature *feature)
{
    painted_reach reach;
    return is_drawn_by_rule(&reach, sieve, feature);
}

double
mc_sieve_reach_of(mc_sieve *sieve, const mc_feature *feature)
{
    mc_feature anywhere = *feature;
    painted_reach reach;
    anywhere.geometry = NULL;
    (void)is_drawn_by_rule(&reach, sieve, &anywhere);
    return fmin(reach.margin, reach.exact);
}
