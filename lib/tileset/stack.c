/* One tile made of sub-tiles (docs/reference/configuration.md 7.7): looked up as a whole, assembled, encoded and
 * stored. */
#include <apr_strings.h>
#include <string.h>

#include "base/hash.h"
#include "cache/marked.h"
#include "mapcache/trace.h"
#include "tileset/assembly.h"
#include "tileset/refresh.h"
#include "tileset/tileset_private.h"

int
mc_tileset_assembly_threads(const mc_tileset *tileset, int z)
{
    return tileset->assembly_threads == 1 && z > tileset->assembly_maxzoom ? 0 : tileset->assembly_threads;
}

static mc_error *
gather_one(const mc_assembled **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_assembly *assembly;
    mc_assembly_order order = { .tileset = wanted->tileset,
                                .link = wanted->link,
                                .z = wanted->z,
                                .range = { wanted->x, wanted->y, wanted->x + 1, wanted->y + 1 },
                                .values = wanted->values,
                                .threaded = mc_tileset_assembly_threads(wanted->tileset, wanted->z) };
    MC_TRY(mc_assembly_gather(&assembly, &order, ctx, pool));
    *tile = &assembly->tiles[0];
    return MC_OK;
}

/* Formats of tiles that are made here; of a tileset without one, or with bytes that are no image, the builtin one. */
static const mc_format *
stack_format_of(const mc_tileset *tileset)
{
    return tileset->format == NULL || mc_tileset_keeps_bytes(tileset) ? tileset->synthetic_format : tileset->format;
}

static mc_error *
encode_stacked_tile(mc_tile **tile, mc_pixels **pixels, const mc_assembled *made, const mc_tile_request *wanted,
                    mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_grid *grid = wanted->link->grid;
    const mc_tileset *tileset = wanted->tileset;
    MC_TRY(mc_pixels_create(pixels, grid->tile_width, grid->tile_height, true, pool));
    mc_pixels_attach(*pixels, pool);
    if (made != NULL)
        mc_assembled_draw(*pixels, 0, 0, made, -1, ctx);
    *tile = apr_pcalloc(pool, sizeof(**tile));
    MC_TRY(mc_format_encode(&(*tile)->data, stack_format_of(tileset), *pixels,
                            tileset->store_assemblies ? MC_FOR_STORE : MC_ON_THE_FLY, ctx, pool));
    (*tile)->coding = mc_image_sniff((*tile)->data->data, (*tile)->data->size);
    return MC_OK;
}

/* The client gets its tile also where it cannot be stored; the log says why. */
static void
store_stacked_tile(mc_tile *tile, mc_pixels *pixels, apr_time_t begun, const mc_tile_request *wanted, mc_ctx *ctx,
                   apr_pool_t *pool)
{
    mc_tile_write put = { .data = tile->data, .lifetime = mc_tileset_store_lifetime(wanted->tileset), .made = begun };
    put.uniform = pixels != NULL && mc_pixels_uniform(pixels, put.bgra);
    mc_tileset_requested_key(&put.key, wanted, pool);
    mc_error *error = mc_cache_put(wanted->tileset->cache, &put, 1, ctx);
    if (error != MC_OK)
        mc_log_error(ctx, MC_LOG_ERROR, error);
}

/*
 * Whether assembled tiles of these values may be stored, and stored ones go out. Where changes are followed, those of
 * the default values alone: only those are found again once they are old (lib/tileset/watch/settle.c).
 */
static bool
keeps_assembly(const mc_tile_request *wanted)
{
    const mc_tileset *tileset = wanted->tileset;
    if (!tileset->store_assemblies)
        return false;
    for (int i = 0; tileset->watch != NULL && wanted->values != NULL && i < tileset->dimension_count; i++)
        if (wanted->values[i] != NULL && strcmp(wanted->values[i], tileset->dimensions[i]->default_value) != 0)
            return false;
    return true;
}

/* The stored bytes of the one sub-tile that shows. NULL where it has gone or become another one since: what was hidden
 * behind the old one may show behind the new one. */
static mc_error *
pass_through(mc_tile **tile, const mc_assembled *made, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile_key key = mc_assembly_key(wanted->tileset, wanted->link->grid, wanted->z, wanted->x, wanted->y, made->only);
    MC_TRY(mc_cache_get(tile, wanted->tileset->cache, &key, ctx, pool));
    if (*tile != NULL && mc_tile_tag(*tile) != made->tag)
        *tile = NULL;
    return MC_OK;
}

static mc_error *
answer_empty_stack(mc_tile **tile, apr_time_t begun, const mc_tile_request *wanted, bool stored, mc_ctx *ctx,
                   apr_pool_t *pool)
{
    if (stored) {
        mc_pixels *pixels;
        MC_TRY(encode_stacked_tile(tile, &pixels, NULL, wanted, ctx, pool));
        store_stacked_tile(*tile, pixels, begun, wanted, ctx, pool);
    }
    return mc_tile_nothing(tile, wanted->link->grid, pool);
}

