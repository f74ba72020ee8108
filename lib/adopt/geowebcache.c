/*
 * geowebcache.xml of GeoWebCache, and the folder gwc of GeoServer (their documentation, "Configuration"): layers of
 * WMS, grid sets, and tiles in folders. A folder of GeoServer names no WMS: its tiles are served, others are not drawn.
 */
#include <apr_file_info.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "adopt/geowebcache.h"
#include "mapcache/config.h"
#include "text/text.h"

enum { GWC_LAYERS_MAX = 10000 };

static const mc_draft_advice geowebcache_advice[] = {
    { "parameterFilters", "tiles of other values of a parameter lie in folders of their own, and are not served; a "
                          "<dimension> hands a value on" },
    { "formatModifiers", "the tileset's <format> is what the source is asked for, too" },
    { "requestFilters", "the tileset's <grid> bounds its area and levels" },
    { "expireCacheList", "<auto_expire> is one for all levels" },
    { "expireClientsList", "<expires> is one for all levels" },
    { "lockProvider", "<locker> says how processes agree" },
    { "arcgisLayer", "a cache of type bundle reads bundles of version 2" },
    { "mbtilesLayer", "`mapcache serve FILE.mbtiles --save mapcache.xml` writes what serves an MBTiles file" },
    { "securityEnabled", "the web server says who may see which address" },
    { NULL, NULL },
};

/* A tree of XML as branches; prefixes of names are left out. */
static mc_branch *
branch_of_xml(const mc_node *node, const char *file, int *room, apr_pool_t *pool)
{
    const char *colon = strchr(node->name, ':');
    if (--*room < 0)
        return NULL;
    mc_branch *branch =
        mc_branch_create(node->children == NULL ? MC_BRANCH_TEXT : MC_BRANCH_MAP, file, node->line, pool);
    branch->key = colon == NULL ? node->name : colon + 1;
    if (node->children == NULL)
        branch->text = mc_unwrap_text(node->text == NULL ? "" : node->text, pool);
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        mc_branch *made = branch_of_xml(child, file, room, pool);
        if (made == NULL)
            return NULL;
        mc_branch_add(branch, made);
    }
    return branch;
}

static mc_error *
parse_gwc_file(mc_branch **root, const char *file, mc_adopt *adopt)
{
    mc_node *node;
    char *bytes;
    size_t size;
    apr_pool_t *pool = adopt->pool;
    int room = MC_BRANCHES_MAX;
    MC_TRY(mc_draft_read_file(&bytes, &size, file, adopt));
    MC_TRY(mc_xml_parse_text(&node, file, bytes, size, pool));
    *root = branch_of_xml(node, file, &room, pool);
    return *root != NULL ? MC_OK : mc_error_create(pool, MC_ERR_CONFIG, "%s:1: there are too many elements", file);
}

/* ---- stores */

/* The store of that id, or the default one; NULL: none is configured. */
static mc_branch *
find_blob_store(mc_gwc_reader *gwc, const char *id)
{
    mc_branch *stores = mc_branch_get(gwc->root, "blobStores"), *first = NULL;
    for (mc_branch *store = stores == NULL ? NULL : stores->children; store != NULL; store = store->next) {
        const char *own = mc_branch_text(store, "id", "");
        if (id != NULL && strcmp(own, id) == 0)
            return store;
        first = first == NULL ? store : first;
    }
    return id == NULL ? first : NULL;
}

