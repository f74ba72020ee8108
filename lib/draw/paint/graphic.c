/* Graphics at points: see graphic.h. */
#include "draw/paint/graphic.h"

#include <math.h>

#include "draw/paint/painter_private.h"
#include "draw/paint/sprite.h"
#include "draw/raster/stroker.h"
#include "draw/style/expression.h"
#include "draw/symbol/picture.h"
#include "vector/geometry/places.h"

/* A picture that cannot be had is told once for each map, and left out. */
static void
get_known_picture(mc_pixels **pixels, mc_painter *painter, const mc_picture *picture, const mc_feature *feature,
                  double height)
{
    bool constant = mc_picture_is_constant(picture);
    for (int i = 0; constant && i < painter->picture_count; i++)
        if (painter->pictures[i].picture == picture && painter->pictures[i].height == height) {
            *pixels = painter->pictures[i].pixels;
            return;
        }
    mc_error *error = mc_picture_get(pixels, picture, feature, height, painter->ctx, painter->values);
    if (error != MC_OK) {
        if (!painter->warned)
            mc_log_error(painter->ctx, MC_LOG_WARN, error);
        painter->warned = true;
        *pixels = NULL;
    }
    bool kept = constant && painter->picture_count < MC_PICTURES_MAX;
    if (*pixels != NULL)
        mc_pixels_attach(*pixels, kept ? painter->pool : painter->values);
    if (kept)
        painter->pictures[painter->picture_count++] = (mc_known_picture){ picture, height, *pixels };
}

static void
fade_ink(mc_paint *to, const mc_paint *paint, double opacity, const mc_feature *feature, mc_painter *painter)
{
    *to = (mc_paint){ .present = paint->present, .pattern = paint->pattern };
    to->color = mc_painter_color(painter, paint, feature);
    to->color.alpha = (uint8_t)lrint(to->color.alpha * opacity);
}

/* A character whose font is not there is told once, and left out. False: there is nothing to draw. */
static bool
find_outline(mc_drawing *drawing, mc_painter *painter, const mc_mark *mark)
{
    mc_error *error = mc_mark_outline(&drawing->mark, mark, painter->values);
    if (error != MC_OK)
        mc_log_error(painter->ctx, MC_LOG_WARN, error);
    return drawing->mark->circle || drawing->mark->part_count > 0;
}

static void
resolve_mark(mc_drawing *drawing, mc_painter *painter, const mc_symbolizer *symbol, const mc_graphic *graphic,
             const mc_feature *feature, double opacity)
{
    mc_symbolizer *drawn = &drawing->symbol;
    *drawn = (mc_symbolizer){ .kind = graphic->mark->open ? MC_SYMBOL_LINE : MC_SYMBOL_POLYGON, .uom = symbol->uom };
    drawn->by_direction = graphic->mark->by_direction;
    drawn->stroke = graphic->stroke;
    drawn->stroke.width = mc_painter_value(painter, graphic->stroke.width_value, graphic->stroke.width, feature);
    drawn->stroke.width_value = NULL;
    fade_ink(&drawn->fill, &graphic->fill, opacity, feature, painter);
    fade_ink(&drawn->stroke.paint, &graphic->stroke.paint, opacity, feature, painter);
}

static double
clamp_anchor_share(double value, double otherwise)
{
    return fmin(16, fmax(-16, isfinite(value) ? value : otherwise));
}

