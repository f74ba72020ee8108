/* Keys of caches behind HTTP, and what is made of them once: the template, the headers of each operation. */
#include <apr_hash.h>
#include <apr_strings.h>
#include <string.h>

#include "cache/rest/rest_base.h"
#include "text/text.h"

typedef struct rest_operation_block {
    int type;
    const mc_node *header_tree;
    const char *header_file;
} rest_operation_block;

/* In the order of mc_rest_operation. */
#define OPERATION_CHOICES "get|head|put|delete"

const mc_key mc_rest_operation_keys[] = {
    MC_KEY_CHOICE_CI("@type", offsetof(rest_operation_block, type), OPERATION_CHOICES,
                     "Which operation: put, get, head (whether a tile is there) or delete.", .flags = MC_KEY_REQUIRED),
    MC_KEY_TREE("headers", offsetof(rest_operation_block, header_tree), NULL,
                "Headers of these requests, one element each: <Name>value</Name>."),
    MC_KEY_TEXT("header_file", offsetof(rest_operation_block, header_file),
                "File with further headers of these requests, a line `Name: value` each; read with every request.",
                .flags = MC_KEY_WORKDIR),
    MC_KEY_END,
};

/* The path begins behind the host. NULL: there is none. */
static const char *
path_of_address(const char *url)
{
    const char *host = strstr(url, "://");
    return host == NULL ? NULL : strchr(host + 3, '/');
}

static bool
check_rest_url(const mc_rest_cache *cache, const mc_node *node, mc_build *build)
{
    const mc_node *at = mc_node_child(node, "url");
    const char *path = path_of_address(cache->url);
    if ((strncasecmp(cache->url, "http://", 7) != 0 && strncasecmp(cache->url, "https://", 8) != 0) || path == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, at,
                    "the address of a tile is http://HOST/PATH or https://HOST/PATH, with tokens as {z}");
        return false;
    }
    const char *host = apr_pstrmemdup(build->pool, cache->url, (size_t)(path - cache->url));
    if (strstr(host, "{dim") != NULL || (build->mirror && strstr(host, "{tileset}") != NULL)) {
        mc_complain(build->diagnostics, MC_REFUSED, at, "the host cannot depend on what a client says");
        return false;
    }
    return true;
}

/* A status that says that a tile is there, or that the store fails, cannot say that there is none. */
static bool
check_absent_statuses(const mc_rest_cache *cache, const mc_node *node, mc_build *build)
{
    for (int i = 0; i < cache->absent.count; i++) {
        double status = cache->absent.values[i];
        if (status >= 400 && status <= 499 && status == (int)status && status != 429)
            continue;
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "absent"),
                    "statuses that say that there is no tile are whole numbers from 400 to 499, but for 429");
        return false;
    }
    return true;
}

static bool
add_rest_headers(apr_table_t *headers, const mc_node *tree, mc_build *build)
{
    for (const mc_node *header = tree == NULL ? NULL : tree->children; header != NULL; header = header->next) {
        if (!mc_is_token(header->name, strlen(header->name))) {
            mc_complain(build->diagnostics, MC_REFUSED, header, "\"%s\" cannot be the name of an HTTP header",
                        header->name);
            return false;
        }
        apr_table_setn(headers, header->name, header->text == NULL ? "" : mc_unwrap_text(header->text, build->pool));
    }
    return true;
}

static bool
read_operations(mc_rest_cache *cache, mc_build *build)
{
    for (int i = 0; i < MC_REST_OPERATIONS; i++) {
        cache->headers[i] = apr_table_make(build->pool, 4);
        cache->header_files[i][0] = cache->header_file;
        if (!add_rest_headers(cache->headers[i], cache->header_tree, build))
            return false;
    }
    for (int i = 0; i < cache->operation_nodes->nelts; i++) {
        const mc_node *node = APR_ARRAY_IDX(cache->operation_nodes, i, const mc_node *);
        rest_operation_block block = { 0 };
        if (!mc_config_read(&block, node, mc_rest_operation_keys, build->diagnostics) ||
            !add_rest_headers(cache->headers[block.type], block.header_tree, build))
            return false;
        cache->header_files[block.type][1] = block.header_file;
    }
    return true;
}

