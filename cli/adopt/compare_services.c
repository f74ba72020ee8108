/* What the two servers of a comparison offer, and where that differs. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "compare.h"
#include "text/text.h"

/* Where the services of a server are, behind its address; NULL: it has none of that kind. */
static const struct {
    mc_adopt_server server;
    const char *wms, *wmts, *kvp;
} service_paths[] = {
    { MC_ADOPT_MAPPROXY, "/service?", "/wmts/1.0.0/WMTSCapabilities.xml", "/service?" },
    { MC_ADOPT_GEOWEBCACHE, "/service/wms?", "/service/wmts?SERVICE=WMTS&REQUEST=GetCapabilities&VERSION=1.0.0",
      "/service/wmts?" },
    { MC_ADOPT_MAPSERVER, "", NULL, NULL },
};

/* An address that parameters can be put behind. */
static const char *
query_begin(const char *address, apr_pool_t *pool)
{
    const char *query = strchr(address, '?');
    size_t size = strlen(address);
    if (query == NULL)
        return apr_pstrcat(pool, address, "?", NULL);
    return query[1] == '\0' || address[size - 1] == '&' ? address : apr_pstrcat(pool, address, "&", NULL);
}

/* ---- servers without tile matrices: tiles of the web's grid */

enum { WEB_LEVELS = 21 };

static void
add_web_set(mc_compare_service *service, apr_pool_t *pool)
{
    static const double half = 20037508.342789244;
    mc_compare_set *set = apr_pcalloc(pool, sizeof(*set));
    set->id = "GoogleMapsCompatible";
    set->srs = "EPSG:3857";
    set->unit = 1;
    for (; set->count < WEB_LEVELS; set->count++)
        set->matrices[set->count] = (mc_compare_matrix){ .id = apr_itoa(pool, set->count),
                                                         .scale = ldexp(2 * half / 256 / 0.00028, -set->count),
                                                         .left = -half,
                                                         .top = half,
                                                         .tile_width = 256,
                                                         .tile_height = 256,
                                                         .columns = 1 << set->count,
                                                         .rows = 1 << set->count };
    apr_hash_set(service->sets, set->id, APR_HASH_KEY_STRING, set);
}

static mc_compare_layer *
add_web_layer(mc_compare_service *service, const char *name, const char *address, apr_pool_t *pool)
{
    mc_compare_layer *layer = apr_pcalloc(pool, sizeof(*layer));
    *layer = (mc_compare_layer){ .name = name, .title = "", .address = address, .shallow = -1, .deep = -1 };
    layer->sets = apr_array_make(pool, 1, sizeof(const char *));
    layer->srs = apr_array_make(pool, 1, sizeof(const char *));
    APR_ARRAY_PUSH(layer->sets, const char *) = "GoogleMapsCompatible";
    apr_hash_set(service->layers, name, APR_HASH_KEY_STRING, layer);
    return layer;
}

/* The number of a member, or -1. mod_tile writes no JSON where an attribution has quotes, as its own default has: the
 * member is looked for as it is written. */
static int
find_tilejson_level(const char *text, const char *member)
{
    int level;
    const char *at = strstr(text, member);
    at = at == NULL ? "" : at + strlen(member);
    at += strspn(at, " \t:");
    char digits[8];
    (void)apr_cpystrn(digits, at, sizeof(digits));
    digits[strspn(digits, "0123456789")] = '\0';
    return mc_parse_int(&level, digits, 0, 1000) ? level : -1;
}

