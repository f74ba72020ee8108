/* <tileset> from the configuration (docs/reference/configuration.md 6). */
#include <apr_file_io.h>
#include <apr_strings.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/seldom.h"
#include "changes/watch.h"
#include "config/config_files.h"
#include "mapcache/tileset.h"
#include "telemetry/answers.h"
#include "text/expiry.h"
#include "tileset/tileset_private.h"
#include "tileset/variant.h"

enum { DENSITY_MAX = 3 };

typedef struct tileset_config {
    const char *name;
    const mc_node *metadata;
    const char *cache;
    const char *source;
    const char *data, *style,
        *style_name; /* of a short form, which is replaced before it is read (lib/data/expand.h) */
    apr_array_header_t *grids;
    const char *format;
    const mc_node *formats;
    mc_number_list metatile;
    int metabuffer;
    int expires;
    const char *auto_expire;
    double failure_expires, stale_if_error;
    const char *cache_control;
    bool read_only;
    const char *watermark;
    const mc_node *dimensions;
    double deadline;
    mc_number_list density;
    apr_array_header_t *palettes;
    mc_watch_config watch;
} tileset_config;

typedef struct dimensions_config {
    apr_array_header_t *dimensions;
    int assembly;
    bool store_assemblies;
    bool subdimensions_read_only;
    const mc_node *threaded;
} dimensions_config;

typedef struct threads_config {
    int threads;
    int maxzoom;
} threads_config;

static const mc_key threads_keys[] = {
    MC_KEY_INT("@maxzoom", offsetof(threads_config, maxzoom),
               "Last level at which several threads fetch the parts; by default all levels."),
    MC_KEY_CHOICE(
        "", offsetof(threads_config, threads), "false|true",
        "true: all workers; false: one thread; without the element the server decides by the work and by who is idle."),
    MC_KEY_END,
};

#define FIELD(member) offsetof(dimensions_config, member)

static const mc_key dimensions_keys[] = {
    MC_KEY_TREE("dimension", FIELD(dimensions), NULL,
                "A dimension; their order is that of keys, paths and RESTful WMTS URLs.",
                .flags = MC_KEY_REQUIRED | MC_KEY_REPEATABLE),
    MC_KEY_CHOICE(
        "assembly_type", FIELD(assembly), "none|stack|animate",
        "What becomes of several values: none refuses them, "
        "stack draws them over each other, the last one on top; animate shows one after the other (animated PNG).",
        .fallback = "none"),
    MC_KEY_BOOL_CS("store_assemblies", FIELD(store_assemblies), "Keep assembled tiles in the cache.",
                   .fallback = "true"),
    MC_KEY_BOOL_CS("subdimensions_read_only", FIELD(subdimensions_read_only), "Never render what an assembly lacks.",
                   .fallback = "false"),
    MC_KEY_TREE("assembly_threaded_fetching", FIELD(threaded), threads_keys,
                "Whether the parts of an assembly are fetched by several threads, up to the level in maxzoom."),
    MC_KEY_END,
};

#undef FIELD
#define FIELD(member) offsetof(tileset_config, member)

