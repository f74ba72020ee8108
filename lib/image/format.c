/* <format>: its types, their keys, and the formats that are there without being declared. */
#include <apr_hash.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "compress/packing.h"
#include "image/codec.h"
#include "text/text.h"

#define VECTOR_TYPE "application/vnd.mapbox-vector-tile"

#define FORMAT_ATTRIBUTES                                                                                              \
    MC_KEY_TEXT("@name", offsetof(format_text, name), "Under which tilesets and services refer to it.",                \
                .flags = MC_KEY_REQUIRED),                                                                             \
        MC_KEY_TEXT("@type", offsetof(format_text, type), "PNG, JPEG, WEBP, MIXED, RAW or MVT.",                       \
                    .flags = MC_KEY_REQUIRED)

/* What a configuration says, before names are looked up. */
typedef struct format_text {
    const char *name, *type;
    int compression, colors;
    int quality, photometric, optimize;
    bool lossless;
    int effort;
    const char *transparent, *opaque;
    int alpha_cutoff;
    const char *extension, *mime_type;
    mc_mvt_options mvt;
} format_text;

const mc_key mc_format_png_keys[] = {
    FORMAT_ATTRIBUTES,
    MC_KEY_CHOICE(
        "compression", offsetof(format_text, compression), "none|fast|best",
        "How hard images are compressed. Without it, stored tiles are compressed well and answers made on the fly "
        "fast."),
    MC_KEY_INT("colors", offsetof(format_text, colors),
               "Reduce images to a palette of at most so many colours. Without it, no colour is changed.", .min = 2,
               .max = 256),
    MC_KEY_END
};

const mc_key mc_format_jpeg_keys[] = {
    FORMAT_ATTRIBUTES,
    MC_KEY_INT("quality", offsetof(format_text, quality), "From 1 (small) to 100 (close to the original).", .min = 1,
               .max = 100, .fallback = "95"),
    MC_KEY_CHOICE_CI("photometric", offsetof(format_text, photometric), "ycbcr|rgb", "The colour space that is stored.",
                     .fallback = "ycbcr"),
    MC_KEY_CHOICE_CI("optimize", offsetof(format_text, optimize), "true|false|arithmetic",
                     "true: Huffman tables made for each image, two or three percent smaller. Without it or with "
                     "false, fixed tables and "
                     "restart markers, so that maps can be joined from tiles without decoding. Few programs read "
                     "arithmetic coding."),
    MC_KEY_END
};

const mc_key mc_format_webp_keys[] = {
    FORMAT_ATTRIBUTES,
    MC_KEY_INT("quality", offsetof(format_text, quality), "From 1 (small) to 100 (close to the original).",
               .flags = MC_KEY_OURS, .min = 1, .max = 100, .fallback = "80"),
    MC_KEY_BOOL("lossless", offsetof(format_text, lossless),
                "Every pixel stays as it is, in fewer bytes than a PNG has; the quality is not looked at.",
                .flags = MC_KEY_OURS),
    MC_KEY_INT(
        "effort", offsetof(format_text, effort),
        "From 0 (fast) to 6 (small). Without it, stored tiles are compressed well (4) and answers made on the fly "
        "fast (1, lossless 0).",
        .flags = MC_KEY_OURS, .min = 0, .max = 6),
    MC_KEY_END
};

const mc_key mc_format_mixed_keys[] = {
    FORMAT_ATTRIBUTES,
    MC_KEY_TEXT("transparent", offsetof(format_text, transparent),
                "The format of images with transparency, declared earlier or builtin.", .flags = MC_KEY_REQUIRED),
    MC_KEY_TEXT("opaque", offsetof(format_text, opaque),
                "The format of images without transparency, declared earlier or builtin.", .flags = MC_KEY_REQUIRED),
    MC_KEY_INT("alpha_cutoff", offsetof(format_text, alpha_cutoff),
               "A pixel whose alpha is below this makes the image a transparent one.", .fallback = "255"),
    MC_KEY_END
};

const mc_key mc_format_raw_keys[] = {
    FORMAT_ATTRIBUTES, MC_KEY_TEXT("extension", offsetof(format_text, extension), "Of files and keys."),
    MC_KEY_LINE("mime_type", offsetof(format_text, mime_type), "The content type that tiles are served with."),
    MC_KEY_END
};

#define FIELD(member) offsetof(format_text, mvt.member)

