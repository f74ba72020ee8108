/* <formats> of a tileset: its further formats. */
#include <apr_hash.h>
#include <apr_strings.h>
#include <string.h>

#include "base/seldom.h"
#include "compress/packing.h"
#include "tileset/variant.h"

typedef struct variants_config {
    int keeping;
    const char *names;
} variants_config;

const mc_key mc_variants_keys[] = {
    MC_KEY_CHOICE("@kept", offsetof(variants_config, keeping), "asked|rendered|never",
                  "asked: a tile is made of the stored tile of <format> when a client asks for it first, and kept. "
                  "rendered: it is made and stored with that tile. never: it is made for each request.",
                  .flags = MC_KEY_OURS, .fallback = "asked"),
    MC_KEY_TEXT("", offsetof(variants_config, names),
                "Names of formats, with blanks or commas between them: PNG, JPEG or WEBP, each with another extension.",
                .flags = MC_KEY_OURS),
    MC_KEY_END,
};

/* Whether tiles of a format may be coded so: of mixed ones in one of two ways. */
static bool
has_coding(const mc_format *format, mc_coding coding)
{
    if (format->type == MC_FORMAT_MIXED)
        return has_coding(format->transparent, coding) || has_coding(format->opaque, coding);
    return mc_format_coding(format) == coding;
}

/* What is wrong with a further format of that name; NULL: nothing. */
static const char *
refuse_variant(const mc_tileset *tileset, const mc_format *format, apr_pool_t *pool)
{
    if (format == NULL)
        return "no format of this name is declared above it, and none of PNG, PNG8, JPEG, WEBP is called so";
    if (mc_format_coding(format) == MC_CODING_UNKNOWN)
        return "it is neither PNG nor JPEG nor WEBP";
    if (tileset->variant_count == mc_variants_max)
        return apr_psprintf(pool, "a tileset has at most %d further formats", mc_variants_max);
    if (has_coding(tileset->format, mc_format_coding(format)) || mc_tileset_variant(tileset, format->extension) != NULL)
        return apr_psprintf(pool,
                            "another one of its formats has the extension .%s, so that no address tells them apart",
                            format->extension);
    return NULL;
}

static void
tell_variant_cache(const mc_tileset *variant, const mc_node *at, mc_build *build)
{
    for (int i = 0; i < variant->link_count; i++) {
        const mc_cache_use use = { .tileset = variant->name,
                                   .grid = variant->links[i]->grid,
                                   .dimensions = variant->dimension_count > 0,
                                   .extension = mc_tileset_extension(variant),
                                   .further = true };
        mc_cache_used_by(variant->cache, &use, at, build);
    }
}

static void
add_variant(mc_tileset *tileset, const mc_format *format, mc_keeping keeping, const mc_node *at, mc_build *build)
{
    mc_tileset *variant = apr_pmemdup(build->pool, tileset, sizeof(*tileset));
    variant->name = apr_pstrcat(build->pool, tileset->name, "@", format->extension, NULL);
    if (apr_hash_get(build->tilesets, variant->name, APR_HASH_KEY_STRING) != NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, at,
                    "tileset \"%s\" cannot have the format %s: its tiles would be those of tileset \"%s\"",
                    tileset->name, format->name, variant->name);
        return;
    }
    variant->format = format;
    variant->keeping = keeping;
    variant->master = tileset;
    variant->own = &mc_variant_ops;
    variant->variants = NULL;
    variant->variant_count = 0;
    variant->metatile_columns = variant->metatile_rows = 1;
    variant->metabuffer = 0;
    variant->watermark = NULL; /* the first format has it */
    variant->stale_told = apr_pcalloc(build->pool, sizeof(*variant->stale_told));
    tileset->variants[tileset->variant_count++] = variant;
    apr_hash_set(build->tilesets, variant->name, APR_HASH_KEY_STRING, variant);
    if (keeping != MC_KEEP_NEVER && tileset->cache != NULL)
        tell_variant_cache(variant, at, build);
}

/* Whoever wants the best pictures should know. */
static void
note_losses(const mc_tileset *tileset, mc_keeping keeping, const mc_node *at, mc_build *build)
{
    const mc_format *format = tileset->format;
    const char *loses = format->type == MC_FORMAT_JPEG                        ? "JPEG"
                        : format->type == MC_FORMAT_WEBP && !format->lossless ? "WebP without <lossless>"
                        : format->type == MC_FORMAT_PNG && format->colors > 0 ? "PNG of few colours"
                                                                              : NULL;
    if (loses == NULL || keeping == MC_KEEP_RENDERED || !build->diagnostics->thorough)
        return;
    mc_complain(
        build->diagnostics, MC_NOTE, at,
        "tileset \"%s\": its further formats are made of tiles that have lost something already (%s); a lossless"
        " <format>, or kept=\"rendered\", makes better pictures",
        tileset->name, loses);
}

static const char *
refuse_tileset(const mc_tileset *tileset, const mc_build *build)
{
    return build->mirror                            ? "in a mirror mode tilesets have one format"
           : tileset->format == NULL                ? "the tileset needs a <format>"
           : mc_format_is_image(tileset->format)    ? NULL
           : tileset->format->type == MC_FORMAT_MVT ? "vector tiles have one format"
                                                    : "RAW tiles are no pictures";
}

void
mc_variants_from_config(mc_tileset *tileset, const mc_node *formats, mc_build *build)
{
    variants_config config = { 0 };
    if (!mc_config_read(&config, formats, mc_variants_keys, build->diagnostics))
        return;
    const char *why = refuse_tileset(tileset, build);
    if (why != NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, formats, "tileset \"%s\" cannot have <formats>: %s", tileset->name,
                    why);
        return;
    }
    tileset->variants = apr_pcalloc(build->pool, sizeof(mc_tileset *) * mc_variants_max);
    char *rest = apr_pstrdup(build->pool, config.names == NULL ? "" : config.names);
    for (char *name = strsep(&rest, ", \t\r\n"); name != NULL; name = strsep(&rest, ", \t\r\n")) {
        if (*name == '\0')
            continue;
        const mc_format *format = apr_hash_get(build->formats, name, APR_HASH_KEY_STRING);
        why = refuse_variant(tileset, format, build->pool);
        if (why != NULL)
            mc_complain(build->diagnostics, MC_REFUSED, formats, "<formats>: tileset \"%s\" cannot have %s: %s",
                        tileset->name, mc_config_quote(name, build->pool), why);
        else
            add_variant(tileset, format, (mc_keeping)config.keeping, formats, build);
    }
    if (tileset->variant_count == 0 && build->diagnostics->refused == 0)
        mc_complain(build->diagnostics, MC_WARNING, formats, "<formats> of tileset \"%s\" names no format",
                    tileset->name);
    note_losses(tileset, (mc_keeping)config.keeping, formats, build);
}
