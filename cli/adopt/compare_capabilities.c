/* What capabilities say: layers of WMS (OGC 06-042, 7.2.4; OGC 01-068r3, 7.1.4), layers and tile matrices of WMTS
 * (OGC 07-057r7, 7.1). Names of elements are compared without their prefixes. */
#include <apr_strings.h>
#include <string.h>

#include "compare.h"
#include "text/text.h"

static const char *
plain_name(const char *name)
{
    const char *colon = strchr(name, ':');
    return colon == NULL ? name : colon + 1;
}

static const mc_node *
first_element_named(const mc_node *node, const char *name)
{
    while (node != NULL && strcmp(plain_name(node->name), name) != 0)
        node = node->next;
    return node;
}

static const mc_node *
element_inside(const mc_node *node, const char *name)
{
    return node == NULL ? NULL : first_element_named(node->children, name);
}

static const char *
text_inside(const mc_node *node, const char *name, apr_pool_t *pool)
{
    const mc_node *found = element_inside(node, name);
    return found == NULL || found->text == NULL ? NULL : mc_unwrap_text(found->text, pool);
}

/* The root of an answer; NULL: service->error says why there is none. */
static const mc_node *
read_answer(mc_compare_service *service, const mc_compare_answer *answer, apr_pool_t *pool)
{
    mc_node *root;
    service->layers = apr_hash_make(pool);
    service->sets = apr_hash_make(pool);
    if (answer->status != 200 || answer->body == NULL) {
        service->error = answer->status == 0 ? mc_message_text(answer->error, 300, pool)
                                             : apr_psprintf(pool, "the answer has status %d", answer->status);
        return NULL;
    }
    mc_error *error =
        mc_xml_parse_text(&root, "capabilities", (const char *)answer->body->data, answer->body->size, pool);
    if (error != MC_OK)
        service->error = mc_message_text(mc_error_chain(error, pool), 300, pool);
    return error == MC_OK ? root : NULL;
}

static mc_compare_layer *
add_layer(mc_compare_service *service, const char *name, apr_pool_t *pool)
{
    mc_compare_layer *layer = apr_pcalloc(pool, sizeof(*layer));
    layer->name = name;
    layer->title = "";
    layer->shallow = layer->deep = -1;
    layer->sets = apr_array_make(pool, 2, sizeof(const char *));
    layer->srs = apr_array_make(pool, 8, sizeof(const char *));
    apr_hash_set(service->layers, name, APR_HASH_KEY_STRING, layer);
    return layer;
}

mc_compare_layer *
mc_compare_find_layer(const mc_compare_service *service, const char *name)
{
    return service->layers == NULL ? NULL : apr_hash_get(service->layers, name, APR_HASH_KEY_STRING);
}

/* ---- WMS */

typedef struct wms_heritage {
    apr_array_header_t *srs;
    bool has_box;
    mc_extent box;
} wms_heritage;

static bool
read_wms_box(mc_extent *box, const mc_node *layer, apr_pool_t *pool)
{
    static const char *const sides[] = { "westBoundLongitude", "southBoundLatitude", "eastBoundLongitude",
                                         "northBoundLatitude" },
                             *const attributes[] = { "minx", "miny", "maxx", "maxy" };
    const mc_node *node = element_inside(layer, "EX_GeographicBoundingBox"),
                  *old = element_inside(layer, "LatLonBoundingBox");
    double edges[4];
    for (int i = 0; i < 4; i++) {
        const char *text = node != NULL  ? text_inside(node, sides[i], pool)
                           : old != NULL ? mc_node_attr(old, attributes[i])
                                         : NULL;
        if (text == NULL || !mc_parse_double(&edges[i], text))
            return false;
    }
    *box = (mc_extent){ edges[0], edges[1], edges[2], edges[3] };
    return mc_extent_valid(box);
}

