/* Sources of MapProxy: WMS, tiles, map files of MapServer. Those that no source here can stand for are noted. */
#include <apr_strings.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "adopt/mapproxy.h"
#include "text/text.h"

/* A source while it is written. */
typedef struct mapproxy_source {
    mc_mapproxy *proxy;
    mc_adopt *adopt;
    mc_branch *branch;
    const char *own, *name;
    const char *layers; /* in place of those that the source says; or NULL */
    const char *format;
    const mc_mapproxy_grid *grid;
} mapproxy_source;

static void
put_source(mapproxy_source *source, const char *indent, const char *name, const char *text)
{
    mc_draft_element(source->adopt, MC_DRAFT_SOURCES, indent, name, text);
}

static void
begin_source(mapproxy_source *source, const char *type)
{
    source->name = mc_draft_name(source->adopt, MC_DRAFT_SOURCES, source->own);
    mc_draft_put(source->adopt, MC_DRAFT_SOURCES, "  <source name=\"%s\" type=\"%s\">\n",
                 mc_xml_escape(source->name, source->adopt->pool), type);
    source->adopt->counts.sources++;
}

/* A name that an element may have; parameters and headers are elements. */
static bool
is_element_name(const char *name)
{
    if (!isalpha((unsigned char)*name) && *name != '_')
        return false;
    for (; *name != '\0'; name++)
        if (!isalnum((unsigned char)*name) && strchr("_-.", *name) == NULL)
            return false;
    return true;
}

/* An address without user and password, which then are told apart. */
static const char *
split_credentials(const char **user, const char **password, const char *address, apr_pool_t *pool)
{
    *user = *password = NULL;
    const char *host = strstr(address, "://");
    if (host == NULL)
        return address;
    host += 3;
    size_t size = strcspn(host, "/?#");
    const char *at = host + size;
    while (at > host && *at != '@')
        at--;
    if (at == host)
        return address;
    const char *colon = memchr(host, ':', (size_t)(at - host));
    const char *end = colon == NULL ? at : colon;
    *user = mc_url_decode(host, (size_t)(end - host), false, pool);
    *password = colon == NULL ? "" : mc_url_decode(colon + 1, (size_t)(at - colon - 1), false, pool);
    return apr_pstrcat(pool, apr_pstrmemdup(pool, address, (size_t)(host - address)), at + 1, NULL);
}

static void
put_headers(mapproxy_source *source, mc_branch *headers)
{
    if (headers == NULL || headers->kind != MC_BRANCH_MAP || headers->children == NULL)
        return;
    mc_draft_put(source->adopt, MC_DRAFT_SOURCES, "      <headers>\n");
    for (mc_branch *header = headers->children; header != NULL; header = header->next) {
        if (!is_element_name(header->key) || header->text == NULL)
            continue;
        header->taken = true;
        put_source(source, "        ", header->key, header->text);
    }
    mc_draft_put(source->adopt, MC_DRAFT_SOURCES, "      </headers>\n");
}

static void
put_http(mapproxy_source *source, const char *address)
{
    const char *user, *password;
    double seconds;
    mc_branch *http = mc_branch_get(source->branch, "http"), *all = mc_branch_find(source->proxy->root, "globals.http");
    address = split_credentials(&user, &password, address, source->adopt->pool);
    mc_draft_put(source->adopt, MC_DRAFT_SOURCES, "    <http>\n");
    put_source(source, "      ", "url", address);
    const char *timeout = mc_branch_text(http, "client_timeout", mc_branch_text(all, "client_timeout", "60"));
    if (mc_parse_double(&seconds, timeout) && seconds >= 1 && seconds <= 86400)
        mc_draft_put(source->adopt, MC_DRAFT_SOURCES, "      <timeout>%d</timeout>\n", (int)seconds);
    put_headers(source, mc_branch_get(http, "headers") != NULL ? mc_branch_get(http, "headers")
                                                               : mc_branch_get(all, "headers"));
    if (user != NULL) {
        mc_draft_put(source->adopt, MC_DRAFT_SOURCES,
                     "      <auth scheme=\"basic\"><user>%s</user><pass>%s</pass></auth>\n",
                     mc_xml_escape(user, source->adopt->pool), mc_xml_escape(password, source->adopt->pool));
    }
    mc_draft_put(source->adopt, MC_DRAFT_SOURCES, "    </http>\n");
    mc_branch_pass(mc_branch_get(http, "hide_error_details"));
    mc_branch_pass(mc_branch_get(http, "method"));
}

