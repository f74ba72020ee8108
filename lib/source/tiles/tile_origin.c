/* Servers of tiles as the configuration has them. */
#include "source/tiles/tile_origin.h"

#include <apr_strings.h>
#include <string.h>

#include "source/origin_send.h"

static apr_array_header_t *
split_words(const char *text, apr_pool_t *pool)
{
    static const char blanks[] = " \t\r\n";
    apr_array_header_t *words = apr_array_make(pool, 8, sizeof(const char *));
    for (text += strspn(text, blanks); *text != '\0'; text += strspn(text, blanks)) {
        size_t length = strcspn(text, blanks);
        APR_ARRAY_PUSH(words, const char *) = apr_pstrmemdup(pool, text, length);
        text += length;
    }
    return words;
}

static bool
read_subdomains(mc_tile_origin *origin, const mc_node *node, mc_build *build)
{
    if (origin->subdomains_text == NULL)
        return true;
    apr_array_header_t *words = split_words(origin->subdomains_text, build->pool);
    if (words->nelts == 0) {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "subdomains"),
                    "<subdomains> needs names, separated by blanks: a b c");
        return false;
    }
    APR_ARRAY_PUSH(words, const char *) = NULL;
    origin->url_rules.subdomains = (const char *const *)words->elts;
    return true;
}

static bool
read_limits(mc_tile_origin *origin, const mc_node *node, mc_build *build)
{
    if (origin->extent_numbers.count == 4) {
        const double *n = origin->extent_numbers.values;
        origin->extent = (mc_extent){ n[0], n[1], n[2], n[3] };
        if (!mc_extent_valid(&origin->extent)) {
            mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "extent"),
                        "<extent>: minx and miny must be less than maxx and maxy");
            return false;
        }
    }
    for (int i = 0; i < origin->absent_statuses.count; i++) {
        double status = origin->absent_statuses.values[i];
        if (status == 204 || (status >= 400 && status <= 499 && status == (int)status && status != 429))
            continue;
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "absent_status"),
                    "statuses that say that there is no tile are 204 and whole numbers from 400 to 499, but for 429");
        return false;
    }
    if (origin->maxzoom >= 0 && origin->maxzoom < origin->minzoom) {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "maxzoom"),
                    "<maxzoom> %d is less than <minzoom> %d", origin->maxzoom, origin->minzoom);
        return false;
    }
    return true;
}

bool
mc_tile_origin_read(mc_tile_origin *origin, const mc_source_ops *ops, const mc_node *node, mc_build *build)
{
    if (!mc_source_read(&origin->base, ops, node, build))
        return false;
    origin->base.source.cascades = true;
    origin->base.source.tiles_as_sent = true;
    origin->base.source.no_vector_tiles = NULL; /* where the server has vector tiles */
    origin->http = mc_http_block_from_config(origin->http_tree, build);
    bool read = read_subdomains(origin, node, build);
    read = read_limits(origin, node, build) && read;
    if (origin->matrix != NULL && strstr(origin->matrix, "{z}") == NULL)
        origin->matrices = split_words(origin->matrix, build->pool);
    if (origin->http != NULL && origin->http->circuit_breaker)
        origin->base.source.endpoint = mc_origin_endpoint(origin->http->url, build->pool);
    return read && origin->http != NULL;
}

static bool
is_range_end(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* {a-c}, as OpenLayers writes it, is {s} with <subdomains>a b c</subdomains>. */
static const char *
expand_subdomain_range(mc_tile_origin *origin, const char *text, apr_pool_t *pool)
{
    const char *range = strstr(text, "://");
    do
        range = range == NULL ? NULL : strchr(range + 1, '{');
    while (range != NULL && !(is_range_end(range[1]) && range[2] == '-' && is_range_end(range[3]) && range[4] == '}'));
    if (range == NULL || origin->url_rules.subdomains != NULL || range[1] > range[3])
        return text;
    apr_array_header_t *names = apr_array_make(pool, 4, sizeof(const char *));
    for (char name = range[1]; name <= range[3]; name++)
        if (is_range_end(name))
            APR_ARRAY_PUSH(names, const char *) = apr_pstrmemdup(pool, &name, 1);
    APR_ARRAY_PUSH(names, const char *) = NULL;
    origin->url_rules.subdomains = (const char *const *)names->elts;
    return apr_pstrcat(pool, apr_pstrmemdup(pool, text, (size_t)(range - text)), "{s}", range + 5, NULL);
}

bool
mc_tile_origin_set_url(mc_tile_origin *origin, const char *text, mc_build *build)
{
    text = expand_subdomain_range(origin, text, build->pool);
    const mc_node *at = mc_node_child(origin->http_tree, "url");
    origin->url = mc_tile_url_compile(text, &origin->url_rules, at, build);
    return origin->url != NULL;
}

void
mc_tile_origin_connect(mc_source *source, const mc_node *node, mc_build *build)
{
    mc_tile_origin *origin = (mc_tile_origin *)source;
    if (origin->grid_name == NULL)
        return;
    origin->grid =
        mc_config_find(build->grids, "grid", origin->grid_name, mc_node_child(node, "grid"), build->diagnostics);
    if (origin->grid == NULL)
        return;
    int levels = origin->grid->level_count;
    if (origin->minzoom >= levels || origin->maxzoom >= levels)
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "source \"%s\": grid \"%s\" has the levels 0 to %d; <minzoom> and <maxzoom> are among these",
                    source->name, origin->grid_name, levels - 1);
    if (origin->matrices != NULL && origin->matrices->nelts != levels)
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "matrix"),
                    "<matrix> names %d levels, but grid \"%s\" has %d; a pattern with {z} names all of them",
                    origin->matrices->nelts, origin->grid_name, levels);
}