/* mod_tile has one document for each style, tile-layer.json (TileJSON 2.0.0). */
static void
read_mod_tile(mc_compare *compare)
{
    mc_compare_service *service = &compare->tiles[MC_COMPARE_THERE];
    service->layers = apr_hash_make(compare->pool);
    service->sets = apr_hash_make(compare->pool);
    service->error = compare->layers->nelts > 0 ? NULL : "no style is known";
    add_web_set(service, compare->pool);
    for (int i = 0; i < compare->layers->nelts && i < MC_COMPARE_PICTURES; i++) {
        const mc_adopt_layer *layer = &APR_ARRAY_IDX(compare->layers, i, mc_adopt_layer);
        const char *path = layer->there + strspn(layer->there, "/");
        const char *base = apr_pstrcat(compare->pool, compare->url, "/", path,
                                       *path == '\0' || path[strlen(path) - 1] == '/' ? "" : "/", NULL);
        mc_compare_layer *made =
            add_web_layer(service, layer->there,
                          apr_pstrcat(compare->pool, base, "{TileMatrix}/{TileCol}/{TileRow}.", layer->extension, NULL),
                          compare->pool);
        mc_compare_answer answer = mc_compare_ask(
            compare, MC_COMPARE_THERE, apr_pstrcat(compare->pool, base, "tile-layer.json", NULL), compare->pool);
        if (answer.status == 0)
            service->error = answer.error;
        if (answer.status != 200 || answer.body == NULL)
            continue;
        const char *text = apr_pstrmemdup(compare->pool, (const char *)answer.body->data, answer.body->size);
        made->shallow = find_tilejson_level(text, "\"minzoom\"");
        made->deep = find_tilejson_level(text, "\"maxzoom\"");
    }
}

/* MapServer is asked for the box of a tile. */
static void
read_mapserver_tiles(mc_compare *compare)
{
    mc_compare_service *service = &compare->tiles[MC_COMPARE_THERE];
    service->layers = apr_hash_make(compare->pool);
    service->sets = apr_hash_make(compare->pool);
    service->error = compare->wms[MC_COMPARE_THERE].error;
    add_web_set(service, compare->pool);
    for (int i = 0; i < compare->layers->nelts; i++) {
        const mc_adopt_layer *layer = &APR_ARRAY_IDX(compare->layers, i, mc_adopt_layer);
        const mc_compare_layer *known = mc_compare_find_layer(&compare->wms[MC_COMPARE_THERE], layer->there);
        mc_compare_layer *made = add_web_layer(
            service, layer->there,
            apr_pstrcat(compare->pool, query_begin(compare->url, compare->pool),
                        "SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&SRS=EPSG:3857&FORMAT=image/png&TRANSPARENT="
                        "TRUE&WIDTH=256&HEIGHT=256&BBOX={Box}&LAYERS=",
                        mc_url_encode(layer->there, "", true, false, compare->pool), NULL),
            compare->pool);
        made->has_box = known != NULL && known->has_box;
        if (made->has_box)
            made->box = known->box;
    }
}

static void
read_services_there(mc_compare *compare)
{
    apr_pool_t *pool = compare->pool;
    mc_compare_answer answer;
    compare->wms[MC_COMPARE_THERE].error = compare->tiles[MC_COMPARE_THERE].error = "not offered";
    for (size_t i = 0; i < sizeof(service_paths) / sizeof(*service_paths); i++) {
        if (service_paths[i].server != compare->kind)
            continue;
        const char *wms = query_begin(apr_pstrcat(pool, compare->url, service_paths[i].wms, NULL), pool);
        answer =
            mc_compare_ask(compare, MC_COMPARE_THERE,
                           apr_pstrcat(pool, wms, "SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.3.0", NULL), pool);
        compare->wms[MC_COMPARE_THERE].error = NULL;
        mc_compare_read_wms(&compare->wms[MC_COMPARE_THERE], &answer, pool);
        if (service_paths[i].wmts == NULL)
            continue;
        compare->tiles[MC_COMPARE_THERE].error = NULL;
        answer = mc_compare_ask(compare, MC_COMPARE_THERE, apr_pstrcat(pool, compare->url, service_paths[i].wmts, NULL),
                                pool);
        mc_compare_read_wmts(&compare->tiles[MC_COMPARE_THERE], &answer,
                             apr_pstrcat(pool, compare->url, service_paths[i].kvp, NULL), pool);
    }
    if (compare->kind == MC_ADOPT_RENDERD)
        read_mod_tile(compare);
    else if (compare->kind == MC_ADOPT_MAPSERVER)
        read_mapserver_tiles(compare);
}

/* ---- rows of the report */

static bool
lists_text(const apr_array_header_t *list, const char *text)
{
    for (int i = 0; i < list->nelts; i++)
        if (strcasecmp(APR_ARRAY_IDX(list, i, const char *), text) == 0)
            return true;
    return false;
}

