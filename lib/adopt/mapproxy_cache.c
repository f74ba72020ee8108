/* Caches of MapProxy: their stores, their source, their format, and the tileset that has their tiles. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "adopt/mapproxy.h"
#include "text/text.h"

double
mc_mapproxy_seconds(mc_mapproxy *proxy, mc_branch *span)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = { { "weeks", 604800 }, { "days", 86400 }, { "hours", 3600 }, { "minutes", 60 }, { "seconds", 1 } };
    double sum = 0, number;
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        const char *text = mc_branch_text(span, units[i].unit, NULL);
        if (text != NULL && mc_parse_double(&number, text) && number >= 0)
            sum += number * units[i].seconds;
    }
    (void)proxy;
    return fmin(sum, 1e9);
}

/* The format that a cache names: a media type, a part of one, or a name of globals.image.formats. */
static const char *
named_format(mc_branch *cache)
{
    const char *said = mc_branch_text(cache, "image.format", mc_branch_text(cache, "format", NULL));
    return said != NULL ? said : mc_branch_text(cache, "request_format", "image/png");
}

static const char *
media_type(mc_mapproxy *proxy, mc_branch *cache)
{
    const char *said = named_format(cache);
    mc_branch *named = mc_branch_get(mc_branch_find(proxy->root, "globals.image.formats"), said);
    said = mc_branch_text(named, "format", said);
    return strchr(said, '/') != NULL ? said : apr_pstrcat(proxy->pool, "image/", said, NULL);
}

/* The options of a format: what the cache says itself, else globals.image.formats, else what is for all. */
static const char *
image_option(mc_mapproxy *proxy, mc_branch *cache, const char *key, const char *otherwise)
{
    mc_branch *formats = mc_branch_find(proxy->root, "globals.image.formats");
    const char *own = mc_branch_text(mc_branch_get(cache, "image"), key, NULL);
    return own != NULL ? own : mc_branch_text(mc_branch_get(formats, named_format(cache)), key, otherwise);
}

static const char *
write_format(mc_mapproxy *proxy, mc_branch *cache, const char *type)
{
    double number;
    bool paletted = mc_branch_is_true(proxy->root, "globals.image.paletted", true);
    const char *colors = image_option(proxy, cache, "colors", paletted ? "256" : "0");
    const char *quality = image_option(proxy, cache, "encoding_options.jpeg_quality",
                                       mc_branch_text(proxy->root, "globals.image.jpeg_quality", "90"));
    bool jpeg = strcmp(type, "image/jpeg") == 0, mixed = strcmp(type, "image/mixed") == 0;
    int palette = mc_parse_double(&number, colors) && number >= 2 && number <= 256 ? (int)number : 0;
    int amount = mc_parse_double(&number, quality) && number >= 1 && number <= 100 ? (int)number : 90;
    const char *key = apr_psprintf(proxy->pool, "%s %d %d", type, palette, amount);
    const char *known = apr_hash_get(proxy->formats, key, APR_HASH_KEY_STRING);
    if (known != NULL)
        return known;
    const char *png = "PNG", *name = NULL;
    if (!jpeg && palette > 0) {
        name = png = mc_draft_name(proxy->adopt, MC_DRAFT_FORMATS, "mapproxy-png");
        mc_draft_put(proxy->adopt, MC_DRAFT_FORMATS,
                     "  <format name=\"%s\" type=\"PNG\"><colors>%d</colors></format>\n", png, palette);
    }
    const char *photo = NULL;
    if (jpeg || mixed) {
        name = photo = mc_draft_name(proxy->adopt, MC_DRAFT_FORMATS, "mapproxy-jpeg");
        mc_draft_put(proxy->adopt, MC_DRAFT_FORMATS,
                     "  <format name=\"%s\" type=\"JPEG\"><quality>%d</quality></format>\n", photo, amount);
    }
    if (mixed) {
        name = mc_draft_name(proxy->adopt, MC_DRAFT_FORMATS, "mapproxy-mixed");
        mc_draft_put(proxy->adopt, MC_DRAFT_FORMATS,
                     "  <format name=\"%s\" type=\"MIXED\"><transparent>%s</transparent><opaque>%s</opaque></format>\n",
                     name, png, photo);
    }
    name = name == NULL ? "PNG" : name;
    apr_hash_set(proxy->formats, key, APR_HASH_KEY_STRING, name);
    return name;
}

