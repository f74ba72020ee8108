/*
 * The source "wms": a WMS as origin (docs/reference/configuration.md 3.1). The request is the one that MapCache sends,
 * parameter for parameter, so that an origin sees no difference; VERSION=1.3.0 in the parameters is followed in CRS,
 * axis order and I, J as well.
 */
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "http/http.h"
#include "source/origin_send.h"
#include "source/source_base.h"
#include "source/wms_density.h"
#include "text/text.h"

enum { INFO_BYTES = 16 << 20, MAP_BYTES_LEAST = 1 << 20, MAP_BYTES_MOST = 256 << 20, RAW_BYTES = 64 << 20 };

typedef struct wms_source {
    mc_source_base base;
    const mc_node *http_tree;
    const mc_node *getmap_tree;
    const mc_node *info_tree; /* or NULL */
    mc_http_block *http;
    apr_table_t *map_params;
    apr_table_t *info_params; /* or NULL */
    int density_parameters;   /* mc_density_parameters */
} wms_source;

typedef struct getmap_block {
    const mc_node *params;
} getmap_block;

typedef struct info_block {
    const char *formats;
    const mc_node *params;
} info_block;

static const mc_key getmap_keys[] = {
    MC_KEY_TREE("params", offsetof(getmap_block, params), NULL,
                "Request parameters, one element each: <LAYERS>roads</LAYERS>.", .flags = MC_KEY_REQUIRED),
    MC_KEY_END,
};

static const mc_key info_keys[] = {
    MC_KEY_TEXT("info_formats", offsetof(info_block, formats),
                "Media types that clients may ask for, separated by commas.", .flags = MC_KEY_REQUIRED),
    MC_KEY_TREE("params", offsetof(info_block, params), NULL,
                "Request parameters of GetFeatureInfo; QUERY_LAYERS is required.", .flags = MC_KEY_REQUIRED),
    MC_KEY_END,
};

static const mc_key wms_keys[] = {
    MC_SOURCE_KEYS(wms_source, "1"),
    MC_KEY_TREE("getmap", offsetof(wms_source, getmap_tree), getmap_keys, "What is asked for in GetMap.",
                .flags = MC_KEY_REQUIRED),
    MC_KEY_CHOICE("density_parameters", offsetof(wms_source, density_parameters), MC_DENSITY_CHOICES,
                  "How the WMS is told of maps for fine screens, so that its symbols are larger: DPI (QGIS Server), "
                  "MAP_RESOLUTION (MapServer), FORMAT_OPTIONS=dpi: (GeoServer). A number that <params> have is "
                  "multiplied. Other maps are asked for without.",
                  .flags = MC_KEY_OURS, .fallback = "all"),
    MC_KEY_TREE("getfeatureinfo", offsetof(wms_source, info_tree), info_keys, "Makes the source queryable."),
    MC_KEY_TREE("http", offsetof(wms_source, http_tree), mc_http_block_keys, "Where the WMS is.",
                .flags = MC_KEY_REQUIRED),
    MC_KEY_END,
};

/* The children of <params>; of several of one name (in any case) the first counts. */
static apr_table_t *
read_params(const mc_node *params, apr_pool_t *pool)
{
    apr_table_t *table = apr_table_make(pool, 8);
    for (const mc_node *param = params->children; param != NULL; param = param->next)
        if (apr_table_get(table, param->name) == NULL)
            apr_table_setn(table, param->name, param->text == NULL ? "" : param->text);
    return table;
}

static bool
read_getmap(wms_source *wms, mc_build *build)
{
    getmap_block block = { 0 };
    if (!mc_config_read(&block, wms->getmap_tree, getmap_keys, build->diagnostics))
        return false;
    wms->map_params = read_params(block.params, build->pool);
    if (apr_table_get(wms->map_params, "LAYERS") == NULL && !build->mirror) {
        mc_complain(build->diagnostics, MC_REFUSED, block.params,
                    "source \"%s\": <getmap><params> needs <LAYERS> (only the mirror modes do without)",
                    wms->base.source.name);
        return false;
    }
    return true;
}

/* What stands between the commas, which becomes a Content-Type (docs/reference/configuration.md 3.1). */
static const apr_array_header_t *
split_formats(const char *text, apr_pool_t *pool)
{
    apr_array_header_t *formats = apr_array_make(pool, 4, sizeof(const char *));
    for (;;) {
        size_t length = strcspn(text, ",");
        const char *format = mc_unwrap_text(apr_pstrmemdup(pool, text, length), pool);
        if (*format != '\0')
            APR_ARRAY_PUSH(formats, const char *) = format;
        if (text[length] == '\0')
            return formats;
        text += length + 1;
    }
}

