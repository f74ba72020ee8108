/*
 * Which features of a layer can be seen on maps of one resolution: those that others hide may be left out of an
 * overview (docs/internals/overviews.md).
 */
#ifndef MC_DRAW_PAINT_SIEVE_H
#define MC_DRAW_PAINT_SIEVE_H

#include "draw/paint/painter.h"

typedef struct mc_sieve mc_sieve;

typedef struct mc_sieve_box {
    int x0, y0, x1, y1; /* pixels of the plane; the last ones are not inside */
} mc_sieve_box;

enum {
    MC_SIEVE_PIXELS_MAX = 1 << 24,        /* of the largest plane of a sieve: up to 300 MB, 600 of a narrow one */
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

/* Whether a plane of whole pixels is small enough: it has at most MC_SIEVE_PIXELS_MAX, and is not so narrow that it
 * takes much more memory than these. */
bool mc_sieve_fits(double width, double height);

/* Pixels that the plane of a sieve has to have around all geometry, or more is kept than need be. */
int mc_sieve_margin(const mc_style *style, double scale);

typedef enum mc_sieve_traits {
    /* Many features lie in a pixel, each of which covers a part of it: the sieve keeps more then, so that what is left
     * out can be seen in as few pixels. */
    MC_SIEVE_CROWDED = 1,
    /* In a process that serves requests, which keep half of the budget (base/budget.h): planes are counted. */
    MC_SIEVE_BUDGETED = 2,
} mc_sieve_traits;

/*
 * A sieve for maps of one scale denominator; `traits`: some of mc_sieve_traits, or 0. Geometry is in pixels of the
 * plane, which are those of these maps, from its upper left corner, thinned by MC_SIEVE_THINNING. The style lives as
 * long as `pool`. MC_ERR_LIMIT for a plane that does not fit, MC_ERR_NO_MEMORY where a sieve is BUDGETED and more than
 * half of the budget would be in use with it, also once idle memory was given back.
 */
mc_error *mc_sieve_create(mc_sieve **sieve, const mc_style *style, double scale, int traits, int width, int height,
                          apr_pool_t *pool) MC_CHECKED;

/* Whether a feature is kept. The features come in reverse order: the one that is painted last comes first. The geometry
 * is moved meanwhile. */
mc_error *mc_sieve_keeps(bool *keeps, mc_sieve *sieve, const mc_feature *feature, mc_ctx *ctx) MC_CHECKED;

/* Whether any rule draws a feature. */
bool mc_sieve_draws(mc_sieve *sieve, const mc_feature *feature);

/* Whether no feature whose geometry has these bounds (left, top, right, bottom in 1/256 pixel) is kept. Needs not know
 * more of the feature; false does not mean that one is. */
bool mc_sieve_hides_bounds(const mc_sieve *sieve, const int32_t bounds[4]);

/*
 * What can be seen once features are gone (sieve_open.c). First these are laid over a sieve of their own, and it is
 * uncovered: pixels where all of them together have hidden little are closed. Then the features come in reverse order,
 * those that are gone, too; where something shows that did not before, is known after each of them. At last the sieve
 * is opened in these pixels alone, and tells what is kept there.
 */
typedef enum mc_sieve_time {
    MC_SIEVE_BEFORE = 1, /* the feature is gone */
    MC_SIEVE_AFTER = 2,  /* it is new */
    MC_SIEVE_BOTH = 3,
} mc_sieve_time;

/* Lays a feature over the plane, whether it is seen or not. `now`: it has gone just now, and no longer ago. */
mc_error *mc_sieve_lay(mc_sieve *sieve, const mc_feature *feature, bool now, mc_ctx *ctx) MC_CHECKED;

/* Closes the plane but for pixels of what has gone now, where all that was laid has hidden much. False: there are none.
 */
bool mc_sieve_uncover(mc_sieve *sieve);

/* Whether any pixel of a box inside the plane is not closed. */
bool mc_sieve_is_open(const mc_sieve *sieve, const mc_sieve_box *box);

/* The next feature. *box: pixels of which it may have changed whether anything shows; empty: none. */
mc_error *mc_sieve_follow(mc_sieve_box *box, mc_sieve *sieve, const mc_feature *feature, mc_sieve_time time,
                          mc_ctx *ctx) MC_CHECKED;

/* Shrinks a box inside the plane to the pixels where now something shows that did not before; false: there are none. */
bool mc_sieve_find_shown(mc_sieve_box *box, const mc_sieve *sieve);

/* From here on mc_sieve_keeps keeps what is seen in pixels where something ever showed. */
void mc_sieve_open_shown(mc_sieve *sieve);

/* Pixels by which symbols reach over their geometry, but for the tips of lines that bend sharply: of any rule, and of
 * the rules that draw a feature. */
int mc_sieve_reach(const mc_style *style, double scale);
double mc_sieve_reach_of(mc_sieve *sieve, const mc_feature *feature);

#endif
