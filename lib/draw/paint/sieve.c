/*
 * Each feature is painted by itself, the topmost one first, onto a small transparent canvas: its alpha says what it
 * covers. A plane holds for each pixel what still shines through all features that were kept. Where nothing shines
 * through in any pixel that a feature would touch, the feature is hidden. That is done for symbols as wide as on a map
 * of this resolution, and for symbols twice as wide, as they are on a map of half the resolution.
 */
#include "draw/paint/sieve.h"

#include <math.h>
#include <string.h>

#include "draw/paint/painter_private.h"
#include "draw/style/rules.h"

enum {
    WIDTHS = 2,    /* symbols are looked at in so many widths: once, twice */
    SCRATCH = 256, /* side of the canvas on which one feature is painted */
    OPAQUE = 255,  /* nothing hides the pixel */
    HIDDEN = 6,    /* of 255 that shine through: what lies below cannot be seen */
    BYTES = 4,     /* of a pixel: blue, green, red, alpha */
    ALPHA = 3,     /* the place of alpha among them */
};

/* The features in symbols of one width. */
typedef struct sieve_width {
    mc_feature_query query;
    mc_painter *painter;
    mc_pixels *pixels;
    int **margins;   /* for each pass and rule: pixels by which its symbols reach over their geometry */
    uint8_t *shines; /* for each pixel of the plane how much shines through, rounded up */
    uint8_t *alpha;  /* of the feature that was painted, in its box, row by row */
    int top, bottom; /* rows of the box in which anything was painted */
} sieve_width;

struct mc_sieve {
    int width, height;
    bool hides;
    bool closed; /* only what is seen in boxes that were opened is kept */
    bool merged; /* all features make one area: coverage does not add up */
    mc_rules **rules;
    int rule_count;
    sieve_width widths[WIDTHS];
    apr_pool_t *scratch;
};

typedef struct sieve_box {
    int x0, y0, x1, y1; /* pixels of the plane; the last ones are not inside */
} sieve_box;

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

/* Pixels around a feature that are looked at, for symbols so many times as wide. */
static int
times_margin(double margin, int times)
{
    return (int)ceil(margin * times) + 1;
}

int
mc_sieve_margin(const mc_style *style, double scale, int fineness)
{
    return times_margin(mc_painter_margin(style, scale), WIDTHS * fineness);
}

static int **
find_rule_margins(const mc_style *style, double scale, int times, apr_pool_t *pool)
{
    int **margins = apr_palloc(pool, sizeof(*margins) * (size_t)(style->pass_count + 1));
    for (int p = 0; p < style->pass_count; p++) {
        const mc_style_pass *pass = &style->passes[p];
        margins[p] = apr_palloc(pool, sizeof(**margins) * (size_t)(pass->rule_count + 1));
        for (int r = 0; r < pass->rule_count; r++)
            margins[p][r] = times_margin(mc_painter_rule_margin(&pass->rules[r], scale), times);
    }
    return margins;
}

static mc_error *
create_width(sieve_width *made, mc_sieve *sieve, const mc_style *style, double scale, double density, apr_pool_t *pool)
{
    const int thinning = MC_SIEVE_THINNING * (int)density; /* strokes are straightened by it, as on maps */
    made->query = (mc_feature_query){ .pixel_grid = { .per_x = 1, .per_y = 1, .thinning = thinning },
                                      .resolution = 1,
                                      .scale = scale,
                                      .density = density };
    made->margins = find_rule_margins(style, scale, (int)density, pool);
    made->alpha = apr_palloc(pool, SCRATCH * SCRATCH);
    MC_TRY(mc_pixels_create(&made->pixels, SCRATCH, SCRATCH, true, pool));
    mc_pixels_attach(made->pixels, pool);
    MC_TRY(mc_painter_create(&made->painter, style, made->pixels, &made->query, true, pool));
    made->shines = apr_palloc(pool, (size_t)sieve->width * (size_t)sieve->height);
    memset(made->shines, OPAQUE, (size_t)sieve->width * (size_t)sieve->height);
    return MC_OK;
}

