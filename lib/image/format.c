/* <format>: its types, their keys, and the formats that are there without being declared. */
#include <apr_hash.h>
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "image/codec.h"

#define VECTOR_TYPE "application/vnd.mapbox-vector-tile"

#define FORMAT_ATTRIBUTES                                                                                              \
    { "@name",                                                                                                         \
      MC_TEXT,                                                                                                         \
      MC_KEY_REQUIRED,                                                                                                 \
      0,                                                                                                               \
      0,                                                                                                               \
      NULL,                                                                                                            \
      NULL,                                                                                                            \
      offsetof(format_text, name),                                                                                     \
      NULL,                                                                                                            \
      "Under which tilesets and services refer to it." },                                                              \
    {                                                                                                                  \
        "@type", MC_TEXT, MC_KEY_REQUIRED, 0, 0, NULL, NULL, offsetof(format_text, type), NULL,                        \
            "PNG, JPEG, MIXED, RAW or MVT."                                                                            \
    }

/* What a configuration says, before names are looked up. */
typedef struct format_text {
    const char *name, *type;
    int compression, colors;
    int quality, photometric, optimize;
    const char *transparent, *opaque;
    int alpha_cutoff;
    const char *extension, *mime_type;
    mc_mvt_options mvt;
} format_text;

const mc_key mc_format_png_keys[] = {
    FORMAT_ATTRIBUTES,
    { "compression", MC_CHOICE, 0, 0, 0, "none|fast|best", NULL, offsetof(format_text, compression), NULL,
      "How hard images are compressed. Without it, stored tiles are compressed well and answers made on the fly "
      "fast." },
    { "colors", MC_INT, 0, 2, 256, NULL, NULL, offsetof(format_text, colors), NULL,
      "Reduce images to a palette of at most so many colours. Without it, no colour is changed." },
    MC_KEY_END
};

const mc_key mc_format_jpeg_keys[] = {
    FORMAT_ATTRIBUTES,
    { "quality", MC_INT, 0, 1, 100, NULL, "95", offsetof(format_text, quality), NULL,
      "From 1 (small) to 100 (close to the original)." },
    { "photometric", MC_CHOICE_CI, 0, 0, 0, "ycbcr|rgb", "ycbcr", offsetof(format_text, photometric), NULL,
      "The colour space that is stored." },
    { "optimize", MC_CHOICE_CI, 0, 0, 0, "true|false|arithmetic", NULL, offsetof(format_text, optimize), NULL,
      "true: Huffman tables made for each image, a few percent smaller. Without it or with false, standard tables and "
      "restart markers, so that maps can be joined from tiles without decoding. Few programs read arithmetic coding." },
    MC_KEY_END
};

const mc_key mc_format_mixed_keys[] = {
    FORMAT_ATTRIBUTES,
    { "transparent", MC_TEXT, MC_KEY_REQUIRED, 0, 0, NULL, NULL, offsetof(format_text, transparent), NULL,
      "The format of images with transparency, declared earlier or builtin." },
    { "opaque", MC_TEXT, MC_KEY_REQUIRED, 0, 0, NULL, NULL, offsetof(format_text, opaque), NULL,
      "The format of images without transparency, declared earlier or builtin." },
    { "alpha_cutoff", MC_INT, 0, 0, 0, NULL, "255", offsetof(format_text, alpha_cutoff), NULL,
      "A pixel whose alpha is below this makes the image a transparent one." },
    MC_KEY_END
};

const mc_key mc_format_raw_keys[] = { FORMAT_ATTRIBUTES,
                                      { "extension", MC_TEXT, 0, 0, 0, NULL, NULL, offsetof(format_text, extension),
                                        NULL, "Of files and keys." },
                                      { "mime_type", MC_TEXT, 0, 0, 0, NULL, NULL, offsetof(format_text, mime_type),
                                        NULL, "The content type that tiles are served with." },
                                      MC_KEY_END };

#define FIELD(member) offsetof(format_text, mvt.member)

