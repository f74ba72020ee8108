/*
 * `mapcache adopt --compare URL`: what the other server answers beside what the new configuration answers. The other
 * server is asked by HTTP; ours answers in this process.
 */
#ifndef MC_CLI_ADOPT_COMPARE_H
#define MC_CLI_ADOPT_COMPARE_H

#include <apr_hash.h>
#include <apr_tables.h>

#include "adopt/adopt.h"
#include "mapcache/server.h"

enum {
    MC_COMPARE_PICTURES = 20, /* of tiles, and of maps */
    MC_COMPARE_SECONDS = 180, /* for tiles, and for maps: later ones are left out */
    MC_COMPARE_LEVELS = 40,   /* of a set of tile matrices: deeper ones are not looked at */
};

/* Of the two servers: who answers. */
typedef enum mc_compare_side { MC_COMPARE_THERE, MC_COMPARE_HERE } mc_compare_side;

typedef struct mc_compare_answer {
    int status;        /* 0: there was no answer, `error` says why */
    const char *media; /* its type, or "" */
    const char *error;
    mc_buf *body; /* NULL: none */
    double seconds;
} mc_compare_answer;

/* ---- what a server offers */

typedef struct mc_compare_matrix {
    const char *id;
    double scale;     /* denominator, for pixels of 0.28 mm */
    double left, top; /* corner, in units of the CRS, x first */
    int tile_width, tile_height, columns, rows;
} mc_compare_matrix;

typedef struct mc_compare_set {
    const char *id, *srs;
    double unit; /* metres */
    int count;
    mc_compare_matrix matrices[MC_COMPARE_LEVELS];
} mc_compare_set;

typedef struct mc_compare_layer {
    const char *name, *title;
    const char *address;      /* of tiles, with {TileMatrix} and the like; NULL: none */
    apr_array_header_t *sets; /* of const char *: ids */
    apr_array_header_t *srs;  /* of const char *: maps */
    bool has_box;
    mc_extent box;     /* degrees */
    int shallow, deep; /* levels; -1: not said */
} mc_compare_layer;

/* One service of one server. */
typedef struct mc_compare_service {
    const char *error;  /* why nothing is known of it; NULL: it is offered */
    apr_hash_t *layers; /* of mc_compare_layer * by name */
    apr_hash_t *sets;   /* of mc_compare_set * by id */
} mc_compare_service;

/* ---- pictures */

typedef enum mc_compare_verdict {
    MC_COMPARE_SAME_BYTES,
    MC_COMPARE_SAME_PIXELS,
    MC_COMPARE_CLOSE, /* at most one pixel in a hundred looks different, beyond the edges of lines */
    MC_COMPARE_DIFFERENT,
    MC_COMPARE_ONLY_THERE,
    MC_COMPARE_ONLY_HERE,
    MC_COMPARE_NEITHER,
    MC_COMPARE_VERDICTS
} mc_compare_verdict;

/* One picture of both servers. */
typedef struct mc_compare_pair {
    const char *title, *addresses[2];
    mc_compare_answer answers[2];
    mc_compare_verdict verdict;
    double share;       /* of pixels that look different: 0 to 1 */
    int width, height;  /* of the one there, or else here */
    mc_buf *difference; /* a PNG that shows where; NULL: nowhere, or there are no two pictures of one size */
    bool has_focus;     /* there is a place where the colour changes: there is something to see */
    double focus[2];    /* that place, as parts of the width and the height */
} mc_compare_pair;

/* ---- one comparison */

typedef struct mc_compare {
    const char *url; /* of the other server, without a slash at its end */
    mc_adopt_server kind;
    const apr_array_header_t *layers; /* of mc_adopt_layer */
    mc_server *server;
    mc_runtime *runtime;
    const mc_log *log;
    apr_pool_t *pool;
    mc_compare_service wms[2], tiles[2];  /* by mc_compare_side */
    mc_buf *page;                         /* the body of the report as it grows */
    int pictures[2][MC_COMPARE_VERDICTS]; /* of tiles, and of maps: how many have which verdict */
    int asked[2];                         /* how many tiles, and maps */
    int rows, unlike;                     /* of capabilities: how many were compared, and how many are not the same */
    uint64_t chance;                      /* state of the random numbers, which are the same in each run */
} mc_compare;

/* Asks one of the servers: an address that begins with its url. Bounded in time and bytes; never fails. */
mc_compare_answer mc_compare_ask(mc_compare *compare, mc_compare_side side, const char *address, apr_pool_t *pool);

/* How the addresses of our own server begin. */
#define MC_COMPARE_HERE_URL "http://here.invalid"

/* Reads what both servers offer, and reports where they differ. */
void mc_compare_services(mc_compare *compare);

/* Parts of mc_compare_services: capabilities of WMS 1.3.0 and of WMTS 1.0.0. */
void mc_compare_read_wms(mc_compare_service *service, const mc_compare_answer *answer, apr_pool_t *pool);
void mc_compare_read_wmts(mc_compare_service *service, const mc_compare_answer *answer, const char *kvp,
                          apr_pool_t *pool);

/* The names of a layer on both sides. NULL: that side does not have the layer. */
mc_compare_layer *mc_compare_find_layer(const mc_compare_service *service, const char *name);

/* Asks for tiles, and maps, of both servers, and reports them: for MC_COMPARE_SECONDS each at most. */
void mc_compare_tiles(mc_compare *compare);
void mc_compare_maps(mc_compare *compare);

/* Whether there is time for one more picture of those that began at `begin`; the page says where there is none. */
bool mc_compare_has_time(mc_compare *compare, apr_time_t begin);

/* A whole number from 0 to `count` - 1; a number from 0 to 1. */
int mc_compare_choose(mc_compare *compare, int count);
double mc_compare_random(mc_compare *compare);

/* Looks at the two answers of a pair, and fills in all else. */
void mc_compare_pictures(mc_compare_pair *pair, mc_compare *compare, apr_pool_t *pool);

/* ---- the report */

void mc_compare_put(mc_compare *compare, const char *format, ...) MC_PRINTF(2, 3);
void mc_compare_put_heading(mc_compare *compare, const char *title);

/* A row about capabilities: what there is on both sides, and whether that is the same. */
void mc_compare_put_row(mc_compare *compare, const char *what, const char *there, const char *here, bool same);
void mc_compare_put_pair(mc_compare *compare, const mc_compare_pair *pair, int group);

/* The whole page. */
const char *mc_compare_page(const mc_compare *compare, apr_pool_t *pool);

/* "18 same bytes, 2 different": what the pictures of a group are, 0 for tiles and 1 for maps. */
const char *mc_compare_sum(const mc_compare *compare, int group, apr_pool_t *pool);

/* Words for a verdict: "same bytes". */
const char *mc_compare_words(mc_compare_verdict verdict);

/* Compares what the configuration file of ours answers; `url`, `kind`, `layers` and `log` are set before.
 * MC_ERR_CONFIG: the configuration cannot be served. */
mc_error *mc_compare_run(mc_compare *compare, const char *config, apr_pool_t *pool) MC_CHECKED;

/* Whether all that was compared is the same, or nearly so. */
bool mc_compare_agrees(const mc_compare *compare);

#endif
