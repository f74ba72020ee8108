/* SVG by librsvg and cairo, in a module of its own (mapcache-svg.so). */
#include <librsvg/rsvg.h>

#include "draw/symbol/picture.h"

static mc_error *
open_svg(RsvgHandle **handle, const char *text, size_t size, apr_pool_t *pool)
{
    GError *problem = NULL;
    /* Without a base URI nothing outside of the text is ever read. */
    *handle = rsvg_handle_new_from_data((const guint8 *)text, size, &problem);
    if (*handle != NULL)
        return MC_OK;
    mc_error *error = mc_error_create(pool, MC_ERR_CORRUPT, "the SVG cannot be read: %s",
                                      problem == NULL ? "it is broken, or no SVG" : problem->message);
    g_clear_error(&problem);
    return error;
}

static mc_error *
svg_size(double *width, double *height, const char *text, size_t size, apr_pool_t *pool)
{
    RsvgHandle *handle;
    gboolean has_width, has_height, has_box;
    RsvgLength w, h;
    RsvgRectangle box;
    MC_TRY(open_svg(&handle, text, size, pool));
    if (!rsvg_handle_get_intrinsic_size_in_pixels(handle, width, height)) {
        rsvg_handle_get_intrinsic_dimensions(handle, &has_width, &w, &has_height, &h, &has_box, &box);
        *width = has_box ? box.width : 16; /* OGC 05-077r4, 11.3.2: what has no size of its own */
        *height = has_box ? box.height : 16;
    }
    g_object_unref(handle);
    return MC_OK;
}

static mc_error *
svg_render(mc_pixels *pixels, const char *text, size_t size, apr_pool_t *pool)
{
    RsvgHandle *handle;
    GError *problem = NULL;
    MC_TRY(open_svg(&handle, text, size, pool));
    cairo_surface_t *surface = cairo_image_surface_create_for_data(pixels->data, CAIRO_FORMAT_ARGB32, pixels->width,
                                                                   pixels->height, (int)pixels->stride);
    cairo_t *cairo = cairo_create(surface);
    const RsvgRectangle all = { 0, 0, pixels->width, pixels->height };
    gboolean drawn = rsvg_handle_render_document(handle, cairo, &all, &problem);
    cairo_surface_flush(surface);
    drawn = drawn && cairo_status(cairo) == CAIRO_STATUS_SUCCESS;
    cairo_destroy(cairo);
    cairo_surface_destroy(surface);
    g_object_unref(handle);
    pixels->opacity = MC_OPACITY_UNKNOWN;
    mc_error *error = drawn ? MC_OK
                            : mc_error_create(pool, MC_ERR_CORRUPT, "the SVG cannot be drawn: %s",
                                              problem == NULL ? "it is broken, or no SVG" : problem->message);
    g_clear_error(&problem);
    return error;
}

const mc_svg_ops mc_svg_rsvg_ops = { svg_size, svg_render };
