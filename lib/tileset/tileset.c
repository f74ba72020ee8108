/* What a tileset says about itself: links to grids, dimensions, extension, metatiles, lifetimes of its tiles, names of
 * broken ones. */
#include "mapcache/tileset.h"

#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "tileset/tileset_private.h"

enum { DENSE_SIDE_MAX = 4096 /* pixels of a metatile for fine screens */ };

mc_grid_link *
mc_tileset_link(const mc_tileset *tileset, const char *grid_name)
{
    for (int i = 0; i < tileset->link_count; i++)
        if (grid_name == NULL || strcmp(tileset->links[i]->grid->name, grid_name) == 0)
            return tileset->links[i];
    for (int i = 0; i < tileset->dense_link_count; i++)
        if (strcmp(tileset->dense_links[i]->grid->name, grid_name) == 0)
            return tileset->dense_links[i];
    return NULL;
}

mc_grid_link *
mc_tileset_dense_link(const mc_tileset *tileset, const mc_grid_link *link, int density)
{
    size_t size = strlen(link->grid->name);
    for (int i = 0; i < tileset->dense_link_count && link->grid->density == 0; i++) {
        const mc_grid *grid = tileset->dense_links[i]->grid;
        if (grid->density == density && strncmp(grid->name, link->grid->name, size) == 0 && grid->name[size] == '@' &&
            strlen(grid->name + size) == 3) /* "@2x": not a grid whose own name goes on with '@' */
            return tileset->dense_links[i];
    }
    return NULL;
}

int
mc_tileset_dimension(const mc_tileset *tileset, const char *name, bool any_case)
{
    for (int i = 0; i < tileset->dimension_count; i++) {
        const char *own = tileset->dimensions[i]->name;
        if (any_case ? strcasecmp(own, name) == 0 : strcmp(own, name) == 0)
            return i;
    }
    return -1;
}

bool
mc_tileset_same_dimensions(const mc_tileset *tileset, const mc_tileset *other)
{
    bool same = tileset->dimension_count == other->dimension_count;
    for (int i = 0; i < tileset->dimension_count && same; i++)
        same = strcasecmp(tileset->dimensions[i]->name, other->dimensions[i]->name) == 0;
    return same;
}

const char **
mc_tileset_defaults(const mc_tileset *tileset, apr_pool_t *pool)
{
    const char **values = apr_pcalloc(pool, sizeof(char *) * (size_t)(tileset->dimension_count + 1));
    for (int i = 0; i < tileset->dimension_count; i++)
        values[i] = tileset->dimensions[i]->default_value;
    return values;
}

const char *
mc_tileset_extension(const mc_tileset *tileset)
{
    return tileset->format == NULL ? "png" : tileset->format->extension == NULL ? "raw" : tileset->format->extension;
}

const char *
mc_tileset_title(const mc_tileset *tileset)
{
    const char *title = mc_metadata_get(tileset->metadata, "title");
    return title == NULL ? tileset->name : title;
}

void
mc_tileset_metatile_size(int *columns, int *rows, const mc_tileset *tileset, const mc_grid *grid)
{
    *columns = tileset->metatile_columns;
    *rows = tileset->metatile_rows;
    if (grid->density == 0)
        return;
    int most_columns = DENSE_SIDE_MAX / grid->tile_width, most_rows = DENSE_SIDE_MAX / grid->tile_height;
    *columns = *columns <= most_columns ? *columns : most_columns < 1 ? 1 : most_columns;
    *rows = *rows <= most_rows ? *rows : most_rows < 1 ? 1 : most_rows;
}

mc_metatile
mc_tileset_metatile(const mc_tileset *tileset, const mc_grid *grid, int z, int x, int y)
{
    const mc_level *level = &grid->levels[z];
    int columns, rows;
    mc_tileset_metatile_size(&columns, &rows, tileset, grid);
    mc_metatile metatile = { x - x % columns, y - y % rows, columns, rows };
    if (metatile.columns > level->columns - metatile.x)
        metatile.columns = level->columns - metatile.x;
    if (metatile.rows > level->rows - metatile.y)
        metatile.rows = level->rows - metatile.y;
    return metatile;
}

mc_error *
mc_tileset_check_built(const mc_tileset *tileset, apr_pool_t *pool)
{
    if (tileset->not_built == NULL)
        return MC_OK;
    return mc_error_create(pool, MC_ERR_UNAVAILABLE, "layer %s is not available: %s", tileset->name,
                           tileset->not_built);
}

mc_error *
mc_tileset_name_broken(mc_error *error, const mc_tile_request *wanted, apr_pool_t *pool)
{
    const mc_cache *cache = wanted->tileset->cache;
    if (error == MC_OK || error->kind != MC_ERR_CORRUPT)
        return error;
    return mc_error_wrap(pool, error, MC_ERR_CORRUPT,
                         "tileset \"%s\": the tile %d/%d/%d%s%s%s is not an image that can be drawn",
                         wanted->tileset->name, wanted->z, wanted->x, wanted->y, cache == NULL ? "" : " of cache \"",
                         cache == NULL ? "" : cache->name, cache == NULL ? "" : "\"");
}

mc_error *
mc_tileset_decode(mc_pixels **pixels, const mc_tile *tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    return mc_tileset_name_broken(mc_tile_decode(pixels, tile, wanted->link->grid, ctx, pool), wanted, pool);
}
