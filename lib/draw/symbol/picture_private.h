/* The members of a picture, and the checks of its bytes: for the reader of styles and for the files that make pictures.
 */
#ifndef MC_DRAW_SYMBOL_PICTURE_PRIVATE_H
#define MC_DRAW_SYMBOL_PICTURE_PRIVATE_H

#include "draw/symbol/picture.h"

enum { MC_PICTURE_PARAMETERS_MAX = 8, MC_PICTURE_BYTES_MAX = 4 << 20, MC_PICTURE_NATIVE_MAX = 4096 /* pixels */ };

/* One of three: a file, a file whose name comes from the data, bytes. */
struct mc_picture {
    const char *path;          /* real path, or NULL */
    const mc_expression *name; /* a path as seen from `folder`, or NULL */
    const char *folder;        /* real path of the style's folder: such a file must lie in it */
    const char *bytes;
    size_t size;
    const char *identity;                         /* of the bytes, unique in the process */
    const char *names[MC_PICTURE_PARAMETERS_MAX]; /* of an SVG's placeholders, with their values */
    const mc_expression *values[MC_PICTURE_PARAMETERS_MAX];
    int parameter_count;
    const mc_expression *tint, *tint_opacity; /* the one colour of all of it, and its opacity; NULL: its own colours */
};

/* The real path of `name` as seen from the folder, where the path is inside of the folder; else NULL. */
const char *mc_picture_inside(const char *folder, const char *name, apr_pool_t *pool);

/* Whether bytes look like a PNG, a JPEG, a GIF or an SVG, the only formats that are drawn. */
bool mc_picture_is_known(const char *bytes, size_t size);
bool mc_picture_is_svg(const char *bytes, size_t size);

/* The size of an image, and its pixels (one reference of the caller's): of a GIF the first picture. MC_ERR_CORRUPT,
 * MC_ERR_LIMIT; MC_ERR_UNAVAILABLE where the module for GIF is not installed. */
mc_error *mc_picture_size(int *width, int *height, const char *bytes, size_t size, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_picture_decode(mc_pixels **pixels, const char *bytes, size_t size, mc_ctx *ctx,
                            apr_pool_t *pool) MC_CHECKED;

/* All of a file, with a zero byte behind it. MC_ERR_IO, MC_ERR_LIMIT above MC_PICTURE_BYTES_MAX. */
mc_error *mc_picture_read(char **bytes, size_t *size, const char *path, apr_pool_t *pool) MC_CHECKED;

#endif