/* CRSs of the one that the other has not; "" for none. */
static const char *
list_missing(const apr_array_header_t *list, const apr_array_header_t *other, apr_pool_t *pool)
{
    const char *text = "";
    int left_out = 0, shown = 0;
    for (int i = 0; i < list->nelts; i++) {
        const char *srs = APR_ARRAY_IDX(list, i, const char *);
        if (lists_text(other, srs))
            continue;
        if (++shown <= 12)
            text = apr_pstrcat(pool, text, *text == '\0' ? "" : " ", srs, NULL);
        else
            left_out++;
    }
    return left_out == 0 ? text : apr_psprintf(pool, "%s and %d more", text, left_out);
}

static const char *
layer_box_text(const mc_compare_layer *layer, apr_pool_t *pool)
{
    return !layer->has_box ? "none"
                           : apr_psprintf(pool, "%.4f %.4f %.4f %.4f", layer->box.minx, layer->box.miny,
                                          layer->box.maxx, layer->box.maxy);
}

/* Equal up to a hundredth of the larger side; the world of degrees ends at 85 in Mercator. */
static bool
boxes_agree(const mc_compare_layer *a, const mc_compare_layer *b)
{
    if (!a->has_box || !b->has_box)
        return a->has_box == b->has_box;
    double slack = 0.01 * fmax(a->box.maxx - a->box.minx, a->box.maxy - a->box.miny);
    return fabs(a->box.minx - b->box.minx) <= slack && fabs(a->box.maxx - b->box.maxx) <= slack &&
           fabs(fmax(a->box.miny, -85.06) - fmax(b->box.miny, -85.06)) <= slack &&
           fabs(fmin(a->box.maxy, 85.06) - fmin(b->box.maxy, 85.06)) <= slack;
}

static void
compare_wms_layer(mc_compare *compare, const mc_adopt_layer *layer)
{
    apr_pool_t *pool = compare->pool;
    const mc_compare_layer *there = mc_compare_find_layer(&compare->wms[MC_COMPARE_THERE], layer->there),
                           *here = mc_compare_find_layer(&compare->wms[MC_COMPARE_HERE], layer->tileset);
    const char *what = apr_pstrcat(pool, "WMS ", layer->there, NULL);
    if (there == NULL || here == NULL) {
        mc_compare_put_row(compare, what, there == NULL ? "not offered" : "offered",
                           here == NULL ? "not offered" : "offered", here != NULL || there == NULL);
        return;
    }
    mc_compare_put_row(compare, apr_pstrcat(pool, what, ": title", NULL), there->title, here->title,
                       strcmp(there->title, here->title) == 0);
    mc_compare_put_row(compare, apr_pstrcat(pool, what, ": area in degrees", NULL), layer_box_text(there, pool),
                       layer_box_text(here, pool), boxes_agree(there, here));
    const char *only_there = list_missing(there->srs, here->srs, pool),
               *only_here = list_missing(here->srs, there->srs, pool);
    mc_compare_put_row(compare, apr_pstrcat(pool, what, ": CRSs", NULL),
                       *only_there == '\0' ? "all of them are here"
                                           : apr_pstrcat(pool, "only there: ", only_there, NULL),
                       *only_here == '\0' ? "all of them are there" : apr_pstrcat(pool, "only here: ", only_here, NULL),
                       *only_there == '\0');
}

static const char *
levels_text(const mc_compare_service *service, const mc_compare_layer *layer, apr_pool_t *pool)
{
    const char *text = "";
    for (int i = 0; i < layer->sets->nelts; i++) {
        const char *id = APR_ARRAY_IDX(layer->sets, i, const char *);
        const mc_compare_set *set = apr_hash_get(service->sets, id, APR_HASH_KEY_STRING);
        text = apr_psprintf(pool, "%s%s%s (%s, %d levels)", text, i > 0 ? ", " : "", id, set == NULL ? "?" : set->srs,
                            set == NULL ? 0 : set->count);
    }
    return text;
}

