/*
 * Tilesets: a cache, a source, grids, a format, and the life cycle of their tiles
 * (docs/reference/configuration.md 6.3).
 */
#ifndef MAPCACHE_TILESET_H
#define MAPCACHE_TILESET_H

#include "mapcache/cache.h"
#include "mapcache/color_map.h"
#include "mapcache/dimension.h"
#include "mapcache/lock.h"
#include "mapcache/source.h"

/* What becomes of several values of the dimensions (docs/reference/configuration.md 7.1). */
typedef enum mc_assembly_type { MC_ASSEMBLE_NONE, MC_ASSEMBLE_STACK, MC_ASSEMBLE_ANIMATE } mc_assembly_type;

/* What becomes of a tile in a further format (<formats>, docs/formats.md). */
typedef enum mc_keeping {
    MC_KEEP_ASKED,    /* made of the stored tile when a client asks for it first, and kept */
    MC_KEEP_RENDERED, /* made and stored with the tile itself; what is missing all the same is made as above */
    MC_KEEP_NEVER     /* made for each request */
} mc_keeping;

/* Further formats of a tileset at most. */
enum { mc_variants_max = 4 };

typedef struct mc_tileset {
    const char *name;
    mc_position position;
    bool client_named; /* the name is what a client has sent (mirror modes) */
    mc_metadata *metadata;
    mc_cache *cache;
    mc_source *source;       /* NULL: read-only */
    const mc_format *format; /* NULL: bytes are stored as the source sent them */
    /* Further formats: tilesets of their own, called name@extension in stores and by commands; clients know the name of
     * the first format alone. Each has the same cache, grids, links and dimensions. */
    struct mc_tileset **variants;
    int variant_count;
    struct mc_tileset *master; /* of a further format: the tileset of the first one; else NULL */
    const struct mc_variant_ops
        *own;           /* of a further format: how its tiles are had (lib/tileset/variant.h); else NULL */
    mc_keeping keeping; /* of a further format */
    mc_grid_link **links;
    int link_count;
    mc_grid_link **dense_links; /* of variants for fine screens: for each link and each density that is offered */
    int dense_link_count;
    mc_dimension **dimensions;
    int dimension_count;
    mc_assembly_type assembly;
    bool store_assemblies;        /* assembled tiles are kept under the requested values */
    bool subdimensions_read_only; /* missing sub-tiles are never rendered */
    int assembly_threads;         /* <assembly_threaded_fetching>: -1 the server decides, 0 no, 1 yes */
    int assembly_maxzoom;         /* 1 counts up to this level */
    int metatile_columns, metatile_rows;
    int metabuffer;                /* pixels */
    int expires;                   /* seconds */
    struct mc_expiry *auto_expire; /* when a stored tile is too old (lib/text/expiry.h); NULL: never */
    double failure_expires;        /* seconds that a failed render is remembered */
    double stale_if_error;         /* seconds after its expiry that a tile is served whose render fails; -1: for ever */
    const char *cache_control;
    bool read_only;
    mc_pixels *watermark;
    const mc_color_map **palettes; /* styles of stored palette PNGs, without the one called "default" */
    int palette_count;
    const mc_color_map *stored_palette; /* the colours that tiles are stored with, "default"; NULL: not told */
    bool box_configured;                /* <wgs84boundingbox>: it says where the data lie, whatever they say */
    struct mc_tileset_place *place;     /* what the data have said; NULL: nothing can be asked */
    bool has_wgs84_box;
    mc_extent wgs84_box; /* degrees, lon lat */
    mc_locker *locker;
    double deadline;                   /* seconds for one render */
    const mc_format *synthetic_format; /* of tiles made here when there is no format: the builtin mixed one */
    /* An item of it that this build does not have: every request is MC_ERR_UNAVAILABLE with this text. */
    const char *not_built;
    /* What the tileset shows (lib/changes/watch.h), as <changes> follows it; NULL: nothing is followed. */
    struct mc_watch *watch;
    struct mc_watch *shown;        /* the same, followed or not; NULL: nothing is known of any table */
    struct mc_seldom *stale_told;  /* of what is said when expired tiles are served */
    struct mc_answer_label *label; /* by which metrics know it, never by what a client has sent (lib/telemetry) */
} mc_tileset;

/* One tile that a client wants. Values of dimensions are as requested (configuration order, defaults filled in). */
typedef struct mc_tile_request {
    mc_tileset *tileset;
    const mc_grid_link *link;
    int z, x, y;
    const char *const *values;
    const mc_color_map *style; /* one of tileset->palettes; NULL: the tile as it is stored */
} mc_tile_request;

mc_tileset *mc_tileset_from_config(const mc_node *node, mc_build *build);

/* Finds the tables that the tileset shows, once all sources are connected; complains where they cannot be known. */
void mc_tileset_connect_watch(mc_tileset *tileset, const mc_node *node, mc_build *build);

/* The further format whose files and addresses have this extension; NULL where there is none. */
mc_tileset *mc_tileset_variant(const mc_tileset *tileset, const char *extension);

