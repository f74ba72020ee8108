/* The groups of tiles of stores that are meant: by tileset, grid, level and values of dimensions. */
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "cli/common/style.h"
#include "purge.h"

volatile int mc_purge_stop;

bool
mc_purge_means_grid(const mc_purge *purge, const char *grid)
{
    const char *wanted = purge->options->seed.grid;
    size_t size = wanted == NULL ? 0 : strlen(wanted);
    return wanted == NULL || (strncmp(grid, wanted, size) == 0 && (grid[size] == '\0' || grid[size] == '@'));
}

/* Whether each value that was given is the stored one. *told is false where the values cannot be told apart. */
static bool
are_values_meant(bool *told, const mc_purge *purge, const char *dim)
{
    const mc_tileset *tileset = purge->tileset;
    const apr_table_t *given = purge->options->seed.dimensions;
    bool meant = true;
    *told = true;
    if (apr_is_empty_table(given))
        return true;
    for (int i = tileset->dimension_count - 1; i >= 0; i--) { /* stores have the last dimension first */
        size_t size = i == 0 ? strlen(dim) : strcspn(dim, "#");
        const char *value = apr_table_get(given, tileset->dimensions[i]->name);
        meant = meant && (value == NULL || (strlen(value) == size && strncmp(value, dim, size) == 0));
        dim += size;
        *told = *told && (i == 0 || *dim == '#');
        dim += *dim == '#';
    }
    return meant && *told;
}

/* Whether the group is one of those to delete; otherwise *told says whether that is known. */
static bool
is_group_meant(bool *told, const mc_purge *purge, const mc_store_group *group)
{
    const mc_seed_options *seed = &purge->options->seed;
    *told = group->tileset != NULL && group->grid != NULL && group->dim != NULL;
    if (!*told || strcmp(group->tileset, purge->tileset->name) != 0 || !mc_purge_means_grid(purge, group->grid))
        return false;
    if (seed->has_zoom && (group->z < seed->minzoom || group->z > seed->maxzoom))
        return false;
    return are_values_meant(told, purge, group->dim);
}

/* Upkeep removes what is not known. */
static bool
is_group_kept(void *baton, const mc_store_group *group)
{
    mc_purge *purge = baton;
    bool told, meant = is_group_meant(&told, purge, group);
    purge->untold = purge->untold || !told;
    return !meant;
}

static void
remember_value(mc_purge *purge, const char *dim)
{
    for (int i = 0; i < purge->values->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(purge->values, i, const char *), dim) == 0)
            return;
    APR_ARRAY_PUSH(purge->values, const char *) = apr_pstrdup(purge->pool, dim);
}

static mc_purge_level *
find_purge_level(mc_purge *purge, const char *grid, int z)
{
    for (int i = 0; i < purge->levels->nelts; i++) {
        mc_purge_level *level = &APR_ARRAY_IDX(purge->levels, i, mc_purge_level);
        if (level->z == z && strcmp(level->grid, grid) == 0)
            return level;
    }
    mc_purge_level *level = &APR_ARRAY_PUSH(purge->levels, mc_purge_level);
    *level = (mc_purge_level){ .grid = apr_pstrdup(purge->pool, grid), .z = z };
    return level;
}

static void
take_meant_group(void *baton, const mc_store *store, const mc_store_group *group)
{
    mc_purge *purge = baton;
    mc_purge_level *level = find_purge_level(purge, group->grid, group->z);
    (void)store;
    level->tiles += group->tiles;
    level->bytes += group->bytes;
    purge->tiles += group->tiles;
    purge->bytes += group->bytes;
    remember_value(purge, group->dim);
}

static void
take_purged_store(void *baton, const mc_store *before, const mc_store *after, const mc_error *error)
{
    mc_purge *purge = baton;
    if (after != NULL && after->orphans > 0 && mc_purge_stop == 0) {
        purge->failures++;
        fprintf(stderr, "mapcache purge: %s: %lld tiles could not be deleted\n", before->name,
                (long long)after->orphans);
    }
    purge->untold = purge->untold || before->tiles < 0;
    if (error == MC_OK)
        return;
    purge->failures++;
    fprintf(stderr, "%smapcache purge:%s %s\n", mc_cli_ink_of(stderr, MC_INK_ERROR), mc_cli_ink_of(stderr, MC_INK_END),
            mc_error_chain(error, purge->pool));
}

typedef struct purge_walk {
    mc_purge *purge;
    const mc_upkeep *task;
    mc_ctx *ctx;
    mc_error *error;
    apr_array_header_t *seen; /* of const mc_cache *: a part may be there twice */
} purge_walk;

static void
purge_cache_part(void *baton, mc_cache *part)
{
    purge_walk *walk = baton;
    for (int i = 0; i < walk->seen->nelts; i++)
        if (APR_ARRAY_IDX(walk->seen, i, const mc_cache *) == part)
            return;
    APR_ARRAY_PUSH(walk->seen, const mc_cache *) = part;
    /* A layout of its own has no list of groups. */
    walk->purge->untold = walk->purge->untold || !mc_cache_tells_groups(part);
    if (walk->error == MC_OK)
        walk->error = mc_cache_upkeep(part, walk->task, walk->ctx);
}

mc_error *
mc_purge_groups(mc_purge *purge, bool removing, mc_ctx *ctx)
{
    const mc_upkeep task = { .count = true,
                             .remove_orphans = removing,
                             .stop = &mc_purge_stop,
                             .known = is_group_kept,
                             .orphan = take_meant_group,
                             .report = take_purged_store,
                             .baton = purge };
    purge->levels = apr_array_make(purge->pool, 24, sizeof(mc_purge_level));
    purge->values = apr_array_make(purge->pool, 4, sizeof(const char *));
    purge->tiles = purge->bytes = 0;
    purge_walk walk = { purge, &task, ctx, MC_OK, apr_array_make(purge->pool, 4, sizeof(const mc_cache *)) };
    mc_cache_parts(purge->tileset->cache, purge_cache_part, &walk);
    return walk.error;
}
