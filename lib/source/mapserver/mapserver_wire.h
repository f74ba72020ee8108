/*
 * What a server says to a child that draws map files, and what the child answers: both are of one build, on one
 * machine, at the ends of a pair of sockets. An ask is followed by its texts, an answer by its text and its pixels.
 */
#ifndef MC_SOURCE_MAPSERVER_MAPSERVER_WIRE_H
#define MC_SOURCE_MAPSERVER_MAPSERVER_WIRE_H

#include <stdint.h>

#define MC_MAPSERVER_MAGIC UINT32_C(0x6d637301) /* its last byte is the version */

enum {
    MC_MAPSERVER_TEXTS_MAX = 64 * 1024, /* bytes of the texts of an ask */
    MC_MAPSERVER_PAIRS_MAX = 32,        /* parameters of an ask */
    MC_MAPSERVER_SAID_MAX = 2000,       /* bytes of the text of an answer */
    MC_MAPSERVER_SIDE_MAX = 16384       /* pixels */
};

/* What lies under the map. */
typedef enum mc_mapserver_ground {
    MC_MAPSERVER_AS_MAPFILE, /* as its output format says: its IMAGECOLOR, or nothing */
    MC_MAPSERVER_TRANSPARENT,
    MC_MAPSERVER_OPAQUE
} mc_mapserver_ground;

/*
 * Its texts, each ended by a NUL: the map file, the CRS of the box, the names of the layers (comma between them; empty:
 * all that are on), and name and value of each pair.
 */
typedef struct mc_mapserver_ask {
    uint32_t magic;
    uint32_t text_size;
    uint32_t pair_count;
    uint32_t ground;     /* mc_mapserver_ground */
    uint64_t generation; /* a map file that was opened for another generation is read anew */
    double box[4];       /* minx, miny, maxx, maxy: outer edges, in units of the CRS */
    double metres_per_unit;
    double density;
    int32_t width, height; /* pixels; both 0: the map file is opened, nothing is drawn */
    uint32_t seconds;      /* after which the child ends itself, should nobody be left to end it */
    uint32_t unused;
} mc_mapserver_ask;

typedef enum mc_mapserver_outcome {
    MC_MAPSERVER_DRAWN,
    MC_MAPSERVER_BAD_MAPFILE,   /* the map file cannot be read, or lacks a layer */
    MC_MAPSERVER_BAD_PARAMETER, /* a value is not what the map file allows */
    MC_MAPSERVER_NOT_DRAWN
} mc_mapserver_outcome;

/* After it `text_size` bytes of text, without a NUL; and, of a map that was drawn, rows of premultiplied B, G, R, A. */
typedef struct mc_mapserver_answer {
    uint32_t magic;
    uint32_t outcome; /* mc_mapserver_outcome */
    uint32_t text_size;
    int32_t width, height; /* of the pixels that follow; 0: none */
    uint32_t opaque;       /* all pixels are, whatever their alpha */
} mc_mapserver_answer;

#endif