/* What a WMS is asked for besides layers. */
static void
put_parameters(mapproxy_source *source, mc_branch *req)
{
    const char *version = mc_branch_text(source->branch, "wms_opts.version", NULL);
    for (mc_branch *one = req->children; one != NULL; one = one->next) {
        const char *key = one->key;
        if (strcasecmp(key, "url") == 0 || strcasecmp(key, "layers") == 0 || strcasecmp(key, "map") == 0)
            continue;
        one->taken = is_element_name(key);
        if (!one->taken)
            continue;
        char *name = apr_pstrdup(source->adopt->pool, key);
        for (char *c = name; *c != '\0'; c++)
            *c = (char)toupper((unsigned char)*c);
        put_source(source, "        ", name, mc_branch_join(one, ",", source->adopt->pool));
    }
    put_source(source, "        ", "VERSION", version);
}

/* Whether a list of CRSs has that of the grid; 900913 is 3857. */
static bool
lists_srs(mc_branch *list, const char *srs)
{
    bool found = list == NULL;
    for (mc_branch *item = mc_branch_item(list, 0); item != NULL; item = item->next) {
        item->taken = true;
        found = found || item->text == NULL || strcasecmp(item->text, srs) == 0;
    }
    return found;
}

static void
put_feature_info(mapproxy_source *source, const char *layers)
{
    const char *types = mc_branch_text(source->branch, "wms_opts.featureinfo_format", NULL);
    if (!mc_branch_is_true(source->branch, "wms_opts.featureinfo", false))
        return;
    mc_draft_put(source->adopt, MC_DRAFT_SOURCES, "    <getfeatureinfo>\n");
    put_source(source, "      ", "info_formats", types == NULL ? "text/plain, text/html" : types);
    mc_draft_put(source->adopt, MC_DRAFT_SOURCES,
                 "      <params><QUERY_LAYERS>%s</QUERY_LAYERS></params>\n    </getfeatureinfo>\n",
                 mc_xml_escape(layers, source->adopt->pool));
}

static bool
write_wms_source(mapproxy_source *source)
{
    mc_branch *req = mc_branch_get(source->branch, "req"), *srs = mc_branch_get(source->branch, "supported_srs");
    const char *url = mc_branch_text(req, "url", NULL);
    const char *layers = mc_branch_join(mc_branch_get(req, "layers"), ",", source->adopt->pool);
    if (source->layers != NULL)
        layers = source->layers;
    if (url == NULL || !mc_branch_is_true(source->branch, "wms_opts.map", true)) {
        mc_draft_note_at(source->adopt, source->branch, "source %s is not taken over: %s", source->own,
                         url == NULL ? "it has no req.url" : "it draws no maps (wms_opts.map: false)");
        return false;
    }
    if (!lists_srs(srs, source->grid->srs))
        mc_draft_note_at(
            source->adopt, srs,
            "source %s is asked in %s, which supported_srs does not name: where the WMS does not have it, give "
            "the tileset a grid in one of its CRSs, and another tileset of type tileset that draws from it",
            source->own, source->grid->srs);
    const char *format = mc_branch_text(source->branch, "image.format", NULL);
    mc_branch_pass(mc_branch_get(source->branch, "supported_formats"));
    begin_source(source, "wms");
    mc_draft_put(source->adopt, MC_DRAFT_SOURCES, "    <getmap>\n      <params>\n");
    put_source(source, "        ", "FORMAT",
               format == NULL                ? source->format
               : strchr(format, '/') == NULL ? apr_pstrcat(source->adopt->pool, "image/", format, NULL)
                                             : format);
    put_source(source, "        ", "LAYERS", layers);
    put_parameters(source, req);
    mc_draft_put(source->adopt, MC_DRAFT_SOURCES, "      </params>\n    </getmap>\n");
    put_feature_info(source, layers);
    put_http(source, url);
    mc_draft_put(source->adopt, MC_DRAFT_SOURCES, "  </source>\n");
    return true;
}

