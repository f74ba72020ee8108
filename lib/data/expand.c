/* See expand.h. The elements are written as text (write.h) and parsed, so that a short form and a written
 * configuration are the same. */
#include "data/expand.h"

#include <apr_file_info.h>
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "config/config_files.h"
#include "data/data_private.h"
#include "data/write.h"

/* Microseconds for all things of a configuration. */
static const apr_interval_time_t all_looks = 30 * APR_USEC_PER_SEC;

typedef struct data_expansion {
    mc_node *root;
    mc_diagnostics *diagnostics;
    apr_array_header_t *pending;
    apr_array_header_t *layers; /* of all things */
    const char *none, *mvt;     /* names that are free in the configuration */
    bool any, vectors;
    apr_time_t until;
    apr_pool_t *pool;
} data_expansion;

/* --- the tree ----------------------------------------------------------------------------------------------------- */

static bool
name_exists(const mc_node *root, const char *element, const char *name)
{
    for (const mc_node *child = mc_node_child(root, element); child != NULL; child = mc_node_next(child)) {
        const char *its = mc_node_attr(child, "name");
        if (its != NULL && strcmp(its, name) == 0)
            return true;
    }
    return false;
}

static const char *
unused_name(const mc_node *root, const char *element, const char *wanted, apr_pool_t *pool)
{
    const char *name = wanted;
    for (int n = 2; name_exists(root, element, name); n++)
        name = apr_psprintf(pool, "%s_%d", wanted, n);
    return name;
}

/* Complaints about what was made are about the short form. */
static void
place_nodes(mc_node *node, const mc_node *at, mc_node *parent)
{
    for (; node != NULL; node = node->next) {
        node->file = at->file;
        node->line = at->line;
        node->column = at->column;
        node->parent = parent;
        place_nodes(node->children, at, node);
    }
}

/* The elements of a text; NULL after a complaint. */
static mc_node *
parse_elements(apr_array_header_t *lines, const mc_node *at, data_expansion *e)
{
    mc_node *made;
    const char *inner = apr_array_pstrcat(e->pool, lines, '\0');
    const char *text = apr_pstrcat(e->pool, "<mapcache>", inner, "</mapcache>", NULL);
    mc_error *error = mc_config_parse_text(&made, at->file, text, strlen(text), e->diagnostics, e->pool);
    if (error != MC_OK) {
        mc_complain(e->diagnostics, MC_REFUSED, at, "<data>: %s", mc_error_chain(error, e->pool));
        return NULL;
    }
    place_nodes(made->children, at, e->root);
    return made->children;
}

static mc_node **
last_link(mc_node **link)
{
    while (*link != NULL)
        link = &(*link)->next;
    return link;
}

static void
remove_children(mc_node *node, const char *name)
{
    for (mc_node **link = &node->children; *link != NULL;)
        if (strcmp((*link)->name, name) == 0)
            *link = (*link)->next;
        else
            link = &(*link)->next;
}

static void
adopt_node(mc_node *parent, const mc_node *child, apr_pool_t *pool)
{
    mc_node *copy = apr_pmemdup(pool, child, sizeof(*copy));
    copy->next = NULL;
    copy->parent = parent;
    *last_link(&parent->children) = copy;
}

/* --- what a short form says itself -------------------------------------------------------------------------------- */

/* Its own metadata, and of the data's what it does not say. */
static void
merge_metadata(mc_node *tileset, const mc_node *own, bool vector_tiles, apr_pool_t *pool)
{
    const mc_node *found = mc_node_child(tileset, "metadata");
    mc_node *merged = apr_pmemdup(pool, own, sizeof(*merged));
    merged->children = NULL;
    merged->next = NULL;
    merged->parent = tileset;
    for (const mc_node *child = own->children; child != NULL; child = child->next) {
        mc_node said = *child;
        if (vector_tiles && strcasecmp(said.name, "title") == 0)
            said.text = mc_data_vector_tiles_title(said.text, pool);
        adopt_node(merged, &said, pool);
    }
    for (const mc_node *child = found == NULL ? NULL : found->children; child != NULL; child = child->next) {
        bool said = false;
        for (const mc_node *other = own->children; other != NULL; other = other->next)
            said = said || strcasecmp(other->name, child->name) == 0;
        if (!said)
            adopt_node(merged, child, pool);
    }
    remove_children(tileset, "metadata");
    *last_link(&tileset->children) = merged;
}

