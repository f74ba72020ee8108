/* Counts in constant memory; a few tiles are looked at to learn how large they are and how many are there already. */
#include "seed_dry.h"

#include <stdio.h>

mc_error *
mc_seed_dry_begin(mc_seed_dry *dry, const mc_config *config, const mc_log *log, apr_pool_t *pool)
{
    MC_TRY(mc_runtime_create(&dry->runtime, config, 1, false, log, pool));
    dry->ctx = (mc_ctx){ .process = mc_runtime_process(dry->runtime), .log = log };
    apr_pool_create(&dry->ctx.pool, pool);
    return MC_OK;
}

/* What cannot be read is no sample. */
static void
sample(mc_seed_dry *dry, int z, int x, int y)
{
    mc_tile_request wanted = { dry->task->tileset, dry->task->link, z, x, y, dry->task->values };
    mc_tile *tile = NULL;
    dry->asked++;
    if (mc_tileset_stored(&tile, &wanted, &dry->ctx, dry->ctx.pool) == MC_OK && tile != NULL) {
        dry->stored++;
        dry->bytes += tile->blank ? 5 : (int64_t)tile->data->size;
    }
    apr_pool_clear(dry->ctx.pool);
}

bool
mc_seed_dry_visit(void *baton, int z, int x, int y)
{
    mc_seed_dry *dry = baton;
    const mc_level *level = &dry->area->grid->levels[z];
    int columns = level->columns - x < dry->area->columns ? level->columns - x : dry->area->columns;
    int rows = level->rows - y < dry->area->rows ? level->rows - y : dry->area->rows;
    int64_t stride = dry->expected / MC_SEED_SAMPLES + 1;
    if (z < MC_SEED_DRY_LEVELS) {
        dry->metatiles[z]++;
        dry->tiles[z] += (int64_t)columns * rows;
    }
    if (dry->visited++ % stride == 0 && dry->asked < MC_SEED_SAMPLES)
        sample(dry, z, x, y);
    return true;
}

static void
write_json(const mc_seed_dry *dry, int64_t metatiles, int64_t tiles)
{
    const char *between = "";
    fputs("{\"levels\":[", stdout);
    for (int z = 0; z < MC_SEED_DRY_LEVELS; z++)
        if (dry->metatiles[z] > 0) {
            printf("%s{\"level\":%d,\"metatiles\":%lld,\"tiles\":%lld}", between, z, (long long)dry->metatiles[z],
                   (long long)dry->tiles[z]);
            between = ",";
        }
    printf("],\"metatiles\":%lld,\"tiles\":%lld,\"samples\":%lld,\"stored\":%lld", (long long)metatiles,
           (long long)tiles, (long long)dry->asked, (long long)dry->stored);
    if (dry->stored > 0)
        printf(",\"bytes\":%lld", (long long)(dry->bytes / dry->stored * tiles));
    puts("}");
}

static void
write_table(const mc_seed_dry *dry, int64_t metatiles, int64_t tiles)
{
    printf("%6s %16s %18s\n", "level", "metatiles", "tiles");
    for (int z = 0; z < MC_SEED_DRY_LEVELS; z++)
        if (dry->metatiles[z] > 0)
            printf("%6d %16lld %18lld\n", z, (long long)dry->metatiles[z], (long long)dry->tiles[z]);
    printf("%6s %16lld %18lld\n", "all", (long long)metatiles, (long long)tiles);
    printf("%lld of %lld looked at are stored", (long long)dry->stored, (long long)dry->asked);
    if (dry->stored > 0)
        printf(", with %lld bytes each: about %.1f MB for all", (long long)(dry->bytes / dry->stored),
               (double)dry->bytes / (double)dry->stored * (double)tiles / 1e6);
    puts("");
}

void
mc_seed_dry_end(mc_seed_dry *dry, bool json)
{
    int64_t metatiles = 0, tiles = 0;
    for (int z = 0; z < MC_SEED_DRY_LEVELS; z++) {
        metatiles += dry->metatiles[z];
        tiles += dry->tiles[z];
    }
    (json ? write_json : write_table)(dry, metatiles, tiles);
    mc_runtime_destroy(dry->runtime);
}
