/* What --from and --to name: tilesets and caches of the configuration, and files of tiles. */
#include <apr_file_info.h>
#include <apr_strings.h>
#include <string.h>
#include <unistd.h>

#include "copy.h"
#include "data/data.h"
#include "mapcache/upkeep.h"
#include "text/text.h"

static mc_cache *
find_cache_by_name(const mc_config *config, const char *name)
{
    for (int i = 0; config != NULL && i < config->caches->nelts; i++) {
        mc_cache *cache = APR_ARRAY_IDX(config->caches, i, mc_cache *);
        if (strcmp(cache->name, name) == 0)
            return cache;
    }
    return NULL;
}

static mc_tileset *
find_tileset_by_name(const mc_config *config, const char *name)
{
    return config == NULL ? NULL : apr_hash_get(config->tilesets_by_name, name, APR_HASH_KEY_STRING);
}

/* The rest of a name that says itself of what; NULL: it does not. */
static const char *
name_behind(const char *name, const char *prefix)
{
    size_t size = strlen(prefix);
    return strncmp(name, prefix, size) == 0 ? name + size : NULL;
}

/* A tileset or a cache of the configuration, or neither. */
static mc_error *
find_in_config(mc_copy_side *side, const char *name, const mc_config *config, apr_pool_t *pool)
{
    const char *as_tileset = name_behind(name, "tileset:"), *as_cache = name_behind(name, "cache:");
    mc_tileset *tileset =
        as_cache != NULL ? NULL : find_tileset_by_name(config, as_tileset != NULL ? as_tileset : name);
    mc_cache *cache = as_tileset != NULL ? NULL : find_cache_by_name(config, as_cache != NULL ? as_cache : name);
    *side = (mc_copy_side){ .name = name, .config = config, .tilesets = apr_array_make(pool, 4, sizeof(mc_tileset *)) };
    if (tileset != NULL && cache != NULL)
        return mc_error_create(pool, MC_ERR_CONFIG,
                               "there are a tileset and a cache \"%s\": tileset:%s or cache:%s says which", name, name,
                               name);
    if (config != NULL && as_tileset != NULL && tileset == NULL)
        return mc_error_create(pool, MC_ERR_CONFIG, "%s", mc_config_lacks_tileset(config, as_tileset, pool));
    if (config != NULL && as_cache != NULL && cache == NULL)
        return mc_error_create(pool, MC_ERR_CONFIG, "%s", mc_config_lacks_cache(config, as_cache, pool));
    if (tileset != NULL)
        APR_ARRAY_PUSH(side->tilesets, mc_tileset *) = tileset;
    side->cache = cache;
    return MC_OK;
}

typedef struct part_search {
    const mc_cache *wanted;
    bool found;
} part_search;

static void
look_at_part(void *baton, mc_cache *part)
{
    part_search *search = baton;
    search->found = search->found || part == search->wanted;
}

/* The tilesets that store tiles in the cache, or in one that it is a part of. */
static void
list_users(mc_copy_side *side)
{
    for (int i = 0; i < side->config->tilesets->nelts; i++) {
        mc_tileset *tileset = APR_ARRAY_IDX(side->config->tilesets, i, mc_tileset *);
        part_search search = { side->cache, tileset->cache == side->cache };
        if (tileset->cache != NULL && !search.found)
            mc_cache_parts(tileset->cache, look_at_part, &search);
        if (search.found)
            APR_ARRAY_PUSH(side->tilesets, mc_tileset *) = tileset;
    }
}

static bool
names_file(const char *name)
{
    return strchr(name, '/') != NULL || strchr(name, '.') != NULL || access(name, F_OK) == 0;
}

static mc_error *
lacks_name(const char *name, const mc_config *config, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CONFIG, "there is no tileset, cache or file \"%s\"%s", name,
                           config == NULL ? "; --config names the configuration of tilesets and caches" : "");
}

static const char *
absolute_file(const char *name, apr_pool_t *pool)
{
    char *path;
    if (strstr(name, "://") != NULL || apr_filepath_merge(&path, NULL, name, 0, pool) != APR_SUCCESS)
        return name;
    return path;
}

/* The name under which tiles are stored becomes that of their tileset, whatever characters the name has: statements of
 * its own, which a server needs for such names, could not list the tiles. */
static const mc_data_layer *
without_stored_name(const mc_data_layer *layer, apr_array_header_t *names, apr_pool_t *pool)
{
    mc_data_layer *plain = apr_pmemdup(pool, layer, sizeof(*layer));
    APR_ARRAY_PUSH(names, const char *) = layer->tileset;
    plain->tileset = NULL;
    return plain;
}