bool
mc_rest_read(mc_rest_cache *cache, const mc_cache_ops *ops, const mc_node *node, mc_build *build)
{
    if (!mc_cache_read(&cache->base, ops, false, node, build) || !check_rest_url(cache, node, build) ||
        !check_absent_statuses(cache, node, build) || !read_operations(cache, build))
        return false;
    const mc_template_rules rules = { .url = true };
    cache->template = mc_template_compile(cache->url, &rules, build->pool);
    cache->uses = apr_hash_make(build->pool);
    return true;
}

/* Whether the address of the tile is that of the first one of its grid. */
static bool
has_first_address(const mc_rest_cache *cache, mc_tile_key key, const char *first, int z, int x, int y, apr_pool_t *pool)
{
    const char *url, *path;
    key.z = z;
    key.x = x;
    key.y = y;
    return z < key.grid->level_count && x < key.grid->levels[z].columns && y < key.grid->levels[z].rows &&
           mc_rest_url(&url, &path, cache, &key, pool) == MC_OK && strcmp(url, first) == 0;
}

/* The first level that has several columns and rows; 0 where there is none. */
static int
level_with_rows(const mc_grid *grid)
{
    for (int z = 0; z < grid->level_count; z++)
        if (grid->levels[z].columns > 1 && grid->levels[z].rows > 1)
            return z;
    return 0;
}

static void
complain_of_places(const mc_rest_cache *cache, const mc_tile_key *key, const char *first, const mc_node *node,
                   mc_build *build)
{
    int z = level_with_rows(key->grid);
    const char *url = first, *path;
    mc_tile_key corner = *key;
    corner.z = z;
    if (mc_rest_url(&url, &path, cache, &corner, build->pool) != MC_OK)
        return;
    if (has_first_address(cache, *key, first, 1, 0, 0, build->pool) ||
        has_first_address(cache, *key, url, z, 1, 0, build->pool) ||
        has_first_address(cache, *key, url, z, 0, 1, build->pool))
        mc_complain(
            build->diagnostics, MC_WARNING, node,
            "the address of a tile in cache \"%s\" does not tell the tiles of tileset \"%s\" apart: put {z}, {x} "
            "and {y} into <url>",
            cache->base.cache.name, key->tileset);
}

void
mc_rest_used_by(mc_cache *base, const mc_cache_use *use, const mc_node *node, mc_build *build)
{
    mc_rest_cache *cache = (mc_rest_cache *)base;
    const mc_tile_key key = { .tileset = use->tileset, .grid = use->grid, .extension = use->extension };
    const char *url, *path;
    if (mc_rest_url(&url, &path, cache, &key, build->pool) != MC_OK)
        return; /* said with the first request */
    if (cache->first == NULL)
        cache->first = apr_pmemdup(build->pool, &key, sizeof(key));
    const char *who = apr_psprintf(build->pool, "tileset \"%s\" on grid \"%s\"", use->tileset, use->grid->name);
    const char *other = apr_hash_get(cache->uses, url, APR_HASH_KEY_STRING);
    if (other != NULL && strcmp(other, who) != 0)
        mc_complain(build->diagnostics, mc_cache_use_severity(use), node,
                    "%s and %s have the same addresses in cache \"%s\": put {tileset} and {grid} into <url>", who,
                    other, base->name);
    if (other != NULL)
        return;
    apr_hash_set(cache->uses, url, APR_HASH_KEY_STRING, who);
    if (use->dimensions && !mc_template_by_dimension(cache->template))
        mc_complain(
            build->diagnostics, MC_WARNING, node,
            "tileset \"%s\" has dimensions, and the address of a tile in cache \"%s\" does not tell their values "
            "apart: put {dim} into <url>",
            use->tileset, base->name);
    complain_of_places(cache, &key, url, node, build);
}