static bool
read_getfeatureinfo(wms_source *wms, mc_build *build)
{
    if (wms->info_tree == NULL)
        return true;
    info_block block = { 0 };
    if (!mc_config_read(&block, wms->info_tree, info_keys, build->diagnostics))
        return false;
    wms->info_params = read_params(block.params, build->pool);
    if (apr_table_get(wms->info_params, "QUERY_LAYERS") == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, block.params,
                    "source \"%s\": <getfeatureinfo><params> needs <QUERY_LAYERS>", wms->base.source.name);
        return false;
    }
    const apr_array_header_t *formats = split_formats(block.formats, build->pool);
    wms->base.source.info_formats = formats->nelts > 0 ? formats : NULL;
    return true;
}

static mc_source *
wms_source_from_config(const mc_node *node, mc_build *build)
{
    wms_source *wms = apr_pcalloc(build->pool, sizeof(*wms));
    if (!mc_source_read(&wms->base, &mc_source_wms, node, build))
        return NULL;
    wms->base.source.cascades = true;
    wms->http = mc_http_block_from_config(wms->http_tree, build);
    bool read = read_getmap(wms, build);
    read = read_getfeatureinfo(wms, build) && read;
    if (wms->http != NULL && wms->http->circuit_breaker)
        wms->base.source.endpoint = mc_origin_endpoint(wms->http->url, build->pool);
    return read && wms->http != NULL ? &wms->base.source : NULL;
}

static double
rounding_error(double number, int decimals)
{
    double scale = pow(10, decimals);
    return fabs(rint(number * scale) / scale - number);
}

/*
 * Six decimals, as MapCache writes them (a small negative number as -0.000000). More, up to fifteen, only where six
 * would move an edge by more than 0.01 pixel: in degrees that begins near 5 m a pixel (docs/reference/configuration.md
 * 12 row 27).
 */
static const char *
wms_box_text(const mc_extent *box, int width, int height, bool swapped, apr_pool_t *pool)
{
    double tolerance = 0.01 * fmin((box->maxx - box->minx) / width, (box->maxy - box->miny) / height);
    double edges[4] = { box->minx, box->miny, box->maxx, box->maxy };
    int decimals = 6;
    for (int i = 0; i < 4; i++)
        while (decimals < 15 && rounding_error(edges[i], decimals) > tolerance)
            decimals++;
    int first = swapped ? 1 : 0, second = swapped ? 0 : 1;
    return apr_psprintf(pool, "%.*f,%.*f,%.*f,%.*f", decimals, edges[first], decimals, edges[second], decimals,
                        edges[2 + first], decimals, edges[2 + second]);
}

/* WMS 1.3.0 and later: CRS, I and J, axes in the order of the CRS. */
static bool
is_new_version(const wms_source *wms, bool get_map)
{
    const char *version = get_map ? NULL : apr_table_get(wms->info_params, "VERSION");
    if (version == NULL)
        version = apr_table_get(wms->map_params, "VERSION");
    if (version == NULL)
        return false;
    char *end;
    long major = strtol(version, &end, 10);
    return major > 1 || (major == 1 && *end == '.' && strtol(end + 1, NULL, 10) >= 3);
}

/* Axis order of the CRS that is sent: of the configured one where it replaces the grid's. */
static bool
axes_swapped(const char *configured, const mc_grid *grid)
{
    if (configured == NULL)
        return grid->axes_swapped;
    bool xy_order = false;
    int epsg = mc_crs_epsg(configured, &xy_order);
    return epsg != 0 && !xy_order && mc_crs_axes_swapped(epsg);
}

static void
overlay_wms_params(apr_table_t *params, const apr_table_t *more)
{
    const apr_array_header_t *items = apr_table_elts(more);
    for (int i = 0; i < items->nelts; i++) {
        const apr_table_entry_t *item = &APR_ARRAY_IDX(items, i, apr_table_entry_t);
        apr_table_setn(params, item->key, item->val); /* one that is there keeps its place */
    }
}

static void
add_map(apr_table_t *params, const mc_render *wanted, bool get_map, const wms_source *wms, apr_pool_t *pool)
{
    const apr_table_t *configured = get_map ? wms->map_params : wms->info_params;
    bool new_version = is_new_version(wms, get_map);
    bool swapped = new_version && axes_swapped(apr_table_get(configured, "CRS"), wanted->grid);

    apr_table_setn(params, "BBOX", wms_box_text(&wanted->box, wanted->width, wanted->height, swapped, pool));
    if (!get_map)
        apr_table_setn(params, "REQUEST", "GetFeatureInfo");
    apr_table_setn(params, "WIDTH", apr_itoa(pool, wanted->width));
    apr_table_setn(params, "HEIGHT", apr_itoa(pool, wanted->height));
    if (get_map)
        apr_table_setn(params, "FORMAT", "image/png");
    apr_table_setn(params, new_version ? "CRS" : "SRS", wanted->grid->srs);
}