/* Whether each grid there is one here, with at least as many levels. */
static bool
has_all_sets(const mc_compare *compare, const mc_compare_layer *there, const mc_compare_layer *here)
{
    for (int i = 0; i < there->sets->nelts; i++) {
        const char *id = APR_ARRAY_IDX(there->sets, i, const char *);
        const mc_compare_set *one = apr_hash_get(compare->tiles[MC_COMPARE_THERE].sets, id, APR_HASH_KEY_STRING),
                             *other = apr_hash_get(compare->tiles[MC_COMPARE_HERE].sets, id, APR_HASH_KEY_STRING);
        if (!lists_text(here->sets, id) || one == NULL || other == NULL || strcmp(one->srs, other->srs) != 0 ||
            one->count > other->count)
            return false;
    }
    return true;
}

static void
compare_tile_layer(mc_compare *compare, const mc_adopt_layer *layer)
{
    apr_pool_t *pool = compare->pool;
    const mc_compare_layer *there = mc_compare_find_layer(&compare->tiles[MC_COMPARE_THERE], layer->there),
                           *here = mc_compare_find_layer(&compare->tiles[MC_COMPARE_HERE], layer->tileset);
    const char *what = apr_pstrcat(pool, "Tiles ", layer->there, NULL);
    if (there == NULL || here == NULL) {
        mc_compare_put_row(compare, what, there == NULL ? "not offered" : "offered",
                           here == NULL ? "not offered" : "offered", here != NULL || there == NULL);
        return;
    }
    if (compare->kind == MC_ADOPT_RENDERD && there->deep >= 0)
        mc_compare_put_row(compare, apr_pstrcat(pool, what, ": levels", NULL),
                           apr_psprintf(pool, "%d to %d", there->shallow, there->deep),
                           here->deep < 0 ? "all of the grid"
                                          : apr_psprintf(pool, "%d to %d", here->shallow, here->deep),
                           here->shallow == there->shallow && here->deep == there->deep);
    if (compare->kind == MC_ADOPT_MAPPROXY || compare->kind == MC_ADOPT_GEOWEBCACHE)
        mc_compare_put_row(compare, apr_pstrcat(pool, what, ": grids", NULL),
                           levels_text(&compare->tiles[MC_COMPARE_THERE], there, pool),
                           levels_text(&compare->tiles[MC_COMPARE_HERE], here, pool),
                           has_all_sets(compare, there, here));
}

static void
compare_service_errors(mc_compare *compare, const char *what, const mc_compare_service services[2])
{
    const char *words[2];
    if (services[0].error == NULL && services[1].error == NULL)
        return;
    for (int side = 0; side < 2; side++)
        words[side] = services[side].error == NULL ? "offered" : services[side].error;
    mc_compare_put_row(compare, what, words[0], words[1], services[0].error != NULL && services[1].error != NULL);
}

void
mc_compare_services(mc_compare *compare)
{
    apr_pool_t *pool = compare->pool;
    mc_compare_put_heading(compare, "Capabilities");
    mc_compare_put(compare, "<div class=wide><table><thead><tr><th>What<th>There<th>Here</thead><tbody>\n");
    read_services_there(compare);
    mc_compare_answer answer = mc_compare_ask(
        compare, MC_COMPARE_HERE, MC_COMPARE_HERE_URL "/?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.3.0", pool);
    mc_compare_read_wms(&compare->wms[MC_COMPARE_HERE], &answer, pool);
    answer = mc_compare_ask(compare, MC_COMPARE_HERE, MC_COMPARE_HERE_URL "/wmts/1.0.0/WMTSCapabilities.xml", pool);
    mc_compare_read_wmts(&compare->tiles[MC_COMPARE_HERE], &answer, MC_COMPARE_HERE_URL "/wmts?", pool);
    if (compare->kind != MC_ADOPT_RENDERD)
        compare_service_errors(compare, "WMS", compare->wms);
    compare_service_errors(compare, "Tiles", compare->tiles);
    for (int i = 0; i < compare->layers->nelts; i++) {
        const mc_adopt_layer *layer = &APR_ARRAY_IDX(compare->layers, i, mc_adopt_layer);
        if (compare->wms[0].error == NULL && compare->wms[1].error == NULL)
            compare_wms_layer(compare, layer);
        if (compare->tiles[0].error == NULL && compare->tiles[1].error == NULL)
            compare_tile_layer(compare, layer);
    }
    mc_compare_put(compare, "</tbody></table></div>\n");
}