/* The grids of a cache; GLOBAL_WEBMERCATOR where it says none. */
static const apr_array_header_t *
find_grids(mc_mapproxy *proxy, mc_branch *cache)
{
    apr_array_header_t *grids = apr_array_make(proxy->pool, 2, sizeof(const mc_mapproxy_grid *));
    mc_branch *names = mc_branch_get(cache, "grids");
    if (mc_branch_count(names) == 0) {
        const mc_mapproxy_grid *grid = mc_mapproxy_find_grid(proxy, "GLOBAL_WEBMERCATOR", cache);
        APR_ARRAY_PUSH(grids, const mc_mapproxy_grid *) = grid;
        return grids;
    }
    for (int i = 0; i < mc_branch_count(names); i++) {
        const mc_branch *name = mc_branch_item(names, i);
        const mc_mapproxy_grid *grid = name->text == NULL ? NULL : mc_mapproxy_find_grid(proxy, name->text, name);
        bool there = false;
        for (int at = 0; at < grids->nelts; at++)
            there = there || APR_ARRAY_IDX(grids, at, const mc_mapproxy_grid *) == grid;
        if (grid != NULL && !there)
            APR_ARRAY_PUSH(grids, const mc_mapproxy_grid *) = grid;
    }
    return grids;
}

/* A store for each grid; of several, one that has them all. */
static void
write_stores(bool *only_read, mc_mapproxy *proxy, mc_mapproxy_cache *cache, const char *extension)
{
    const char *names = "";
    mc_adopt *adopt = proxy->adopt;
    *only_read = false;
    if (mc_branch_is_true(cache->branch, "disable_storage", false)) {
        mc_branch_pass(mc_branch_get(cache->branch, "cache"));
        cache->store = mc_draft_no_cache(adopt);
        return;
    }
    for (int i = 0; i < cache->grids->nelts; i++) {
        bool one;
        const mc_mapproxy_grid *grid = APR_ARRAY_IDX(cache->grids, i, const mc_mapproxy_grid *);
        cache->store =
            mc_mapproxy_store(&one, proxy, cache->branch, cache->own, grid, extension, cache->grids->nelts == 1);
        *only_read = *only_read || one;
        names = apr_pstrcat(proxy->pool, names, "    <cache grids=\"", mc_xml_escape(grid->name, proxy->pool), "\">",
                            mc_xml_escape(cache->store, proxy->pool), "</cache>\n", NULL);
    }
    if (cache->grids->nelts > 1) {
        cache->store = mc_draft_name(adopt, MC_DRAFT_CACHES, cache->own);
        mc_draft_put(adopt, MC_DRAFT_CACHES, "  <cache name=\"%s\" type=\"composite\">\n%s  </cache>\n",
                     mc_xml_escape(cache->store, proxy->pool), names);
        adopt->counts.caches++;
    }
}

/* A source that draws from the tileset of another cache. */
static const char *
write_cache_source(mc_mapproxy *proxy, mc_mapproxy_cache *other)
{
    const char *key = apr_pstrcat(proxy->pool, "cache\n", other->own, NULL);
    const char *name = apr_hash_get(proxy->sources, key, APR_HASH_KEY_STRING);
    if (name != NULL)
        return name;
    name = mc_draft_name(proxy->adopt, MC_DRAFT_SOURCES, other->own);
    apr_hash_set(proxy->sources, key, APR_HASH_KEY_STRING, name);
    mc_draft_put(proxy->adopt, MC_DRAFT_SOURCES,
                 "  <source name=\"%s\" type=\"tileset\"><tileset>%s</tileset></source>\n",
                 mc_xml_escape(name, proxy->pool),
                 mc_xml_escape(mc_mapproxy_tileset(proxy, other, other->own, NULL, NULL), proxy->pool));
    proxy->adopt->counts.sources++;
    return name;
}