static mc_error *
assemble_since(mc_tile **tile, apr_time_t begun, const mc_tile_request *wanted, uint64_t if_tag, mc_ctx *ctx,
               apr_pool_t *pool)
{
    const mc_assembled *made;
    mc_pixels *pixels = NULL;
    bool stored = keeps_assembly(wanted) && !wanted->tileset->read_only;
    bool outer = ctx->wants_fresh;
    ctx->wants_fresh = outer || stored; /* an old part would be kept as if it were a new one */
    mc_error *error = gather_one(&made, wanted, ctx, pool);
    ctx->wants_fresh = outer;
    MC_TRY(error);
    stored = stored && made->provisional <= 0;
    if (made->found == 0) {
        MC_TRY(answer_empty_stack(tile, begun, wanted, stored, ctx, pool));
        (*tile)->provisional = made->provisional;
        return MC_OK;
    }
    if (made->only != NULL) {
        MC_TRY(pass_through(tile, made, wanted, ctx, pool));
        if (*tile != NULL && stored && !made->only_is_requested)
            store_stacked_tile(*tile, NULL, begun, wanted, ctx, pool);
        if (*tile != NULL) {
            (*tile)->provisional = made->provisional;
            return MC_OK;
        }
    }
    uint64_t tag = mc_hash64(&made->tag, sizeof(made->tag), mc_format_tag(stack_format_of(wanted->tileset)));
    if (!stored && if_tag != 0 && if_tag == tag)
        *tile = apr_pcalloc(pool, sizeof(**tile));
    else if (made->frames > 1)
        MC_TRY(mc_tile_animate(tile, made, wanted, ctx, pool));
    else
        MC_TRY(encode_stacked_tile(tile, &pixels, made, wanted, ctx, pool));
    (*tile)->tag = tag;
    (*tile)->mtime = made->newest;
    (*tile)->stale = mc_is_marked_time(made->oldest);
    (*tile)->provisional = made->provisional;
    if (stored) {
        (*tile)->tag = 0;
        (*tile)->stale = false;
        (*tile)->mtime = begun != 0 ? begun : apr_time_from_sec(apr_time_sec(apr_time_now()));
        store_stacked_tile(*tile, pixels, begun, wanted, ctx, pool);
    }
    return MC_OK;
}

mc_error *
mc_tileset_assemble(mc_tile **tile, const mc_tile_request *wanted, uint64_t if_tag, mc_ctx *ctx, apr_pool_t *pool)
{
    const apr_time_t begun = mc_tileset_time_of_render(wanted->tileset, ctx);
    mc_tile_key key;
    MC_TRY(assemble_since(tile, begun, wanted, if_tag, ctx, pool));
    if (mc_tileset_renders(wanted->tileset) || !keeps_assembly(wanted))
        return MC_OK;
    mc_tileset_requested_key(&key, wanted, pool);
    mc_tileset_note_render(wanted->tileset, &key, begun);
    return MC_OK;
}

/* A mc_refresh_work. */
static mc_error *
assemble_behind(bool *busy, const mc_tile_request *wanted, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile *tile;
    *busy = false;
    (void)key;
    return mc_tileset_assemble(&tile, wanted, 0, ctx, pool);
}

/* Whether a stored tile that is old goes out, as it is made anew behind the answer. */
static bool
leave_assembling(const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *name = apr_psprintf(pool, "assembly %s %s %d %d %d", wanted->tileset->name, wanted->link->grid->name,
                                    wanted->z, wanted->x, wanted->y);
    return mc_refresh_later(name, assemble_behind, wanted, NULL, ctx);
}

mc_error *
mc_tileset_stored_assembly(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile_key key;
    *tile = NULL;
    if (!keeps_assembly(wanted))
        return MC_OK;
    mc_tileset_requested_key(&key, wanted, pool);
    MC_TRY(mc_cache_get(tile, wanted->tileset->cache, &key, ctx, pool));
    if (*tile == NULL || wanted->tileset->read_only)
        return MC_OK;
    mc_freshness freshness = mc_tileset_freshness(wanted->tileset, &key, (*tile)->mtime, ctx);
    if (freshness == MC_STALE_BEHIND && leave_assembling(wanted, ctx, pool))
        (*tile)->stale = true;
    else if (freshness != MC_FRESH)
        *tile = NULL;
    return MC_OK;
}

mc_error *
mc_tileset_get_stacked(mc_tile **tile, const mc_tile_request *wanted, uint64_t if_tag, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_tileset_tile_get_with_subdimensions");
    MC_TRY(mc_tileset_stored_assembly(tile, wanted, ctx, pool));
    return *tile != NULL ? MC_OK : mc_tileset_assemble(tile, wanted, if_tag, ctx, pool);
}
