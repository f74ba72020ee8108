/* What services cannot offer as a client would expect: names that no address can hold, limits that no document can
 * tell. */
#include <string.h>

#include "service/service_base.h"

/* The element of that kind and name; of builtin ones the root. */
static const mc_node *
find_named_node(const mc_node *root, const char *kind, const char *name)
{
    for (const mc_node *node = mc_node_child(root, kind); node != NULL; node = mc_node_next(node)) {
        const char *own = mc_node_attr(node, "name");
        if (own != NULL && strcmp(own, name) == 0)
            return node;
    }
    return root;
}

static bool
has_path_service(const mc_config *config)
{
    static const char *const types[] = { "tms", "wmts", "gmaps", "kml", "mapguide", "ogcapi" };
    for (int i = 0; i < config->services->nelts; i++)
        for (size_t j = 0; j < sizeof(types) / sizeof(types[0]); j++)
            if (strcmp(APR_ARRAY_IDX(config->services, i, const mc_service *)->ops->type, types[j]) == 0)
                return true;
    return false;
}

/* Everything else is encoded and comes back as it was; of a slash a web server makes another path, or refuses it. */
static void
check_path_name(const char *what, const char *name, const char *more, const mc_node *at, mc_diagnostics *diagnostics)
{
    if (strchr(name, '/') == NULL && strpbrk(name, more) == NULL && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
        return;
    mc_complain(diagnostics, diagnostics->thorough ? MC_REFUSED : MC_WARNING, at,
                "the name \"%s\" of this %s cannot be part of a path: addresses of tiles with it do not work", name,
                what);
}

static void
check_tileset_limits(const mc_tileset *tileset, const mc_node *at, mc_diagnostics *diagnostics)
{
    for (int i = 0; i < tileset->link_count; i++) {
        const mc_grid_link *link = tileset->links[i];
        if (mc_wmts_is_limited(link) && !mc_wmts_limits_are_valid(link))
            mc_complain(
                diagnostics, MC_WARNING, at,
                "the strict wmts service cannot tell the limits of tileset \"%s\" in grid \"%s\": they begin at "
                "row or column 0, which the schema of the standard has not, so that clients ask for tiles "
                "outside of them and get 400; a grid with the extent and the levels of the data needs no limits",
                tileset->name, link->grid->name);
    }
}

static void
check_metadata_link(const mc_metadata *metadata, const mc_node *at, mc_diagnostics *diagnostics)
{
    const mc_metadata *parts = metadata != NULL ? mc_metadata_nested(metadata, "metadataurl") : NULL;
    const char *type = mc_meta(parts, "type");
    if (parts != NULL && mc_meta(parts, "url") == NULL)
        mc_complain(diagnostics, MC_WARNING, at, "<metadataurl> has no <url>: it is left out of capabilities");
    if (type != NULL && strcmp(type, "iso") != 0 && strcmp(type, "fgdc") != 0)
        mc_complain(diagnostics, MC_WARNING, at, "<metadataurl>: <type> \"%s\" should be iso or fgdc; iso is taken",
                    type);
}

void
mc_services_check(mc_config *config, const mc_node *root, mc_diagnostics *diagnostics)
{
    const mc_call call = { .config = config };
    const mc_service *wmts = mc_call_service(&call, "wmts");
    bool by_path = config->mode == MC_MODE_NORMAL && has_path_service(config);
    config->names_use_separators = mc_layers_use_separators(config);
    check_metadata_link(config->metadata, mc_node_child(root, "metadata"), diagnostics);
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *);
        const mc_node *at = find_named_node(root, "tileset", tileset->name);
        check_metadata_link(tileset->metadata, at, diagnostics);
        if (by_path)
            check_path_name("tileset", tileset->name, "", at, diagnostics);
        for (int j = 0; by_path && j < tileset->dimension_count; j++)
            check_path_name("dimension", tileset->dimensions[j]->name, "=]{}", at, diagnostics);
        if (wmts != NULL && wmts->strict && diagnostics->thorough)
            check_tileset_limits(tileset, at, diagnostics);
    }
    for (int i = 0; by_path && i < config->grids->nelts; i++) {
        const mc_grid *grid = APR_ARRAY_IDX(config->grids, i, const mc_grid *);
        check_path_name("grid", grid->name, "", find_named_node(root, "grid", grid->name), diagnostics);
    }
}
