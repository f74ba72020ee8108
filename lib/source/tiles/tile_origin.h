/* What the sources "xyz" and "wmts" share: a server of tiles, its grid, and maps of its tiles. */
#ifndef MC_SOURCE_TILES_TILE_ORIGIN_H
#define MC_SOURCE_TILES_TILE_ORIGIN_H

#include "source/http_block.h"
#include "source/source_base.h"
#include "source/tiles/mosaic.h"
#include "source/tiles/tile_url.h"

/* What becomes of a tile that the server does not have, in the order of the key's choices. */
typedef enum mc_absent_tile { MC_ABSENT_ERROR, MC_ABSENT_EMPTY, MC_ABSENT_OVERZOOM } mc_absent_tile;

typedef struct mc_tile_origin {
    mc_source_base base; /* first */
    const mc_node *http_tree;
    mc_http_block *http;
    const char *grid_name; /* NULL: the grid of the tileset that asks */
    const mc_grid *grid;   /* by mc_tile_origin_connect; NULL without a name */
    int tile_size;         /* pixels of the side of an image; 0: as the grid's */
    int zoom_offset;
    int minzoom, maxzoom;               /* levels of the grid; maxzoom -1: its last one */
    const char *matrix;                 /* pattern with {z}, or identifiers of all levels; NULL: the number */
    const apr_array_header_t *matrices; /* of const char *; NULL: by the pattern */
    mc_number_list extent_numbers;
    mc_extent extent; /* of the numbers */
    int absent;       /* mc_absent_tile */
    mc_number_list absent_statuses;
    int connections;
    const char *subdomains_text;
    mc_tile_url_rules url_rules;
    mc_tile_url *url;
    const char *layer, *style, *matrix_set, *media_type; /* of WMTS */
} mc_tile_origin;

/* Rows of the keys that both kinds have. */
#define MC_TILE_ORIGIN_KEYS                                                                                            \
    MC_KEY_TREE("http", offsetof(mc_tile_origin, http_tree), mc_http_block_keys, "Where the tiles are.",               \
                .flags = MC_KEY_REQUIRED),                                                                             \
        MC_KEY_TEXT("grid", offsetof(mc_tile_origin, grid_name),                                                       \
                    "Name of the grid in which the server cuts its tiles. Without one it is the grid of the tileset "  \
                    "that asks.",                                                                                      \
                    .flags = MC_KEY_OURS),                                                                             \
        MC_KEY_INT(                                                                                                    \
            "tile_size", offsetof(mc_tile_origin, tile_size),                                                          \
            "Pixels of the side of a tile's image where these are not those of the grid: 512 for tiles of high "       \
            "density. 0: as the grid says.",                                                                           \
            .flags = MC_KEY_OURS, .max = 4096, .fallback = "0"),                                                       \
        MC_KEY_INT("zoom_offset", offsetof(mc_tile_origin, zoom_offset),                                               \
                   "Added to the level of the grid: the level as the server counts it.", .flags = MC_KEY_OURS,         \
                   .min = -64, .max = 64, .fallback = "0"),                                                            \
        MC_KEY_INT("minzoom", offsetof(mc_tile_origin, minzoom), "First level of the grid that the server has.",       \
                   .flags = MC_KEY_OURS, .max = 255, .fallback = "0"),                                                 \
        MC_KEY_INT("maxzoom", offsetof(mc_tile_origin, maxzoom),                                                       \
                   "Last level of the grid that the server has; -1: the grid's last one. What becomes of finer maps "  \
                   "is said by <absent>.",                                                                             \
                   .flags = MC_KEY_OURS, .min = -1, .max = 255, .fallback = "-1"),                                     \
        MC_KEY_NUMBERS("extent", offsetof(mc_tile_origin, extent_numbers),                                             \
                       "minx miny maxx maxy, in the CRS of the grid: no tile beyond is asked for, and maps are empty " \
                       "there.",                                                                                       \
                       .flags = MC_KEY_OURS, .min = 4, .max = 4),                                                      \
        MC_KEY_CHOICE("absent", offsetof(mc_tile_origin, absent), "error|empty|overzoom",                              \
                      "What becomes of a tile that the server does not have: error, the map is refused with 404 and "  \
                      "nothing is stored; empty, the tile is transparent, and stored; overzoom, it is drawn from the " \
                      "tile of the nearest level above it.",                                                           \
                      .flags = MC_KEY_OURS, .fallback = "error"),                                                      \
        MC_KEY_NUMBERS("absent_status", offsetof(mc_tile_origin, absent_statuses),                                     \
                       "Statuses by which the server says that it does not have a tile.", .flags = MC_KEY_OURS,        \
                       .min = 1, .max = 8, .fallback = "204 404 410"),                                                 \
        MC_KEY_INT("connections", offsetof(mc_tile_origin, connections),                                               \
                   "How many tiles of a map are asked for at the same time.", .flags = MC_KEY_OURS, .min = 1,          \
                   .max = 64, .fallback = "6"),                                                                        \
        MC_KEY_TEXT("subdomains", offsetof(mc_tile_origin, subdomains_text),                                           \
                    "What {s} in the address stands for: names, separated by blanks, used in turn.",                   \
                    .flags = MC_KEY_OURS)

/* Reads `node` into `origin` (a zeroed struct of the type) without its address. False if anything was refused. */
bool mc_tile_origin_read(mc_tile_origin *origin, const mc_source_ops *ops, const mc_node *node, mc_build *build);

/* The address, a template; false after a complaint. */
bool mc_tile_origin_set_url(mc_tile_origin *origin, const char *text, mc_build *build);

/* Looks up the grid: the connect operation. */
void mc_tile_origin_connect(mc_source *source, const mc_node *node, mc_build *build);

/* The render operation. */
mc_error *mc_tile_origin_render(mc_rendered *map, mc_source *source, const mc_render *wanted, mc_ctx *ctx,
                                apr_pool_t *pool) MC_CHECKED;

/* The no_vector_tiles operation. */
const char *mc_tile_origin_no_vector_tiles(mc_source *source, const mc_grid *grid, mc_build *build);

/* The inspect operation. */
void mc_tile_origin_inspect(mc_source *source, mc_diagnostics *diagnostics, mc_ctx *ctx, apr_pool_t *pool);

/* A tile that is wanted of the server, by the numbers of the grid. */
typedef struct mc_origin_tile {
    int z, x, y;
    mc_buf *body;           /* NULL: the server does not have it */
    const char *media_type; /* or NULL */
} mc_origin_tile;

/* Asks for all of them together. The first error is returned. */
mc_error *mc_tile_origin_fetch(mc_origin_tile *tiles, int count, const mc_tile_origin *origin, const mc_grid *grid,
                               const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