mc_error *
mc_graphic_resolve(mc_drawing *drawing, bool *any, mc_painter *painter, const mc_symbolizer *symbol,
                   const mc_graphic *graphic, const mc_feature *feature)
{
    double size = mc_painter_value(painter, graphic->size_value, graphic->size, feature);
    double turn = mc_painter_value(painter, graphic->rotation, 0, feature);
    double opacity = fmin(1, fmax(0, mc_painter_value(painter, graphic->opacity_value, graphic->opacity, feature)));
    *drawing = (mc_drawing){ .opacity = (unsigned)lrint(opacity * 255) };
    *any = false;
    if (!(size > 0 || graphic->picture != NULL) || !isfinite(turn) || drawing->opacity == 0)
        return MC_OK;
    size = mc_painter_pixels(painter, symbol, fmax(size, 0));
    mc_placing *placing = &drawing->placing;
    *placing = (mc_placing){ .height = size, .width = size, .turn = fmod(turn, 360) };
    placing->anchor_x =
        clamp_anchor_share(mc_painter_value(painter, graphic->anchor.x_value, graphic->anchor.x, feature), 0.5);
    placing->anchor_y =
        clamp_anchor_share(mc_painter_value(painter, graphic->anchor.y_value, graphic->anchor.y, feature), 0.5);
    placing->at = mc_painter_displacement(painter, symbol, &graphic->displacement, feature);
    if (graphic->mark != NULL) {
        placing->height = graphic->flatness > 0 ? size / graphic->flatness : size;
        resolve_mark(drawing, painter, symbol, graphic, feature, opacity);
        *any = find_outline(drawing, painter, graphic->mark);
    } else {
        get_known_picture(&drawing->picture, painter, graphic->picture, feature, size);
        double density = mc_query_density(painter->query);
        if (size == 0 && density != 1 && drawing->picture != NULL)
            get_known_picture(&drawing->picture, painter, graphic->picture, feature,
                              drawing->picture->height * density);
        *any = drawing->picture != NULL;
        placing->width = *any ? drawing->picture->width : 0;
        placing->height = *any ? drawing->picture->height : 0;
    }
    double around = 1 + (graphic->mark == NULL ? 0 : graphic->mark->reach);
    drawing->reach = (placing->width + placing->height) * (around + fabs(placing->anchor_x) + fabs(placing->anchor_y)) +
                     2 * fmax(0, mc_painter_pixels(painter, symbol, drawing->symbol.stroke.width)) +
                     (fabs((double)placing->at.x) + fabs((double)placing->at.y)) / MC_SUBPIXELS + 2;
    if (painter->obstacles != NULL && symbol->obstacle && *any)
        drawing->keeps_labels_off =
            mc_obstacle_box(drawing->box, drawing, mc_painter_pixels(painter, symbol, drawing->symbol.stroke.width));
    return MC_OK;
}

mc_error *
mc_graphic_draw(const mc_drawing *drawing, mc_painter *painter, mc_canvas *canvas, mc_shape_point at, double turn,
                const mc_feature *feature)
{
    mc_placing placing = drawing->placing;
    double x = (double)at.x / MC_SUBPIXELS, y = (double)at.y / MC_SUBPIXELS;
    if (x < -drawing->reach || y < -drawing->reach || x > canvas->width + drawing->reach ||
        y > canvas->height + drawing->reach)
        return MC_OK;
    bool drawn = false;
    if (turn == 0)
        MC_TRY(mc_sprite_draw(&drawn, painter, canvas, drawing, at, feature));
    if (drawn)
        return MC_OK;
    placing.at = (mc_shape_point){ at.x + placing.at.x, at.y + placing.at.y };
    placing.turn += turn;
    if (drawing->picture != NULL) {
        mc_pixels *pixels;
        MC_TRY(mc_canvas_pixels(&pixels, canvas));
        mc_picture_draw(pixels, drawing->picture, &placing, drawing->opacity);
        return MC_OK;
    }
    mc_mark_place(&painter->mark, drawing->mark, &placing);
    return painter->paint_shape(painter, canvas, &drawing->symbol, &painter->mark, feature);
}

/* A mark that is the same for all features is resolved once. */
struct mc_known_mark {
    const mc_symbolizer *symbol;
    mc_drawing drawing;
    bool any;
    mc_known_mark *next;
};

static mc_error *
resolve_known_graphic(mc_drawing *drawing, bool *any, mc_painter *painter, const mc_symbolizer *symbol,
                      const mc_feature *feature)
{
    mc_known_mark *known = painter->marks;
    if (symbol->graphic.mark == NULL || !mc_graphic_is_constant(&symbol->graphic))
        return mc_graphic_resolve(drawing, any, painter, symbol, &symbol->graphic, feature);
    while (known != NULL && known->symbol != symbol)
        known = known->next;
    if (known == NULL) {
        known = apr_pcalloc(painter->pool, sizeof(*known));
        *known = (mc_known_mark){ .symbol = symbol, .next = painter->marks };
        MC_TRY(mc_graphic_resolve(&known->drawing, &known->any, painter, symbol, &symbol->graphic, feature));
        painter->marks = known;
    }
    *drawing = known->drawing;
    *any = known->any;
    return MC_OK;
}

mc_error *
mc_graphic_paint(mc_painter *painter, mc_canvas *canvas, const mc_symbolizer *symbol, const mc_feature *feature)
{
    mc_drawing drawing;
    bool any;
    MC_TRY(resolve_known_graphic(&drawing, &any, painter, symbol, feature));
    if (!any)
        return MC_OK;
    mc_places_find(&painter->places, feature->geometry, symbol->part);
    for (int i = 0; i < painter->places.point_count; i++)
        MC_TRY(mc_graphic_draw(&drawing, painter, canvas, painter->places.points[i], 0, feature));
    if (drawing.keeps_labels_off)
        mc_obstacle_graphics(painter, &drawing);
    return MC_OK;
}
