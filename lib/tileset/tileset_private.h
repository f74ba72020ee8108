/* Shared by the files of this room. */
#ifndef MC_TILESET_TILESET_PRIVATE_H
#define MC_TILESET_TILESET_PRIVATE_H

#include "mapcache/tileset.h"
#include "text/text.h"
#include "tileset/freshness.h"

/* The key of a tile, with its dimensions resolved (one value each: MC_ERR_NOT_FOUND for none). */
mc_error *mc_tileset_key(mc_tile_key *key, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The key under which an assembled tile is stored: the requested values. */
void mc_tileset_requested_key(mc_tile_key *key, const mc_tile_request *wanted, apr_pool_t *pool);

/* A tile made of sub-tiles: stored or made; made in any case; only if it is stored (NULL where not, or too old). */
mc_error *mc_tileset_get_stacked(mc_tile **tile, const mc_tile_request *wanted, uint64_t if_tag, mc_ctx *ctx,
                                 apr_pool_t *pool) MC_CHECKED;
mc_error *mc_tileset_assemble(mc_tile **tile, const mc_tile_request *wanted, uint64_t if_tag, mc_ctx *ctx,
                              apr_pool_t *pool) MC_CHECKED;
mc_error *mc_tileset_stored_assembly(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx,
                                     apr_pool_t *pool) MC_CHECKED;

/* The animated PNG of a gathered tile of several frames. */
struct mc_assembled;
mc_error *mc_tile_animate(mc_tile **tile, const struct mc_assembled *made, const mc_tile_request *wanted, mc_ctx *ctx,
                          apr_pool_t *pool) MC_CHECKED;

/* The tile of one key: from the cache, or rendered; no_data where nothing is to be had. */
mc_error *mc_tileset_get_sub(mc_tile **tile, mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx,
                             apr_pool_t *pool) MC_CHECKED;

static inline bool
mc_tileset_renders(const mc_tileset *tileset)
{
    return tileset->source != NULL && !tileset->read_only;
}

/* Renders the metatile of a key and stores its tiles. *tile (may be NULL) gets the key's own tile, in `pool`. *stored
 * says whether the cache took them. */
mc_error *mc_metatile_render(mc_tile **tile, mc_error **store_error, mc_tileset *tileset, const mc_tile_key *key,
                             mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Stores what was rendered: one tile or a metatile; else as above. provisional: seconds for which it is good, and then
 * only kept in memory; 0: it is stored. */
mc_error *mc_metatile_store(mc_tile_write *writes, int count, mc_tile **tile, mc_error **store_error,
                            double provisional, mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx,
                            apr_pool_t *pool) MC_CHECKED;

/* The tiles of a metatile as they were made, stored or not: for who waits for them, as a store may evict a tile at
 * once, expire it, or keep no empty ones. ctx->made while the metatile of the key is rendered. */
typedef struct mc_made_tiles mc_made_tiles;
mc_made_tiles *mc_made_tiles_create(const mc_tileset *tileset, const mc_tile_key *key);
void mc_made_tiles_forget(mc_made_tiles *made); /* they are not what they should be any more; NULL is ignored */
void mc_made_tiles_drop(void *made);

/* NULL: the tile of that key is not one of them. */
mc_tile *mc_made_tiles_find(const mc_made_tiles *made, const mc_tile_key *key, apr_pool_t *pool);

/* The name of a metatile's lock, which other processes give to the same metatile, and to no other one. */
const char *mc_tileset_lock_name(const mc_tileset *tileset, const mc_tile_key *key, apr_pool_t *pool);

/* The name of a metatile's flight, from that of its lock: of one configuration of the process. */
const char *mc_tileset_flight_name(const mc_tileset *tileset, const char *lock_name, apr_pool_t *pool);

/* What is made of a provisional tile is provisional, too, and for no longer. */
static inline void
mc_take_provisional(double *whole, double part)
{
    if (part > 0 && (*whole <= 0 || part < *whole))
        *whole = part;
}

/* For a seeder, for which they have to be stored. */
mc_error *mc_provisional_error(const mc_tileset *tileset, apr_pool_t *pool);

/* Keeps tiles that are not to be stored for so many seconds, in a bounded memory of the process. */
void mc_tileset_keep_provisional(const mc_tile_write *writes, int count, double seconds, const mc_tileset *tileset,
                                 mc_ctx *ctx);

/* False where no such tile is kept, or not any more. */
bool mc_tileset_get_provisional(mc_tile **tile, const mc_tileset *tileset, const mc_tile_key *key, mc_ctx *ctx,
                                apr_pool_t *pool);

/* A tile that is nowhere: a transparent palette PNG of the grid's tile size, marked no_data. */
mc_error *mc_tile_nothing(mc_tile **tile, const mc_grid *grid, apr_pool_t *pool) MC_CHECKED;

/* Whether tiles are kept as they come, without a look at their pixels: RAW and vector tiles. */
static inline bool
mc_tileset_keeps_bytes(const mc_tileset *tileset)
{
    return !mc_format_is_image(tileset->format);
}

/* What a source is told of the format of tiles. */
static inline void
mc_tileset_ask_format(mc_render *wanted, const mc_tileset *tileset)
{
    wanted->raw = mc_tileset_keeps_bytes(tileset);
    wanted->vector_tile = wanted->raw && tileset->format->type == MC_FORMAT_MVT ? &tileset->format->mvt : NULL;
}

/* A uniform tile in the tileset's format. */
mc_error *mc_tile_uniform(mc_tile **tile, const mc_tileset *tileset, const mc_grid *grid, const uint8_t bgra[4],
                          mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Whether the link's ruleset hides the tile; then *bgra is the colour (docs/reference/configuration.md 6.2). */
bool mc_tile_hidden(const mc_grid_link *link, int z, int x, int y, uint8_t bgra[4]);

/* Encodes a tile that is made here, in the tileset's format or the one of synthetic tiles. */
mc_error *mc_tile_encode_synthetic(mc_tile **tile, mc_pixels *pixels, const mc_tileset *tileset, mc_ctx *ctx,
                                   apr_pool_t *pool) MC_CHECKED;

/* The picture of a tile that the link's ruleset hides; NULL where it is not hidden. MC_ERR_UNAVAILABLE for a tileset
 * that this build does not support. */
mc_error *mc_tile_answer_hidden(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx,
                                apr_pool_t *pool) MC_CHECKED;

/* Marks a tile that is not made of pixels, so that nobody decodes it. Where there is no vector tile, the tile becomes
 * one without features, not an image. */
mc_error *mc_tile_finish_raw(mc_tile *tile, const mc_tileset *tileset, apr_pool_t *pool) MC_CHECKED;

/* As mc_tileset_get_unless, of a tile that is not above max-cached-zoom. */
mc_error *mc_tileset_get_cached(mc_tile **tile, const mc_tile_request *wanted, uint64_t if_tag, mc_ctx *ctx,
                                apr_pool_t *pool) MC_CHECKED;

/* A tile above max-cached-zoom, drawn from the tiles of that level or asked of the source
 * (docs/reference/configuration.md 6.1). */
mc_error *mc_tile_overzoom(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* <palette> */
extern const mc_key mc_palette_keys[];

/* Reads the <palette> elements (const mc_node *) of a tileset, whose other elements have been read. */
void mc_tileset_read_palettes(mc_tileset *tileset, const apr_array_header_t *nodes, const mc_node *node,
                              mc_build *build);

/* A tile that was got by `wanted` in the style of `wanted`; a tile without data stays as it is. MC_ERR_CORRUPT where
 * the tile cannot be shown so; the message names tileset and tile. */
mc_error *mc_tile_restyle(mc_tile *tile, const mc_tile_request *wanted, apr_pool_t *pool) MC_CHECKED;

/* For tilesets whose data can be asked where they lie (place.c). */
void mc_tileset_place_init(mc_tileset *tileset, apr_pool_t *pool);

/* Complains where what the tileset is made of, or how, does not go with its <format>. */
void mc_tileset_check_format(const mc_tileset *tileset, const mc_node *node, mc_build *build);

#endif
