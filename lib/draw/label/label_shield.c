/*
 * See label_shield.h. A label is drawn after all features have been read: so its graphic is resolved when the feature
 * is there, by a painter that lives as long as the map.
 */
#include "draw/label/label_shield.h"

#include <math.h>
#include <stdlib.h>

#include "draw/paint/graphic.h"
#include "draw/paint/painter_private.h"
#include "draw/symbol/picture.h"

/* How far rounding may take an edge from where it was computed. */
#define ROUNDING 1.0F

/* A picture that will be resized is had this many times as high as letters are: sharp enough for most labels. */
#define LETTERS_HIGH 4.0

struct mc_label_shield {
    int references;
    mc_drawing drawing;
    mc_label_resize resize;
    double stroke;                /* pixels */
    double margin[4];             /* pixels: top, right, bottom, left */
    double least[2], most[2];     /* of its outline, in shares of its size from its middle */
    const mc_text_symbol *symbol; /* of one that is the same for all features */
    mc_label_shield *next;
};

struct mc_label_shields {
    mc_canvas *canvas;
    mc_painter *painter;    /* NULL: none needed so far */
    mc_label_shield *known; /* those that are the same for all features */
    apr_pool_t *pool;
};

mc_label_shield *
mc_label_shield_ref(mc_label_shield *shield)
{
    if (shield != NULL)
        shield->references++;
    return shield;
}

void
mc_label_shield_unref(mc_label_shield *shield)
{
    if (shield == NULL || --shield->references > 0)
        return;
    mc_pixels_unref(shield->drawing.picture);
    free(shield);
}

static apr_status_t
free_shields(void *data)
{
    mc_label_shields *shields = data;
    for (mc_label_shield *next, *known = shields->known; known != NULL; known = next) {
        next = known->next;
        mc_label_shield_unref(known);
    }
    return APR_SUCCESS;
}

mc_label_shields *
mc_label_shields_create(mc_canvas *canvas, apr_pool_t *pool)
{
    mc_label_shields *made = apr_pcalloc(pool, sizeof(*made));
    *made = (mc_label_shields){ .canvas = canvas, .pool = pool };
    apr_pool_cleanup_register(pool, made, free_shields, apr_pool_cleanup_null);
    return made;
}

/* ---- What it is ---- */

static mc_error *
painter_for(mc_painter **painter, mc_label_shields *shields, const mc_feature_query *query, mc_ctx *ctx)
{
    static const mc_style none = { .name = "labels" };
    if (shields->painter == NULL) {
        mc_feature_query *own = apr_palloc(shields->pool, sizeof(*own));
        *own = (mc_feature_query){ .srs = query->srs,
                                   .pixel_grid = query->pixel_grid,
                                   .resolution = query->resolution,
                                   .scale = query->scale,
                                   .density = query->density };
        MC_TRY(mc_painter_create_on(&shields->painter, &none, shields->canvas, own, true, shields->pool));
    }
    *painter = shields->painter;
    (*painter)->ctx = ctx;
    return MC_OK;
}

static void
measure_shield_mark(mc_label_shield *shield)
{
    const mc_mark *mark = shield->drawing.mark;
    bool known = mark != NULL && !mark->circle;
    for (int axis = 0; axis < 2; axis++) {
        shield->least[axis] = known ? HUGE_VAL : -0.5;
        shield->most[axis] = known ? -HUGE_VAL : 0.5;
    }
    for (int i = 0; known && i < 2 * mark->ends[mark->part_count - 1]; i++) {
        shield->least[i % 2] = fmin(shield->least[i % 2], mark->points[i]);
        shield->most[i % 2] = fmax(shield->most[i % 2], mark->points[i]);
    }
}