static const char *
find_cache_source(mc_mapproxy *proxy, mc_mapproxy_cache *cache, const char *type)
{
    mc_branch *sources = mc_branch_get(cache->branch, "sources");
    const mc_branch *first = mc_branch_item(sources, 0);
    if (sources != NULL && sources->kind == MC_BRANCH_MAP) {
        mc_branch_pass(sources);
        mc_draft_note_at(proxy->adopt, sources,
                         "the bands of cache %s are not put together here: stored tiles are served, others are not "
                         "drawn. A source of "
                         "type gdal has <bands>",
                         cache->own);
        return NULL;
    }
    if (mc_branch_count(sources) == 0)
        return NULL;
    mc_branch_pass(sources);
    if (first->text != NULL && mc_branch_get(mc_branch_get(proxy->root, "caches"), first->text) != NULL &&
        mc_branch_get(mc_branch_get(proxy->root, "sources"), first->text) == NULL && mc_branch_count(sources) == 1) {
        mc_mapproxy_cache *other = mc_mapproxy_find_cache(proxy, first->text, first);
        return other == NULL ? NULL : write_cache_source(proxy, other);
    }
    const char *asked = strcmp(type, "image/mixed") == 0 ? "image/png" : type;
    return mc_mapproxy_find_source(proxy, sources, mc_branch_text(cache->branch, "request_format", asked),
                                   APR_ARRAY_IDX(cache->grids, 0, const mc_mapproxy_grid *));
}

static void
read_cache(mc_mapproxy *proxy, mc_mapproxy_cache *cache)
{
    static const char *const tuning[] = { "concurrent_tile_creators",
                                          "bulk_meta_tiles",
                                          "minimize_meta_requests",
                                          "link_single_color_images",
                                          "name",
                                          "request_format" };
    bool only_read;
    for (size_t i = 0; i < sizeof(tuning) / sizeof(*tuning); i++)
        mc_branch_pass(mc_branch_get(cache->branch, tuning[i]));
    cache->grids = find_grids(proxy, cache->branch);
    if (cache->grids->nelts == 0) {
        cache->broken = true;
        mc_draft_note_at(proxy->adopt, cache->branch, "cache %s is not taken over: none of its grids is; give it one",
                         cache->own);
        mc_branch_pass(cache->branch);
        return;
    }
    const char *type = media_type(proxy, cache->branch);
    if (strcmp(type, "image/jpg") == 0)
        type = "image/jpeg";
    const char *ending = strchr(type, '/') + 1; /* as MapProxy ends its files: image/jpeg; mode=... is jpeg */
    ending = apr_pstrmemdup(proxy->pool, ending, strcspn(ending, "; "));
    cache->format = write_format(proxy, cache->branch, type);
    cache->source = find_cache_source(proxy, cache, type);
    write_stores(&only_read, proxy, cache, strchr(ending, '/') != NULL || *ending == '\0' ? "png" : ending);
    if (only_read)
        cache->source = NULL;
}

mc_mapproxy_cache *
mc_mapproxy_find_cache(mc_mapproxy *proxy, const char *name, const mc_branch *at)
{
    mc_mapproxy_cache *cache = apr_hash_get(proxy->caches, name, APR_HASH_KEY_STRING);
    mc_branch *branch = mc_branch_get(mc_branch_get(proxy->root, "caches"), name);
    if (branch == NULL)
        return NULL;
    if (cache == NULL) {
        cache = apr_pcalloc(proxy->pool, sizeof(*cache));
        cache->branch = branch;
        cache->own = name;
        apr_hash_set(proxy->caches, name, APR_HASH_KEY_STRING, cache);
        cache->open = true;
        read_cache(proxy, cache);
        cache->open = false;
    } else if (cache->open) {
        mc_draft_note_at(proxy->adopt, at, "cache %s draws from itself, which is left out: name another source", name);
        return NULL;
    }
    return cache->broken ? NULL : cache;
}