/* A <cache> of one layer and grid; NULL after a note. */
static const char *
write_gwc_store(mc_gwc_reader *gwc, mc_branch *layer, const char *layer_name, const char *set, const char *extension)
{
    mc_adopt *adopt = gwc->adopt;
    mc_branch *store = find_blob_store(gwc, mc_branch_text(layer, "blobStoreId", NULL));
    const char *folder = gwc->folder, *kind = "DEFAULT", *wanted = apr_pstrcat(gwc->pool, layer_name, "_", set, NULL);
    if (store != NULL) {
        store->taken = true;
        mc_branch_pass(mc_branch_get(store, "enabled"));
        mc_branch_pass(mc_branch_get(store, "fileSystemBlockSize"));
        folder = mc_branch_text(store, "baseDirectory", NULL);
        kind = mc_branch_text(store, "pathGeneratorType", mc_branch_text(store, "fileSystemLayout", "DEFAULT"));
        if (strcmp(store->key, "FileBlobStore") != 0 || folder == NULL) {
            mc_draft_note_at(adopt, store,
                             "the tiles of layer %s are not taken over: stores of type %s are not read; copy the tiles "
                             "into a FileBlobStore",
                             layer_name, store->key);
            mc_branch_pass(store);
            return NULL;
        }
        folder = mc_draft_path(gwc->folder, folder, gwc->pool);
    }
    mc_draft_note_folder(adopt, store != NULL ? store : layer, folder);
    const char *name = mc_draft_name(adopt, MC_DRAFT_CACHES, wanted);
    const char *place = mc_replace_all(mc_replace_all(layer_name, ":", "_", gwc->pool), " ", "_", gwc->pool);
    const char *base = apr_pstrcat(gwc->pool, folder, "/", place, "/", mc_replace_all(set, ":", "_", gwc->pool), NULL);
    bool tms = strcasecmp(kind, "TMS") == 0, slippy = strcasecmp(kind, "SLIPPY") == 0 || strcasecmp(kind, "XYZ") == 0;
    mc_draft_put(adopt, MC_DRAFT_CACHES, "  <cache name=\"%s\" type=\"disk\" layout=\"%s\">\n",
                 mc_xml_escape(name, gwc->pool), tms || slippy ? "template" : "geowebcache");
    if (tms || slippy) {
        mc_draft_element(adopt, MC_DRAFT_CACHES, "    ", "template",
                         apr_pstrcat(gwc->pool, base, tms ? "/{z}/{x}/{y}." : "/{z}/{x}/{inv_y}.", extension, NULL));
    } else {
        mc_draft_element(adopt, MC_DRAFT_CACHES, "    ", "base", base);
        mc_draft_element(adopt, MC_DRAFT_CACHES, "    ", "extension", extension);
    }
    mc_draft_put(adopt, MC_DRAFT_CACHES, "  </cache>\n");
    adopt->counts.caches++;
    return name;
}

/* ---- layers */

static const char *
write_gwc_source(mc_gwc_reader *gwc, mc_branch *layer, const char *name, const char *type)
{
    mc_adopt *adopt = gwc->adopt;
    mc_branch *urls = mc_branch_get(layer, "wmsUrl");
    mc_branch *first = urls == NULL ? NULL : urls->children;
    const char *user = mc_branch_text(layer, "httpUsername", NULL),
               *password = mc_branch_text(layer, "httpPassword", "");
    if (first == NULL || first->text == NULL)
        return NULL;
    mc_branch_pass(urls);
    if (first->next != NULL)
        mc_draft_note_at(
            adopt, first->next,
            "layer %s: only the first wmsUrl is asked; a <source type=\"fallback\"> asks others where it fails", name);
    const char *source = mc_draft_name(adopt, MC_DRAFT_SOURCES, name);
    mc_draft_put(adopt, MC_DRAFT_SOURCES, "  <source name=\"%s\" type=\"wms\">\n    <getmap>\n      <params>\n",
                 mc_xml_escape(source, gwc->pool));
    mc_draft_element(adopt, MC_DRAFT_SOURCES, "        ", "FORMAT", type);
    mc_draft_element(adopt, MC_DRAFT_SOURCES, "        ", "LAYERS", mc_branch_text(layer, "wmsLayers", name));
    mc_draft_element(adopt, MC_DRAFT_SOURCES, "        ", "STYLES", mc_branch_text(layer, "wmsStyles", NULL));
    mc_draft_element(adopt, MC_DRAFT_SOURCES, "        ", "TRANSPARENT", mc_branch_text(layer, "transparent", NULL));
    mc_draft_element(adopt, MC_DRAFT_SOURCES, "        ", "BGCOLOR", mc_branch_text(layer, "bgColor", NULL));
    mc_draft_put(adopt, MC_DRAFT_SOURCES, "      </params>\n    </getmap>\n    <http>\n");
    mc_draft_element(adopt, MC_DRAFT_SOURCES, "      ", "url", first->text);
    if (user != NULL && *user != '\0')
        mc_draft_put(adopt, MC_DRAFT_SOURCES, "      <auth scheme=\"basic\"><user>%s</user><pass>%s</pass></auth>\n",
                     mc_xml_escape(user, gwc->pool), mc_xml_escape(password, gwc->pool));
    mc_draft_put(adopt, MC_DRAFT_SOURCES, "    </http>\n  </source>\n");
    adopt->counts.sources++;
    return source;
}