static mc_error *
create_shield(mc_label_shield **shield, mc_painter *painter, const mc_text_symbol *symbol, const mc_feature *feature,
              double size)
{
    const mc_symbolizer unit = { .kind = MC_SYMBOL_POINT, .uom = symbol->uom };
    mc_graphic graphic = symbol->graphic;
    mc_drawing drawing;
    bool any;
    *shield = NULL;
    if (graphic.picture != NULL && symbol->resize != MC_RESIZE_NONE) {
        graphic.size = LETTERS_HIGH * size / mc_painter_unit(painter, &unit);
        graphic.size_value = NULL;
    }
    MC_TRY(mc_graphic_resolve(&drawing, &any, painter, &unit, &graphic, feature));
    mc_label_shield *made = any ? calloc(1, sizeof(*made)) : NULL;
    if (made == NULL)
        return MC_OK;
    *made = (mc_label_shield){ .references = 1, .drawing = drawing, .resize = symbol->resize };
    if (drawing.picture != NULL)
        mc_pixels_ref(drawing.picture);
    for (int i = 0; i < 4; i++)
        made->margin[i] = mc_painter_pixels(painter, &unit, symbol->graphic_margin[i]);
    if (drawing.mark != NULL && drawing.symbol.stroke.paint.present)
        made->stroke = fmax(0, mc_painter_pixels(painter, &unit, drawing.symbol.stroke.width));
    measure_shield_mark(made);
    *shield = made;
    return MC_OK;
}

mc_error *
mc_label_shield_get(mc_label_shield **shield, mc_label_shields *shields, const mc_text_symbol *symbol,
                    const mc_feature *feature, double size, mc_ctx *ctx)
{
    mc_painter *painter;
    bool constant = mc_graphic_is_constant(&symbol->graphic) && symbol->size.value == NULL;
    *shield = NULL;
    if (!symbol->shielded || feature->query == NULL)
        return MC_OK;
    for (mc_label_shield *known = constant ? shields->known : NULL; known != NULL; known = known->next)
        if (known->symbol == symbol) {
            *shield = mc_label_shield_ref(known);
            return MC_OK;
        }
    MC_TRY(painter_for(&painter, shields, feature->query, ctx));
    mc_error *error = mc_error_copy(create_shield(shield, painter, symbol, feature, size), ctx->pool);
    apr_pool_clear(painter->values);
    if (constant && *shield != NULL) {
        (*shield)->symbol = symbol;
        (*shield)->next = shields->known;
        shields->known = mc_label_shield_ref(*shield);
    }
    return error;
}

/* ---- Where it is ---- */

/* Its size around a text. */
static void
fit_shield_to_text(mc_placing *placing, const mc_label_shield *shield, const mc_label_layout *layout)
{
    double width = layout->width + shield->margin[3] + shield->margin[1];
    double height = layout->height + shield->margin[0] + shield->margin[2];
    if (shield->resize == MC_RESIZE_NONE)
        return;
    if (shield->resize == MC_RESIZE_PROPORTIONAL) {
        double larger = fmax(width / placing->width, height / placing->height);
        width = placing->width * larger;
        height = placing->height * larger;
    }
    placing->width = fmin(ceil(width), MC_PICTURE_SIDE_MAX);
    placing->height = fmin(ceil(height), MC_PICTURE_SIDE_MAX);
}

/* Upright ones have their edges, or the middles of their outlines, on whole pixels: as sharp as can be. */
static double
align_to_pixel(double at, double before, double stroke)
{
    double half = stroke > 0 && lrint(stroke) % 2 == 1 ? 0.5 : 0;
    return rint(at - before - half) + half + before;
}

static void
widen_shield_box(mc_label_box *box, const mc_label_box *by)
{
    *box = (mc_label_box){ fminf(box->minx, by->minx), fminf(box->miny, by->miny), fmaxf(box->maxx, by->maxx),
                           fmaxf(box->maxy, by->maxy) };
}

