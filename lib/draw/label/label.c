/*
 * Labels of a map: see label.h. A label that has been taken holds copies of all that it needs in one block of memory;
 * when there are twice as many as may stay, the last ones of the order go. So which ones are left does not depend on
 * the order in which they came.
 */
#include "draw/label/label.h"

#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/label/label_place.h"
#include "draw/paint/painter_private.h"
#include "mapcache/trace.h"
#include "vector/geometry/places.h"

struct mc_labels {
    mc_label_frame frame;
    mc_canvas *canvas;
    mc_shape places; /* of one geometry */
    double scale, density;
    mc_label_candidate **list;
    int count, room, layer;
    int64_t points;   /* of all lines in the list */
    int64_t left_out; /* beyond the bounds, or too long */
    mc_label_shields *shields;
    mc_obstacle_visitor visitor;
    bool whole;
    apr_pool_t *pool;
};

static apr_status_t
free_labels(void *data)
{
    mc_labels *labels = data;
    for (int i = 0; i < labels->count; i++)
        mc_label_candidate_free(labels->list[i]);
    free(labels->list);
    mc_shape_free(&labels->places);
    return APR_SUCCESS;
}

mc_labels *
mc_labels_create(mc_canvas *canvas, apr_pool_t *pool)
{
    mc_labels *labels = apr_pcalloc(pool, sizeof(*labels));
    *labels = (mc_labels){ .frame = { canvas->width, canvas->height }, .canvas = canvas, .density = 1, .pool = pool };
    labels->shields = mc_label_shields_create(canvas, pool);
    labels->visitor = (mc_obstacle_visitor){ .baton = mc_label_obstacles_create(canvas->width, canvas->height, pool),
                                             .graphic = mc_label_obstacles_add,
                                             .row = mc_label_obstacles_add_row };
    apr_pool_cleanup_register(pool, labels, free_labels, apr_pool_cleanup_null);
    return labels;
}

void
mc_labels_allow_partials(mc_labels *labels)
{
    labels->whole = true;
}

const mc_obstacle_visitor *
mc_labels_obstacles(mc_labels *labels)
{
    return &labels->visitor;
}

void
mc_labels_set_density(mc_labels *labels, double density)
{
    labels->density = density;
}

void
mc_labels_next_layer(mc_labels *labels, double scale)
{
    labels->layer++;
    labels->scale = scale;
}

/* ---- Order ---- */

static int
by_rank(const void *a, const void *b)
{
    return mc_label_rank(*(mc_label_candidate *const *)a, *(mc_label_candidate *const *)b);
}

/* Keeps the first ones. */
static void
prune_candidates(mc_labels *labels)
{
    int64_t points = 0;
    int kept = 0;
    qsort(labels->list, (size_t)labels->count, sizeof(*labels->list), by_rank);
    for (; kept < labels->count && kept < MC_LABELS_MAX; kept++) {
        points += labels->list[kept]->point_count;
        if (points > MC_LABEL_POINTS_MAX) {
            points -= labels->list[kept]->point_count;
            break;
        }
    }
    for (int i = kept; i < labels->count; i++)
        mc_label_candidate_free(labels->list[i]);
    labels->left_out += labels->count - kept;
    labels->count = kept;
    labels->points = points;
}

static void
keep_candidate(mc_labels *labels, mc_label_candidate *candidate)
{
    if (labels->count == labels->room) {
        int room = labels->room == 0 ? 256 : labels->room * 2;
        mc_label_candidate **list = realloc(labels->list, sizeof(*list) * (size_t)room);
        if (list == NULL) {
            mc_label_candidate_free(candidate);
            labels->left_out++;
            return;
        }
        labels->list = list;
        labels->room = room;
    }
    labels->list[labels->count++] = candidate;
    labels->points += candidate->point_count;
    if (labels->count >= 2 * MC_LABELS_MAX || labels->points >= 2 * (int64_t)MC_LABEL_POINTS_MAX)
        prune_candidates(labels);
}

/* ---- Taking ---- */

