/* Configuration files: XML, the typed reader, grids, rulesets and the grid references of tilesets. */
#include <stdint.h>
#include <string.h>

#include "fuzz_support.h"
#include "mapcache/grid.h"

static void
use_link(const mc_node *node, mc_build *build)
{
    const mc_grid_link *link = mc_grid_link_from_config(node, build);
    if (link == NULL)
        return;
    const mc_extent boxes[] = { link->extent, link->grid->extent, { -1e300, -1e300, 1e300, 1e300 } };
    for (size_t i = 0; i < sizeof(boxes) / sizeof(boxes[0]); i++) {
        const mc_grid_link *used;
        int z = mc_grid_link_level(link, (boxes[i].maxx - boxes[i].minx) / 256, &used);
        mc_tile_range range;
        if (!mc_grid_link_tiles(used, &boxes[i], z, &range))
            continue;
        MC_ASSERT(range.minx >= 0 && range.minx < range.maxx && range.maxx <= used->grid->levels[z].columns);
        MC_ASSERT(range.miny >= 0 && range.miny < range.maxy && range.maxy <= used->grid->levels[z].rows);
        mc_error *error = mc_grid_link_check(used, z, range.minx, range.maxy - 1, build->pool);
        MC_ASSERT(error == MC_OK);
        mc_extent tile = mc_grid_tile_extent(used->grid, z, range.minx, range.miny);
        int fz, fx, fy;
        (void)mc_grid_find_tile(used->grid, &tile, used->grid->tile_width, used->grid->tile_height, &fz, &fx, &fy);
    }
}

static void
use_children(const mc_node *root, mc_build *build)
{
    for (const mc_node *node = root->children; node != NULL; node = node->next) {
        if (strcmp(node->name, "grid") == 0) {
            mc_grid *grid = mc_grid_from_config(node, build);
            if (grid != NULL)
                apr_hash_set(build->grids, grid->name, APR_HASH_KEY_STRING, grid);
        } else if (strcmp(node->name, "ruleset") == 0) {
            mc_ruleset *ruleset = mc_ruleset_from_config(node, build);
            if (ruleset != NULL)
                apr_hash_set(build->rulesets, ruleset->name, APR_HASH_KEY_STRING, ruleset);
        } else if (strcmp(node->name, "tileset") == 0) {
            for (const mc_node *link = mc_node_child(node, "grid"); link != NULL; link = mc_node_next(link))
                use_link(link, build);
        } else if (strcmp(node->name, "metadata") == 0) {
            mc_metadata *metadata = mc_metadata_create(build->pool);
            mc_metadata_add(metadata, node);
            (void)mc_metadata_get(metadata, "title");
        }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    mc_node *root;
    mc_diagnostics *diagnostics = mc_diagnostics_create(pool);
    mc_error *error = mc_config_parse_text(&root, "fuzz.xml", (const char *)data, size, diagnostics, pool);
    if (error == MC_OK) {
        mc_build build = {
            .pool = pool, .diagnostics = diagnostics, .grids = apr_hash_make(pool), .rulesets = apr_hash_make(pool)
        };
        mc_grid_builtins(build.grids, pool);
        use_children(root, &build);
        mc_error_ignore(mc_diagnostics_error(build.diagnostics, pool));
    }
    apr_pool_destroy(pool);
    return 0;
}
