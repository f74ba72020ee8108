/* The list is read by this process alone, while the workers act on what it has said so far. */
#include "seed_stored.h"

#include <string.h>

/* Metatiles that were visited not long ago: a list by columns meets each several times. */
enum { RECENT = 65536, MOST_DIMENSIONS = 64 };

typedef struct metatile {
    int x, y; /* of its first tile, and 1 more: zero is an empty place */
} metatile;

typedef struct listing {
    const mc_seed_area *area;
    mc_seed_visit *visit;
    void *baton;
    int z;
    bool on;
    metatile recent[RECENT];
} listing;

static mc_tile_key
make_stored_tile_key(const mc_seed_task *task, int z, mc_dimension_value *dimensions)
{
    const mc_tileset *tileset = task->tileset;
    for (int i = 0; i < tileset->dimension_count; i++)
        dimensions[i] = (mc_dimension_value){ tileset->dimensions[i]->name, task->values[i],
                                              tileset->dimensions[i]->ops->from_backend };
    return (mc_tile_key){ .tileset = tileset->name,
                          .grid = task->link->grid,
                          .z = z,
                          .dimension_count = tileset->dimension_count,
                          .dimensions = dimensions,
                          .extension = mc_tileset_extension(tileset) };
}

/* The values of dimensions that a database resolves are not the keys' before it was asked; those of a copy are. */
bool
mc_seed_stored_possible(const mc_seed_task *task, int deepest)
{
    const mc_tileset *tileset = task->tileset;
    bool copy = task->mode == MC_SEED_COPY || task->mode == MC_SEED_COMPARE;
    if (task->mode == MC_SEED_FILL || task->drawn_from != NULL || (tileset->dimension_count > 0 && !copy) ||
        tileset->assembly != MC_ASSEMBLE_NONE || tileset->dimension_count > MOST_DIMENSIONS)
        return false;
    mc_dimension_value dimensions[MOST_DIMENSIONS];
    const mc_tile_key first = make_stored_tile_key(task, 0, dimensions);
    const mc_tile_key last = make_stored_tile_key(task, deepest, dimensions);
    return mc_cache_lists(tileset->cache, &first) && mc_cache_lists(tileset->cache, &last);
}

static bool
take_tile(void *baton, int x, int y)
{
    listing *list = baton;
    x -= x % list->area->columns;
    y -= y % list->area->rows;
    unsigned hash = (unsigned)x * 2654435761u ^ (unsigned)y * 40503u;
    metatile *place = &list->recent[(hash ^ hash >> 16) % RECENT];
    if (place->x == x + 1 && place->y == y + 1)
        return true;
    *place = (metatile){ x + 1, y + 1 };
    return list->on = list->visit(list->baton, list->z, x, y);
}

mc_error *
mc_seed_stored_visit(const mc_seed_area *area, const mc_seed_task *task, const mc_config *config, const mc_log *log,
                     mc_seed_visit *visit, void *baton, apr_pool_t *pool)
{
    mc_runtime *runtime;
    MC_TRY(mc_runtime_create(&runtime, config, 1, false, log, pool));
    mc_ctx ctx = { .pool = pool, .process = mc_runtime_process(runtime), .log = log };
    listing *list = apr_pcalloc(pool, sizeof(*list));
    *list = (listing){ .area = area, .visit = visit, .baton = baton, .on = true };
    mc_error *error = MC_OK;
    for (int z = area->minzoom; z <= area->maxzoom && list->on && error == MC_OK; z++) {
        /* Whole metatiles, as the walks visit them. */
        const mc_level *level = &area->grid->levels[z];
        mc_tile_range range = area->limits[z];
        mc_dimension_value dimensions[MOST_DIMENSIONS];
        mc_tile_key key = make_stored_tile_key(task, z, dimensions);
        if (range.minx >= range.maxx || range.miny >= range.maxy)
            continue;
        range.minx -= range.minx % area->columns;
        range.miny -= range.miny % area->rows;
        range.maxx = (range.maxx - 1) / area->columns * area->columns + area->columns;
        range.maxy = (range.maxy - 1) / area->rows * area->rows + area->rows;
        range.maxx = range.maxx < level->columns ? range.maxx : level->columns;
        range.maxy = range.maxy < level->rows ? range.maxy : level->rows;
        list->z = z;
        memset(list->recent, 0, sizeof(list->recent));
        error = mc_cache_list(task->tileset->cache, &key, &range, take_tile, list, &ctx);
    }
    mc_runtime_destroy(runtime);
    return error;
}