/* The first format whose tiles are served: media type, and the ending of its files. */
static const char *
choose_gwc_format(mc_gwc_reader *gwc, mc_branch *layer, const char *name, const char **extension, const char **format)
{
    mc_branch *formats = mc_branch_get(layer, "mimeFormats");
    const char *chosen = formats == NULL || formats->children == NULL ? "image/png" : NULL;
    for (mc_branch *one = formats == NULL ? NULL : formats->children; one != NULL; one = one->next) {
        bool known =
            one->text != NULL && (strcmp(one->text, "image/png") == 0 || strcmp(one->text, "image/jpeg") == 0 ||
                                  strcmp(one->text, "image/png8") == 0);
        one->taken = true;
        if (chosen == NULL && known)
            chosen = one->text;
        else
            mc_draft_note_at(
                gwc->adopt, one,
                "format %s of layer %s is not taken over: a tileset has one format; write a second tileset for another",
                one->text == NULL ? "" : mc_message_text(one->text, 60, gwc->pool), name);
    }
    if (chosen == NULL)
        return NULL;
    *extension = chosen + 6;
    *format = strcmp(chosen, "image/jpeg") == 0 ? "JPEG" : strcmp(chosen, "image/png8") == 0 ? "PNG8" : "PNG";
    return chosen;
}

/* <grid> elements and stores of all subsets; the name of the store, or NULL. */
static const char *
write_gwc_subsets(mc_gwc_reader *gwc, mc_branch *layer, const char *name, const char *extension, const char **grids)
{
    const char *children = "", *store = NULL, *names[2] = { "EPSG:4326", "EPSG:900913" };
    int count = 0, least, most;
    double box[4];
    mc_branch *subsets = mc_branch_get(layer, "gridSubsets"), *subset = subsets == NULL ? NULL : subsets->children;
    for (int i = 0; subsets == NULL ? i < 2 : subset != NULL; i++) {
        const char *set = subsets == NULL ? names[i] : mc_branch_text(subset, "gridSetName", "");
        const char *grid = mc_gwc_find_grid(gwc, set, subset == NULL ? layer : subset);
        const char *one = grid == NULL ? NULL : write_gwc_store(gwc, layer, name, set, extension), *limits = "";
        if (subset != NULL && mc_parse_int(&least, mc_branch_text(subset, "zoomStart", ""), 0, MC_GWC_LEVELS - 1))
            limits = apr_psprintf(gwc->pool, " minzoom=\"%d\"", least);
        if (subset != NULL && mc_parse_int(&most, mc_branch_text(subset, "zoomStop", ""), 0, MC_GWC_LEVELS - 1))
            limits = apr_psprintf(gwc->pool, "%s maxzoom=\"%d\"", limits, most);
        if (subset != NULL && mc_gwc_numbers(box, 4, mc_branch_find(subset, "extent.coords")) == 4)
            limits =
                apr_psprintf(gwc->pool, "%s restricted_extent=\"%s %s %s %s\"", limits,
                             mc_double_text('g', 17, box[0], gwc->pool), mc_double_text('g', 17, box[1], gwc->pool),
                             mc_double_text('g', 17, box[2], gwc->pool), mc_double_text('g', 17, box[3], gwc->pool));
        if (subset != NULL)
            subset->taken = true, subset = subset->next;
        if (one == NULL)
            continue;
        *grids = apr_psprintf(gwc->pool, "%s    <grid%s>%s</grid>\n", *grids, limits, mc_xml_escape(grid, gwc->pool));
        children = apr_psprintf(gwc->pool, "%s    <cache grids=\"%s\">%s</cache>\n", children,
                                mc_xml_escape(grid, gwc->pool), mc_xml_escape(one, gwc->pool));
        store = one;
        count++;
    }
    if (count > 1) {
        store = mc_draft_name(gwc->adopt, MC_DRAFT_CACHES, name);
        mc_draft_put(gwc->adopt, MC_DRAFT_CACHES, "  <cache name=\"%s\" type=\"composite\">\n%s  </cache>\n",
                     mc_xml_escape(store, gwc->pool), children);
        gwc->adopt->counts.caches++;
    }
    return store;
}