static void
put_grids(mc_mapproxy *proxy, mc_mapproxy_cache *cache)
{
    double level;
    const char *direct = mc_branch_text(cache->branch, "use_direct_from_level", NULL);
    for (int i = 0; i < cache->grids->nelts; i++) {
        const mc_mapproxy_grid *grid = APR_ARRAY_IDX(cache->grids, i, const mc_mapproxy_grid *);
        const char *limit = "";
        if (direct != NULL && cache->source != NULL && mc_parse_double(&level, direct) && level >= 1 &&
            level < grid->levels)
            limit = apr_psprintf(proxy->pool, " max-cached-zoom=\"%d\" out-of-zoom-strategy=\"proxy\"", (int)level - 1);
        mc_draft_put(proxy->adopt, MC_DRAFT_TILESETS, "    <grid%s>%s</grid>\n", limit,
                     mc_xml_escape(grid->name, proxy->pool));
    }
}

static void
put_metatile(mc_mapproxy *proxy, mc_mapproxy_cache *cache)
{
    double size[2] = { 4, 4 }, margin = 80, number;
    mc_branch *said = mc_branch_get(cache->branch, "meta_size"),
              *all = mc_branch_find(proxy->root, "globals.cache.meta_size");
    if (mc_branch_numbers(size, 2, said != NULL ? said : all) != 2 ||
        !(size[0] >= 1 && size[1] >= 1 && size[0] <= 64 && size[1] <= 64))
        size[0] = size[1] = 4;
    if (mc_parse_double(&number, mc_mapproxy_setting(proxy, cache->branch, "meta_buffer", "80")) && number >= 0 &&
        number <= 4096)
        margin = number;
    mc_draft_put(proxy->adopt, MC_DRAFT_TILESETS, "    <metatile>%d %d</metatile>\n    <metabuffer>%d</metabuffer>\n",
                 (int)size[0], (int)size[1], (int)margin);
}

static void
put_expiry(mc_mapproxy *proxy, mc_mapproxy_cache *cache)
{
    double hours;
    mc_branch *before = mc_branch_get(cache->branch, "refresh_before");
    double seconds = mc_mapproxy_seconds(proxy, before);
    if (mc_parse_double(&hours, mc_branch_text(proxy->root, "globals.tiles.expires_hours", "72")) && hours >= 0 &&
        hours <= 1e5)
        mc_draft_put(proxy->adopt, MC_DRAFT_TILESETS, "    <expires>%d</expires>\n", (int)(hours * 3600));
    if (seconds > 0)
        mc_draft_put(proxy->adopt, MC_DRAFT_TILESETS, "    <auto_expire>%d</auto_expire>\n", (int)seconds);
}

const char *
mc_mapproxy_tileset(mc_mapproxy *proxy, mc_mapproxy_cache *cache, const char *name, const char *title, mc_branch *about)
{
    mc_adopt *adopt = proxy->adopt;
    if (cache->tileset != NULL)
        return cache->tileset;
    cache->tileset = mc_draft_name(adopt, MC_DRAFT_TILESETS, name);
    mc_draft_put(adopt, MC_DRAFT_TILESETS, "  <tileset name=\"%s\">\n    <metadata>\n",
                 mc_xml_escape(cache->tileset, adopt->pool));
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "      ", "title", title == NULL ? cache->tileset : title);
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "      ", "abstract", mc_branch_text(about, "abstract", NULL));
    mc_draft_put(adopt, MC_DRAFT_TILESETS, "    </metadata>\n");
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "    ", "source", cache->source);
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "    ", "cache", cache->store);
    put_grids(proxy, cache);
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "    ", "format", cache->format);
    put_metatile(proxy, cache);
    put_expiry(proxy, cache);
    mc_draft_put(adopt, MC_DRAFT_TILESETS, "  </tileset>\n");
    adopt->counts.tilesets++;
    mc_draft_layer(adopt, cache->tileset, name, NULL);
    return cache->tileset;
}
