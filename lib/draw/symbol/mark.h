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
    mc_mark_glyph *glyph; /* of a font: points, ends and part_count are made at the first use; or NULL */
    bool by_direction;    /* rings may overlap; the direction of a ring tells areas from holes */
    double reach;         /* of a WKT: how far it goes from its anchor in units of its size; 0: within its size */
};

/*
 * The mark of that name, in any case: those of OGC 05-077r4, 11.3.2 (square, circle, triangle, star, cross, x), and
 * those that QGIS and GeoServer write. NULL for an unknown one. Without an inside, cross and x are lines.
 */
const mc_mark *mc_mark_find(const char *name, bool with_inside, apr_pool_t *pool);

/*
 * A character as a mark, by GeoServer's name: ttf://Family#0xCODE, also U+CODE, \uCODE, or the code in decimals. The
 * larger side of its ink is the mark's size, its middle the mark's. NULL where the name is not like that.
 */
const mc_mark *mc_mark_of_font(const char *name, apr_pool_t *pool);

/*
 * A geometry as a mark, by GeoServer's name: wkt://LINESTRING(0 0, 1 1), with y upwards. The height of the geometry is
 * the mark's size (its width where it has no height), its point (0 0) the mark's middle. Lines, areas, collections of
 * one kind; arcs become chords. NULL where the name is not like that.
 */
const mc_mark *mc_mark_of_wkt(const char *name, apr_pool_t *pool);

/* The same as QGIS writes a character, with the code apart (ttf://Family): the size of the mark is the em, and the
 * middle of the mark is at half of the advance and half of the font's ascent. */
const mc_mark *mc_mark_of_character(const char *name, const char *code, apr_pool_t *pool);

/*
 * The mark with its outline. For a character the font is looked up at the first use; any other mark is handed back as
 * it is. MC_ERR_NOT_FOUND, MC_ERR_UNAVAILABLE: there is no such font, character or module; the error comes once, and
 * from then on the mark has no parts.
 */
mc_error *mc_mark_outline(const mc_mark **outline, const mc_mark *mark, apr_pool_t *pool) MC_CHECKED;

/* Where and how a mark or a picture is drawn. */
typedef struct mc_placing {
    mc_shape_point at;         /* the anchor, 1/256 pixel */
    double width, height;      /* pixels */
    double anchor_x, anchor_y; /* the point of the mark that lies at `at`: shares from the lower left */
    double turn;               /* degrees clockwise around the anchor */
} mc_placing;

/* Puts the outline of a mark into a shape of lines or of areas. */
void mc_mark_place(mc_shape *shape, const mc_mark *mark, const mc_placing *placing);

#endif
