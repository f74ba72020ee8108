/*
 * Pixels, codecs and compositing. Pixels are premultiplied B, G, R, A bytes, rows from the top (the memory order that
 * MapCache's blank tiles store).
 */
#ifndef MAPCACHE_IMAGE_H
#define MAPCACHE_IMAGE_H

#include "mapcache/buf.h"
#include "mapcache/config.h"
#include "mapcache/ctx.h"

typedef enum mc_opacity { MC_OPACITY_UNKNOWN, MC_OPAQUE, MC_TRANSLUCENT, MC_EMPTY } mc_opacity;

/* Reference-counted; comes from a per-process free list, so it may change threads. */
typedef struct mc_pixels {
    int width, height;
    size_t stride; /* bytes from row to row */
    uint8_t *data;
    mc_opacity opacity; /* of all pixels, as far as known */
    _Atomic unsigned references;
    size_t capacity;
} mc_pixels;

/* The longest side of any image, in pixels. */
enum { mc_pixels_max = 16384 };

/* One reference, the caller's. MC_ERR_LIMIT beyond `mc_pixels_max` pixels a side or 2^28 in all. cleared: transparent
 * black; else undefined content. */
mc_error *mc_pixels_create(mc_pixels **pixels, int width, int height, bool cleared, apr_pool_t *pool) MC_CHECKED;
mc_pixels *mc_pixels_ref(mc_pixels *pixels);
void mc_pixels_unref(mc_pixels *pixels); /* NULL is ignored */
mc_pixels *mc_pixels_attach(mc_pixels *pixels, apr_pool_t *pool);

/*
 * A rectangle of `source` without a copy: false where it does not lie in the source. The part is for reading, as long
 * as the source lives and is not drawn on; the part has no references and is never released.
 */
bool mc_pixels_part(mc_pixels *part, const mc_pixels *source, int x, int y, int width, int height);

/* Finds out (and remembers in pixels->opacity) whether all, some or no pixels are opaque. */
mc_opacity mc_pixels_opacity(mc_pixels *pixels);

/* Whether all pixels are the same; then *bgra is their colour. */
bool mc_pixels_uniform(const mc_pixels *pixels, uint8_t bgra[4]);

void mc_pixels_fill(mc_pixels *pixels, const uint8_t bgra[4]);

/* A rectangle of `source`, copied to x, y of `target` (clipped): no blending. */
void mc_pixels_copy(mc_pixels *target, int x, int y, const mc_pixels *source);

/* source over target, source's corner at x, y (may be negative; clipped). Updates target->opacity. */
void mc_pixels_over(mc_pixels *target, int x, int y, const mc_pixels *source);

/* source under target: fills the transparent parts of target. True once target is fully opaque. */
bool mc_pixels_under(mc_pixels *target, int x, int y, const mc_pixels *source);

typedef enum mc_resample { MC_NEAREST, MC_BILINEAR } mc_resample;

/*
 * Draws `source` over `target`: pixel centre (i, j) of the target takes the source at
 * (x0 + i * scale_x, y0 + j * scale_y), in source pixels with (0, 0) as the outer corner of the first pixel (so the
 * first target centre is at x0 + scale_x / 2). Bilinear reflects at the source's edges; outside of it nothing is drawn.
 */
void mc_pixels_resample(mc_pixels *target, const mc_pixels *source, double x0, double y0, double scale_x,
                        double scale_y, mc_resample mode);

/* The kind of encoded bytes, by their signature. */
typedef enum mc_coding {
    MC_CODING_UNKNOWN,
    MC_CODING_PNG,
    MC_CODING_JPEG,
    MC_CODING_BLANK, /* '#' B G R A */
    MC_CODING_GZIP,  /* of a vector tile */
    MC_CODING_WEBP
} mc_coding;
mc_coding mc_image_sniff(const void *data, size_t size);
const char *mc_coding_mime(mc_coding coding); /* NULL for unknown */

/* As a <format> of such images is called: "PNG", "JPEG", "WEBP"; NULL for what is no image. */
const char *mc_coding_format(mc_coding coding);

/*
 * Decodes a PNG, JPEG or WebP of any form, also from outside; *pixels has one reference, the caller's. MC_ERR_CORRUPT
 * for truncated or broken bytes, for sides above 16384 and for more than 2^26 pixels in all.
 */