/* The same by a media type, as tiles are served with it. */
mc_tileset *mc_tileset_variant_of_type(const mc_tileset *tileset, const char *mime);

/*
 * The tile as bytes: from the cache, or rendered (whole metatile, one renderer at a time) and stored, or synthesised
 * above max-cached-zoom, or the uniform tile of a ruleset. tile->no_data where nothing is to be had.
 */
mc_error *mc_tileset_get(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The same for a client that has the tile with the tag `if_tag` (0: none): where that still is the tag of a tile that
 * would have to be assembled, it comes without data. */
mc_error *mc_tileset_get_unless(mc_tile **tile, const mc_tile_request *wanted, uint64_t if_tag, mc_ctx *ctx,
                                apr_pool_t *pool) MC_CHECKED;

/*
 * The tile as it can be had without waiting for a source: from the cache, or of a ruleset, or no_data where nothing may
 * be rendered. *tile is NULL where mc_tileset_get would render. For CPU workers, which never wait for an origin.
 */
mc_error *mc_tileset_get_stored(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx,
                                apr_pool_t *pool) MC_CHECKED;

/* Whether mc_tileset_get_stored_all is one round trip to the store, and answers as mc_tileset_get_stored would. */
bool mc_tileset_gets_all(const mc_tileset *tileset, const mc_grid_link *link, int z);

/* As mc_tileset_get_stored, for tiles of one tileset, link, level and values. */
mc_error *mc_tileset_get_stored_all(mc_tile **tiles, const mc_tile_request *wanted, int count, mc_ctx *ctx,
                                    apr_pool_t *pool) MC_CHECKED;

/* What <assembly_threaded_fetching> says about a level: -1 the server decides, 0 one thread, 1 all workers. */
int mc_tileset_assembly_threads(const mc_tileset *tileset, int z);

/* Seconds that a client may keep the tile (docs/reference/services.md 2.1); 0: no headers. */
int mc_tileset_lifetime(const mc_tileset *tileset, const mc_tile *tile, apr_time_t now);

/* Seconds for which a store keeps what is put now, at least: as long as a tile may go out; 0: for ever. */
int mc_tileset_store_lifetime(const mc_tileset *tileset);

/* Seconds since an expired tile was made; 0 for one that has not expired, or has no time. */
int64_t mc_tileset_expired_age(const mc_tileset *tileset, const mc_tile *tile, apr_time_t now);

/* Seconds since an old tile should have been another one; 0 where that is not known. */
int64_t mc_tileset_overdue(const mc_tileset *tileset, const mc_tile *tile, apr_time_t now);

/* MC_ERR_UNAVAILABLE for a tileset with a part that this build does not have. */
mc_error *mc_tileset_check_built(const mc_tileset *tileset, apr_pool_t *pool) MC_CHECKED;

/* Where a client gets the tile itself (mc_cache_redirect); *url is NULL where it does not. */
mc_error *mc_tileset_redirect(const char **url, const mc_tile_request *wanted, mc_ctx *ctx,
                              apr_pool_t *pool) MC_CHECKED;

/* mc_tile_decode of a tile that was got so: MC_ERR_CORRUPT names the tileset, the tile and the cache. */
mc_error *mc_tileset_decode(mc_pixels **pixels, const mc_tile *tile, const mc_tile_request *wanted, mc_ctx *ctx,
                            apr_pool_t *pool) MC_CHECKED;

/* Puts these names before MC_ERR_CORRUPT, which says what is wrong with the bytes; all else is handed on. */
mc_error *mc_tileset_name_broken(mc_error *error, const mc_tile_request *wanted, apr_pool_t *pool) MC_CHECKED;

/* For the seeder. The tile names its metatile. */
mc_error *mc_tileset_exists(bool *exists, const mc_tile_request *wanted, mc_ctx *ctx) MC_CHECKED;
mc_error *mc_tileset_render(const mc_tile_request *wanted, mc_ctx *ctx) MC_CHECKED;
mc_error *mc_tileset_remove(const mc_tile_request *wanted, bool whole_metatile, mc_ctx *ctx) MC_CHECKED;
mc_error *mc_tileset_put(const mc_tile_request *wanted, mc_buf *data, mc_ctx *ctx) MC_CHECKED;
mc_error *mc_tileset_stored(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* After a store of tiles by mc_cache_put: removes what <formats> had made of the tiles before. Of one grid and one set
 * of values. */
mc_error *mc_tileset_forget_formats(const mc_tileset *tileset, const mc_tile_write *writes, int count,
                                    mc_ctx *ctx) MC_CHECKED;

/* The same for tiles of one tileset, link, level and values: together where the store can. Entries for missing tiles
 * are NULL. */
mc_error *mc_tileset_stored_all(mc_tile **tiles, const mc_tile_request *wanted, int count, mc_ctx *ctx,
                                apr_pool_t *pool) MC_CHECKED;
mc_error *mc_tileset_exist_all(bool *exists, const mc_tile_request *wanted, int count, mc_ctx *ctx) MC_CHECKED;
mc_error *mc_tileset_put_all(const mc_tile_request *wanted, mc_tile *const *tiles, int count, mc_ctx *ctx) MC_CHECKED;

/* Packs a vector tile of another tileset as those of `target` are packed (<encoding>): Brotli and Zstandard become
 * gzip, unless the target has them. All else stays as it is. *data is attached to `pool` if it is another one. */
mc_error *mc_tileset_repack(mc_buf **data, const mc_tileset *target, apr_pool_t *pool) MC_CHECKED;

/* First tile and size of the metatile that holds a tile; cut at the level's edge. Those for fine screens are at most
 * 4096 pixels a side. */
typedef struct mc_metatile {
    int x, y;
    int columns, rows;
} mc_metatile;
mc_metatile mc_tileset_metatile(const mc_tileset *tileset, const mc_grid *grid, int z, int x, int y);

/* The palette that clients ask for as a style. False: the tileset has no such style. *style is NULL, and the tile is
 * shown as it is stored, for "default", for an empty name and for none. */
bool mc_tileset_find_style(const mc_color_map **style, const mc_tileset *tileset, const char *name);

/* Columns and rows of a metatile of the grid that no edge cuts. */
void mc_tileset_metatile_size(int *columns, int *rows, const mc_tileset *tileset, const mc_grid *grid);

/*
 * Asks the tileset's data where they lie, unless that is configured (<wgs84boundingbox>, restricted_extent) or was
 * asked a short time ago. Waits for at most two seconds. What the data do not say, or what cannot be asked, stays
 * unknown: for documents, which then say what the grids say, and for seeding.
 */
void mc_tileset_ask_place(const mc_tileset *tileset, mc_ctx *ctx);

/* The same in a process that has no connections to databases of its own, and may fork afterwards: nothing stays open.
 */
void mc_tileset_ask_place_alone(const mc_tileset *tileset, apr_pool_t *pool);

/* The same of several tilesets (mc_tileset *), for at most three seconds together. */
void mc_tilesets_ask_places(const apr_array_header_t *tilesets, mc_ctx *ctx);

/* The box in degrees that mc_tileset_ask_place found last. False: it is not known, or something else is configured. */
bool mc_tileset_data_box(mc_extent *degrees, const mc_tileset *tileset);

/*
 * The same box in the CRS of a link's grid, cut off where the link ends; `pool` is for scratch. False, and *extent as
 * it was: the box is not known, or the grid does not reach there.
 */
bool mc_tileset_data_extent(mc_extent *extent, const mc_tileset *tileset, const mc_grid_link *link, apr_pool_t *pool);

/*
 * The tiles of a link that meet the box of the data, with a margin of a quarter of a tile, by level; in `pool`. NULL:
 * the box is not known, so that all tiles of the link count.
 */
const mc_tile_range *mc_tileset_data_limits(const mc_tileset *tileset, const mc_grid_link *link, apr_pool_t *pool);

mc_grid_link *mc_tileset_link(const mc_tileset *tileset, const char *grid_name); /* NULL name: the first */

/* The link of the same grid with `density` times as many pixels a side; NULL where that is not offered. */
mc_grid_link *mc_tileset_dense_link(const mc_tileset *tileset, const mc_grid_link *link, int density);
int mc_tileset_dimension(const mc_tileset *tileset, const char *name, bool any_case); /* index or -1 */

/* Whether both have dimensions of the same names in the same order, so that values of one mean the same for the other.
 */
bool mc_tileset_same_dimensions(const mc_tileset *tileset, const mc_tileset *other);

/* Default values of all dimensions, in configuration order. */
const char **mc_tileset_defaults(const mc_tileset *tileset, apr_pool_t *pool);

const char *mc_tileset_extension(const mc_tileset *tileset);
const char *mc_tileset_title(const mc_tileset *tileset);

/* The layers of the tileset's vector tiles (mc_vector_layer_info): those of the source, else those that the store of
 * the grid's tiles tells. NULL: they are not known. */
mc_error *mc_tileset_layers(apr_array_header_t **layers, const mc_tileset *tileset, const mc_grid *grid, mc_ctx *ctx,
                            apr_pool_t *pool) MC_CHECKED;

/* These as TileJSON lists them; "[]" where they are not known, NULL of tiles of other kinds. */
mc_error *mc_tileset_layers_text(const char **json, const mc_tileset *tileset, const mc_grid *grid, mc_ctx *ctx,
                                 apr_pool_t *pool) MC_CHECKED;

/* An mc_layers_writer whose baton is the tileset. "[]" where it is of vector tiles whose layers its source does not
 * know; NULL of other tiles. */
mc_error *mc_tileset_vector_layers(const char **json, const void *tileset, const mc_tile_key *key, mc_ctx *ctx,
                                   apr_pool_t *pool) MC_CHECKED;

extern const mc_key mc_tileset_keys[];

#endif
