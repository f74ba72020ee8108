/* Marks: outlines that styles know by name. */
#ifndef MC_FEATURE_MARK_H
#define MC_FEATURE_MARK_H

#include "feature/style.h"

/* Directions of the lines that a mark becomes when it is repeated over an area. */
enum { MC_HATCH_ACROSS = 1, MC_HATCH_UP = 2, MC_HATCH_SLASH = 4, MC_HATCH_BACKSLASH = 8 };

struct mc_mark {
    const char *name;
    bool open;            /* lines, which have no inside */
    bool circle;          /* as fine as its size needs */
    unsigned hatch;       /* 0: repeated as it is */
    int dense;            /* of 64 dots, how many are set: the dense brushes of QGIS; 0: none of them */
    const double *points; /* x to the right and y down from the centre, in units of its size */
    const int *ends;      /* of each part, the index after its last point */
    int part_count;
};

/*
 * The mark of that name: those of OGC 05-077r4, 11.3.2 (square, circle, triangle, star, cross, x), and those that QGIS
 * and GeoServer write. NULL for an unknown one. Without an inside, cross and x are lines.
 */
const mc_mark *mc_mark_find(const char *name, bool with_inside, apr_pool_t *pool);

/* Where and how a mark or a picture is drawn. */
typedef struct mc_placing {
    mc_shape_point at;         /* the anchor, 1/256 pixel */
    double width, height;      /* pixels */
    double anchor_x, anchor_y; /* what of it lies there: shares from the lower left */
    double turn;               /* degrees clockwise around the anchor */
} mc_placing;

/* Puts the outline of a mark into a shape of lines or of areas. */
void mc_mark_place(mc_shape *shape, const mc_mark *mark, const mc_placing *placing);

#endif