static float
evaluate_label_number(const mc_label_number *n, double least, double most, const mc_feature *feature,
                      apr_pool_t *scratch)
{
    double value = n->value == NULL ? n->constant : mc_expression_number(n->value, feature, n->constant, scratch);
    return !(value > least) ? (float)least : value < most ? (float)value : (float)most;
}

/* What of a symbol may differ between features; lengths become pixels. */
static void
resolve_label_look(mc_label_candidate *made, const mc_text_symbol *symbol, double unit, const mc_feature *feature,
                   apr_pool_t *scratch)
{
    const double far = 1e6;
    made->look.size = evaluate_label_number(&symbol->size, 0, MC_FONT_SIZE_MAX / unit, feature, scratch) * (float)unit;
    made->look.fill = mc_paint_color(&symbol->fill, feature, scratch);
    if (symbol->halo.present) {
        made->look.halo =
            evaluate_label_number(&symbol->halo_radius, 0, MC_HALO_MAX / unit, feature, scratch) * (float)unit;
        made->look.halo_color = mc_paint_color(&symbol->halo, feature, scratch);
    }
    made->unit = (float)unit;
    made->anchor[0] = evaluate_label_number(&symbol->anchor_x, -100, 100, feature, scratch);
    made->anchor[1] = evaluate_label_number(&symbol->anchor_y, -100, 100, feature, scratch);
    made->moved[0] = evaluate_label_number(&symbol->displacement_x, -far, far, feature, scratch) * (float)unit;
    made->moved[1] = -evaluate_label_number(&symbol->displacement_y, -far, far, feature, scratch) * (float)unit;
    made->offset = evaluate_label_number(&symbol->offset, -far, far, feature, scratch) * (float)unit;
    made->angle =
        fmodf(evaluate_label_number(&symbol->rotation, -far, far, feature, scratch), 360) * (float)(M_PI / 180);
    made->priority = evaluate_label_number(&symbol->priority, -1e30, 1e30, feature, scratch);
}

/* The middle of a piece by its length. */
static void
piece_midpoint(double at[2], const mc_label_pieces *pieces, int index, double length)
{
    double left = length / 2;
    for (int p = (index == 0 ? 0 : pieces->ends[index - 1]) + 1; p < pieces->ends[index]; p++) {
        const float *a = pieces->points + p * 2 - 2, *b = pieces->points + p * 2;
        double step = hypot(b[0] - a[0], b[1] - a[1]);
        if (step >= left) {
            double t = step > 0 ? left / step : 0;
            at[0] = a[0] + t * (b[0] - a[0]);
            at[1] = a[1] + t * (b[1] - a[1]);
            return;
        }
        left -= step;
    }
}

static bool
is_visible(const mc_labels *labels, double x, double y)
{
    return x >= 0 && y >= 0 && x < labels->frame.width && y < labels->frame.height;
}

static bool
first_visible(mc_label_candidate *made, const mc_labels *labels, const mc_shape *points)
{
    for (int i = 0; i < points->point_count; i++) {
        made->at[0] = points->points[i].x / (double)MC_SUBPIXELS;
        made->at[1] = points->points[i].y / (double)MC_SUBPIXELS;
        if (is_visible(labels, made->at[0], made->at[1]))
            return true;
    }
    return false;
}