mc_error *
mc_sieve_create(mc_sieve **sieve, const mc_style *style, double scale, int fineness, int width, int height,
                apr_pool_t *pool)
{
    mc_sieve *made = apr_pcalloc(pool, sizeof(*made));
    if (width <= 0 || height <= 0 || width > MC_SIEVE_PIXELS_MAX / height)
        return mc_error_create(pool, MC_ERR_LIMIT, "a sieve of %d x %d pixels is too large", width, height);
    made->width = width;
    made->height = height;
    made->rules = apr_pcalloc(pool, sizeof(mc_rules *) * (size_t)(style->pass_count + 1));
    for (int p = 0; p < style->pass_count; p++) {
        made->rules[made->rule_count++] = mc_rules_create(&style->passes[p], scale, pool);
        made->merged |= mc_painter_pass_is_merged(&style->passes[p], scale);
    }
    made->hides = mc_sieve_hides(style, scale);
    for (int i = 0; i < WIDTHS && made->hides; i++)
        MC_TRY(create_width(&made->widths[i], made, style, scale * (i + 1) * (1 - 1e-9 * i), (i + 1) * fineness, pool));
    apr_pool_create(&made->scratch, pool);
    *sieve = made;
    return MC_OK;
}

/* Whether a rule of any pass draws the feature; the margins of its symbols. */
static bool
is_drawn_by_rule(int margins[WIDTHS], mc_sieve *sieve, const mc_feature *feature)
{
    bool drawn = false;
    memset(margins, 0, sizeof(*margins) * WIDTHS);
    for (int p = 0; p < sieve->rule_count; p++) {
        mc_rules_find(sieve->rules[p], feature, sieve->scratch);
        for (int r = mc_rules_next(sieve->rules[p], 0); r >= 0; r = mc_rules_next(sieve->rules[p], r + 1)) {
            drawn = true;
            for (int i = 0; i < WIDTHS && sieve->hides; i++)
                margins[i] = sieve->widths[i].margins[p][r] > margins[i] ? sieve->widths[i].margins[p][r] : margins[i];
        }
    }
    apr_pool_clear(sieve->scratch);
    return drawn;
}

static bool
clip_box(sieve_box *box, const mc_sieve *sieve)
{
    const sieve_box all = *box;
    box->x0 = box->x0 < 0 ? 0 : box->x0;
    box->y0 = box->y0 < 0 ? 0 : box->y0;
    box->x1 = box->x1 > sieve->width ? sieve->width : box->x1;
    box->y1 = box->y1 > sieve->height ? sieve->height : box->y1;
    box->x1 = box->x1 < box->x0 ? box->x0 : box->x1;
    box->y1 = box->y1 < box->y0 ? box->y0 : box->y1;
    return memcmp(&all, box, sizeof(all)) != 0;
}

/* Whether nothing shines through in the whole box, which lies in the plane. */
static bool
is_box_hidden(const mc_sieve *sieve, const sieve_width *at, const sieve_box *box)
{
    for (int y = box->y0; y < box->y1; y++) {
        const uint8_t *row = at->shines + (size_t)y * (size_t)sieve->width;
        uint8_t most = 0;
        for (int x = box->x0; x < box->x1; x++)
            most = row[x] > most ? row[x] : most;
        if (most > HIDDEN)
            return false;
    }
    return true;
}

static void
move_geometry(mc_geometry *geometry, int x, int y)
{
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0; i < geometry->shapes[kind].point_count; i++) {
            geometry->shapes[kind].points[i].x += x * MC_SUBPIXELS;
            geometry->shapes[kind].points[i].y += y * MC_SUBPIXELS;
        }
}

/* Paints the feature with the corner of the box at that of the canvas. */
static mc_error *
paint_alone(sieve_width *at, const mc_feature *feature, const sieve_box *box, mc_ctx *ctx)
{
    mc_feature moved = *feature;
    moved.query = &at->query;
    move_geometry(feature->geometry, -box->x0, -box->y0);
    mc_error *error = mc_painter_visit(at->painter, &moved, ctx);
    move_geometry(feature->geometry, box->x0, box->y0);
    return error;
}

/* Takes the alpha of a row from the canvas, which is empty then; whether there is any. */
static bool
take_alpha_row(uint8_t *alpha, uint8_t *painted, int count)
{
    unsigned any = 0;
    for (int x = 0; x < count; x++) {
        uint32_t pixel;
        memcpy(&pixel, painted + (size_t)x * BYTES, sizeof(pixel));
        any |= pixel;
    }
    if (any == 0)
        return false;
    for (int x = 0; x < count; x++)
        alpha[x] = painted[x * BYTES + ALPHA];
    memset(painted, 0, (size_t)count * BYTES);
    return true;
}

