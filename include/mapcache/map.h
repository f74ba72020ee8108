/*
 * From a request that has been checked to the bytes of its answer.
 */
#ifndef MAPCACHE_MAP_H
#define MAPCACHE_MAP_H

#include "mapcache/tileset.h"

/* One or more tiles at the same place, bottom first; merged into one. */
typedef struct mc_tile_stack {
    mc_tile_request *tiles;
    int count;
    const mc_format *format; /* of the merged result; a single tile's bytes go out as they are */
    const mc_format *exact;  /* what an answer of another coding is made into; NULL: it goes out as it is */
    const char *mime;        /* how an answer of that coding is called; NULL: as its bytes say */
    const char *vary;        /* names of request headers that the choice of the format was made by, or NULL */
    bool by_latitude;        /* one tile of the spherical Mercator, whose rows become evenly spaced by latitude */
    bool within_poles;       /* one tile of degrees, of which what lies beyond a pole is cut off */
} mc_tile_stack;

typedef struct mc_map_layer {
    mc_tileset *tileset;
    const mc_grid_link *link; /* its grid has the map's CRS */
    const char *const *values;
    const mc_color_map *style; /* as of mc_tile_request */
    double shift; /* how far east of its place the layer lies, units of the CRS: 0, or once around the earth for what of
                   * a map over the antimeridian lies beyond */
} mc_map_layer;

typedef enum mc_full_wms { MC_WMS_ASSEMBLE, MC_WMS_FORWARD, MC_WMS_ERROR } mc_full_wms;

/* What lies beyond the area in which the CRS of a map is valid: shown in a colour of its own. */
typedef struct mc_map_beyond {
    mc_extent valid;  /* x, y order, units of the CRS */
    bool transparent; /* where the format can be */
    uint8_t rgb[3];
} mc_map_beyond;

typedef struct mc_map_request {
    mc_map_layer *layers; /* bottom first */
    int count;
    mc_extent box; /* x, y order, units of the CRS */
    int width, height;
    double density; /* pixels for a pixel of a style */
    const mc_format *format;
    mc_resample resample;
    mc_full_wms mode;
    bool background_set;         /* BGCOLOR or TRANSPARENT was in the request */
    bool transparent;            /* TRANSPARENT=TRUE */
    uint8_t background[3];       /* R, G, B */
    const mc_map_beyond *beyond; /* NULL: it is shown as places without data are */
    bool empty_is_map;           /* no data: an empty map instead of MC_ERR_NOT_FOUND */
    apr_int64_t
        max_pixels; /* of the map times its layers, and of the tiles that a layer may pull in; 0: the default of 64M */
    bool format_named; /* the service's configuration names the format: JPEG tiles of another quality are not spliced */
    int threaded;      /* <threaded_fetching>: -1 the server decides, 0 no, 1 yes */
} mc_map_request;

/* What goes to the client. `data` lives in the pool that was given. */
typedef struct mc_result {
    mc_buf *data;
    const char *mime;                   /* NULL: unknown */
    bool negotiated;                    /* a vector tile that clients may get packed or not */
    int packing;                        /* of such a tile, mc_packing: how `data` is packed */
    apr_time_t mtime;                   /* 0: none */
    uint64_t tag;                       /* strong ETag, 0: none */
    int lifetime;                       /* seconds for max-age and Expires, 0: no headers */
    int64_t age;                        /* seconds of what has expired and is shown all the same; 0: nothing has */
    int64_t overdue;                    /* of such a one: seconds since it should be another one; 0: not known */
    int64_t grace;                      /* stale-if-error for caches in front: seconds; 0: not told, -1: none */
    const char *cache_control;          /* appended to Cache-Control, or NULL */
    const char *vary;                   /* names of request headers that it depends on, or NULL */
    const char *policy;                 /* Content-Security-Policy of a page, or NULL */
    bool unmodified;                    /* `if_tag` of the question is the current one: no data */
    int status;                         /* of a forwarded answer; 0: 200 */
    const apr_table_t *headers;         /* of a forwarded answer; of another one further headers; or NULL */
    const apr_array_header_t *warnings; /* of const char *: headers "Warning"; NULL: none */
} mc_result;

/* if_tag: an ETag that the client has (0: none); where it still holds, no map is composed or encoded. */
mc_error *mc_map_tile(mc_result *result, const mc_tile_stack *wanted, uint64_t if_tag, mc_ctx *ctx,
                      apr_pool_t *pool) MC_CHECKED;

/* By how many pixels at most a picture of `rows` over a box of the spherical Mercator is off where it is spread evenly
 * over the latitudes of the box. */
double mc_map_latitude_shift(const mc_extent *box, int rows);

/* Whether sources draw the map itself: no stored tiles, no origin's answer. */
bool mc_map_is_drawn(const mc_map_request *wanted);

/* The tiles that a map shows of one of its layers, where they are not drawn for it: *link is that of the layer or its
 * intermediate one. False: none. */
bool mc_map_layer_tiles(const mc_grid_link **link, int *z, mc_tile_range *range, const mc_map_request *wanted,
                        int layer);

mc_error *mc_map_draw(mc_result *result, const mc_map_request *wanted, uint64_t if_tag, mc_ctx *ctx,
                      apr_pool_t *pool) MC_CHECKED;

/* An image of one colour in a format: BLANK exceptions, empty_img, maps without data. Transparent where the format can
 * and `transparent`. */
mc_error *mc_map_empty(mc_result *result, int width, int height, const mc_format *format, bool transparent,
                       const uint8_t rgb[3], mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
