/* Counts in constant memory; a few tiles of each level are looked at to learn how large they are and how many are there
 * already. */
#include "seed_dry.h"

#include <stdio.h>

#include "cli/common/json_line.h"
#include "cli/common/words.h"

enum { SAMPLES_OF_LEVEL = 40 };

mc_error *
mc_seed_dry_begin(mc_seed_dry *dry, const mc_config *config, const mc_log *log, apr_pool_t *pool)
{
    for (int z = dry->area->minzoom; z <= dry->area->maxzoom && z < MC_SEED_DRY_LEVELS; z++) {
        mc_seed_area level = *dry->area;
        level.minzoom = level.maxzoom = z;
        dry->levels[z].stride = mc_seed_count(&level) / SAMPLES_OF_LEVEL + 1;
    }
    MC_TRY(mc_runtime_create(&dry->runtime, config, 1, false, log, pool));
    dry->ctx = (mc_ctx){ .process = mc_runtime_process(dry->runtime), .log = log };
    apr_pool_create(&dry->ctx.pool, pool);
    dry->pool = pool;
    return MC_OK;
}

/* A store that is away, or refuses, is not an empty one; a damaged tile is none. A file that is missing is an error of
 * tilesets that nobody can render, and they hold nothing there. */
static bool
is_store_away(const mc_error *error, const mc_tileset *tileset)
{
    switch (error->kind) {
    case MC_ERR_UNAVAILABLE:
    case MC_ERR_UPSTREAM:
    case MC_ERR_TIMEOUT:
    case MC_ERR_FORBIDDEN:
    case MC_ERR_BUSY:
        return true;
    case MC_ERR_IO:
        return tileset->source != NULL;
    default:
        return false;
    }
}

/* What cannot be read is no sample; dry->failure is set where the store is why. */
static void
sample_stored_tile(mc_seed_dry *dry, int z, int x, int y)
{
    mc_tile_request wanted = { dry->task->tileset, dry->task->link, z, x, y, dry->task->values, NULL };
    mc_seed_dry_level *level = &dry->levels[z];
    mc_tile *tile = NULL;
    level->asked++;
    mc_error *error = mc_tileset_stored(&tile, &wanted, &dry->ctx, dry->ctx.pool);
    if (error != MC_OK && is_store_away(error, dry->task->tileset))
        dry->failure = mc_error_copy(error, dry->pool);
    if (error == MC_OK && tile != NULL) {
        level->stored++;
        level->bytes += tile->blank ? 5 : (int64_t)tile->data->size;
    }
    apr_pool_clear(dry->ctx.pool);
}

bool
mc_seed_dry_visit(void *baton, int z, int x, int y)
{
    mc_seed_dry *dry = baton;
    if (z >= MC_SEED_DRY_LEVELS)
        return true;
    const mc_level *whole = &dry->area->grid->levels[z];
    mc_seed_dry_level *level = &dry->levels[z];
    int columns = whole->columns - x < dry->area->columns ? whole->columns - x : dry->area->columns;
    int rows = whole->rows - y < dry->area->rows ? whole->rows - y : dry->area->rows;
    level->tiles += (int64_t)columns * rows;
    if (level->metatiles++ % level->stride == 0 && level->asked < SAMPLES_OF_LEVEL)
        sample_stored_tile(dry, z, x, y);
    return dry->failure == MC_OK;
}

/* Mean bytes of a level's tiles; of the nearest level's where none of its own is stored. Below 0: of none. */
static double
mean_bytes(const mc_seed_dry *dry, int z)
{
    for (int apart = 0; apart < MC_SEED_DRY_LEVELS; apart++)
        for (int way = -1; way <= 1; way += 2) {
            int at = z + way * apart;
            if (at >= 0 && at < MC_SEED_DRY_LEVELS && dry->levels[at].stored > 0)
                return (double)dry->levels[at].bytes / (double)dry->levels[at].stored;
        }
    return -1;
}

typedef struct seed_dry_sums {
    int64_t metatiles, tiles, asked, stored;
    double bytes;
} seed_dry_sums;

static seed_dry_sums
sum_dry_run_levels(const mc_seed_dry *dry)
{
    seed_dry_sums all = { 0 };
    for (int z = 0; z < MC_SEED_DRY_LEVELS; z++) {
        const mc_seed_dry_level *level = &dry->levels[z];
        all.metatiles += level->metatiles;
        all.tiles += level->tiles;
        all.asked += level->asked;
        all.stored += level->stored;
        if (level->metatiles > 0)
            all.bytes += mean_bytes(dry, z) * (double)level->tiles;
    }
    return all;
}

static void
write_dry_run_json(const mc_seed_dry *dry, const seed_dry_sums *all)
{
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_open_array(line.json, "levels");
    for (int z = 0; z < MC_SEED_DRY_LEVELS; z++)
        if (dry->levels[z].metatiles > 0) {
            mc_json_open_object(line.json, NULL);
            mc_json_integer(line.json, "level", z);
            mc_json_integer(line.json, "metatiles", dry->levels[z].metatiles);
            mc_json_integer(line.json, "tiles", dry->levels[z].tiles);
            mc_json_close(line.json);
        }
    mc_json_close(line.json);
    mc_json_integer(line.json, "metatiles", all->metatiles);
    mc_json_integer(line.json, "tiles", all->tiles);
    mc_json_integer(line.json, "samples", all->asked);
    mc_json_integer(line.json, "stored", all->stored);
    if (all->stored > 0)
        mc_json_decimals(line.json, "bytes", all->bytes, 0);
    mc_cli_json_line_end(&line);
}

static void
write_table(const mc_seed_dry *dry, const seed_dry_sums *all)
{
    printf("%6s %16s %18s\n", "level", "metatiles", "tiles");
    for (int z = 0; z < MC_SEED_DRY_LEVELS; z++)
        if (dry->levels[z].metatiles > 0)
            printf("%6d %16lld %18lld\n", z, (long long)dry->levels[z].metatiles, (long long)dry->levels[z].tiles);
    printf("%6s %16lld %18lld\n", "all", (long long)all->metatiles, (long long)all->tiles);
    printf("%lld of %lld looked at are stored", (long long)all->stored, (long long)all->asked);
    if (all->stored > 0)
        printf("; by their sizes all would take about %s", mc_cli_size_words(all->bytes, dry->ctx.pool));
    puts("");
}

void
mc_seed_dry_end(mc_seed_dry *dry, bool counted, bool json)
{
    seed_dry_sums all = sum_dry_run_levels(dry);
    if (counted)
        (json ? write_dry_run_json : write_table)(dry, &all);
    mc_runtime_destroy(dry->runtime);
}