static void
add_wms_dimensions(apr_table_t *params, const mc_render *wanted, apr_pool_t *pool)
{
    for (int i = 0; i < wanted->dimension_count; i++) {
        const mc_dimension_value *dimension = &wanted->dimensions[i];
        if (dimension->value == NULL)
            continue;
        apr_table_setn(params, dimension->name, dimension->value);
        if (strcasecmp(dimension->name, "TIME") != 0 && strcasecmp(dimension->name, "ELEVATION") != 0)
            apr_table_setn(params, apr_pstrcat(pool, "DIM_", dimension->name, NULL), dimension->value);
    }
    if (apr_table_get(params, "LAYERS") == NULL)
        apr_table_setn(params, "LAYERS", wanted->tileset);
}

static apr_table_t *
default_params(apr_pool_t *pool)
{
    apr_table_t *params = apr_table_make(pool, 20);
    apr_table_setn(params, "VERSION", "1.1.1");
    apr_table_setn(params, "REQUEST", "GetMap");
    apr_table_setn(params, "SERVICE", "WMS");
    apr_table_setn(params, "STYLES", "");
    return params;
}

/* `raw`: what comes is looked at by nobody, so that the answer has to say how long it is (RFC 9112 6.3, 8). */
static mc_error *
send_wms_request(mc_buf **body, const wms_source *wms, const apr_table_t *params, size_t max_response, bool raw,
                 mc_ctx *ctx, apr_pool_t *pool)
{
    const char *url = mc_http_url(wms->http->url, params, pool);
    const char *name = wms->base.source.name;
    mc_http_exchange exchange = { .call = mc_http_block_call(wms->http, url, ctx, pool) };
    exchange.call.max_response = max_response;
    mc_origin_send_all(&exchange, 1, 1, &wms->base.source, ctx, pool);
    if (exchange.error != MC_OK)
        return mc_error_wrap(pool, exchange.error->cause, exchange.error->kind, "source \"%s\": %s", name,
                             exchange.error->message);
    int status = exchange.reply.status;
    if (status < 200 || status > 299)
        return mc_error_create(pool, MC_ERR_UPSTREAM, "source \"%s\" answered with status %d", name, status);
    if (raw && !exchange.reply.framed)
        return mc_error_create(pool, MC_ERR_UPSTREAM,
                               "source \"%s\" does not say how long its answer is: it may be half of one", name);
    *body = exchange.reply.body;
    return MC_OK;
}

/* What an image of that size may take at most: 16 bits a channel and nothing gained by compression. */
static size_t
map_bytes(const mc_render *wanted)
{
    if (wanted->raw)
        return RAW_BYTES;
    size_t bytes = (size_t)wanted->width * (size_t)wanted->height * 8 + MAP_BYTES_LEAST;
    return bytes < MAP_BYTES_MOST ? bytes : MAP_BYTES_MOST;
}

static mc_error *
wms_render(mc_rendered *map, mc_source *source, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    wms_source *wms = (wms_source *)source;
    apr_table_t *params = default_params(pool);
    add_map(params, wanted, true, wms, pool);
    overlay_wms_params(params, wms->map_params);
    mc_wms_add_density(params, (mc_density_parameters)wms->density_parameters, wanted->density, pool);
    add_wms_dimensions(params, wanted, pool);
    return send_wms_request(&map->data, wms, params, map_bytes(wanted), wanted->raw, ctx, pool);
}

static mc_error *
wms_info(mc_buf **text, mc_source *source, const mc_info_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    wms_source *wms = (wms_source *)source;
    apr_table_t *params = default_params(pool);
    overlay_wms_params(params, wms->map_params);
    add_map(params, &wanted->map, false, wms, pool);
    bool new_version = is_new_version(wms, false);
    apr_table_setn(params, new_version ? "I" : "X", apr_itoa(pool, wanted->x));
    apr_table_setn(params, new_version ? "J" : "Y", apr_itoa(pool, wanted->y));
    apr_table_setn(params, "INFO_FORMAT", wanted->format);
    overlay_wms_params(params, wms->info_params);
    mc_wms_add_density(params, (mc_density_parameters)wms->density_parameters, wanted->map.density, pool);
    add_wms_dimensions(params, &wanted->map, pool);
    return send_wms_request(text, wms, params, INFO_BYTES, false, ctx, pool);
}

/* Any answer will do, also that of a server which has no capabilities. */
static void
inspect_wms(mc_source *source, mc_diagnostics *diagnostics, mc_ctx *ctx, apr_pool_t *pool)
{
    wms_source *wms = (wms_source *)source;
    apr_table_t *params = apr_table_make(pool, 4);
    apr_table_setn(params, "SERVICE", "WMS");
    apr_table_setn(params, "REQUEST", "GetCapabilities");
    mc_origin_inspect(source, wms->http, mc_http_url(wms->http->url, params, pool), diagnostics, ctx, pool);
}

const mc_source_ops mc_source_wms = {
    MC_KIND("wms", wms_keys, wms_source_from_config, "A WMS, 1.1.1 or 1.3.0."),
    .render = wms_render,
    .info = wms_info,
    .inspect = inspect_wms,
};