static void
read_wms_layers(mc_compare_service *service, const mc_node *node, wms_heritage inherited, apr_pool_t *pool)
{
    const char *name = text_inside(node, "Name", pool), *title = text_inside(node, "Title", pool);
    inherited.srs = apr_array_copy(pool, inherited.srs);
    for (const mc_node *child = node->children; child != NULL; child = child->next)
        if ((strcmp(plain_name(child->name), "CRS") == 0 || strcmp(plain_name(child->name), "SRS") == 0) &&
            child->text != NULL && inherited.srs->nelts < 10000)
            APR_ARRAY_PUSH(inherited.srs, const char *) = mc_unwrap_text(child->text, pool);
    if (read_wms_box(&inherited.box, node, pool))
        inherited.has_box = true;
    if (name != NULL) {
        mc_compare_layer *layer = add_layer(service, name, pool);
        layer->title = title == NULL ? "" : title;
        layer->srs = inherited.srs;
        layer->has_box = inherited.has_box;
        layer->box = inherited.box;
    }
    for (const mc_node *child = element_inside(node, "Layer"); child != NULL;
         child = first_element_named(child->next, "Layer"))
        read_wms_layers(service, child, inherited, pool);
}

void
mc_compare_read_wms(mc_compare_service *service, const mc_compare_answer *answer, apr_pool_t *pool)
{
    const mc_node *root = read_answer(service, answer, pool);
    if (root == NULL)
        return;
    const wms_heritage none = { .srs = apr_array_make(pool, 8, sizeof(const char *)) };
    const mc_node *capability = element_inside(root, "Capability");
    if (capability == NULL)
        service->error = apr_psprintf(pool, "the answer is <%s>, and no capabilities of WMS", root->name);
    for (const mc_node *layer = element_inside(capability, "Layer"); layer != NULL;
         layer = first_element_named(layer->next, "Layer"))
        read_wms_layers(service, layer, none, pool);
}

/* ---- WMTS */

static bool
read_two_numbers(double numbers[2], const char *text)
{
    int found;
    return text != NULL && mc_parse_doubles(numbers, 2, &found, text, " ") && found == 2;
}

static bool
read_matrix(mc_compare_matrix *matrix, const mc_node *node, bool swapped, apr_pool_t *pool)
{
    double corner[2];
    const char *scale = text_inside(node, "ScaleDenominator", pool), *id = text_inside(node, "Identifier", pool);
    static const char *const names[] = { "TileWidth", "TileHeight", "MatrixWidth", "MatrixHeight" };
    int *const numbers[] = { &matrix->tile_width, &matrix->tile_height, &matrix->columns, &matrix->rows };
    if (id == NULL || scale == NULL || !mc_parse_double(&matrix->scale, scale) || !(matrix->scale > 0) ||
        !read_two_numbers(corner, text_inside(node, "TopLeftCorner", pool)))
        return false;
    for (int i = 0; i < 4; i++) {
        const char *text = text_inside(node, names[i], pool);
        if (text == NULL || !mc_parse_int(numbers[i], text, 1, i < 2 ? mc_pixels_max : 1 << 30))
            return false;
    }
    matrix->id = id;
    matrix->left = corner[swapped ? 1 : 0];
    matrix->top = corner[swapped ? 0 : 1];
    return true;
}

/* As mc_crs_epsg; URNs may have any version: urn:ogc:def:crs:EPSG:6.18:3:3857. */
static int
read_crs_code(bool *xy, const char *srs)
{
    int code;
    const char *last = strrchr(srs, ':');
    if (strncasecmp(srs, "urn:ogc:def:crs:EPSG:", 21) != 0)
        return mc_crs_epsg(srs, xy);
    return mc_parse_int(&code, last + 1, 1, 999999) ? code : 0;
}

static void
read_matrix_set(mc_compare_service *service, const mc_node *node, apr_pool_t *pool)
{
    mc_compare_set *set = apr_pcalloc(pool, sizeof(*set));
    bool xy = false;
    const char *srs = text_inside(node, "SupportedCRS", pool);
    set->id = text_inside(node, "Identifier", pool);
    int epsg = srs == NULL ? 0 : read_crs_code(&xy, srs);
    if (set->id == NULL || epsg == 0)
        return;
    set->srs = apr_psprintf(pool, "EPSG:%d", epsg == 900913 ? 3857 : epsg);
    set->unit = mc_crs_metres_per_unit(epsg == 900913 ? 3857 : epsg);
    for (const mc_node *one = element_inside(node, "TileMatrix"); one != NULL && set->count < MC_COMPARE_LEVELS;
         one = first_element_named(one->next, "TileMatrix"))
        if (read_matrix(&set->matrices[set->count], one, !xy && mc_crs_axes_swapped(epsg), pool))
            set->count++;
    apr_hash_set(service->sets, set->id, APR_HASH_KEY_STRING, set);
}

