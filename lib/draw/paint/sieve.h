/*
 * Which features of a layer can be seen on maps of one resolution: those that others hide may be left out of an
 * overview (docs/internals/overviews.md).
 */
#ifndef MC_DRAW_PAINT_SIEVE_H
#define MC_DRAW_PAINT_SIEVE_H

#include "draw/paint/painter.h"

typedef struct mc_sieve mc_sieve;

enum {
    MC_SIEVE_PIXELS_MAX = 1 << 24,        /* of the largest plane of a sieve */
    MC_SIEVE_THINNING = MC_SUBPIXELS / 4, /* of a pixel: as maps thin what they read */
};

/*
 * Why maps with scale denominators from `least` to below `most` cannot be drawn from an overview in this style, in
 * words for the operator; NULL: they can. The style must draw alike at all of these scales, and must not depend on
 * anything that thinning changes: labels, dashes, graphics along lines, functions of the geometry. `points`: the data
 * has nothing but points.
 */
const char *mc_sieve_refusal(const mc_style *style, double least, double most, bool points);

/* Whether the sieve can tell what is hidden: the features are painted over each other, in one pass. Else it keeps all
 * features that any rule draws. */
bool mc_sieve_hides(const mc_style *style, double scale);

/* Pixels that the plane of a sieve has to have around all geometry, or more is kept than need be. */
int mc_sieve_margin(const mc_style *style, double scale);

/*
 * A sieve for maps of one scale denominator. `crowded`: many features lie in a pixel, each of which covers a part of
 * it; the sieve keeps more then, so that what is left out can be seen in as few pixels. Geometry is in pixels of the
 * plane, which are those of these maps, from its upper left corner, thinned by MC_SIEVE_THINNING. The style lives as
 * long as `pool`. MC_ERR_LIMIT for more than MC_SIEVE_PIXELS_MAX pixels.
 */
mc_error *mc_sieve_create(mc_sieve **sieve, const mc_style *style, double scale, bool crowded, int width, int height,
                          apr_pool_t *pool) MC_CHECKED;

/* Whether a feature is kept. The features come in reverse order: the one that is painted last comes first. The geometry
 * is moved meanwhile. */
mc_error *mc_sieve_keeps(bool *keeps, mc_sieve *sieve, const mc_feature *feature, mc_ctx *ctx) MC_CHECKED;

/* From here on only what is seen in boxes that are opened is kept; boxes are in pixels of the plane, the last ones not
 * inside. Features may stick out of the plane. */
void mc_sieve_close(mc_sieve *sieve);
void mc_sieve_open_box(mc_sieve *sieve, int x0, int y0, int x1, int y1);

/* Whether no feature whose geometry has these bounds (left, top, right, bottom in 1/256 pixel) is kept. Needs not know
 * more of the feature; false does not mean that one is. */
bool mc_sieve_hides_bounds(const mc_sieve *sieve, const int32_t bounds[4]);

#endif