const mc_key mc_tileset_keys[] = {
    MC_KEY_TEXT("@name", FIELD(name), "Unique name: the layer that clients ask for, and part of every cache key.",
                .flags = MC_KEY_REQUIRED),
    MC_KEY_TREE("metadata", FIELD(metadata), NULL,
                "title, abstract, keywords (with keyword children), wgs84boundingbox (minx miny maxx maxy in degrees), "
                "metadataurl (an address, or url, type iso or fgdc, and format)."),
    MC_KEY_TEXT("cache", FIELD(cache), "Name of the cache that stores the tiles.", .flags = MC_KEY_REQUIRED),
    MC_KEY_TEXT("source", FIELD(source),
                "Name of the source that renders missing tiles. Without one the tileset is read-only."),
    MC_KEY_TEXT(
        "data", FIELD(data),
        "Instead of a source: a raster, a shapefile, a GeoPackage, a file of tiles, a folder of these, an address "
        "or a database (docs/data.md). All other elements, and the name, are then by the data.",
        .flags = MC_KEY_OURS),
    MC_KEY_TEXT("style", FIELD(style), "With <data>: the SLD or SE file that draws its vectors.", .flags = MC_KEY_OURS),
    MC_KEY_TEXT("style_name", FIELD(style_name), "With <style>: the user style in that file.", .flags = MC_KEY_OURS),
    MC_KEY_TREE("grid", FIELD(grids), mc_grid_link_keys,
                "Name of a grid in which the tiles are cut; the first one is the default.",
                .flags = MC_KEY_REQUIRED | MC_KEY_REPEATABLE),
    MC_KEY_TEXT("format", FIELD(format),
                "Name of the format of stored tiles. Without one they are stored as the source sends them."),
    MC_KEY_TREE("formats", FIELD(formats), mc_variants_keys,
                "Further formats in which clients may have the tiles, by extension, FORMAT or Accept "
                "(docs/formats.md).",
                .flags = MC_KEY_OURS),
    MC_KEY_NUMBERS("metatile", FIELD(metatile), "Columns and rows of tiles that are rendered as one image.", .min = 2,
                   .max = 2, .fallback = "1 1"),
    MC_KEY_INT("metabuffer", FIELD(metabuffer),
               "Pixels of margin that are asked of the source around a metatile and cut off.", .max = 4096,
               .fallback = "0"),
    MC_KEY_INT("expires", FIELD(expires), "Seconds that clients may keep a tile (Expires, Cache-Control: max-age).",
               .fallback = "300"),
    MC_KEY_TEXT("auto_expire", FIELD(auto_expire),
                "When a stored tile is rendered again: after seconds (`3600`; 0 is never) or a duration (`PT6H`), "
                "which clients are told what is left of; at a date (`2027-01-01T06:00Z`), or at moments of a cron "
                "expression in UTC (`cron: 15 */6 * * *`), beyond which no client keeps a tile.",
                .fallback = "0"),
    MC_KEY_NUMBER(
        "failure_expires", FIELD(failure_expires),
        "Seconds for which a metatile that could not be rendered is answered with the same error, or with its "
        "expired tiles, without asking the source again. At most 1024 such failures are remembered, in the "
        "memory of a process; nothing of them is stored.",
        .flags = MC_KEY_OURS, .min = 1, .max = 3600, .fallback = "1"),
    MC_KEY_NUMBER("stale_if_error", FIELD(stale_if_error),
                  "Seconds after the end of <auto_expire>, or after a change was seen, for which an old tile is served "
                  "while rendering it again fails; caches in front are told (RFC 5861), and later clients wait for the "
                  "new tile or get the error. 0: clients get the error. -1: for ever.",
                  .flags = MC_KEY_OURS, .min = -1, .max = 2147483647, .fallback = "-1"),
    MC_KEY_LINE("cache-control", FIELD(cache_control),
                "Text that follows max-age in the Cache-Control header of tiles."),
    MC_KEY_TRUE_ONLY("read-only", FIELD(read_only), "Never render, only serve what is stored.", .fallback = "false"),
    MC_KEY_TEXT("watermark", FIELD(watermark),
                "PNG or JPEG file, drawn in the middle of each tile before it is stored.", .flags = MC_KEY_WORKDIR),
    MC_KEY_TREE("dimensions", FIELD(dimensions), dimensions_keys, "What clients may ask for besides the place."),
    MC_KEY_NUMBER("deadline", FIELD(deadline),
                  "Seconds that one render may take; the default is that of the whole configuration.",
                  .flags = MC_KEY_OURS, .min = 0.01, .max = 86400),
    MC_KEY_NUMBERS("density", FIELD(density),
                   "What is offered for fine screens: how many times as many pixels a side tiles may have (@2x, @3x); "
                   "1 for none. By default 2 where the source draws and the cache tells grids apart.",
                   .flags = MC_KEY_OURS, .min = 1, .max = 3),
    MC_KEY_TREE("palette", FIELD(palettes), mc_palette_keys,
                "A style of stored palette PNGs: other colours for the same tiles, which are stored once.",
                .flags = MC_KEY_OURS | MC_KEY_REPEATABLE),
    MC_WATCH_KEYS(tileset_config),
    MC_KEY_END,
};

/* Looks up what a tileset refers to. NULL with tileset->not_built set when it is declared but of a type that this build
 * does not have. */