/* The address of tiles, as {z}, {x}, {y} have it; NULL: it has parts that nothing stands for. */
static const char *
translate_address(mapproxy_source *source, const char *url, bool north_west)
{
    static const struct {
        const char *there, *north, *south;
    } words[] = { { "%(z)s", "{z}", "{z}" },
                  { "%(x)s", "{x}", "{x}" },
                  { "%(y)s", "{y}", "{-y}" },
                  { "%(tms_path)s", "{z}/{x}/{y}", "{z}/{x}/{-y}" },
                  { "%(quadkey)s", "{q}", NULL } };
    const char *text = url;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        const char *here = north_west ? words[i].north : words[i].south;
        if (here != NULL)
            text = mc_replace_all(text, words[i].there, here, source->adopt->pool);
    }
    text = mc_replace_all(text, "%(format)s", strcmp(source->format, "image/jpeg") == 0 ? "jpeg" : "png",
                          source->adopt->pool);
    return strstr(text, "%(") == NULL ? text : NULL;
}

static bool
write_tile_source(mapproxy_source *source)
{
    const char *url = mc_branch_text(source->branch, "url", NULL);
    const mc_branch *named = mc_branch_get(source->branch, "grid");
    const mc_mapproxy_grid *grid = mc_mapproxy_find_grid(
        source->proxy, named == NULL || named->text == NULL ? "GLOBAL_MERCATOR" : named->text, source->branch);
    if (url == NULL || grid == NULL)
        return false;
    const char *address = translate_address(source, url, grid->north_west);
    if (address == NULL) {
        mc_draft_note_at(
            source->adopt, mc_branch_get(source->branch, "url"),
            "source %s is not taken over: its url has a part that is neither z, x, y, tms_path nor quadkey (of nw "
            "grids); write the address with these, or a source of type wms",
            source->own);
        return false;
    }
    begin_source(source, "xyz");
    put_http(source, address);
    if (grid != source->grid)
        put_source(source, "    ", "grid", grid->name);
    mc_branch_pass(mc_branch_get(source->branch, "transparent"));
    mc_branch_pass(mc_branch_get(source->branch, "request_format"));
    mc_draft_put(source->adopt, MC_DRAFT_SOURCES, "  </source>\n");
    return true;
}

static bool
write_mapfile_source(mapproxy_source *source)
{
    mc_branch *req = mc_branch_get(source->branch, "req");
    const char *map = mc_branch_text(req, "map", NULL);
    const char *layers = mc_branch_join(mc_branch_get(req, "layers"), ",", source->adopt->pool);
    const char *path = map == NULL ? "" : mc_draft_path(source->proxy->folder, map, source->adopt->pool);
    if (access(path, R_OK) != 0) {
        mc_draft_note_at(source->adopt, source->branch, "source %s is not taken over: %s", source->own,
                         map == NULL ? "it has no req.map"
                                     : apr_psprintf(source->adopt->pool, "the map file %s cannot be read", path));
        mc_branch_pass(source->branch);
        return false;
    }
    begin_source(source, "mapserver");
    put_source(source, "    ", "mapfile", path);
    put_source(source, "    ", "layers", source->layers != NULL ? source->layers : layers);
    if (mc_branch_is_true(req, "transparent", false))
        put_source(source, "    ", "background", "transparent");
    mc_branch_pass(mc_branch_get(source->branch, "mapserver"));
    mc_draft_put(source->adopt, MC_DRAFT_SOURCES, "  </source>\n");
    return true;
}

static bool
write_debug_source(mapproxy_source *source)
{
    begin_source(source, "dummy");
    mc_draft_put(source->adopt, MC_DRAFT_SOURCES, "  </source>\n");
    return true;
}

static bool
write_source_by_type(mapproxy_source *source)
{
    static const struct {
        const char *type;
        bool (*write)(mapproxy_source *source);
        const char *instead;
    } types[] = {
        { "wms", write_wms_source, NULL },
        { "tile", write_tile_source, NULL },
        { "mapserver", write_mapfile_source, NULL },
        { "debug", write_debug_source, NULL },
        { "mapnik", NULL,
          "Mapnik is not asked. Stored tiles are served; draw new ones from the data by an SLD file, or leave MapProxy "
          "as a source of type wms" },
        { "arcgis", NULL, "write a source of type wms with the address .../MapServer/WMSServer" },
    };
    const char *type = mc_branch_text(source->branch, "type", "");
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (strcmp(types[i].type, type) == 0 && types[i].write != NULL)
            return types[i].write(source);
        else if (strcmp(types[i].type, type) == 0) {
            mc_draft_note_at(source->adopt, source->branch, "source %s of type %s is not taken over: %s", source->own,
                             type, types[i].instead);
            mc_branch_pass(source->branch);
            return false;
        }
    mc_draft_note_at(source->adopt, source->branch, "source %s is not taken over: no source of type %s is known",
                     source->own, mc_message_text(type, 60, source->adopt->pool));
    mc_branch_pass(source->branch);
    return false;
}