const mc_key mc_format_mvt_keys[] = {
    FORMAT_ATTRIBUTES,
    { "extent", MC_INT, MC_KEY_OURS, 256, 16384, NULL, "4096", FIELD(extent), NULL,
      "Units of a tile's side, a multiple of 256." },
    { "buffer", MC_INT, MC_KEY_OURS, 0, 4096, NULL, "64", FIELD(buffer), NULL,
      "Units around the tile whose data is part of it, so that lines and outlines drawn from it have no seams." },
    { "simplification", MC_NUMBER, MC_KEY_OURS, 0, 256, NULL, "1", FIELD(simplification), NULL,
      "Units that simplified lines and rings may be off; 0: only vertices that change nothing are left out." },
    { "max_features", MC_INT, MC_KEY_OURS, 1, 10000000, NULL, "100000", FIELD(max_features), NULL,
      "Features of a tile in all of its layers; the smallest ones above that are left out." },
    { "max_bytes", MC_SIZE, MC_KEY_OURS, 1024, 256.0 * 1024 * 1024, NULL, "8M", FIELD(max_bytes), NULL,
      "Bytes of a tile before compression; the smallest features above that are left out." },
    { "max_time", MC_NUMBER, MC_KEY_OURS, 0.001, 86400, NULL, "20", FIELD(max_time), NULL,
      "Seconds that a tile may take. After that it is answered with 503 and not stored." },
    { "compression", MC_CHOICE, MC_KEY_OURS, 0, 0, "fast|good|best", "fast", FIELD(compression), NULL,
      "How hard tiles are compressed (gzip)." },
    { "extension", MC_TEXT, MC_KEY_OURS, 0, 0, NULL, "mvt", offsetof(format_text, extension), NULL,
      "Of files, keys and addresses." },
    MC_KEY_END
};

#undef FIELD

static bool
png_finish(mc_format *format, const format_text *text, const mc_node *node, mc_build *build)
{
    (void)node, (void)build;
    format->compression = text->compression;
    format->colors = text->colors;
    format->extension = "png";
    format->mime = text->colors > 0 ? "image/png; mode=8bit" : "image/png";
    return true;
}

static bool
jpeg_finish(mc_format *format, const format_text *text, const mc_node *node, mc_build *build)
{
    (void)node, (void)build;
    format->quality = text->quality;
    format->photometric = text->photometric;
    format->optimize = text->optimize;
    format->extension = "jpg";
    format->mime = "image/jpeg";
    return true;
}

static const mc_format *
find_referred_format(const char *element, const char *name, const mc_node *node, mc_build *build)
{
    const mc_format *format = apr_hash_get(build->formats, name, APR_HASH_KEY_STRING);
    const mc_node *at = mc_node_child(node, element);
    if (format == NULL)
        mc_complain(build->diagnostics, MC_REFUSED, at,
                    "<%s>: no format \"%s\" is declared above, and none of PNG, PNG8, JPEG, mixed is called so",
                    element, name);
    else if (!mc_format_is_image(format))
        mc_complain(build->diagnostics, MC_REFUSED, at, "<%s>: format \"%s\" is %s and cannot hold images", element,
                    name, format->type == MC_FORMAT_RAW ? "raw" : "of vector tiles");
    return format == NULL || !mc_format_is_image(format) ? NULL : format;
}

static bool
mixed_finish(mc_format *format, const format_text *text, const mc_node *node, mc_build *build)
{
    format->transparent = find_referred_format("transparent", text->transparent, node, build);
    format->opaque = find_referred_format("opaque", text->opaque, node, build);
    format->alpha_cutoff = text->alpha_cutoff;
    format->extension = "xxx";
    return format->transparent != NULL && format->opaque != NULL;
}

static bool
raw_finish(mc_format *format, const format_text *text, const mc_node *node, mc_build *build)
{
    (void)node, (void)build;
    format->extension = text->extension;
    format->mime = text->mime_type;
    return true;
}

static bool
mvt_finish(mc_format *format, const format_text *text, const mc_node *node, mc_build *build)
{
    format->mvt = text->mvt;
    format->extension = text->extension;
    format->mime = VECTOR_TYPE;
    if (text->mvt.extent % 256 == 0)
        return true;
    mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "extent"),
                "<extent>: %d is no multiple of 256, as 4096 is", text->mvt.extent);
    return false;
}

typedef struct format_kind {
    const struct mc_format_ops *ops;
    mc_format_type type;
    bool any_case; /* of the type's name */
    const mc_key *keys;
    bool (*finish)(mc_format *format, const format_text *text, const mc_node *node, mc_build *build);
} format_kind;