static void *
find_tileset_reference(apr_hash_t *things, const char *noun, const char *name, mc_tileset *tileset, const mc_node *node,
                       mc_build *build)
{
    void *thing = apr_hash_get(things, name, APR_HASH_KEY_STRING);
    if (thing != NULL)
        return thing;
    const char *key = apr_pstrcat(build->pool, noun, " ", name, NULL);
    const char *reason = build->missing == NULL ? NULL : apr_hash_get(build->missing, key, APR_HASH_KEY_STRING);
    if (reason != NULL) {
        tileset->not_built = apr_psprintf(build->pool, "%s \"%s\" %s", noun, name, reason);
        if (reason != build->waiting)
            mc_complain(build->diagnostics, MC_NOT_BUILT, node, "tileset \"%s\" answers 503: its %s \"%s\" %s",
                        tileset->name, noun, name, reason);
        return NULL;
    }
    mc_complain(build->diagnostics, MC_REFUSED, node,
                "tileset \"%s\" refers to %s \"%s\", which is not declared above it%s", tileset->name, noun, name,
                mc_config_keys_hint(name, things, build->pool));
    return NULL;
}

static void
add_grids(mc_tileset *tileset, const apr_array_header_t *nodes, mc_build *build)
{
    tileset->links = apr_pcalloc(build->pool, sizeof(mc_grid_link *) * (size_t)nodes->nelts);
    for (int i = 0; i < nodes->nelts; i++) {
        mc_grid_link *link = mc_grid_link_from_config(APR_ARRAY_IDX(nodes, i, const mc_node *), build);
        if (link != NULL)
            tileset->links[tileset->link_count++] = link;
    }
}

static void
read_assembly(mc_tileset *tileset, const dimensions_config *config, const mc_node *node, mc_build *build)
{
    threads_config threads = { -1, INT_MAX };
    if (config->subdimensions_read_only && config->assembly == 0)
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "<subdimensions_read_only> needs an <assembly_type> of stack or animate");
    if (config->threaded != NULL)
        (void)mc_config_read(&threads, config->threaded, threads_keys, build->diagnostics);
    tileset->assembly = (mc_assembly_type)config->assembly;
    tileset->store_assemblies = config->store_assemblies;
    tileset->subdimensions_read_only = config->subdimensions_read_only;
    tileset->assembly_threads = threads.threads;
    tileset->assembly_maxzoom = threads.maxzoom;
}

static void
add_tileset_dimensions(mc_tileset *tileset, const mc_node *node, mc_build *build)
{
    dimensions_config config = { 0 };
    if (!mc_config_read(&config, node, dimensions_keys, build->diagnostics))
        return;
    read_assembly(tileset, &config, node, build);
    int count = config.dimensions->nelts;
    tileset->dimensions = apr_pcalloc(build->pool, sizeof(mc_dimension *) * (size_t)count);
    for (int i = 0; i < count; i++) {
        const mc_node *child = APR_ARRAY_IDX(config.dimensions, i, const mc_node *);
        mc_dimension *dimension = mc_dimension_from_config(child, build);
        if (dimension != NULL)
            tileset->dimensions[tileset->dimension_count++] = dimension;
        else if (tileset->not_built == NULL)
            tileset->not_built = "one of its dimensions is of a type that is not part of this build";
    }
}

/* Stored tiles of one tileset name and grid name are told apart by nothing else: a second dimension of the same name
 * cannot be. Tiles that are stored are served whatever the source refuses. */
static void
check_tileset_dimensions(const mc_tileset *tileset, const mc_node *node, mc_build *build)
{
    for (int i = 0; i < tileset->dimension_count; i++)
        for (int j = 0; j < i; j++)
            if (strcasecmp(tileset->dimensions[i]->name, tileset->dimensions[j]->name) == 0)
                mc_complain(build->diagnostics, MC_WARNING, node,
                            "dimension \"%s\" is declared twice; clients reach the first",
                            tileset->dimensions[i]->name);
    if (tileset->dimension_count > 0 && tileset->source != NULL && tileset->source->no_dimensions != NULL)
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "tileset \"%s\" has dimensions, which its source \"%s\" refuses: %s", tileset->name,
                    tileset->source->name, tileset->source->no_dimensions);
}

