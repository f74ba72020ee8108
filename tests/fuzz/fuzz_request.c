/* Any path (first line) and query (second line) against a configuration with all services. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_support.h"
#include "mapcache/service.h"
#include "service/service_base.h"

static apr_pool_t *root;
static mc_config config;

static mc_error *
list_nothing(apr_array_header_t **values, mc_dimension *dimension, const char *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)dimension;
    (void)tileset;
    (void)ctx;
    *values = apr_array_make(pool, 1, sizeof(const char *));
    return MC_OK;
}

static const mc_dimension_ops dimension_ops = { .type = "values", .list = list_nothing };
static const mc_source_ops source_ops = { .type = "wms" };

static mc_tileset *
make_tileset(mc_build *build, const char *name, const char *format, const char *grid_name)
{
    mc_grid *grid = apr_hash_get(build->grids, grid_name, APR_HASH_KEY_STRING);
    mc_tile_range *limits = apr_pcalloc(root, (size_t)grid->level_count * sizeof(*limits));
    for (int z = 0; z < grid->level_count; z++)
        limits[z] = (mc_tile_range){ 0, 0, grid->levels[z].columns, grid->levels[z].rows };
    mc_grid_link *link = apr_pcalloc(root, sizeof(*link));
    *link = (mc_grid_link){
        .grid = grid, .extent = grid->extent, .maxzoom = grid->level_count - 1, .max_cached_zoom = -1, .limits = limits
    };
    mc_tileset *tileset = apr_pcalloc(root, sizeof(*tileset));
    tileset->name = name;
    tileset->metadata = mc_metadata_create(root);
    tileset->format = apr_hash_get(build->formats, format, APR_HASH_KEY_STRING);
    tileset->links = apr_pmemdup(root, &link, sizeof(mc_grid_link *));
    tileset->link_count = 1;
    APR_ARRAY_PUSH(config.tilesets, mc_tileset *) = tileset;
    apr_hash_set(config.tilesets_by_name, name, APR_HASH_KEY_STRING, tileset);
    return tileset;
}

static void
make_dimension(mc_tileset *tileset)
{
    static mc_dimension dimension = { .ops = &dimension_ops, .name = "d", .default_value = "v", .time = true };
    static mc_dimension *all[] = { &dimension };
    tileset->dimensions = all;
    tileset->dimension_count = 1;
}

static void
make_info(mc_tileset *tileset)
{
    static mc_source source = { .ops = &source_ops, .name = "origin" };
    apr_array_header_t *formats = apr_array_make(root, 1, sizeof(const char *));
    APR_ARRAY_PUSH(formats, const char *) = "text/plain";
    source.info_formats = formats;
    tileset->source = &source;
}

static void
make_config(void)
{
    static const char *const formats[] = { "PNG", "PNG8", "JPEG", "mixed" };
    apr_pool_create(&root, NULL);
    mc_build build = { .pool = root,
                       .diagnostics = mc_diagnostics_create(root),
                       .grids = apr_hash_make(root),
                       .formats = apr_hash_make(root) };
    mc_grid_builtins(build.grids, root);
    mc_format_builtins(build.formats, root);
    config = (mc_config){
        .metadata = mc_metadata_create(root),
        .grids = apr_array_make(root, 4, sizeof(mc_grid *)),
        .tilesets = apr_array_make(root, 8, sizeof(mc_tileset *)),
        .caches = apr_array_make(root, 1, sizeof(mc_cache *)),
        .formats = apr_array_make(root, 4, sizeof(mc_format *)),
        .services = apr_array_make(root, 8, sizeof(mc_service *)),
        .tilesets_by_name = apr_hash_make(root),
        .mtime = apr_time_from_sec(1700000000),
    };
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        APR_ARRAY_PUSH(config.formats, mc_format *) = apr_hash_get(build.formats, formats[i], APR_HASH_KEY_STRING);
    config.default_format = apr_hash_get(build.formats, "mixed", APR_HASH_KEY_STRING);
    make_dimension(make_tileset(&build, "a", "JPEG", "GoogleMapsCompatible"));
    make_info(make_tileset(&build, "b", "PNG", "WGS84"));
    for (int i = 0; mc_service_kinds[i] != NULL; i++) {
        if (mc_service_kinds[i]->keys == NULL || mc_service_kinds[i] == &mc_service_jobs ||
            mc_service_kinds[i] == &mc_service_purge)
            continue; /* a type that this build does not have; one that needs a database; one that needs a token */
        mc_service *service = mc_service_kinds[i]->from_config(mc_service_kinds[i], NULL, &build);
        if (service == NULL)
            abort();
        APR_ARRAY_PUSH(config.services, mc_service *) = service;
    }
}

/* The next line of the input as a string; *data is moved behind it. */
static const char *
next_line(const uint8_t **data, const uint8_t *end, apr_pool_t *pool)
{
    const uint8_t *line = *data;
    const uint8_t *newline = line < end ? memchr(line, '\n', (size_t)(end - line)) : NULL;
    const uint8_t *stop = newline != NULL ? newline : end;
    *data = newline != NULL ? newline + 1 : end;
    return apr_pstrndup(pool, (const char *)line, (apr_size_t)(stop - line));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (root == NULL)
        make_config();
    const uint8_t *end = data + size;
    apr_pool_t *pool;
    apr_pool_create(&pool, root);
    mc_process process = { 0 };
    mc_ctx ctx = { .pool = pool, .process = &process };
    mc_http_request http = { .method = "GET", .base_url = "http://h/a" };
    http.path = next_line(&data, end, pool);
    http.query = next_line(&data, end, pool);
    mc_call call;
    mc_request request;
    mc_error *error = mc_service_dispatch(&call, &request, &config, &http, &ctx, pool);
    mc_document body = { 0 };
    int status = error != MC_OK ? mc_error_status(error->kind) : 200;
    if (error != MC_OK && call.service != NULL && call.service->ops->report != NULL)
        call.service->ops->report(&body, &status, error, &call, pool);
    if (error == MC_OK && request.kind == MC_REQUEST_TILE)
        for (int i = 0; i < request.u.tile.count; i++) {
            const mc_tile_request *tile = &request.u.tile.tiles[i];
            if (tile->z > tile->link->maxzoom || tile->x < 0 || tile->y < 0 ||
                tile->x >= tile->link->grid->levels[tile->z].columns ||
                tile->y >= tile->link->grid->levels[tile->z].rows)
                abort();
        }
    if (error == MC_OK && request.kind == MC_REQUEST_MAP &&
        (!mc_extent_valid(&request.u.map.box) || request.u.map.count < 1))
        abort();
    apr_pool_destroy(pool);
    return 0;
}