/* As `mapcache serve` opens it; only what is stored as tiles. */
static mc_error *
open_tile_file(mc_copy_side *side, const char *name, apr_pool_t *pool)
{
    mc_data_found found = { NULL, NULL };
    mc_config *config;
    mc_ctx ctx = { .pool = pool };
    MC_TRY(mc_data_find(&found, absolute_file(name, pool), NULL, &ctx, pool));
    apr_array_header_t *tiles = apr_array_make(pool, 4, sizeof(const mc_data_layer *));
    apr_array_header_t *names = apr_array_make(pool, 4, sizeof(const char *));
    for (int i = 0; i < found.layers->nelts; i++) {
        const mc_data_layer *layer = APR_ARRAY_IDX(found.layers, i, const mc_data_layer *);
        if (layer->kind == MC_DATA_TILES)
            APR_ARRAY_PUSH(tiles, const mc_data_layer *) = without_stored_name(layer, names, pool);
    }
    if (tiles->nelts == 0)
        return mc_error_create(pool, MC_ERR_CONFIG, "%s holds no stored tiles", name);
    found.layers = tiles;
    const mc_data_config about = { .made_by = "mapcache copy" };
    MC_TRY(mc_config_load_text(&config, name, mc_data_write_config(&found, &about, pool), mc_diagnostics_create(pool),
                               pool));
    for (int i = 0; i < names->nelts && i < config->tilesets->nelts; i++)
        if (APR_ARRAY_IDX(names, i, const char *) != NULL)
            APR_ARRAY_IDX(config->tilesets, i, mc_tileset *)->name = APR_ARRAY_IDX(names, i, const char *);
    side->config = config;
    side->tilesets = config->tilesets;
    side->file = true;
    return MC_OK;
}

mc_error *
mc_copy_find_source(mc_copy_side *side, const char *name, const mc_config *config, apr_pool_t *pool)
{
    MC_TRY(find_in_config(side, name, config, pool));
    if (side->cache != NULL)
        list_users(side);
    if (side->cache != NULL && side->tilesets->nelts == 0)
        return mc_error_create(pool, MC_ERR_CONFIG, "no tileset stores tiles in cache \"%s\"", side->cache->name);
    if (side->tilesets->nelts > 0)
        return MC_OK;
    return names_file(name) ? open_tile_file(side, name, pool) : lacks_name(name, config, pool);
}

/* What a file is, by how its name ends. */
static const struct file_kind {
    const char *ending, *type, *element;
} file_kinds[] = {
    { ".mbtiles", "mbtiles", "dbfile" }, { ".pmtiles", "pmtiles", "file" },  { ".gpkg", "geopackage", "dbfile" },
    { ".sqlite3", "sqlite3", "dbfile" }, { ".sqlite", "sqlite3", "dbfile" }, { ".db", "sqlite3", "dbfile" },
};

static const struct file_kind *
kind_of_file(const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; i < sizeof(file_kinds) / sizeof(file_kinds[0]); i++) {
        size_t ending = strlen(file_kinds[i].ending);
        if (size > ending && strcasecmp(name + size - ending, file_kinds[i].ending) == 0)
            return &file_kinds[i];
    }
    return NULL;
}

/* Makes the target a cache of that type in a file; `element` names the file in its configuration. */
static mc_error *
make_target_cache(mc_copy_side *side, const char *name, const char *type, const char *element, const char *path,
                  apr_pool_t *pool)
{
    mc_config *config;
    const char *text = apr_psprintf(pool, "<mapcache><cache name=\"%s\" type=\"%s\"><%s>%s</%s></cache></mapcache>",
                                    mc_xml_escape(name, pool), type, element, mc_xml_escape(path, pool), element);
    MC_TRY(mc_config_load_text(&config, name, text, mc_diagnostics_create(pool), pool));
    side->config = config;
    side->cache = APR_ARRAY_IDX(config->caches, 0, mc_cache *);
    side->file = true;
    return MC_OK;
}

/* A cache of that file. */
static mc_error *
open_target_file(mc_copy_side *side, const char *name, apr_pool_t *pool)
{
    const struct file_kind *kind = kind_of_file(name);
    if (strncmp(name, "s3://", 5) == 0 && kind != NULL && strcmp(kind->type, "pmtiles") == 0) {
        MC_TRY(mc_copy_open_store(side, name, pool));
        return make_target_cache(side, name, kind->type, kind->element, side->archive, pool);
    }
    if (strstr(name, "://") != NULL)
        return mc_error_create(pool, MC_ERR_CONFIG,
                               "%s can be read, not written; what is written is s3://BUCKET/KEY.pmtiles", name);
    if (kind == NULL || strchr(name, '{') != NULL)
        return mc_error_create(pool, MC_ERR_CONFIG,
                               "\"%s\" is no tileset and no cache; the name of a file of tiles ends with .mbtiles, "
                               ".pmtiles, .gpkg, .sqlite3, .sqlite or .db, and has no {",
                               name);
    return make_target_cache(side, name, kind->type, kind->element, absolute_file(name, pool), pool);
}

mc_error *
mc_copy_find_target(mc_copy_side *side, const char *name, const mc_config *config, apr_pool_t *pool)
{
    MC_TRY(find_in_config(side, name, config, pool));
    if (side->cache != NULL || side->tilesets->nelts > 0)
        return MC_OK;
    return names_file(name) ? open_target_file(side, name, pool) : lacks_name(name, config, pool);
}
