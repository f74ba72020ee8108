/*
 * Colour maps: what the numbers of a palette PNG look like. A tileset whose tiles are such PNGs may have several; a
 * tile becomes another picture by another palette, and nothing is decoded (docs/palettes.md).
 */
#ifndef MAPCACHE_COLOR_MAP_H
#define MAPCACHE_COLOR_MAP_H

#include "mapcache/buf.h"
#include "mapcache/config.h"

enum { MC_COLOR_MAP_ENTRIES = 256 };

typedef struct mc_color_map {
    const char *name;                      /* as clients ask for it */
    const char *title;                     /* for documents; never NULL once it is read from a configuration */
    int count;                             /* 1 + the greatest number that has a line of its own; 0: none has one */
    uint8_t rgba[MC_COLOR_MAP_ENTRIES][4]; /* R, G, B, A: straight, not premultiplied */
    bool known[MC_COLOR_MAP_ENTRIES];      /* whether the number has a colour */
    bool listed[MC_COLOR_MAP_ENTRIES];     /* whether the number has a line of its own, not only that of the others */
    const char *labels[MC_COLOR_MAP_ENTRIES]; /* for legends; or NULL */
    uint64_t tag;                             /* hash of the colours, for validators; not 0 */
} mc_color_map;

/* Where a text is wrong, and why: one sentence without an end. */
typedef struct mc_color_map_problem {
    int line; /* counts from 1 */
    const char *text;
} mc_color_map_problem;

/*
 * Reads a colour table of text (docs/palettes.md): on each line a number from 0 to 255, red, green, blue and, where
 * they are given, alpha (0 to 255; 255 is opaque) and a label; blanks, tabs, commas or colons between them. `default`
 * for a number: all that have no line. Lines that begin with `#` are comments. The labels live in `pool`. False where a
 * line is wrong.
 */
bool mc_color_map_read_text(mc_color_map *map, const char *text, mc_color_map_problem *problem, apr_pool_t *pool);

/*
 * Reads the ColorMapEntry elements (attributes rgb, transparent, label or tooltip) below `root` in their order, from
 * number 0: the colour maps that NASA publishes for GIBS (ColorMap schema 1.3).
 */
bool mc_color_map_read_xml(mc_color_map *map, const mc_node *root, mc_color_map_problem *problem, apr_pool_t *pool);

/*
 * The same palette PNG (ISO/IEC 15948, colour type 3) with other colours: a copy whose PLTE and tRNS chunks are
 * replaced. `stored`: the colours that the tiles are known to be made of; the number of an entry of the PNG is then
 * found by its colour, so that it does not matter in which order an encoder has put the colours. NULL: the entry's
 * place in the PNG is its number. *recolored is attached to `pool`. MC_ERR_CORRUPT: no PNG, no palette PNG, or broken;
 * or it has a colour that is not of `stored`, or that stands for several numbers which the map colours differently, or
 * the map has no colour for a number: never a wrong picture.
 */
mc_error *mc_color_map_apply(mc_buf **recolored, const mc_buf *png, const mc_color_map *map, const mc_color_map *stored,
                             apr_pool_t *pool) MC_CHECKED;

#endif
