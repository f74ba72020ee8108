/* Layers of MapProxy become tilesets; its services, and what they say of themselves. */
#include <apr_strings.h>
#include <string.h>

#include "adopt/mapproxy.h"
#include "text/text.h"

/* A WMS layer without a cache: drawn for each request, in the web's grid. */
static bool
write_direct_layer(mc_mapproxy *proxy, const char *name, const char *title, mc_branch *sources, mc_branch *about)
{
    const mc_mapproxy_grid *grid = mc_mapproxy_find_grid(proxy, "GLOBAL_WEBMERCATOR", sources);
    const char *source = grid == NULL ? NULL : mc_mapproxy_find_source(proxy, sources, "image/png", grid);
    apr_array_header_t *grids = apr_array_make(proxy->pool, 1, sizeof(const mc_mapproxy_grid *));
    if (source == NULL)
        return false;
    APR_ARRAY_PUSH(grids, const mc_mapproxy_grid *) = grid;
    mc_mapproxy_cache direct = {
        .own = name, .store = mc_draft_no_cache(proxy->adopt), .source = source, .format = "PNG", .grids = grids
    };
    mc_mapproxy_tileset(proxy, &direct, name, title, about);
    return true;
}

/* A second layer of a cache: another tileset that draws from the first one's tiles. */
static void
write_second_layer(mc_mapproxy *proxy, const mc_mapproxy_cache *cache, const char *name, const char *title,
                   mc_branch *about)
{
    mc_mapproxy_cache second = *cache;
    second.source = mc_draft_name(proxy->adopt, MC_DRAFT_SOURCES, name);
    second.store = mc_draft_no_cache(proxy->adopt);
    second.tileset = NULL;
    second.branch = NULL;
    mc_draft_put(proxy->adopt, MC_DRAFT_SOURCES,
                 "  <source name=\"%s\" type=\"tileset\"><tileset>%s</tileset></source>\n",
                 mc_xml_escape(second.source, proxy->pool), mc_xml_escape(cache->tileset, proxy->pool));
    proxy->adopt->counts.sources++;
    mc_mapproxy_tileset(proxy, &second, name, title, about);
}

static void
write_layer(mc_mapproxy *proxy, mc_branch *layer, const char *name)
{
    mc_branch *sources = mc_branch_get(layer, "tile_sources"), *about = mc_branch_get(layer, "md");
    const char *title = mc_branch_text(layer, "title", name);
    mc_branch *others = mc_branch_get(layer, "sources");
    if (sources == NULL)
        sources = others;
    if (sources != NULL && sources->kind == MC_BRANCH_MAP)
        mc_draft_note_at(proxy->adopt, sources, "the sources of layer %s are not taken over: they are no list of names",
                         mc_message_text(name, 100, proxy->pool));
    if (mc_branch_count(sources) == 0)
        return;
    const mc_branch *first = mc_branch_item(sources, 0);
    mc_branch_pass(sources);
    mc_branch *caches = mc_branch_get(proxy->root, "caches");
    bool cached = first->text != NULL && mc_branch_get(caches, first->text) != NULL;
    if (cached && mc_branch_count(sources) > 1) {
        mc_draft_note_at(
            proxy->adopt, sources,
            "layer %s draws several caches over each other: each of them is a layer of its own here; ask for them "
            "together (LAYERS=%s)",
            name, mc_branch_join(sources, ",", proxy->pool));
        for (const mc_branch *one = sources->children; one != NULL; one = one->next) {
            mc_mapproxy_cache *each = one->text == NULL ? NULL : mc_mapproxy_find_cache(proxy, one->text, one);
            if (each != NULL)
                mc_mapproxy_tileset(proxy, each, one->text, NULL, NULL);
        }
        return;
    }
    mc_mapproxy_cache *cache = cached ? mc_mapproxy_find_cache(proxy, first->text, first) : NULL;
    if (cache != NULL && cache->tileset == NULL)
        mc_mapproxy_tileset(proxy, cache, name, title, about);
    else if (cache != NULL)
        write_second_layer(proxy, cache, name, title, about);
    else if (!cached)
        write_direct_layer(proxy, name, title, sources, about);
}

/* Groups are not told apart here: their layers stand beside each other. */
static void
write_layers(mc_mapproxy *proxy, mc_branch *layers, int depth)
{
    if (layers == NULL || layers->kind == MC_BRANCH_TEXT || depth > MC_BRANCH_DEPTH)
        return;
    for (mc_branch *layer = layers->children; layer != NULL; layer = layer->next) {
        layer->taken = true;
        const char *name = mc_branch_text(layer, "name", layer->key);
        mc_branch *below = mc_branch_get(layer, "layers");
        if (name == NULL && below == NULL) {
            (void)mc_branch_text(layer, "title", NULL);
            mc_draft_note_at(proxy->adopt, layer, "a layer without a name is not taken over: give it one");
            mc_branch_pass(layer);
        } else if (name != NULL) {
            write_layer(proxy, layer, name);
        }
        (void)mc_branch_text(layer, "title", NULL);
        write_layers(proxy, below, depth + 1);
    }
}