/* The box of a graphic and of `more` around it. */
static mc_label_box
shield_graphic_box(const mc_label_shield *shield, const mc_placing *placing, double more)
{
    mc_label_box box = { INFINITY, INFINITY, -INFINITY, -INFINITY };
    double angle = placing->turn * M_PI / 180, cosine = cos(angle), sine = sin(angle);
    for (int corner = 0; corner < 4; corner++) {
        double x = corner % 2 == 0 ? shield->least[0] : shield->most[0];
        double y = corner < 2 ? shield->least[1] : shield->most[1];
        x = (x + 0.5 - placing->anchor_x) * placing->width + (corner % 2 == 0 ? -more : more);
        y = (y - 0.5 + placing->anchor_y) * placing->height + (corner < 2 ? -more : more);
        float px = (float)(x * cosine - y * sine + placing->at.x / (double)MC_SUBPIXELS);
        float py = (float)(x * sine + y * cosine + placing->at.y / (double)MC_SUBPIXELS);
        widen_shield_box(&box, &(mc_label_box){ px, py, px, py });
    }
    return box;
}

void
mc_label_shield_put(mc_label_spot *spot, const mc_label_shield *shield, const mc_label_layout *layout)
{
    const mc_placing *given = &shield->drawing.placing;
    mc_placing placing = *given;
    double angle = spot->angle, x = spot->middle[0], y = spot->middle[1];
    fit_shield_to_text(&placing, shield, layout);
    if (shield->resize != MC_RESIZE_NONE) { /* around the text with its margins */
        double dx = (shield->margin[1] - shield->margin[3]) / 2, dy = (shield->margin[2] - shield->margin[0]) / 2;
        x += dx * cos(angle) - dy * sin(angle);
        y += dx * sin(angle) + dy * cos(angle);
    }
    placing.turn += angle * 180 / M_PI;
    x += given->at.x / (double)MC_SUBPIXELS;
    y += given->at.y / (double)MC_SUBPIXELS;
    if (placing.turn == 0) {
        x = align_to_pixel(x, placing.anchor_x * placing.width, shield->stroke);
        y = align_to_pixel(y, (1 - placing.anchor_y) * placing.height, shield->stroke);
    }
    placing.at = (mc_shape_point){ (int32_t)lrint(x * MC_SUBPIXELS), (int32_t)lrint(y * MC_SUBPIXELS) };
    spot->shield = placing;
    mc_label_box box = shield_graphic_box(shield, &placing, shield->stroke / 2),
                 edge = shield_graphic_box(shield, &placing, shield->stroke * 2 + ROUNDING);
    widen_shield_box(&spot->bounds, &edge); /* mitres reach over the stroke */
    if (spot->upright)
        widen_shield_box(&spot->boxes[0], &box);
    else
        spot->boxes[spot->box_count++] = box;
}

mc_error *
mc_label_shield_draw(mc_label_shields *shields, const mc_label_shield *shield, const mc_label_spot *spot,
                     apr_pool_t *scratch)
{
    static mc_geometry empty;
    const mc_feature gone = { .geometry = &empty, .query = shields->painter->query };
    mc_drawing drawing = shield->drawing;
    drawing.placing = spot->shield;
    drawing.placing.at = (mc_shape_point){ 0, 0 };
    drawing.reach = 2 * (spot->shield.width + spot->shield.height) *
                        (1 + fabs(drawing.placing.anchor_x) + fabs(drawing.placing.anchor_y)) +
                    4 * shield->stroke + 2;
    int width = (int)rint(spot->shield.width), height = (int)rint(spot->shield.height);
    if (drawing.picture != NULL && (width != drawing.picture->width || height != drawing.picture->height)) {
        MC_TRY(mc_picture_scale(&drawing.picture, drawing.picture, width < 1 ? 1 : width, height < 1 ? 1 : height,
                                scratch));
        mc_pixels_attach(drawing.picture, scratch);
    }
    return mc_graphic_draw(&drawing, shields->painter, shields->canvas, spot->shield.at, 0, &gone);
}
