/*
 * Copies: blocks of tiles are read, looked for in the target, and put there together, so that a store that is far away
 * costs a few round trips for a block, and a file one transaction for its reads.
 */
#include "seed/copy.h"

#include <string.h>

#include "grid/same.h"
#include "seed/drawn.h"

/* The stored tiles of a block, and where they belong. */
typedef struct seed_block {
    int count;
    mc_tile_request *from, *to;
    mc_tile **tiles;
} seed_block;

static seed_block
make_seed_block(const mc_seed_result *place, const mc_seed_task *task, apr_pool_t *pool)
{
    mc_metatile metatile = mc_tileset_metatile(task->tileset, task->link->grid, place->z, place->x, place->y);
    size_t most = (size_t)metatile.columns * (size_t)metatile.rows;
    seed_block block = { .from = apr_palloc(pool, sizeof(mc_tile_request) * most),
                         .to = apr_palloc(pool, sizeof(mc_tile_request) * most),
                         .tiles = apr_pcalloc(pool, sizeof(mc_tile *) * most) };
    for (int column = 0; column < metatile.columns; column++)
        for (int row = 0; row < metatile.rows; row++) {
            mc_tile_request *from = &block.from[block.count], *to = &block.to[block.count];
            *from = (mc_tile_request){ task->tileset,    task->link,   place->z, metatile.x + column,
                                       metatile.y + row, task->values, NULL };
            *to = *from;
            to->tileset = task->target;
            to->link = task->target_link;
            if (task->drawn_from == NULL)
                mc_grid_renumber(&to->x, &to->y, task->link->grid, task->target_link->grid, place->z);
            block.count++;
        }
    return block;
}

static void
keep_copied_place(seed_block *block, int at, int from)
{
    block->from[at] = block->from[from];
    block->to[at] = block->to[from];
    block->tiles[at] = block->tiles[from];
}

static void
drop_missing(seed_block *block)
{
    int kept = 0;
    for (int i = 0; i < block->count; i++)
        if (block->tiles[i] != NULL)
            keep_copied_place(block, kept++, i);
    block->count = kept;
}

static void
drop_copied(seed_block *block, const bool *exists)
{
    int kept = 0;
    for (int i = 0; i < block->count; i++)
        if (!exists[i])
            keep_copied_place(block, kept++, i);
    block->count = kept;
}

/* In the target's format. What is of that format already stays byte for byte as it is. */
static mc_error *
convert_copied_tile(mc_tile *tile, const mc_seed_task *task, mc_ctx *ctx)
{
    const mc_format *format = task->target->format;
    mc_coding wanted = mc_format_coding(format);
    mc_pixels *pixels;
    if (tile->coding == wanted)
        return MC_OK;
    MC_TRY(mc_tile_decode(&pixels, tile, task->link->grid, ctx, ctx->pool));
    mc_pixels_attach(pixels, ctx->pool);
    MC_TRY(mc_format_encode(&tile->data, format, pixels, MC_FOR_STORE, ctx, ctx->pool));
    tile->coding = wanted;
    tile->tag = 0;
    return MC_OK;
}

static mc_error *
read_seed_block(seed_block *block, const mc_seed_result *place, const mc_seed_task *task, mc_ctx *ctx)
{
    *block = make_seed_block(place, task, ctx->pool);
    if (task->drawn_from != NULL)
        MC_TRY(mc_seed_draw_tiles(block->tiles, block->to, block->count, task, ctx));
    else
        MC_TRY(mc_tileset_stored_all(block->tiles, block->from, block->count, ctx, ctx->pool));
    drop_missing(block);
    return MC_OK;
}

static mc_error *
convert_block(const seed_block *block, const mc_seed_task *task, mc_ctx *ctx)
{
    for (int i = 0; i < block->count && task->convert; i++)
        MC_TRY(convert_copied_tile(block->tiles[i], task, ctx));
    for (int i = 0; i < block->count; i++)
        MC_TRY(mc_tileset_repack(&block->tiles[i]->data, task->target, ctx->pool));
    return MC_OK;
}

/* Whether the target has all tiles of a block that would be drawn: looking is cheaper than drawing. */
static mc_error *
is_block_drawn(bool *drawn, mc_seed_result *result, const mc_seed_task *task, mc_ctx *ctx)
{
    *drawn = false;
    if (task->drawn_from == NULL || task->force)
        return MC_OK;
    const seed_block block = make_seed_block(result, task, ctx->pool);
    bool *exists = apr_pcalloc(ctx->pool, sizeof(*exists) * (size_t)block.count);
    MC_TRY(mc_tileset_exist_all(exists, block.to, block.count, ctx));
    *drawn = memchr(exists, false, (size_t)block.count) == NULL;
    result->kept = *drawn ? block.count : 0;
    return MC_OK;
}

mc_error *
mc_seed_copy_block(mc_seed_result *result, const mc_seed_task *task, mc_ctx *ctx)
{
    seed_block block;
    bool drawn;
    result->tiles = result->kept = 0;
    MC_TRY(is_block_drawn(&drawn, result, task, ctx));
    if (drawn)
        return MC_OK;
    MC_TRY(read_seed_block(&block, result, task, ctx));
    if (block.count > 0 && !task->force) {
        bool *exists = apr_pcalloc(ctx->pool, sizeof(*exists) * (size_t)block.count);
        int found = block.count;
        MC_TRY(mc_tileset_exist_all(exists, block.to, block.count, ctx));
        drop_copied(&block, exists);
        result->kept = found - block.count;
    }
    if (block.count == 0)
        return MC_OK;
    MC_TRY(convert_block(&block, task, ctx));
    MC_TRY(mc_tileset_put_all(block.to, block.tiles, block.count, ctx));
    result->outcome = MC_SEED_DONE;
    result->tiles = block.count;
    return MC_OK;
}

static bool
are_tiles_equal(const mc_tile *one, const mc_tile *other)
{
    if (one->blank && other->blank && memcmp(one->bgra, other->bgra, sizeof(one->bgra)) == 0)
        return true;
    return one->data->size == other->data->size && memcmp(one->data->data, other->data->data, one->data->size) == 0;
}

mc_error *
mc_seed_compare_block(mc_seed_result *result, const mc_seed_task *task, mc_ctx *ctx)
{
    seed_block block;
    int wrong = 0, first = -1;
    result->tiles = result->kept = 0;
    MC_TRY(read_seed_block(&block, result, task, ctx));
    if (block.count == 0)
        return MC_OK;
    MC_TRY(convert_block(&block, task, ctx));
    mc_tile **copies = apr_pcalloc(ctx->pool, sizeof(mc_tile *) * (size_t)block.count);
    MC_TRY(mc_tileset_stored_all(copies, block.to, block.count, ctx, ctx->pool));
    for (int i = 0; i < block.count; i++) {
        if (copies[i] != NULL && are_tiles_equal(block.tiles[i], copies[i]))
            continue;
        first = wrong++ == 0 ? i : first;
    }
    result->tiles = block.count - wrong;
    if (wrong > 0)
        return mc_error_create(ctx->pool, MC_ERR_CORRUPT, "%d of %d tiles differ; the first, z%d x%d y%d, %s", wrong,
                               block.count, block.from[first].z, block.from[first].x, block.from[first].y,
                               copies[first] == NULL ? "is not in the target" : "has other bytes in the target");
    result->outcome = MC_SEED_DONE;
    return MC_OK;
}