void
mc_mapproxy_layers(mc_mapproxy *proxy)
{
    write_layers(proxy, mc_branch_get(proxy->root, "layers"), 0);
    mc_branch *caches = mc_branch_get(proxy->root, "caches");
    for (mc_branch *cache = caches == NULL || caches->kind != MC_BRANCH_MAP ? NULL : caches->children; cache != NULL;
         cache = cache->next)
        if (!cache->taken) {
            cache->taken = true;
            mc_branch_pass(cache);
            mc_draft_note_at(proxy->adopt, cache,
                             "cache %s is not taken over: no layer shows it; add a layer, if its tiles are wanted",
                             cache->key);
        }
    mc_branch *sources = mc_branch_get(proxy->root, "sources");
    for (mc_branch *source = sources == NULL || sources->kind != MC_BRANCH_MAP ? NULL : sources->children;
         source != NULL; source = source->next)
        if (!source->taken) {
            mc_branch_pass(source);
            mc_draft_note_at(proxy->adopt, source,
                             "source %s is not taken over: no layer or cache that is taken over uses it", source->key);
        }
    mc_branch *grids = mc_branch_get(proxy->root, "grids");
    for (mc_branch *grid = grids == NULL || grids->kind != MC_BRANCH_MAP ? NULL : grids->children; grid != NULL;
         grid = grid->next)
        if (!grid->taken) {
            mc_branch_pass(grid);
            mc_draft_note_at(proxy->adopt, grid, "grid %s is not taken over: no cache that is taken over uses it",
                             grid->key);
        }
}

static const struct {
    const char *there, *here;
} contact_words[] = {
    { "title", "title" },
    { "abstract", "abstract" },
    { "online_resource", "providerurl" },
    { "fees", "fees" },
    { "access_constraints", "accessconstraints" },
    { "contact.person", "contactname" },
    { "contact.position", "contactposition" },
    { "contact.organization", "contactorganization" },
    { "contact.phone", "contactphone" },
    { "contact.fax", "contactfacsimile" },
    { "contact.city", "contactcity" },
    { "contact.state", "contactstateorprovince" },
    { "contact.postcode", "contactpostcode" },
    { "contact.country", "contactcountry" },
    { "contact.email", "contactelectronicmailaddress" },
};

static void
put_service_metadata(mc_adopt *adopt, mc_branch *about)
{
    if (about == NULL || mc_draft_has(adopt, MC_DRAFT_HEAD, "metadata"))
        return;
    (void)mc_draft_name(adopt, MC_DRAFT_HEAD, "metadata");
    mc_draft_put(adopt, MC_DRAFT_HEAD, "  <metadata>\n");
    for (size_t i = 0; i < sizeof(contact_words) / sizeof(*contact_words); i++)
        mc_draft_element(adopt, MC_DRAFT_HEAD, "    ", contact_words[i].here,
                         mc_branch_text(about, contact_words[i].there, NULL));
    mc_draft_put(adopt, MC_DRAFT_HEAD, "  </metadata>\n");
}

static void
put_wms(mc_mapproxy *proxy, mc_branch *wms)
{
    double pixels[2] = { 4000, 4000 };
    mc_branch *most = mc_branch_get(wms, "max_output_pixels");
    int count = mc_branch_numbers(pixels, 2, most);
    double side = count == 2 ? (pixels[0] > pixels[1] ? pixels[0] : pixels[1]) : 4000;
    side = side >= 1 && side <= 16384 ? side : 4000;
    const char *mode = mc_branch_text(proxy->root, "globals.image.resampling_method", "bicubic");
    mc_draft_put(proxy->adopt, MC_DRAFT_SERVICES,
                 "  <service type=\"wms\" enabled=\"true\">\n    <full_wms>assemble</full_wms>\n");
    mc_draft_put(proxy->adopt, MC_DRAFT_SERVICES, "    <format allow_client_override=\"true\">PNG</format>\n");
    mc_draft_put(proxy->adopt, MC_DRAFT_SERVICES, "    <resample_mode>%s</resample_mode>\n    <maxsize>%d</maxsize>\n",
                 strcmp(mode, "nearest") == 0 ? "nearest" : "bilinear", (int)side);
    if (count == 1 && pixels[0] >= 1 && pixels[0] <= 268435456)
        mc_draft_put(proxy->adopt, MC_DRAFT_SERVICES, "    <max_pixels>%.0f</max_pixels>\n", pixels[0]);
    mc_draft_put(proxy->adopt, MC_DRAFT_SERVICES, "  </service>\n");
    mc_branch_pass(mc_branch_get(wms, "image_formats"));
    mc_branch_pass(mc_branch_get(wms, "versions"));
    mc_branch_pass(mc_branch_get(wms, "featureinfo_types"));
}

void
mc_mapproxy_services(mc_mapproxy *proxy)
{
    static const char *const plain[] = { "wmts", "tms", "kml", "demo" };
    mc_branch *services = mc_branch_get(proxy->root, "services"), *wms = mc_branch_get(services, "wms");
    put_service_metadata(proxy->adopt, mc_branch_get(wms, "md"));
    put_service_metadata(proxy->adopt, mc_branch_find(services, "wmts.md"));
    mc_branch_pass(mc_branch_find(services, "wmts.md"));
    if (wms != NULL && !mc_draft_has(proxy->adopt, MC_DRAFT_SERVICES, "wms")) {
        (void)mc_draft_name(proxy->adopt, MC_DRAFT_SERVICES, "wms");
        put_wms(proxy, wms);
    }
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
        mc_branch *one = mc_branch_get(services, plain[i]);
        if (one == NULL || mc_draft_has(proxy->adopt, MC_DRAFT_SERVICES, plain[i]))
            continue;
        (void)mc_draft_name(proxy->adopt, MC_DRAFT_SERVICES, plain[i]);
        mc_draft_put(proxy->adopt, MC_DRAFT_SERVICES, "  <service type=\"%s\" enabled=\"true\"/>\n", plain[i]);
        if (strcmp(plain[i], "wmts") == 0) {
            mc_branch_pass(mc_branch_get(one, "kvp"));
            mc_branch_pass(mc_branch_get(one, "restful"));
        }
    }
    const char *cors = mc_branch_text(proxy->root, "globals.http.access_control_allow_origin", NULL);
    if (cors != NULL && *cors != '\0')
        proxy->adopt->cors = cors;
}