/* The address of tiles, with the style and values of dimensions put in. */
static const char *
tile_address(const mc_node *node, const char *name, const char *kvp, apr_pool_t *pool)
{
    const char *style = text_inside(element_inside(node, "Style"), "Identifier", pool),
               *format = text_inside(node, "Format", pool), *address = NULL;
    for (const mc_node *url = element_inside(node, "ResourceURL"); url != NULL;
         url = first_element_named(url->next, "ResourceURL")) {
        const char *type = mc_node_attr(url, "resourceType"), *text = mc_node_attr(url, "template");
        if (type != NULL && strcmp(type, "tile") == 0 && text != NULL && address == NULL)
            address = text;
    }
    if (address == NULL)
        address =
            apr_psprintf(pool,
                         "%sSERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&LAYER=%s&STYLE={Style}&FORMAT=%s"
                         "&TILEMATRIXSET={TileMatrixSet}&TILEMATRIX={TileMatrix}&TILEROW={TileRow}&TILECOL={TileCol}",
                         kvp, mc_url_encode(name, "", true, false, pool),
                         mc_url_encode(format == NULL ? "image/png" : format, "", true, false, pool));
    for (const mc_node *one = element_inside(node, "Dimension"); one != NULL;
         one = first_element_named(one->next, "Dimension")) {
        const char *id = text_inside(one, "Identifier", pool), *value = text_inside(one, "Default", pool);
        if (id != NULL && value != NULL)
            address = mc_replace_all(address, apr_pstrcat(pool, "{", id, "}", NULL),
                                     mc_url_encode(value, "", true, false, pool), pool);
    }
    return mc_replace_all(address, "{Style}", style == NULL ? "" : mc_url_encode(style, "", true, false, pool), pool);
}

static void
read_wmts_layer(mc_compare_service *service, const mc_node *node, const char *kvp, apr_pool_t *pool)
{
    double low[2], high[2];
    const char *name = text_inside(node, "Identifier", pool), *title = text_inside(node, "Title", pool);
    if (name == NULL)
        return;
    mc_compare_layer *layer = add_layer(service, name, pool);
    layer->title = title == NULL ? "" : title;
    layer->address = tile_address(node, name, kvp, pool);
    const mc_node *box = element_inside(node, "WGS84BoundingBox");
    if (read_two_numbers(low, text_inside(box, "LowerCorner", pool)) &&
        read_two_numbers(high, text_inside(box, "UpperCorner", pool))) {
        layer->box = (mc_extent){ low[0], low[1], high[0], high[1] };
        layer->has_box = mc_extent_valid(&layer->box);
    }
    for (const mc_node *link = element_inside(node, "TileMatrixSetLink"); link != NULL;
         link = first_element_named(link->next, "TileMatrixSetLink")) {
        const char *id = text_inside(link, "TileMatrixSet", pool);
        if (id != NULL)
            APR_ARRAY_PUSH(layer->sets, const char *) = id;
        const mc_node *limits = element_inside(link, "TileMatrixSetLimits");
        for (const mc_node *one = element_inside(limits, "TileMatrixLimits"); one != NULL;
             one = first_element_named(one->next, "TileMatrixLimits")) {
            int level;
            const char *text = text_inside(one, "TileMatrix", pool);
            if (text == NULL || !mc_parse_int(&level, text, 0, 1000))
                continue;
            layer->shallow = layer->shallow < 0 || level < layer->shallow ? level : layer->shallow;
            layer->deep = level > layer->deep ? level : layer->deep;
        }
    }
}

void
mc_compare_read_wmts(mc_compare_service *service, const mc_compare_answer *answer, const char *kvp, apr_pool_t *pool)
{
    const mc_node *root = read_answer(service, answer, pool), *contents = element_inside(root, "Contents");
    if (root == NULL)
        return;
    if (contents == NULL)
        service->error = apr_psprintf(pool, "the answer is <%s>, and no capabilities of WMTS", root->name);
    for (const mc_node *node = contents == NULL ? NULL : contents->children; node != NULL; node = node->next)
        if (strcmp(plain_name(node->name), "Layer") == 0)
            read_wmts_layer(service, node, kvp, pool);
        else if (strcmp(plain_name(node->name), "TileMatrixSet") == 0)
            read_matrix_set(service, node, pool);
}