mc_error *mc_image_decode(mc_pixels **pixels, const void *data, size_t size, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/*
 * Decodes and draws over `target`, the image's corner at x, y (may be negative; clipped). A JPEG that lies wholly
 * inside is decoded right into its place. After an error the image's place in `target` holds anything.
 */
mc_error *mc_image_draw(mc_pixels *target, int x, int y, const void *data, size_t size, mc_ctx *ctx,
                        apr_pool_t *pool) MC_CHECKED;

/* Size without decoding. */
mc_error *mc_image_size(int *width, int *height, const void *data, size_t size, apr_pool_t *pool) MC_CHECKED;

/* The palette PNG (colour type 3, 1 bit, tRNS) that stands for a uniform tile; bgra premultiplied, written
 * un-premultiplied. Cached per process by size and colour. */
mc_error *mc_image_blank(mc_buf **png, int width, int height, const uint8_t bgra[4], apr_pool_t *pool) MC_CHECKED;

typedef enum mc_purpose { MC_FOR_STORE, MC_ON_THE_FLY } mc_purpose;

/* How hard a PNG is compressed (docs/reference/configuration.md 10). DEFAULT: nothing configured. */
typedef enum mc_png_compression { MC_PNG_NONE, MC_PNG_FAST, MC_PNG_BEST, MC_PNG_DEFAULT } mc_png_compression;

/* <optimize>. SPLICED: nothing configured; as false, which also keeps tiles fit for mc_jpeg_join. */
typedef enum mc_jpeg_optimize {
    MC_JPEG_OPTIMIZED,
    MC_JPEG_PLAIN,
    MC_JPEG_ARITHMETIC,
    MC_JPEG_SPLICED
} mc_jpeg_optimize;

/* <format> (docs/reference/configuration.md 4). */
typedef struct mc_format mc_format;
struct mc_format_ops {
    const char *type;
    mc_error *(*encode)(mc_buf **bytes, const mc_format *format, mc_pixels *pixels, mc_purpose purpose, mc_ctx *ctx,
                        apr_pool_t *pool);
};

typedef enum mc_format_type {
    MC_FORMAT_PNG,
    MC_FORMAT_JPEG,
    MC_FORMAT_MIXED,
    MC_FORMAT_RAW,
    MC_FORMAT_MVT,
    MC_FORMAT_WEBP
} mc_format_type;

/* How vector tiles are made (Mapbox Vector Tile 2.1). */
typedef struct mc_mvt_options {
    int extent;            /* units of a tile's side, a multiple of 256 */
    int buffer;            /* units around the tile that are part of it */
    double simplification; /* units that a line may be off */
    int max_features;      /* of all layers of a tile */
    apr_int64_t max_bytes; /* of a tile before compression */
    double max_time;       /* seconds for a tile */
    int compression;       /* mc_gzip_level, of any packing */
    int encoding;          /* mc_packing: what stored tiles are packed with */
} mc_mvt_options;

struct mc_format {
    const struct mc_format_ops *ops;
    mc_format_type type;
    const char *name;
    const char *extension;
    const char *mime; /* NULL for mixed: sniffed */
    /* Options of the codecs; each codec reads its own. */
    int compression; /* PNG: mc_png_compression */
    int colors;      /* PNG: 0 true colour, 2..256 palette */
    int quality;     /* JPEG, WEBP: 1..100 */
    int photometric; /* JPEG: 0 ycbcr, 1 rgb */
    int optimize;    /* JPEG: mc_jpeg_optimize; by default fixed tables and a restart interval of one MCU row */
    const mc_format *transparent, *opaque; /* MIXED */
    int alpha_cutoff;                      /* MIXED */
    mc_mvt_options mvt;                    /* MVT */
    bool lossless;                         /* WEBP */
    int effort;                            /* WEBP: 0..6; -1: by purpose */
};

mc_format *mc_format_from_config(const mc_node *node, mc_build *build);
void mc_format_builtins(apr_hash_t *formats, apr_pool_t *pool); /* PNG, PNG8, JPEG, mixed, WEBP */

/* Whether tiles of a format hold pixels: RAW tiles are not decoded, MVT tiles hold vector data. A format NULL (tiles as
 * the source sends them) counts as pixels. */
bool mc_format_is_image(const mc_format *format);

/* How images of a format are coded; MC_CODING_UNKNOWN where they may be one or the other, and for what is no image. */
mc_coding mc_format_coding(const mc_format *format);

/* Whether tiles of a format are vector tiles: MVT, or RAW with the media type of vector tiles. */
bool mc_format_is_vector(const mc_format *format);

/* A new buffer with one reference, attached to `pool`. */
mc_error *mc_format_encode(mc_buf **bytes, const mc_format *format, mc_pixels *pixels, mc_purpose purpose, mc_ctx *ctx,
                           apr_pool_t *pool) MC_CHECKED;

/* A hash of all options of a format that change its output, for validators. */
uint64_t mc_format_tag(const mc_format *format);

/* A sequence of pictures, shown one after the other. */
typedef struct mc_animation {
    mc_pixels *const *frames; /* all of one size; nothing but their `opacity` is written */
    int count;                /* 1..mc_frames_max */
    int delay;                /* ms that each frame stays: 0..65535 */
    int loops;                /* number of times that the animation is played; 0: for ever */
} mc_animation;
enum { mc_frames_max = 4096 };

/*
 * An animated PNG (Portable Network Graphics (PNG) Specification, third edition, 4.9): lossless; programs without
 * animations show the first frame. After the first one, only the rectangle that changed is stored. Its media type is
 * image/apng, and image/png serves as well. Idle workers, if any, help to encode frames. *bytes is a new
 * buffer with one reference, attached to `pool`. MC_ERR_LIMIT for too many frames or bytes.
 */
mc_error *mc_apng_encode(mc_buf **bytes, const mc_animation *animation, mc_purpose purpose, mc_ctx *ctx,
                         apr_pool_t *pool) MC_CHECKED;

/*
 * Joins columns x rows baseline JPEG tiles of equal headers into one JPEG at their restart markers, without decoding
 * (docs/reference/design.md 3.1). *joined is NULL where the tiles do not fit together; tiles of equal tables without
 * markers are transcoded losslessly first. A NULL entry stands for a missing tile and is filled with `background` (R,
 * G, B) when a uniform tile can be made with the same tables, else *joined is NULL. *joined is attached to `pool`.
 */
mc_error *mc_jpeg_join(mc_buf **joined, mc_buf *const *tiles, int columns, int rows, const uint8_t background[3],
                       mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

extern const mc_key mc_format_png_keys[];
extern const mc_key mc_format_jpeg_keys[];
extern const mc_key mc_format_webp_keys[];
extern const mc_key mc_format_mixed_keys[];
extern const mc_key mc_format_raw_keys[];
extern const mc_key mc_format_mvt_keys[];

#endif
