/*
 * The wants of an assembly: tiles times combinations. A map without a filter over thousands of products has a hundred
 * thousand of these, of which a hundred are in sight; there each combination is asked first where it has tiles.
 */
#include "tileset/assembly_look.h"

#include "tileset/tileset_private.h"

/* Fewer combinations are not worth a question of their own. */
enum { WORTH_SIFTING = 16 };

typedef struct assembly_look {
    mc_assembly_wants *wants;
    const mc_assembly_order *order;
    const mc_assembled *tiles;
    const mc_combinations *lists; /* by tile */
    int count;
} assembly_look;

static void
make_room_for_wants(const assembly_look *look, size_t most, apr_pool_t *pool)
{
    look->wants->count = 0;
    look->wants->list = apr_palloc(pool, sizeof(*look->wants->list) * (most + 1));
    look->wants->first = apr_palloc(pool, sizeof(int) * (size_t)(look->count + 1));
}

static mc_tile_key
key_of_look(const assembly_look *look, const mc_assembled *tile)
{
    return mc_assembly_key(look->order->tileset, look->order->link->grid, look->order->z, tile->x, tile->y, NULL);
}

static void
add_assembly_want(const assembly_look *look, const mc_tile_key *key, const mc_dimension_value *dimensions)
{
    mc_footprint_want *want = &look->wants->list[look->wants->count++];
    want->key = *key;
    want->key.dimensions = dimensions;
}

static mc_error *
look_at_each(const assembly_look *look, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_assembly_wants *wants = look->wants;
    size_t most = 0;
    for (int i = 0; i < look->count; i++)
        most += (size_t)look->lists[i].count;
    make_room_for_wants(look, most, pool);
    for (int i = 0; i < look->count; i++) {
        mc_tile_key key = key_of_look(look, &look->tiles[i]);
        wants->first[i] = wants->count;
        for (int j = look->lists[i].count - 1; j >= 0; j--)
            add_assembly_want(look, &key, look->lists[i].list[j]);
    }
    wants->first[look->count] = wants->count;
    return mc_footprints_look(&wants->batch, look->order->tileset->cache, wants->list, wants->count, ctx, pool);
}

/* Frames of an animation count although they have no tile; what the source can make is never known to be absent. */
static bool
may_be_sifted(const assembly_look *look)
{
    if (look->count < 2 || look->lists[0].count < WORTH_SIFTING ||
        look->order->tileset->assembly != MC_ASSEMBLE_STACK || key_of_look(look, look->tiles).renderable)
        return false;
    for (int i = 1; i < look->count; i++)
        if (look->lists[i].list != look->lists[0].list)
            return false;
    return true;
}

static mc_tile_range
range_of_tiles(const assembly_look *look)
{
    const mc_assembled *tile = look->tiles;
    mc_tile_range range = { tile->x, tile->y, tile->x + 1, tile->y + 1 };
    for (int i = 1; i < look->count; i++) {
        tile = &look->tiles[i];
        range.minx = tile->x < range.minx ? tile->x : range.minx;
        range.miny = tile->y < range.miny ? tile->y : range.miny;
        range.maxx = tile->x >= range.maxx ? tile->x + 1 : range.maxx;
        range.maxy = tile->y >= range.maxy ? tile->y + 1 : range.maxy;
    }
    return range;
}

/* After mc_footprints_begin, which has left these combinations, front to back. */
static mc_error *
look_at_sifted(const assembly_look *look, const int *kept, int kept_count, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_assembly_wants *wants = look->wants;
    size_t most = (size_t)kept_count * (size_t)look->count;
    make_room_for_wants(look, most, pool);
    int *indexes = apr_palloc(pool, sizeof(int) * (most + 1));
    for (int i = 0; i < look->count; i++) {
        const mc_assembled *tile = &look->tiles[i];
        mc_tile_range range = { tile->x, tile->y, tile->x + 1, tile->y + 1 };
        mc_tile_key key = key_of_look(look, tile);
        wants->first[i] = wants->count;
        for (int j = 0; j < kept_count; j++) {
            if (!mc_footprints_may_have(wants->batch, j, &range))
                continue;
            indexes[wants->count] = j;
            add_assembly_want(look, &key, look->lists[0].list[kept[j]]);
        }
    }
    wants->first[look->count] = wants->count;
    return mc_footprints_complete(wants->batch, wants->list, indexes, wants->count, ctx, pool);
}

mc_error *
mc_assembly_look(mc_assembly_wants *wants, const mc_assembly_order *order, const mc_assembled *tiles,
                 const mc_combinations *lists, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    assembly_look look = { wants, order, tiles, lists, count };
    *wants = (mc_assembly_wants){ .batch = NULL };
    if (!may_be_sifted(&look))
        return look_at_each(&look, ctx, pool);
    mc_footprint_sift sift = { key_of_look(&look, tiles), lists[0].list, lists[0].count, range_of_tiles(&look) };
    int kept_count, *kept = apr_palloc(pool, sizeof(int) * (size_t)(lists[0].count + 1));
    MC_TRY(mc_footprints_begin(&wants->batch, kept, &kept_count, order->tileset->cache, &sift, ctx, pool));
    return wants->batch == NULL ? look_at_each(&look, ctx, pool) : look_at_sifted(&look, kept, kept_count, ctx, pool);
}