/* Finds where a label belongs on a geometry; false where nothing of it is visible. For lines `pieces` are filled. */
static bool
find_label_place(mc_label_candidate *made, mc_label_pieces *pieces, mc_labels *labels, const mc_text_symbol *symbol,
                 const mc_geometry *geometry, apr_pool_t *scratch)
{
    const mc_shape *areas = &geometry->shapes[MC_SHAPE_POLYGONS], *lines = &geometry->shapes[MC_SHAPE_LINES];
    const mc_shape *points = &geometry->shapes[MC_SHAPE_POINTS];
    made->kind = areas->part_count > 0 ? MC_SHAPE_POLYGONS : lines->part_count > 0 ? MC_SHAPE_LINES : MC_SHAPE_POINTS;
    if (symbol->part != MC_PART_WHOLE && symbol->part != MC_PART_INSIDE && symbol->part != MC_PART_BOUNDARY) {
        made->kind = MC_SHAPE_POINTS;
        mc_places_find(&labels->places, geometry, symbol->part);
        return first_visible(made, labels, &labels->places);
    }
    if (made->kind == MC_SHAPE_POLYGONS && symbol->placement == MC_LABEL_POINT && symbol->part != MC_PART_BOUNDARY)
        return mc_label_inside(made->at, &made->extent, areas, &labels->frame, scratch);
    if (made->kind != MC_SHAPE_POINTS) {
        mc_label_visible(pieces, made->kind == MC_SHAPE_LINES ? lines : areas, &labels->frame, scratch);
        int best = mc_label_longest(pieces, &made->extent);
        if (best < 0)
            return false;
        piece_midpoint(made->at, pieces, best, made->extent);
        made->along = symbol->placement == MC_LABEL_LINE && symbol->aligned;
        made->standing = !made->along && (symbol->repeated || symbol->repeat > 0);
        return true;
    }
    return first_visible(made, labels, points);
}

static mc_error *
take_symbol(mc_labels *labels, const mc_text_symbol *symbol, const mc_feature *feature, mc_ctx *ctx,
            apr_pool_t *scratch)
{
    mc_label_candidate made = { .symbol = symbol, .layer = labels->layer, .id = feature->id };
    mc_label_pieces pieces = { 0 };
    const char *text = mc_expression_text(symbol->label, feature, scratch);
    if (text == NULL || *text == '\0')
        return MC_OK;
    const char *clean = mc_label_clean(text, scratch);
    if (clean == NULL) {
        labels->left_out += strlen(text) > MC_TEXT_BYTES_MAX;
        return MC_OK;
    }
    resolve_label_look(&made, symbol, mc_uom_pixels(symbol->uom, labels->scale) * labels->density, feature, scratch);
    if (made.look.size < 1 || !find_label_place(&made, &pieces, labels, symbol, feature->geometry, scratch))
        return MC_OK;
    if (!symbol->anchored) { /* OGC 05-077r4, 11.4.4: beside a point */
        made.anchor[0] = made.kind == MC_SHAPE_POINTS ? 0 : 0.5F;
        made.anchor[1] = 0.5F;
    }
    MC_TRY(mc_label_shield_get(&made.shield, labels->shields, symbol, feature, made.look.size, ctx));
    mc_label_candidate *kept = mc_label_candidate_copy(&made, made.along || made.standing ? &pieces : NULL, clean);
    mc_label_shield_unref(made.shield);
    if (kept == NULL)
        return mc_error_create(scratch, MC_ERR_NO_MEMORY, "no memory for labels");
    keep_candidate(labels, kept);
    return MC_OK;
}

mc_error *
mc_labels_visit(void *labels, const mc_rule_style *rule, const mc_feature *feature, mc_ctx *ctx, apr_pool_t *scratch)
{
    for (int i = 0; i < rule->text_count; i++)
        MC_TRY(take_symbol(labels, &rule->texts[i], feature, ctx, scratch));
    return MC_OK;
}

mc_error *
mc_labels_finish(mc_labels *labels, mc_ctx *ctx)
{
    MC_SPAN(ctx, "mapcache_labels_finish");
    mc_pixels *pixels;
    if (labels->count == 0)
        return MC_OK;
    labels->count = mc_label_join_groups(labels->list, labels->count, labels->pool);
    prune_candidates(labels);
    if (labels->left_out > 0)
        mc_log_write(ctx, MC_LOG_WARN,
                     "%" APR_INT64_T_FMT " labels are left out: longer than %d bytes, or more than the %d first ones",
                     labels->left_out, MC_TEXT_BYTES_MAX, MC_LABELS_MAX);
    if (labels->canvas->palette == NULL)
        MC_TRY(mc_canvas_pixels(&pixels, labels->canvas));
    const mc_label_map map = { labels->canvas, labels->shields, labels->visitor.baton, labels->whole };
    return mc_labels_place(labels->list, labels->count, &map, ctx, labels->pool);
}