static void
put_gwc_tileset(mc_gwc_reader *gwc, mc_branch *layer, const char *name, const char *source, const char *store,
                const char *grids, const char *format)
{
    mc_adopt *adopt = gwc->adopt;
    int seconds, gutter;
    double meta[2];
    const char *title = mc_branch_text(layer, "metaInformation.title", name),
               *tileset = mc_draft_name(adopt, MC_DRAFT_TILESETS, name);
    mc_draft_put(adopt, MC_DRAFT_TILESETS, "  <tileset name=\"%s\">\n    <metadata>\n",
                 mc_xml_escape(tileset, gwc->pool));
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "      ", "title", title);
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "      ", "abstract",
                     mc_branch_text(layer, "metaInformation.description", NULL));
    mc_draft_put(adopt, MC_DRAFT_TILESETS, "    </metadata>\n");
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "    ", "source", source);
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "    ", "cache", store);
    mc_draft_put(adopt, MC_DRAFT_TILESETS, "%s    <format>%s</format>\n", grids, format);
    if (mc_gwc_numbers(meta, 2, mc_branch_get(layer, "metaWidthHeight")) == 2 && meta[0] >= 1 && meta[1] >= 1 &&
        meta[0] <= 64 && meta[1] <= 64)
        mc_draft_put(adopt, MC_DRAFT_TILESETS, "    <metatile>%d %d</metatile>\n", (int)meta[0], (int)meta[1]);
    if (mc_parse_int(&gutter, mc_branch_text(layer, "gutter", ""), 1, 4096))
        mc_draft_put(adopt, MC_DRAFT_TILESETS, "    <metabuffer>%d</metabuffer>\n", gutter);
    if (mc_parse_int(&seconds, mc_branch_text(layer, "expireClients", ""), 1, 1000000000))
        mc_draft_put(adopt, MC_DRAFT_TILESETS, "    <expires>%d</expires>\n", seconds);
    if (mc_parse_int(&seconds, mc_branch_text(layer, "expireCache", ""), 1, 1000000000))
        mc_draft_put(adopt, MC_DRAFT_TILESETS, "    <auto_expire>%d</auto_expire>\n", seconds);
    mc_draft_put(adopt, MC_DRAFT_TILESETS, "%s  </tileset>\n",
                 source == NULL ? "    <read-only>true</read-only>\n" : "");
    adopt->counts.tilesets++;
    mc_draft_layer(adopt, tileset, name, NULL);
}

static void
take_gwc_layer(mc_gwc_reader *gwc, mc_branch *layer)
{
    static const char *const tuning[] = {
        "id",        "enabled",    "inMemoryCached", "concurrency",     "backendTimeout", "cacheBypassAllowed",
        "queryable", "wmsVersion", "errorMime",      "metaInformation", "autoCacheStyles"
    };
    const char *name = mc_branch_text(layer, "name", ""), *extension, *format, *grids = "";
    layer->taken = true;
    for (size_t i = 0; i < sizeof(tuning) / sizeof(*tuning); i++)
        mc_branch_pass(mc_branch_get(layer, tuning[i]));
    const char *type = *name == '\0' ? NULL : choose_gwc_format(gwc, layer, name, &extension, &format);
    const char *store = type == NULL ? NULL : write_gwc_subsets(gwc, layer, name, extension, &grids);
    if (store == NULL) {
        mc_draft_note_at(gwc->adopt, layer, "layer %s is not taken over: %s", name,
                         *name == '\0'  ? "it has no name"
                         : type == NULL ? "its tiles are neither PNG nor JPEG"
                                        : "none of its grid sets is");
        mc_branch_pass(layer);
        return;
    }
    const char *source = write_gwc_source(gwc, layer, name, type);
    if (source == NULL)
        mc_draft_note_at(gwc->adopt, layer,
                         "layer %s: no WMS is named that draws it: stored tiles are served, others are not drawn; add "
                         "a <source type=\"wms\"> with the address of %s",
                         name, gwc->geoserver ? "GeoServer's WMS" : "a WMS");
    put_gwc_tileset(gwc, layer, name, source, store, grids, format);
}

static void
take_gwc_layers(mc_gwc_reader *gwc)
{
    mc_branch *layers = mc_branch_get(gwc->root, "layers");
    for (mc_branch *layer = layers == NULL ? NULL : layers->children; layer != NULL; layer = layer->next)
        if (strcmp(layer->key, "wmsLayer") == 0)
            take_gwc_layer(gwc, layer);
}

static void
put_gwc_service(mc_adopt *adopt, mc_branch *service)
{
    static const struct {
        const char *there, *here;
    } words[] = { { "title", "title" },
                  { "description", "abstract" },
                  { "fees", "fees" },
                  { "accessConstraints", "accessconstraints" },
                  { "serviceProvider.providerName", "providername" },
                  { "serviceProvider.providerSite", "providerurl" },
                  { "serviceProvider.serviceContact.individualName", "contactname" },
                  { "serviceProvider.serviceContact.addressEmail", "contactelectronicmailaddress" } };
    if (service == NULL || mc_draft_has(adopt, MC_DRAFT_HEAD, "metadata"))
        return;
    (void)mc_draft_name(adopt, MC_DRAFT_HEAD, "metadata");
    mc_draft_put(adopt, MC_DRAFT_HEAD, "  <metadata>\n");
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        mc_draft_element(adopt, MC_DRAFT_HEAD, "    ", words[i].here, mc_branch_text(service, words[i].there, NULL));
    mc_draft_put(adopt, MC_DRAFT_HEAD, "  </metadata>\n");
}

