/*
 * Pictures: PNG, JPEG, GIF and SVG files that are drawn as graphics, or the same bytes inside of the style. Files are
 * on this machine: below the folder of the style, or at an absolute path. The process remembers the pixels of a file at
 * one size, by the stamp of the file.
 */
#ifndef MC_DRAW_SYMBOL_PICTURE_H
#define MC_DRAW_SYMBOL_PICTURE_H

#include "draw/symbol/mark.h"

enum { MC_PICTURE_SIDE_MAX = 1024 /* pixels, as drawn */ };

/* The picture of a feature, scaled to `height` pixels (0: not scaled). `pixels` gets one reference for the caller.
 * NULL where the data of the feature names no file. MC_ERR_IO, MC_ERR_CORRUPT, MC_ERR_LIMIT of the
 * file. */
mc_error *mc_picture_get(mc_pixels **pixels, const mc_picture *picture, const mc_feature *feature, double height,
                         mc_ctx *ctx, apr_pool_t *scratch) MC_CHECKED;

/* Whether a picture is the same for all features; and a graphic with all of its sizes and colours. */
bool mc_picture_is_constant(const mc_picture *picture);
bool mc_graphic_is_constant(const mc_graphic *graphic);

/* A picture of another size; its pixels, one reference of the caller's. */
mc_error *mc_picture_scale(mc_pixels **scaled, const mc_pixels *own, int width, int height,
                           apr_pool_t *pool) MC_CHECKED;

/* Lays a picture over the map with an opacity (0..255). A picture that is not turned is moved to whole pixels. */
void mc_picture_draw(mc_pixels *target, const mc_pixels *picture, const mc_placing *placing, unsigned opacity);

/* What the module with the SVG library offers (mapcache-svg.so). Sizes in pixels. */
typedef struct mc_svg_ops {
    /* The size that a drawing declares. MC_ERR_CORRUPT where the text is no SVG. */
    mc_error *(*size)(double *width, double *height, const char *text, size_t size, apr_pool_t *pool);
    /* Draws the SVG over cleared pixels, as large as the pixels are. */
    mc_error *(*render)(mc_pixels *pixels, const char *text, size_t size, apr_pool_t *pool);
} mc_svg_ops;

#define MC_SVG_SYMBOL "mc_svg_rsvg_ops"
extern const mc_svg_ops mc_svg_rsvg_ops;

/* What the module with the GIF library offers (mapcache-gif.so). */
typedef struct mc_gif_ops {
    /* The first picture, on pixels of the size that the file says. MC_ERR_CORRUPT, MC_ERR_LIMIT. */
    mc_error *(*decode)(mc_pixels **pixels, const char *bytes, size_t size, apr_pool_t *pool);
} mc_gif_ops;

#define MC_GIF_SYMBOL "mc_gif_giflib_ops"
extern const mc_gif_ops mc_gif_giflib_ops;

/* An SVG with the values of its placeholders, `param(name) default` (as QGIS draws them): pairs of name and value. */
const char *mc_svg_fill_in(const char *svg, const char *const *names, const char *const *values, int count,
                           apr_pool_t *pool);

#endif