static void
load_watermark(mc_tileset *tileset, const char *file, const mc_node *node, mc_build *build)
{
    apr_file_t *handle;
    apr_finfo_t info;
    mc_config_files_note(build->diagnostics->read, file);
    if (*file == '\0' || apr_file_open(&handle, file, APR_READ | APR_BINARY, 0, build->pool) != APR_SUCCESS) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "<watermark>: cannot read \"%s\"; a PNG or JPEG file is needed", file);
        return;
    }
    apr_size_t size = 0;
    char *bytes = NULL;
    bool read = apr_file_info_get(&info, APR_FINFO_SIZE, handle) == APR_SUCCESS && info.size <= 64 * 1024 * 1024;
    if (read) {
        size = (apr_size_t)info.size;
        bytes = apr_palloc(build->pool, size + 1);
        read = apr_file_read_full(handle, bytes, size, &size) == APR_SUCCESS;
    }
    apr_file_close(handle);
    mc_process process = { 0 };
    mc_ctx ctx = { .pool = build->pool, .process = &process };
    mc_error *error = read ? mc_image_decode(&tileset->watermark, bytes, size, &ctx, build->pool) : MC_OK;
    if (!read || error != MC_OK)
        mc_complain(build->diagnostics, MC_REFUSED, node, "<watermark>: \"%s\" is no image that can be read%s%s", file,
                    error == MC_OK ? "" : ": ", error == MC_OK ? "" : error->message);
    else
        mc_pixels_attach(tileset->watermark, build->pool);
}

static mc_extent
end_at_poles(const mc_extent *degrees)
{
    return (mc_extent){ degrees->minx, fmax(degrees->miny, -90), degrees->maxx, fmin(degrees->maxy, 90) };
}

/* wgs84boundingbox, or else the extent of the first EPSG:4326 grid (docs/reference/configuration.md 6). */
static void
find_wgs84_box(mc_tileset *tileset, const mc_node *node, mc_build *build)
{
    const char *text = mc_metadata_get(tileset->metadata, "wgs84boundingbox");
    if (text != NULL) {
        double box[4];
        int found;
        if (!mc_parse_doubles(box, 4, &found, text, " ,\t\r\n") || found != 4)
            mc_complain(build->diagnostics, MC_REFUSED, node,
                        "<wgs84boundingbox>: \"%s\" should be four numbers: minx miny maxx maxy in degrees", text);
        tileset->wgs84_box = (mc_extent){ box[0], box[1], box[2], box[3] };
        tileset->has_wgs84_box = tileset->box_configured = found == 4;
        return;
    }
    for (int i = 0; i < tileset->link_count && !tileset->has_wgs84_box; i++)
        if (mc_grid_has_srs(tileset->links[i]->grid, "EPSG:4326")) {
            tileset->wgs84_box = end_at_poles(&tileset->links[i]->extent);
            tileset->has_wgs84_box = true;
        }
}

static void
set_metatile(mc_tileset *tileset, const mc_number_list *metatile, const mc_node *node, mc_build *build)
{
    double columns = metatile->values[0], rows = metatile->values[1];
    if (!(columns >= 1 && columns <= 256 && rows >= 1 && rows <= 256) || columns != (int)columns || rows != (int)rows)
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "<metatile>: two whole numbers from 1 to 256 are needed: columns rows");
    else {
        tileset->metatile_columns = (int)columns;
        tileset->metatile_rows = (int)rows;
    }
}

static void
add_density(mc_tileset *tileset, int density, const mc_node *node, mc_build *build)
{
    for (int i = 0; i < tileset->link_count; i++) {
        mc_grid_link *dense = mc_grid_link_dense(tileset->links[i], density, build);
        if (dense != NULL)
            tileset->dense_links[tileset->dense_link_count++] = dense;
        else
            mc_complain(build->diagnostics, MC_WARNING, node,
                        "tileset \"%s\" offers no @%dx on grid \"%s\": there is a grid of that name", tileset->name,
                        density, tileset->links[i]->grid->name);
    }
}

/* The variants for fine screens: each on a grid of its own, so that they are never taken for other tiles. */
static void
add_densities(mc_tileset *tileset, const mc_number_list *list, const mc_node *node, mc_build *build)
{
    static const double usual[] = { 2 };
    const mc_number_list fallback = { .values = (double *)(uintptr_t)usual, .count = 1 };
    bool images = mc_format_is_image(tileset->format);
    bool apart = tileset->cache != NULL && mc_cache_tells_grids(tileset->cache);
    bool draws = tileset->source != NULL && tileset->source->any_srs;
    if (list->count == 0 && (!draws || !images || !apart))
        return;
    const mc_number_list *wanted = list->count == 0 ? &fallback : list;
    tileset->dense_links =
        apr_pcalloc(build->pool, sizeof(mc_grid_link *) * (size_t)(tileset->link_count * wanted->count));
    for (int i = 0; i < wanted->count; i++) {
        int density = (int)wanted->values[i];
        const char *why = wanted->values[i] != density || density < 1 || density > DENSITY_MAX
                              ? "its factors are 1, 2 and 3"
                          : density > 1 && !images ? "only images have densities"
                          : density > 1 && !apart  ? "its cache does not tell grids apart: put {grid} into the template"
                                                   : NULL;
        for (int j = 0; j < i && why == NULL; j++)
            why = wanted->values[j] == wanted->values[i] ? "it names a factor twice" : NULL;
        if (why != NULL) {
            mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "density"),
                        "tileset \"%s\" cannot have this <density>: %s", tileset->name, why);
            return;
        }
        if (density > 1)
            add_density(tileset, density, node, build);
    }
}

