/* What a tileset has to be like for its <format>, told when the configuration is read. */
#include <apr_strings.h>
#include <string.h>

#include "compress/packing.h"
#include "mapcache/upkeep.h"
#include "tileset/tileset_private.h"
#include "vector/mvt/mvt.h"

static void
look_for_pictures(void *baton, mc_cache *part)
{
    const char **type = baton;
    if (part->ops->pictures_only)
        *type = part->ops->type;
}

static void
look_for_mbtiles(void *baton, mc_cache *part)
{
    const char **name = baton;
    if (strcmp(part->ops->type, "mbtiles") == 0)
        *name = part->name;
}

/* MBTiles 1.3, "Content": vector tiles are gzip. */
static void
warn_of_packing(const mc_tileset *tileset, const mc_node *node, mc_build *build)
{
    const char *name = NULL;
    if (tileset->cache != NULL && tileset->format->mvt.encoding != MC_PACKED_GZIP)
        mc_cache_parts(tileset->cache, look_for_mbtiles, &name);
    if (name != NULL)
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "tileset \"%s\" stores tiles with an <encoding> other than gzip in cache \"%s\" of type mbtiles:"
                    " other programs cannot read them (pmtiles archives may have brotli and zstd)",
                    tileset->name, name);
}

/* NULL: it has them, or there is no source. */
static const char *
why_source_has_no_vector_tiles(const mc_tileset *tileset, mc_build *build)
{
    mc_source *source = tileset->source;
    const char *why = source == NULL ? NULL : source->no_vector_tiles;
    if (source == NULL || why != NULL || source->ops->no_vector_tiles == NULL)
        return why;
    for (int i = 0; i < tileset->link_count && why == NULL; i++)
        why = source->ops->no_vector_tiles(source, tileset->links[i]->grid, build);
    return why;
}

/* Vector tiles are made by a source that can; nothing is drawn on them or made of them. */
static void
check_vector_tiles(const mc_tileset *tileset, const mc_node *node, mc_build *build)
{
    const char *why = tileset->metatile_columns * tileset->metatile_rows > MC_MVT_TILES
                          ? "a <metatile> of more than 256 tiles"
                      : tileset->metabuffer > 0               ? "a <metabuffer> (the format has a <buffer>)"
                      : tileset->watermark != NULL            ? "a <watermark>"
                      : tileset->assembly != MC_ASSEMBLE_NONE ? "an <assembly_type>"
                                                              : NULL;
    for (int i = 0; i < tileset->link_count && why == NULL; i++)
        if (tileset->links[i]->max_cached_zoom >= 0 && tileset->links[i]->strategy == MC_REASSEMBLE)
            why = "a max-cached-zoom whose out-of-zoom-strategy is not proxy";
    const char *pictures = NULL;
    if (tileset->cache != NULL)
        mc_cache_parts(tileset->cache, look_for_pictures, &pictures);
    if (pictures != NULL && why == NULL)
        why = apr_psprintf(build->pool, "a cache of type %s, which holds pictures (mbtiles can)", pictures);
    if (why != NULL)
        mc_complain(build->diagnostics, MC_REFUSED, node, "tileset \"%s\" has vector tiles: it cannot have %s",
                    tileset->name, why);
    const char *lacks = why_source_has_no_vector_tiles(tileset, build);
    if (lacks != NULL)
        mc_complain(build->diagnostics, MC_REFUSED, node, "tileset \"%s\": its source \"%s\" makes no vector tiles: %s",
                    tileset->name, tileset->source->name, lacks);
}

void
mc_tileset_check_format(const mc_tileset *tileset, const mc_node *node, mc_build *build)
{
    bool metatiled = tileset->metatile_columns != 1 || tileset->metatile_rows != 1;
    if (tileset->format != NULL && tileset->format->type == MC_FORMAT_MVT) {
        check_vector_tiles(tileset, node, build);
        warn_of_packing(tileset, node, build);
        return;
    }
    if (tileset->source != NULL && tileset->source->no_images != NULL)
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "tileset \"%s\" needs a <format> of type MVT: its source \"%s\" draws no maps: %s", tileset->name,
                    tileset->source->name, tileset->source->no_images);
    if (tileset->format == NULL) {
        const char *why = metatiled ? "<metatile>" : tileset->metabuffer > 0 ? "<metabuffer>" : NULL;
        if (tileset->watermark != NULL)
            why = "<watermark>";
        if (why != NULL)
            mc_complain(build->diagnostics, MC_REFUSED, node, "tileset \"%s\" needs a <format> because it has a %s",
                        tileset->name, why);
        else if (tileset->source != NULL && tileset->source->needs_format)
            mc_complain(build->diagnostics, MC_REFUSED, node,
                        "tileset \"%s\" needs a <format> because its source \"%s\" draws pixels", tileset->name,
                        tileset->source->name);
    } else if (tileset->format->type == MC_FORMAT_RAW &&
               (metatiled || tileset->metabuffer > 0 || tileset->watermark != NULL)) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "tileset \"%s\" is RAW: it can have neither metatiles nor a metabuffer nor a watermark",
                    tileset->name);
    }
}