/* Only images have these. */
static bool
is_for_images(const char *name)
{
    static const char *const names[] = { "format", "metatile", "metabuffer", "watermark", "density" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool
is_of_data(const char *name)
{
    return strcmp(name, "data") == 0 || strcmp(name, "style") == 0 || strcmp(name, "style_name") == 0;
}

/* Elements of the short form take the places of those that were made. */
static void
override_tileset(mc_node *tileset, const mc_node *own, bool vector_tiles, data_expansion *e)
{
    for (const mc_node *child = own->children; child != NULL; child = child->next)
        if (!is_of_data(child->name) && !(vector_tiles && is_for_images(child->name)))
            remove_children(tileset, strcmp(child->name, "metadata") == 0 ? "" : child->name);
    if (mc_node_child(own, "cache") != NULL && mc_node_child(own, "expires") == NULL)
        remove_children(tileset, "expires");
    if ((mc_node_child(own, "cache") != NULL || mc_node_child(own, "expires") != NULL) &&
        mc_node_child(own, "cache-control") == NULL)
        remove_children(tileset, "cache-control");
    for (const mc_node *child = own->children; child != NULL; child = child->next) {
        if (is_of_data(child->name) || (vector_tiles && is_for_images(child->name)))
            continue;
        if (strcmp(child->name, "metadata") == 0)
            merge_metadata(tileset, child, vector_tiles, e->pool);
        else
            adopt_node(tileset, child, e->pool);
    }
}

/* --- one short form ----------------------------------------------------------------------------------------------- */

static void
tell_layer(const mc_data_layer *layer, const char *name, const mc_node *at, data_expansion *e)
{
    static const char *const kinds[] = { "a raster", "vector data", "stored tiles" };
    const char *box = "at an unknown place", *srs = layer->srs == NULL ? "unknown" : layer->srs;
    if (!e->diagnostics->thorough)
        return;
    if (layer->has_degrees)
        box = apr_psprintf(e->pool, "from %.4f %.4f to %.4f %.4f degrees", layer->degrees.minx, layer->degrees.miny,
                           layer->degrees.maxx, layer->degrees.maxy);
    mc_complain(e->diagnostics, MC_NOTE, at, "tileset \"%s\": %s by \"%s\", CRS %s, %s, details up to level %d%s", name,
                kinds[layer->kind], layer->type, strncmp(srs, "EPSG:", 5) == 0 ? srs : "without a code", box,
                layer->maxzoom,
                layer->kind == MC_DATA_TILES         ? ""
                : mc_node_child(at, "cache") == NULL ? "; drawn for each request, as it has no <cache>"
                                                     : "");
}

/* The elements of a layer, in a list. */
static mc_node *
expand_layer(const mc_data_layer *layer, const char *name, const mc_node *at, data_expansion *e)
{
    apr_array_header_t *lines = apr_array_make(e->pool, 32, sizeof(const char *));
    const mc_node *style = mc_node_child(at, "style"), *style_name = mc_node_child(at, "style_name");
    const char *mvt_name = apr_pstrcat(e->pool, name, "-mvt", NULL);
    bool twice = layer->kind == MC_DATA_VECTOR && mc_node_child(at, "format") == NULL &&
                 !name_exists(e->root, "tileset", mvt_name);
    mc_data_elements elements = { .tileset = name,
                                  .source = unused_name(e->root, layer->kind == MC_DATA_TILES ? "cache" : "source",
                                                        name, e->pool),
                                  .none = e->none,
                                  .mvt = e->mvt,
                                  .style = style == NULL ? NULL : mc_config_path(at->file, style->text, e->pool),
                                  .style_name = style_name == NULL ? NULL : style_name->text };
    mc_data_layer titled = *layer;
    titled.title = mc_data_distinct_title(layer, e->layers, e->layers->nelts, e->pool);
    APR_ARRAY_PUSH(e->layers, const mc_data_layer *) = apr_pmemdup(e->pool, &titled, sizeof(titled));
    layer = &titled;
    mc_data_write_store(lines, layer, &elements);
    mc_data_write_tileset(lines, layer, &elements, false);
    if (twice)
        mc_data_write_tileset(lines, layer, &elements, true);
    mc_node *made = parse_elements(lines, at, e);
    bool vector_tiles = false;
    for (mc_node *node = made; node != NULL; node = node->next)
        if (strcmp(node->name, "tileset") == 0) {
            override_tileset(node, at, vector_tiles, e);
            vector_tiles = true;
        }
    e->vectors =
        e->vectors || layer->kind == MC_DATA_VECTOR || (layer->format != NULL && strcmp(layer->format, "MVT") == 0);
    tell_layer(layer, name, at, e);
    return made;
}

/* A tileset that answers 503, as its source is not there: this is complained of here, and nowhere else. */
static mc_node *
expand_missing(const char *thing, const mc_node *at, const char *why, data_expansion *e)
{
    apr_array_header_t *lines = apr_array_make(e->pool, 8, sizeof(const char *));
    const char *given = mc_node_attr(at, "name");
    const char *name = unused_name(e->root, "tileset", given != NULL ? given : mc_data_name(thing, e->pool), e->pool);
    const mc_data_layer nothing = {
        .kind = MC_DATA_RASTER, .type = "gdal", .title = name, .minzoom = -1, .maxzoom = -1
    };
    mc_data_elements elements = {
        .tileset = name, .source = unused_name(e->root, "source", name, e->pool), .none = e->none, .mvt = e->mvt
    };
    mc_complain(e->diagnostics, MC_NOT_BUILT, mc_node_child(at, "data"),
                "tileset \"%s\" answers 503 until its data are there: %s", name, why);
    APR_ARRAY_PUSH(e->pending, mc_data_pending) = (mc_data_pending){ thing, elements.source };
    mc_data_write_tileset(lines, &nothing, &elements, false);
    mc_node *made = parse_elements(lines, at, e);
    if (made != NULL)
        override_tileset(made, at, false, e);
    return made;
}

/* The name of a layer's tileset: as the short form has it, where the thing is one layer. */
static const char *
name_tileset(const mc_data_layer *layer, int count, const mc_node *at, data_expansion *e)
{
    const char *given = mc_node_attr(at, "name");
    if (layer->tileset != NULL && strcmp(layer->tileset, layer->name) == 0)
        return layer->name;
    const char *name = given == NULL ? layer->name
                       : count == 1  ? given
                                     : apr_pstrcat(e->pool, given, "_", layer->name, NULL);
    return count == 1 && given != NULL ? name : unused_name(e->root, "tileset", name, e->pool);
}

static mc_error *
find_in_time(mc_data_found *found, const char *thing, data_expansion *e)
{
    mc_process process = { 0 };
    mc_ctx ctx = { .pool = e->pool, .process = &process, .deadline = e->until };
    if (mc_clock_now() >= e->until)
        return mc_error_create(e->pool, MC_ERR_UNAVAILABLE, "others took all of the time");
    return mc_data_find(found, thing, NULL, &ctx, e->pool);
}

/* The elements that take the place of a short form. The short form is out of the tree by now. */
static mc_node *
expand_tileset(const mc_node *at, data_expansion *e)
{
    const mc_node *data = mc_node_child(at, "data");
    const char *thing = mc_data_thing_path(at->file, data->text, e->pool);
    mc_data_found found;
    mc_node *made = NULL;
    if (mc_data_is_mapfile(thing, e->pool))
        mc_config_files_note(e->diagnostics->read, thing);
    mc_error *error = find_in_time(&found, thing, e);
    if (error != MC_OK) {
        return expand_missing(thing, at, mc_error_chain(error, e->pool), e);
    }
    for (int i = 0; i < found.notes->nelts; i++)
        mc_complain(e->diagnostics, MC_WARNING, data, "%s", APR_ARRAY_IDX(found.notes, i, const char *));
    for (int i = 0; i < found.layers->nelts; i++) {
        const mc_data_layer *layer = APR_ARRAY_IDX(found.layers, i, const mc_data_layer *);
        *last_link(&made) = expand_layer(layer, name_tileset(layer, found.layers->nelts, at, e), at, e);
    }
    return made;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static bool
is_short_form(const mc_node *node)
{
    return strcmp(node->name, "tileset") == 0 && mc_node_child(node, "data") != NULL;
}

/* A refused short form leaves nothing: whoever reads on complains of nothing else in it. */
static bool
refuse_short_form(const mc_node *node, data_expansion *e)
{
    const mc_node *data = mc_node_child(node, "data");
    if (mc_node_child(node, "source") != NULL)
        mc_complain(e->diagnostics, MC_REFUSED, node, "a <tileset> has either a <source> or <data>");
    else if (*mc_data_thing_path(node->file, data->text == NULL ? "" : data->text, e->pool) == '\0')
        mc_complain(e->diagnostics, MC_REFUSED, data, "a file, a folder, an address or a database is to be named here");
    else
        return false;
    return true;
}

/* Whether a tileset, of a short form or not, has the cache that keeps nothing: not where it names one of its own. */
static bool
is_none_used(const data_expansion *e)
{
    for (const mc_node *node = e->root->children; node != NULL; node = node->next) {
        const mc_node *cache = strcmp(node->name, "tileset") == 0 ? mc_node_child(node, "cache") : NULL;
        if (cache != NULL && cache->text != NULL && strcmp(cache->text, e->none) == 0)
            return true;
    }
    return false;
}

/* What all short forms share, and services. */
static void
add_shared_elements(data_expansion *e)
{
    apr_array_header_t *lines = apr_array_make(e->pool, 8, sizeof(const char *));
    if (is_none_used(e))
        APR_ARRAY_PUSH(lines, const char *) = apr_psprintf(e->pool, "<cache name=\"%s\" type=\"none\"/>", e->none);
    if (e->vectors)
        APR_ARRAY_PUSH(lines, const char *) = apr_psprintf(e->pool, "<format name=\"%s\" type=\"MVT\"/>", e->mvt);
    if (mc_node_child(e->root, "service") == NULL && mc_node_child(e->root, "services") == NULL)
        mc_data_write_services(lines, mc_data_crs_list(e->layers, e->pool));
    *last_link(&e->root->children) = parse_elements(lines, e->root, e);
}

void
mc_data_expand(mc_node *root, apr_array_header_t **pending, double seconds, mc_diagnostics *diagnostics,
               apr_pool_t *pool)
{
    data_expansion e = { .root = root,
                         .diagnostics = diagnostics,
                         .pending = apr_array_make(pool, 1, sizeof(mc_data_pending)),
                         .layers = apr_array_make(pool, 8, sizeof(const mc_data_layer *)),
                         .none = unused_name(root, "cache", "none", pool),
                         .mvt = unused_name(root, "format", "mvt", pool),
                         .until = mc_clock_now() +
                                  (seconds > 0 ? (apr_interval_time_t)(seconds * APR_USEC_PER_SEC) : all_looks),
                         .pool = pool };
    for (mc_node **link = &root->children; *link != NULL;) {
        mc_node *node = *link;
        if (!is_short_form(node)) {
            link = &node->next;
            continue;
        }
        *link = node->next;
        if (refuse_short_form(node, &e))
            continue;
        e.any = true;
        mc_node *made = expand_tileset(node, &e), *rest = *link;
        *link = made;
        link = last_link(link);
        *link = rest;
    }
    if (e.any)
        add_shared_elements(&e);
    *pending = e.pending;
}

bool
mc_data_is_back(const apr_array_header_t *pending, apr_pool_t *pool)
{
    apr_finfo_t info;
    for (int i = 0; i < pending->nelts; i++) {
        const char *thing = APR_ARRAY_IDX(pending, i, mc_data_pending).thing;
        const char *path = apr_pstrndup(pool, thing, strcspn(thing, "#"));
        if (strstr(thing, "://") != NULL || strncmp(thing, "/vsi", 4) == 0 ||
            apr_stat(&info, thing, APR_FINFO_TYPE, pool) == APR_SUCCESS ||
            apr_stat(&info, path, APR_FINFO_TYPE, pool) == APR_SUCCESS)
            return true;
    }
    return false;
}