static const format_kind kinds[] = {
    { &mc_format_png_ops, MC_FORMAT_PNG, false, mc_format_png_keys, png_finish },
    { &mc_format_jpeg_ops, MC_FORMAT_JPEG, false, mc_format_jpeg_keys, jpeg_finish },
    { &mc_format_mixed_ops, MC_FORMAT_MIXED, true, mc_format_mixed_keys, mixed_finish },
    { &mc_format_raw_ops, MC_FORMAT_RAW, true, mc_format_raw_keys, raw_finish },
    { &mc_format_mvt_ops, MC_FORMAT_MVT, true, mc_format_mvt_keys, mvt_finish },
};

static const format_kind *
find_format_kind(const char *type)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if ((kinds[i].any_case ? strcasecmp : strcmp)(type, kinds[i].ops->type) == 0)
            return &kinds[i];
    return NULL;
}

mc_format *
mc_format_from_config(const mc_node *node, mc_build *build)
{
    const char *type = mc_node_attr(node, "type");
    if (type == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "<format> needs a type: PNG, JPEG, MIXED, RAW or MVT");
        return NULL;
    }
    const format_kind *kind = find_format_kind(type);
    if (kind == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "<format>: type \"%s\" is none of PNG, JPEG (in capitals), MIXED, RAW, MVT", type);
        return NULL;
    }
    format_text text = { .compression = MC_PNG_DEFAULT, .optimize = MC_JPEG_SPLICED };
    if (!mc_config_read(&text, node, kind->keys, build->diagnostics))
        return NULL;
    mc_format *format = apr_pcalloc(build->pool, sizeof(*format));
    format->ops = kind->ops;
    format->type = kind->type;
    format->name = apr_pstrdup(build->pool, text.name);
    return kind->finish(format, &text, node, build) ? format : NULL;
}

static mc_format *
add_builtin(apr_hash_t *formats, apr_pool_t *pool, const mc_format *model)
{
    mc_format *format = apr_pmemdup(pool, model, sizeof(*model));
    apr_hash_set(formats, format->name, APR_HASH_KEY_STRING, format);
    return format;
}

void
mc_format_builtins(apr_hash_t *formats, apr_pool_t *pool)
{
    const mc_format *png = add_builtin(formats, pool,
                                       &(mc_format){ .ops = &mc_format_png_ops,
                                                     .type = MC_FORMAT_PNG,
                                                     .name = "PNG",
                                                     .extension = "png",
                                                     .mime = "image/png",
                                                     .compression = MC_PNG_FAST });
    add_builtin(formats, pool,
                &(mc_format){ .ops = &mc_format_png_ops,
                              .type = MC_FORMAT_PNG,
                              .name = "PNG8",
                              .extension = "png",
                              .mime = "image/png; mode=8bit",
                              .compression = MC_PNG_FAST,
                              .colors = 256 });
    const mc_format *jpeg = add_builtin(formats, pool,
                                        &(mc_format){ .ops = &mc_format_jpeg_ops,
                                                      .type = MC_FORMAT_JPEG,
                                                      .name = "JPEG",
                                                      .extension = "jpg",
                                                      .mime = "image/jpeg",
                                                      .quality = 90,
                                                      .optimize = MC_JPEG_SPLICED });
    add_builtin(formats, pool,
                &(mc_format){ .ops = &mc_format_mixed_ops,
                              .type = MC_FORMAT_MIXED,
                              .name = "mixed",
                              .extension = "xxx",
                              .transparent = png,
                              .opaque = jpeg,
                              .alpha_cutoff = 255 });
}

mc_error *
mc_format_encode(mc_buf **bytes, const mc_format *format, mc_pixels *pixels, mc_purpose purpose, mc_ctx *ctx,
                 apr_pool_t *pool)
{
    return format->ops->encode(bytes, format, pixels, purpose, ctx, pool);
}

bool
mc_format_is_image(const mc_format *format)
{
    return format == NULL || (format->type != MC_FORMAT_RAW && format->type != MC_FORMAT_MVT);
}

bool
mc_format_is_vector(const mc_format *format)
{
    if (format == NULL || mc_format_is_image(format))
        return false;
    return format->type == MC_FORMAT_MVT ||
           (format->mime != NULL &&
            (strcmp(format->mime, VECTOR_TYPE) == 0 || strcmp(format->mime, "application/x-protobuf") == 0));
}