static void
tell_cache(const mc_tileset *tileset, const mc_node *node, mc_build *build)
{
    for (int i = 0; i < tileset->link_count && tileset->cache != NULL; i++) {
        const mc_cache_use use = { .tileset = tileset->name,
                                   .grid = tileset->links[i]->grid,
                                   .dimensions = tileset->dimension_count > 0,
                                   .extension = mc_tileset_extension(tileset) };
        mc_cache_used_by(tileset->cache, &use, node, build);
    }
}

static void
read_auto_expire(mc_tileset *tileset, const char *text, const mc_node *node, mc_build *build)
{
    const char *wrong = mc_expiry_parse(&tileset->auto_expire, text, build->pool);
    if (wrong != NULL)
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "auto_expire"), "<auto_expire> %s is wrong: %s",
                    mc_config_quote(text, build->pool), wrong);
}

mc_tileset *
mc_tileset_from_config(const mc_node *node, mc_build *build)
{
    tileset_config config = { 0 };
    if (!mc_config_read(&config, node, mc_tileset_keys, build->diagnostics))
        return NULL;
    mc_tileset *tileset = apr_pcalloc(build->pool, sizeof(*tileset));
    tileset->stale_told = apr_pcalloc(build->pool, sizeof(*tileset->stale_told));
    tileset->name = build->mirror ? "mirror" : config.name;
    tileset->position = mc_node_position(node);
    tileset->label = apr_pcalloc(build->pool, sizeof(*tileset->label));
    tileset->label->name = tileset->name;
    tileset->metadata = mc_metadata_create(build->pool);
    if (config.metadata != NULL)
        mc_metadata_add(tileset->metadata, config.metadata);
    tileset->cache = find_tileset_reference(build->caches, "cache", config.cache, tileset, node, build);
    if (tileset->cache != NULL)
        tileset->cache->used = true;
    if (config.source != NULL)
        tileset->source = find_tileset_reference(build->sources, "source", config.source, tileset, node, build);
    if (config.format != NULL)
        tileset->format = find_tileset_reference(build->formats, "format", config.format, tileset, node, build);
    tileset->synthetic_format = apr_hash_get(build->formats, "mixed", APR_HASH_KEY_STRING);
    tileset->metatile_columns = tileset->metatile_rows = 1;
    set_metatile(tileset, &config.metatile, node, build);
    tileset->metabuffer = config.metabuffer;
    tileset->expires = config.expires;
    read_auto_expire(tileset, config.auto_expire, node, build);
    tileset->failure_expires = config.failure_expires;
    tileset->stale_if_error = config.stale_if_error;
    tileset->cache_control = config.cache_control;
    tileset->read_only = config.read_only;
    tileset->deadline = config.deadline;
    add_grids(tileset, config.grids, build);
    if (config.dimensions != NULL)
        add_tileset_dimensions(tileset, config.dimensions, build);
    tell_cache(tileset, node, build);
    check_tileset_dimensions(tileset, node, build);
    if (config.watermark != NULL)
        load_watermark(tileset, config.watermark, node, build);
    find_wgs84_box(tileset, node, build);
    mc_tileset_place_init(tileset, build->pool);
    mc_tileset_check_format(tileset, node, build);
    if (tileset->source != NULL && tileset->source->any_srs)
        tileset->metabuffer = 0; /* what it draws needs none, and labels in a buffer would be cut with it */
    add_densities(tileset, &config.density, node, build);
    mc_tileset_read_palettes(tileset, config.palettes, node, build);
    if (config.formats != NULL)
        mc_variants_from_config(tileset, config.formats, build);
    tileset->shown = mc_watch_from_config(&config.watch, tileset->name, node, build);
    if (strchr(tileset->name, ',') != NULL)
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "the comma in the name \"%s\" cannot be told from a list of layers in WMS", tileset->name);
    return tileset;
}
