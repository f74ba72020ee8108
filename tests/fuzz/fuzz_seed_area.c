/* A file of areas: GeoJSON where it begins with a brace, WKT otherwise; what was read is then asked about some boxes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_support.h"
#include "seed/area_private.h"

static mc_level levels[] = { { 1000, 1, 1 }, { 100, 10, 10 } };

static mc_error *
read_all(mc_areas_text *text, bool json)
{
    text->at = text->begin;
    text->points.count = 0;
    return json ? mc_areas_json(text) : mc_areas_wkt(text);
}

/* Parts of a box lie as the box does, where that is not in between. */
static void
ask(const mc_seed_region *region)
{
    mc_extent b = mc_region_bounds(region);
    for (int i = 1; i < 6; i++) {
        mc_extent box = { b.minx + (b.maxx - b.minx) / i, b.miny + (b.maxy - b.miny) / (7 - i), 0, 0 };
        box.maxx = box.minx + (b.maxx - b.minx) / 5 + 1;
        box.maxy = box.miny + (b.maxy - b.miny) / 5 + 1;
        mc_extent part = { box.minx, box.miny, (box.minx + box.maxx) / 2, (box.miny + box.maxy) / 2 };
        mc_region_relation whole = mc_region_relate(region, &box, 0, 0), inner = mc_region_relate(region, &part, 0, 0);
        MC_ASSERT(whole == MC_REGION_CROSSED || whole == inner);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 20000)
        return 0;
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    mc_grid grid = { .name = "fuzzed",
                     .srs = "EPSG:3857",
                     .aliases = apr_array_make(pool, 1, sizeof(const char *)),
                     .extent = { -20037508, -20037508, 20037508, 20037508 },
                     .tile_width = 256,
                     .tile_height = 256,
                     .level_count = 2,
                     .levels = levels };
    char *bytes = malloc(size > 0 ? size : 1);
    if (size > 0)
        memcpy(bytes, data, size);
    mc_areas_text text = { .path = "fuzzed", .begin = bytes, .end = bytes + size, .pool = pool };
    bool json = size > 0 && bytes[0] == '{';
    mc_error *error = read_all(&text, json);
    if (error == MC_OK)
        error = mc_region_begin(&text.builder, &grid, 1, size % 2 == 0 ? "EPSG:4326" : NULL, pool);
    if (error == MC_OK)
        error = read_all(&text, json);
    mc_seed_region *region = error == MC_OK ? mc_region_finish(text.builder) : NULL;
    if (region != NULL)
        ask(region);
    free(text.points.xy);
    free(bytes);
    apr_pool_destroy(pool);
    return 0;
}
