/* Marks: outlines that styles know by name. */
#ifndef MC_DRAW_SYMBOL_MARK_H
#define MC_DRAW_SYMBOL_MARK_H

#include "draw/style/style.h"

/* A character of a font (draw/symbol/mark_glyph.c). */
typedef struct mc_mark_glyph mc_mark_glyph;

struct mc_mark {
    const char *name;
    bool open;            /* lines, which have no inside */
    bool circle;          /* as fine as its size needs */
    unsigned hatch;       /* MC_HATCH_* of draw/raster/hatch.h; 0: repeated as it is */
    int dense;            /* of 64 dots, how many are set: the dense brushes of QGIS; 0: none of them */
    const double *points; /* x to the right and y down from the centre, in units of its size */
    const int *ends;      /* of each part, the index after its last point */
    int part_count;
    mc_mark_glyph *glyph; /* instead of the last three, which are looked up when it is drawn; NULL: none */
    bool by_direction;    /* its rings may lie over each other: what they are is told by their directions */
};

/*
 * The mark of that name: those of OGC 05-077r4, 11.3.2 (square, circle, triangle, star, cross, x), and those that QGIS
 * and GeoServer write. NULL for an unknown one. Without an inside, cross and x are lines.
 */
const mc_mark *mc_mark_find(const char *name, bool with_inside, apr_pool_t *pool);

/*
 * A character as a mark, by GeoServer's name: ttf://Family#0xCODE, also U+CODE, \uCODE, or the code in decimals. The
 * larger side of its ink is the mark's size, its middle the mark's. NULL where the name is not like that.
 */
const mc_mark *mc_mark_of_font(const char *name, apr_pool_t *pool);

/* The same as QGIS writes it, with the code apart (ttf://Family): the mark's size is the em, half of the advance and of
 * the font's ascent is its middle. */
const mc_mark *mc_mark_of_character(const char *name, const char *code, apr_pool_t *pool);

/*
 * The mark with its outline, itself but for characters, whose fonts are looked up at their first use. MC_ERR_NOT_FOUND,
 * MC_ERR_UNAVAILABLE: there is no such font, character or module; said once, then the mark is one without parts.
 */
mc_error *mc_mark_outline(const mc_mark **outline, const mc_mark *mark, apr_pool_t *pool) MC_CHECKED;

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
