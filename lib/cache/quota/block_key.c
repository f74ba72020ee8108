/* Keys of tiles, from what the books say of their blocks. */
#include <apr_strings.h>
#include <string.h>

#include "cache/quota/quota_private.h"

static const mc_grid *
find_quota_grid(const mc_quota *quota, const char *name, int z)
{
    const apr_array_header_t *tilesets = mc_uses_tilesets(quota->cache->uses);
    for (int i = 0; i < tilesets->nelts; i++) {
        const mc_grid *grid = APR_ARRAY_IDX(tilesets, i, mc_cache_use).grid;
        if (strcmp(grid->name, name) == 0 && z < grid->level_count)
            return grid;
    }
    return NULL;
}

/* One that has a name and as many levels as are needed, of no size. */
static const mc_grid *
name_only_grid(const char *name, int z, apr_pool_t *pool)
{
    mc_grid *grid = apr_pcalloc(pool, sizeof(*grid));
    grid->name = name;
    grid->level_count = z + 1;
    grid->levels = apr_pcalloc(pool, sizeof(*grid->levels) * (size_t)(z + 1));
    return grid;
}

/* A part of a path that leads elsewhere: nobody of us has written that down. */
static bool
is_path_elsewhere(const char *text)
{
    for (; *text != '\0'; text += strspn(text, "/")) {
        const size_t size = strcspn(text, "/");
        if ((size == 1 && *text == '.') || (size == 2 && strncmp(text, "..", 2) == 0))
            return true;
        text += size;
    }
    return false;
}

static bool
is_name_ours(const mc_quota_name *name)
{
    return !is_path_elsewhere(name->tileset) && !is_path_elsewhere(name->grid) && !is_path_elsewhere(name->dim) &&
           strchr(name->extension, '/') == NULL;
}

bool
mc_quota_block_key(mc_tile_key *key, const mc_quota *quota, const mc_book_block *block, apr_pool_t *pool)
{
    enum { LEVELS_MOST = 1000 };
    if (block->z < 0 || block->z >= LEVELS_MOST || block->x < 0 || block->y < 0 || !is_name_ours(&block->name))
        return false; /* nobody has written that down */
    *key = (mc_tile_key){ .grid = find_quota_grid(quota, block->name.grid, block->z),
                          .z = block->z,
                          .x = block->x,
                          .y = block->y,
                          .extension = block->name.extension,
                          .client_named = block->name.client_named,
                          .renderable = true };
    if (key->grid == NULL && quota->store->needs_grid(quota->cache))
        return false;
    if (key->grid == NULL)
        key->grid = name_only_grid(block->name.grid, block->z, pool);
    quota->store->restore(key, quota->cache, &block->name, pool);
    return true;
}

int
mc_quota_tile_keys(mc_tile_key *keys, const mc_tile_key *first, int shift)
{
    const mc_level *level = &first->grid->levels[first->z];
    const int side = 1 << shift;
    int count = 0;
    for (int x = first->x; x < first->x + side; x++)
        for (int y = first->y; y < first->y + side; y++) {
            if (level->columns > 0 && (x >= level->columns || y >= level->rows))
                continue;
            keys[count] = *first;
            keys[count].x = x;
            keys[count++].y = y;
        }
    return count;
}

/* Bytes that no value has: they stand behind a name, and behind a value. */
#define BEHIND_NAME "\x1f"
#define BEHIND_VALUE "\x1e"

const char *
mc_quota_pack_dimensions(const mc_tile_key *key, apr_pool_t *pool)
{
    const char *packed = "";
    for (int i = 0; i < key->dimension_count; i++)
        packed = apr_pstrcat(pool, packed, key->dimensions[i].from_backend ? "+" : "-", key->dimensions[i].name,
                             BEHIND_NAME, key->dimensions[i].value, BEHIND_VALUE, NULL);
    return packed;
}

void
mc_quota_unpack_dimensions(mc_tile_key *key, const char *packed, apr_pool_t *pool)
{
    apr_array_header_t *values = apr_array_make(pool, 2, sizeof(mc_dimension_value));
    char *rest, *copy = apr_pstrdup(pool, packed);
    for (char *one = apr_strtok(copy, BEHIND_VALUE, &rest); one != NULL; one = apr_strtok(NULL, BEHIND_VALUE, &rest)) {
        char *value = strchr(one, *BEHIND_NAME);
        if (value == NULL)
            continue;
        *value++ = '\0';
        APR_ARRAY_PUSH(values, mc_dimension_value) = (mc_dimension_value){ one + 1, value, *one == '+' };
    }
    key->dimension_count = values->nelts;
    key->dimensions = (const mc_dimension_value *)values->elts;
}