/* Whether the feature, which was painted, is seen in a pixel of the box. Empties the canvas. */
static bool
is_seen_in_box(const mc_sieve *sieve, sieve_width *at, const sieve_box *box)
{
    const int count = box->x1 - box->x0;
    unsigned seen = 0;
    at->top = at->bottom = -1;
    for (int y = box->y0; y < box->y1; y++) {
        uint8_t *alpha = at->alpha + (size_t)(y - box->y0) * SCRATCH;
        const uint8_t *row = at->shines + (size_t)y * (size_t)sieve->width + box->x0;
        if (!take_alpha_row(alpha, at->pixels->data + (size_t)(y - box->y0) * at->pixels->stride, count)) {
            memset(alpha, 0, (size_t)count);
            continue;
        }
        at->top = at->top < 0 ? y : at->top;
        at->bottom = y;
        for (int x = 0; x < count; x++) /* without branches: the pixels beside a thin line are of both kinds */
            seen |= (unsigned)(row[x] > HIDDEN) & (unsigned)(alpha[x] > 0);
    }
    return seen != 0;
}

/* Lays what was painted over the plane. */
static void
lay_painted(const mc_sieve *sieve, const sieve_width *at, const sieve_box *box)
{
    const int count = box->x1 - box->x0;
    for (int y = at->top; y >= 0 && y <= at->bottom; y++) {
        const uint8_t *alpha = at->alpha + (size_t)(y - box->y0) * SCRATCH;
        uint8_t *row = at->shines + (size_t)y * (size_t)sieve->width + box->x0;
        for (int x = 0; sieve->merged && x < count; x++) {
            const uint8_t through = (uint8_t)(OPAQUE - alpha[x]);
            row[x] = through < row[x] ? through : row[x];
        }
        for (int x = 0; !sieve->merged && x < count; x++) /* rounded up; none is rounded where nothing was painted */
            row[x] = (uint8_t)(((unsigned)row[x] * (unsigned)(OPAQUE - alpha[x]) + OPAQUE - 1) / OPAQUE);
    }
}

void
mc_sieve_close(mc_sieve *sieve)
{
    sieve->closed = true;
    for (int i = 0; i < WIDTHS && sieve->hides; i++)
        memset(sieve->widths[i].shines, 0, (size_t)sieve->width * (size_t)sieve->height);
}

void
mc_sieve_open_box(mc_sieve *sieve, int x0, int y0, int x1, int y1)
{
    sieve_box box = { x0, y0, x1, y1 };
    (void)clip_box(&box, sieve);
    for (int i = 0; i < WIDTHS && sieve->hides && box.x0 < box.x1; i++)
        for (int y = box.y0; y < box.y1; y++)
            memset(sieve->widths[i].shines + (size_t)y * (size_t)sieve->width + box.x0, OPAQUE,
                   (size_t)(box.x1 - box.x0));
}

static sieve_box
box_around(const int32_t bounds[4], int margin)
{
    return (sieve_box){ (bounds[0] >> 8) - margin, (bounds[1] >> 8) - margin, (bounds[2] >> 8) + 1 + margin,
                        (bounds[3] >> 8) + 1 + margin };
}

mc_error *
mc_sieve_keeps(bool *keeps, mc_sieve *sieve, const mc_feature *feature, mc_ctx *ctx)
{
    int32_t bounds[4];
    int margins[WIDTHS];
    sieve_box boxes[WIDTHS];
    bool cut[WIDTHS];
    bool hidden = true, seen = false;
    *keeps = is_drawn_by_rule(margins, sieve, feature);
    if (!*keeps || !sieve->hides ||
        !mc_geometry_bounds(feature->geometry, &bounds[0], &bounds[1], &bounds[2], &bounds[3]))
        return MC_OK;
    for (int i = 0; i < WIDTHS; i++) {
        boxes[i] = box_around(bounds, margins[i]);
        cut[i] = clip_box(&boxes[i], sieve);
        /* What sticks out of the plane, or is large, is kept, and hides nothing. */
        if ((cut[i] && !sieve->closed) || boxes[i].x1 - boxes[i].x0 > SCRATCH || boxes[i].y1 - boxes[i].y0 > SCRATCH)
            return MC_OK;
        hidden = hidden && is_box_hidden(sieve, &sieve->widths[i], &boxes[i]);
    }
    *keeps = !hidden;
    if (hidden)
        return MC_OK;
    for (int i = 0; i < WIDTHS; i++) {
        MC_TRY(paint_alone(&sieve->widths[i], feature, &boxes[i], ctx));
        seen |= is_seen_in_box(sieve, &sieve->widths[i], &boxes[i]);
        if (cut[i]) /* what lies beside the box is on the canvas */
            memset(sieve->widths[i].pixels->data, 0, SCRATCH * (size_t)sieve->widths[i].pixels->stride);
    }
    for (int i = 0; i < WIDTHS && seen; i++)
        lay_painted(sieve, &sieve->widths[i], &boxes[i]);
    *keeps = seen;
    return MC_OK;
}