static int
compare_layer_files(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* GeoServer has a file for each layer in gwc-layers. */
static void
take_geoserver_layers(mc_gwc_reader *gwc, const char *folder)
{
    apr_dir_t *dir;
    apr_finfo_t entry;
    apr_array_header_t *files = apr_array_make(gwc->pool, 16, sizeof(const char *));
    if (apr_dir_open(&dir, folder, gwc->pool) != APR_SUCCESS)
        return;
    while (files->nelts < GWC_LAYERS_MAX && apr_dir_read(&entry, APR_FINFO_NAME, dir) == APR_SUCCESS) {
        size_t size = strlen(entry.name);
        if (size > 4 && strcasecmp(entry.name + size - 4, ".xml") == 0)
            APR_ARRAY_PUSH(files, const char *) = apr_pstrcat(gwc->pool, folder, "/", entry.name, NULL);
    }
    apr_dir_close(dir);
    qsort(files->elts, (size_t)files->nelts, sizeof(const char *), compare_layer_files);
    for (int i = 0; i < files->nelts; i++) {
        mc_branch *layer;
        const char *file = APR_ARRAY_IDX(files, i, const char *);
        mc_error *error = parse_gwc_file(&layer, file, gwc->adopt);
        if (error != MC_OK)
            mc_draft_note(gwc->adopt, file, 1, "the file is left out: %s", mc_error_chain(error, gwc->pool));
        else {
            take_gwc_layer(gwc, layer);
            mc_draft_note_untaken(gwc->adopt, layer, geowebcache_advice);
        }
    }
}

mc_error *
mc_adopt_geowebcache(mc_adopt *adopt, const char *file)
{
    struct stat about;
    mc_gwc_reader gwc = { .adopt = adopt, .pool = adopt->pool, .grids = apr_hash_make(adopt->pool) };
    int before = adopt->counts.tilesets;
    const char *path = mc_draft_path(".", file, adopt->pool), *config = path;
    gwc.geoserver = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    if (gwc.geoserver && stat(apr_pstrcat(adopt->pool, path, "/gwc", NULL), &about) == 0 && S_ISDIR(about.st_mode))
        path = apr_pstrcat(adopt->pool, path, "/gwc", NULL); /* the data directory is named */
    if (gwc.geoserver)
        config = apr_pstrcat(adopt->pool, path, "/geowebcache.xml", NULL);
    gwc.folder = mc_draft_folder(config, adopt->pool);
    mc_error *error = parse_gwc_file(&gwc.root, gwc.geoserver ? config : file, adopt);
    if (error != MC_OK && !gwc.geoserver)
        return error;
    if (error != MC_OK) {
        mc_draft_note(adopt, config, 1, "the file is left out, and with it grid sets and stores: %s",
                      mc_error_chain(error, adopt->pool));
        gwc.root = mc_branch_create(MC_BRANCH_MAP, config, 1, adopt->pool);
        gwc.root->key = "gwcConfiguration";
    }
    if (strcmp(gwc.root->key, "gwcConfiguration") != 0)
        return mc_error_create(adopt->pool, MC_ERR_CONFIG,
                               "%s:%d: the root is <%s>, and no <gwcConfiguration> of GeoWebCache", file,
                               gwc.root->line, gwc.root->key);
    static const char *const settings[] = {
        "version",    "backendTimeout", "cacheBypassAllowed", "runtimeStats", "serviceInformation", "gridSets",
        "blobStores", "fullWMS"
    };
    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
        mc_branch_pass(mc_branch_get(gwc.root, settings[i]));
    put_gwc_service(adopt, mc_branch_get(gwc.root, "serviceInformation"));
    take_gwc_layers(&gwc);
    if (gwc.geoserver)
        take_geoserver_layers(&gwc, apr_pstrcat(adopt->pool, path, "-layers", NULL));
    mc_draft_note_untaken(adopt, gwc.root, geowebcache_advice);
    return adopt->counts.tilesets > before
               ? MC_OK
               : mc_error_create(adopt->pool, MC_ERR_CONFIG, "%s:1: no layer of it can be served", file);
}