const mc_key mc_format_mvt_keys[] = {
    FORMAT_ATTRIBUTES,
    MC_KEY_INT("extent", FIELD(extent), "Units of a tile's side, a multiple of 256.", .flags = MC_KEY_OURS, .min = 256,
               .max = 16384, .fallback = "4096"),
    MC_KEY_INT(
        "buffer", FIELD(buffer),
        "Units around the tile whose data is part of it, so that lines and outlines drawn from it have no seams.",
        .flags = MC_KEY_OURS, .max = 4096, .fallback = "64"),
    MC_KEY_NUMBER(
        "simplification", FIELD(simplification),
        "Units that simplified lines and rings may be off; 0: only vertices that change nothing are left out.",
        .flags = MC_KEY_OURS, .max = 256, .fallback = "1"),
    MC_KEY_INT("max_features", FIELD(max_features),
               "Features of a tile in all of its layers; the smallest ones above that are left out.",
               .flags = MC_KEY_OURS, .min = 1, .max = 10000000, .fallback = "100000"),
    MC_KEY_SIZE("max_bytes", FIELD(max_bytes),
                "Bytes of a tile before compression; the smallest features above that are left out.",
                .flags = MC_KEY_OURS, .min = 1024, .max = 64.0 * 1024 * 1024, .fallback = "8M"),
    MC_KEY_NUMBER("max_time", FIELD(max_time),
                  "Seconds that a tile may take. After that it is answered with 503 and not stored.",
                  .flags = MC_KEY_OURS, .min = 0.001, .max = 86400, .fallback = "20"),
    MC_KEY_CHOICE("compression", FIELD(compression), "fast|good|best", "How hard tiles are compressed.",
                  .flags = MC_KEY_OURS, .fallback = "fast"),
    MC_KEY_CHOICE("encoding", FIELD(encoding), MC_PACKING_CHOICES,
                  "What stored tiles are compressed with. Clients that do not accept brotli or zstd get gzip, made for "
                  "each request, or what is expanded (docs/formats.md).",
                  .flags = MC_KEY_OURS, .fallback = "gzip"),
    MC_KEY_TEXT("extension", offsetof(format_text, extension), "Of files, keys and addresses.", .flags = MC_KEY_OURS,
                .fallback = "mvt"),
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

static bool
webp_finish(mc_format *format, const format_text *text, const mc_node *node, mc_build *build)
{
    (void)node, (void)build;
    format->quality = text->quality;
    format->lossless = text->lossless;
    format->effort = text->effort;
    format->extension = "webp";
    format->mime = "image/webp";
    return true;
}

static const mc_format *
find_referred_format(const char *element, const char *name, const mc_node *node, mc_build *build)
{
    const mc_format *format = apr_hash_get(build->formats, name, APR_HASH_KEY_STRING);
    const mc_node *at = mc_node_child(node, element);
    if (format == NULL)
        mc_complain(build->diagnostics, MC_REFUSED, at,
                    "<%s>: no format \"%s\" is declared above, and none of PNG, PNG8, JPEG, WEBP, mixed is called so",
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
    { &mc_format_webp_ops, MC_FORMAT_WEBP, true, mc_format_webp_keys, webp_finish },
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

static const char *
list_format_types(apr_pool_t *pool)
{
    const char *list = "";
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        list = apr_pstrcat(pool, list, i == 0 ? "" : ", ", kinds[i].ops->type, NULL);
    return list;
}

/* "jpg", "png8": the end of a complaint; "" where no type is like it. */
static const char *
suggest_format_type(const char *type, apr_pool_t *pool)
{
    char *upper = apr_pstrdup(pool, type);
    for (char *at = upper; *at != '\0'; at++)
        *at = (char)apr_toupper(*at);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (mc_text_distance(upper, kinds[i].ops->type) <= 1)
            return apr_psprintf(pool, "; did you mean \"%s\"?", kinds[i].ops->type);
    return "";
}

mc_format *
mc_format_from_config(const mc_node *node, mc_build *build)
{
    const char *type = mc_node_attr(node, "type");
    if (type == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "a format needs the attribute type: one of %s",
                    list_format_types(build->pool));
        return NULL;
    }
    const format_kind *kind = find_format_kind(type);
    if (kind == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "no format has the type %s: it is one of %s (PNG and JPEG in capitals)%s",
                    mc_config_quote(type, build->pool), list_format_types(build->pool),
                    suggest_format_type(type, build->pool));
        return NULL;
    }
    format_text text = { .compression = MC_PNG_DEFAULT, .optimize = MC_JPEG_SPLICED, .effort = -1 };
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
    const mc_format png = { .ops = &mc_format_png_ops,
                            .type = MC_FORMAT_PNG,
                            .name = "PNG",
                            .extension = "png",
                            .mime = "image/png",
                            .compression = MC_PNG_FAST };
    const mc_format jpeg = { .ops = &mc_format_jpeg_ops,
                             .type = MC_FORMAT_JPEG,
                             .name = "JPEG",
                             .extension = "jpg",
                             .mime = "image/jpeg",
                             .quality = 90,
                             .optimize = MC_JPEG_SPLICED };
    const mc_format webp = { .ops = &mc_format_webp_ops,
                             .type = MC_FORMAT_WEBP,
                             .name = "WEBP",
                             .extension = "webp",
                             .mime = "image/webp",
                             .quality = 80,
                             .effort = -1 };
    mc_format mixed = { .ops = &mc_format_mixed_ops,
                        .type = MC_FORMAT_MIXED,
                        .name = "mixed",
                        .extension = "xxx",
                        .alpha_cutoff = 255 },
              png8 = png;
    png8.name = "PNG8";
    png8.mime = "image/png; mode=8bit";
    png8.colors = 256;
    mixed.transparent = add_builtin(formats, pool, &png);
    mixed.opaque = add_builtin(formats, pool, &jpeg);
    add_builtin(formats, pool, &png8);
    add_builtin(formats, pool, &webp);
    add_builtin(formats, pool, &mixed);
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

mc_coding
mc_format_coding(const mc_format *format)
{
    switch (format->type) {
    case MC_FORMAT_PNG:
        return MC_CODING_PNG;
    case MC_FORMAT_JPEG:
        return MC_CODING_JPEG;
    case MC_FORMAT_WEBP:
        return MC_CODING_WEBP;
    case MC_FORMAT_MIXED:
    case MC_FORMAT_RAW:
    case MC_FORMAT_MVT:
        break;
    }
    return MC_CODING_UNKNOWN;
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