/* Values that only say how fast MapProxy asks. */
static void
pass_tuning(mc_branch *branch)
{
    static const char *const keys[] = { "concurrent_requests" };
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        mc_branch_pass(mc_branch_get(branch, keys[i]));
}

/* The LAYERS of several WMS sources that are one but for these; NULL: they are not. The first is at the bottom, in
 * both.
 */
static const char *
join_layers(mc_mapproxy *proxy, const mc_branch *names, const char **first)
{
    const char *layers = "", *url = NULL;
    mc_branch *sources = mc_branch_get(proxy->root, "sources");
    for (const mc_branch *name = names->children; name != NULL; name = name->next) {
        mc_branch *source = name->text == NULL ? NULL : mc_branch_get(sources, name->text);
        mc_branch *req = mc_branch_get(source, "req");
        const char *address = mc_branch_text(req, "url", NULL);
        if (strcmp(mc_branch_text(source, "type", ""), "wms") != 0 || address == NULL ||
            (url != NULL && strcmp(url, address) != 0) || mc_branch_get(source, "coverage") != NULL)
            return NULL;
        if (url == NULL)
            *first = name->text;
        url = address;
        layers = apr_pstrcat(proxy->pool, layers, *layers == '\0' ? "" : ",",
                             mc_branch_join(mc_branch_get(req, "layers"), ",", proxy->pool), NULL);
    }
    return layers;
}

/* NAME, NAME:LAYERS, or a list of several. NULL after a note. */
static mc_branch *
resolve_source(mapproxy_source *source, const mc_branch *names)
{
    mc_mapproxy *proxy = source->proxy;
    mc_branch *sources = mc_branch_get(proxy->root, "sources");
    const mc_branch *name = names->kind == MC_BRANCH_LIST ? names->children : names;
    if (name == NULL || name->text == NULL)
        return NULL;
    source->own = name->text;
    if (names->kind == MC_BRANCH_LIST && name->next != NULL) {
        source->layers = join_layers(proxy, names, &source->own);
        for (const mc_branch *one = names->children; one != NULL && source->layers == NULL; one = one->next)
            mc_branch_pass(one->text == NULL ? NULL : mc_branch_get(sources, one->text));
        if (source->layers == NULL) {
            mc_draft_note_at(proxy->adopt, names,
                             "several sources are drawn over each other, which no source here does: stored tiles are "
                             "served, others are not drawn. Let one WMS draw them all (LAYERS=a,b)");
            return NULL;
        }
    }
    mc_branch *found = mc_branch_get(sources, source->own);
    const char *colon = strchr(source->own, ':');
    if (found == NULL && colon != NULL) {
        source->layers = colon + 1;
        source->own = apr_pstrmemdup(proxy->pool, source->own, (size_t)(colon - source->own));
        found = mc_branch_get(sources, source->own);
    }
    if (found == NULL)
        mc_draft_note_at(proxy->adopt, name, "source %s is not taken over: it is not configured; add it to `sources`",
                         mc_message_text(source->own, 100, proxy->pool));
    return found;
}

const char *
mc_mapproxy_find_source(mc_mapproxy *proxy, const mc_branch *names, const char *format, const mc_mapproxy_grid *grid)
{
    mapproxy_source source = { .proxy = proxy, .adopt = proxy->adopt, .format = format, .grid = grid };
    source.branch = resolve_source(&source, names);
    if (source.branch == NULL)
        return NULL;
    const char *key =
        apr_pstrcat(proxy->pool, source.own, "\n", source.layers == NULL ? "" : source.layers, "\n", format, "\n",
                    strcmp(mc_branch_text(source.branch, "type", ""), "tile") == 0 ? grid->own : "", NULL);
    const char *known = apr_hash_get(proxy->sources, key, APR_HASH_KEY_STRING);
    if (known == NULL) {
        bool only_stored = mc_branch_is_true(source.branch, "seed_only", false);
        pass_tuning(source.branch);
        known = !only_stored && write_source_by_type(&source) ? source.name : "";
        if (only_stored) {
            mc_branch_pass(source.branch);
            mc_draft_note_at(
                proxy->adopt, source.branch,
                "source %s is asked by the seeder only (seed_only), which is not told apart here: its tilesets are "
                "read-only; give them a <source> while they are filled",
                source.own);
        }
        apr_hash_set(proxy->sources, key, APR_HASH_KEY_STRING, known);
    }
    return *known == '\0' ? NULL : known;
}
