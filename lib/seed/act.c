/*
 * What a seeder does with one metatile, by mode and by what the cache holds (the table of
 * docs/reference/services.md 9.2).
 */
#include "cache/marked.h"
#include "seed/copy.h"
#include "tileset/stored/mark_stored.h"

/* A marked tile is older than any limit, but not where tiles are deleted: no server has a better one. */
static bool
too_old(const mc_seed_task *task, const mc_tile *tile)
{
    apr_time_t time = task->mode == MC_SEED_DELETE ? mc_time_made(tile->mtime) : tile->mtime;
    return task->older != 0 && time != 0 && time < task->older;
}

/* Whether the first tile is stored, and whether it is older than the limit. Its bytes are read only where its age is
 * asked for. */
static mc_error *
look_up_first_tile(bool *exists, bool *stale, const mc_seed_task *task, const mc_tile_request *first, mc_ctx *ctx)
{
    *stale = false;
    if (task->older == 0)
        return mc_tileset_exists(exists, first, ctx);
    mc_tile *tile;
    MC_TRY(mc_tileset_stored(&tile, first, ctx, ctx->pool));
    *exists = tile != NULL;
    *stale = tile != NULL && too_old(task, tile);
    return MC_OK;
}

static mc_error *
seed_metatile(mc_seed_outcome *outcome, const mc_seed_task *task, const mc_tile_request *first, mc_ctx *ctx)
{
    bool exists = false, stale = false;
    if (!task->force)
        MC_TRY(look_up_first_tile(&exists, &stale, task, first, ctx));
    if (exists && !stale)
        return MC_OK;
    if (stale)
        MC_TRY(mc_tileset_remove(first, true, ctx));
    *outcome = MC_SEED_DONE;
    return mc_tileset_render(first, ctx);
}

/* Requests for all tiles of the metatile, the first one first. */
static mc_tile_request *
list_metatile_tiles(int *count, const mc_tile_request *first, apr_pool_t *pool)
{
    mc_metatile metatile = mc_tileset_metatile(first->tileset, first->link->grid, first->z, first->x, first->y);
    *count = metatile.columns * metatile.rows;
    mc_tile_request *tiles = apr_palloc(pool, sizeof(*tiles) * (size_t)*count);
    for (int i = 0; i < *count; i++) {
        tiles[i] = *first;
        tiles[i].x = metatile.x + i % metatile.columns;
        tiles[i].y = metatile.y + i / metatile.columns;
    }
    return tiles;
}

/* Whether any tile of the metatile is stored. One that was drawn and stored as a whole tells by its first tile; tiles
 * of a copy or an ingest come one by one. */
static mc_error *
look_for_any_tile(bool *exists, const mc_tile_request *first, mc_ctx *ctx)
{
    int count;
    mc_tile_request *tiles = list_metatile_tiles(&count, first, ctx->pool);
    bool *there = apr_pcalloc(ctx->pool, sizeof(*there) * (size_t)count);
    MC_TRY(mc_tileset_exists(exists, first, ctx));
    if (*exists || count == 1)
        return MC_OK;
    MC_TRY(mc_tileset_exist_all(there, tiles, count, ctx));
    for (int i = 0; i < count; i++)
        *exists = *exists || there[i];
    return MC_OK;
}

/* Those of the metatile that are older than the limit: a newer one among them may be the only one of its kind. */
static mc_error *
remove_old_tiles(mc_seed_outcome *outcome, const mc_seed_task *task, const mc_tile_request *first, mc_ctx *ctx)
{
    int count, old = 0, stored = 0;
    mc_tile_request *wanted = list_metatile_tiles(&count, first, ctx->pool);
    mc_tile **tiles = apr_pcalloc(ctx->pool, sizeof(mc_tile *) * (size_t)count);
    MC_TRY(mc_tileset_stored_all(tiles, wanted, count, ctx, ctx->pool));
    for (int i = 0; i < count; i++) {
        stored += tiles[i] != NULL;
        old += tiles[i] != NULL && too_old(task, tiles[i]);
    }
    if (old == 0)
        return MC_OK;
    *outcome = MC_SEED_DONE;
    if (old == stored)
        return mc_tileset_remove(first, true, ctx);
    for (int i = 0; i < count; i++)
        if (tiles[i] != NULL && too_old(task, tiles[i]))
            MC_TRY(mc_tileset_remove(&wanted[i], false, ctx));
    return MC_OK;
}

static mc_error *
remove_metatile(mc_seed_outcome *outcome, const mc_seed_task *task, const mc_tile_request *first, mc_ctx *ctx)
{
    bool exists = true;
    if (!task->force && task->older != 0)
        return remove_old_tiles(outcome, task, first, ctx);
    if (!task->force)
        MC_TRY(look_for_any_tile(&exists, first, ctx));
    if (!exists)
        return MC_OK;
    *outcome = MC_SEED_DONE;
    return mc_tileset_remove(first, true, ctx);
}

/* A tile that is too old is drawn anew before it is copied, if it can be; it is never lost. */
static mc_error *
transfer_metatile(mc_seed_outcome *outcome, const mc_seed_task *task, const mc_tile_request *first, mc_ctx *ctx)
{
    mc_tile *tile;
    mc_tile_request target = *first;
    target.tileset = task->target;
    target.link = task->target_link;
    MC_TRY(mc_tileset_stored(&tile, first, ctx, ctx->pool));
    if (tile == NULL)
        return MC_OK;
    if (too_old(task, tile)) {
        if (task->tileset->source != NULL) {
            MC_TRY(mc_tileset_render(first, ctx));
            MC_TRY(mc_tileset_stored(&tile, first, ctx, ctx->pool));
        }
    } else if (task->older != 0 && !task->force) {
        return MC_OK;
    } else if (!task->force) {
        bool copied;
        MC_TRY(mc_tileset_exists(&copied, &target, ctx));
        if (copied)
            return MC_OK;
    }
    if (tile == NULL)
        return MC_OK;
    *outcome = MC_SEED_DONE;
    MC_TRY(mc_tileset_repack(&tile->data, task->target, ctx->pool));
    return mc_tileset_put(&target, tile->data, ctx);
}

/* Counts tiles: those that are marked already are kept. */
static mc_error *
mark_metatile(mc_seed_result *result, const mc_seed_task *task, const mc_tile_request *first, mc_ctx *ctx)
{
    mc_mark_counts counts = { 0 };
    MC_TRY(mc_tileset_mark_metatile(&counts, first, task->older, ctx));
    result->outcome = counts.marked > 0 ? MC_SEED_DONE : MC_SEED_SKIPPED;
    result->tiles = (int)counts.marked;
    result->kept = (int)(counts.looked - counts.marked);
    return MC_OK;
}

mc_error *
mc_seed_act(mc_seed_result *result, const mc_seed_task *task, mc_ctx *ctx)
{
    mc_tile_request first = { task->tileset, task->link, result->z, result->x, result->y, task->values, NULL };
    result->outcome = MC_SEED_SKIPPED;
    result->tiles = -1;
    switch (task->mode) {
    case MC_SEED_DELETE:
        return remove_metatile(&result->outcome, task, &first, ctx);
    case MC_SEED_MARK:
        return mark_metatile(result, task, &first, ctx);
    case MC_SEED_TRANSFER:
        return transfer_metatile(&result->outcome, task, &first, ctx);
    case MC_SEED_COPY:
        return mc_seed_copy_block(result, task, ctx);
    case MC_SEED_COMPARE:
        return mc_seed_compare_block(result, task, ctx);
    case MC_SEED_FILL:
        break;
    }
    return seed_metatile(&result->outcome, task, &first, ctx);
}
