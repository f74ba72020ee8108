/* The map files that a child of MapServer has open, and drawing from them: the one file that calls MapServer's library.
 */
#ifndef MC_SOURCE_MAPSERVER_MAPSERVER_MAP_H
#define MC_SOURCE_MAPSERVER_MAPSERVER_MAP_H

#include "source/mapserver/mapserver_wire.h"

/* The texts of an ask, in their order. */
typedef struct mapserver_texts {
    const char *mapfile, *srs, *layers;
    char *names[MC_MAPSERVER_PAIRS_MAX], *values[MC_MAPSERVER_PAIRS_MAX];
} mapserver_texts;

/* What goes out as an answer; `pixels` belongs to the picture below. */
typedef struct mapserver_drawing {
    mc_mapserver_outcome outcome;
    char said[MC_MAPSERVER_SAID_MAX];
    int width, height;
    int opaque;
    uint8_t *pixels; /* rows of premultiplied B, G, R, A without gaps; malloc'ed, the caller's */
} mapserver_drawing;

/* Prepares the library, once. False: it cannot be. */
int start_mapserver(void);

/* Opens the map file unless it is open, and draws unless the size is 0. */
void draw_mapfile(mapserver_drawing *drawing, const mc_mapserver_ask *ask, const mapserver_texts *texts);

#endif
