/* Further formats of a tileset (<formats>): each is a tileset of its own whose tiles are made of those of the first. */
#ifndef MC_TILESET_VARIANT_H
#define MC_TILESET_VARIANT_H

#include "tileset/tileset_private.h"

/* Reads the element <formats> of a tileset that is complete but for it. Complains where a format cannot be kept. */
void mc_variants_from_config(mc_tileset *tileset, const mc_node *formats, mc_build *build);

/* The children of <formats>. */
extern const mc_key mc_variants_keys[];

/* What a further format does in its own way (mc_tileset.own). get: mc_tileset_get_unless. render: mc_metatile_render,
 * of the stored tile, which is rendered first where it is not there. */
struct mc_variant_ops {
    mc_error *(*get)(mc_tile **tile, const mc_tile_request *wanted, uint64_t if_tag, mc_ctx *ctx, apr_pool_t *pool);
    mc_error *(*render)(mc_tile **tile, mc_error **store_error, mc_tileset *variant, const mc_tile_key *key,
                        mc_ctx *ctx, apr_pool_t *pool);
};
extern const struct mc_variant_ops mc_variant_ops;

/* The key of the same tile in a further format. */
mc_tile_key mc_variant_key(const mc_tileset *variant, const mc_tile_key *key);

/* Encodes a picture in a further format: where JPEG has no transparency, white is behind. */
mc_error *mc_variant_encode(mc_buf **data, const mc_tileset *variant, mc_pixels *pixels, mc_purpose purpose,
                            mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* How many further formats are stored when a metatile is rendered. */
int mc_variants_rendered(const mc_tileset *tileset);

/* Removes the tiles of further formats that were made of tiles which have just been stored anew or removed. Keys are
 * those of the first format, of one grid and one set of values. */
mc_error *mc_variants_forget(const mc_tileset *tileset, const mc_tile_key *keys, int count, mc_ctx *ctx) MC_CHECKED;

#endif
