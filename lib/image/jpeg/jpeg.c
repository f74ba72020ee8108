/* JPEG in through libjpeg, straight to our pixel order; and how libjpeg's errors and sources are kept in hand. */
#include "image/jpeg/jpeg.h"

#include <jerror.h>
#include <string.h>

#include "image/codec.h"
#include "memory/scratch.h"

enum { SCANS_MAX = 100 };

static _Noreturn void
jump_on_jpeg_error(j_common_ptr codec)
{
    mc_jpeg_errors *errors = (mc_jpeg_errors *)(void *)codec->err;
    codec->err->format_message(codec, errors->message);
    longjmp(errors->jump, 1);
}

static void
on_message(j_common_ptr codec, int level)
{
    int code = codec->err->msg_code;
    if (level >= 0)
        return;
    /* Oddities around the image, not lost parts of it. */
    if (code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR)
        return;
    jump_on_jpeg_error(codec);
}

static void
on_output(j_common_ptr codec)
{
    (void)codec;
}

struct jpeg_error_mgr *
mc_jpeg_errors_init(mc_jpeg_errors *errors)
{
    jpeg_std_error(&errors->manager);
    errors->manager.error_exit = jump_on_jpeg_error;
    errors->manager.emit_message = on_message;
    errors->manager.output_message = on_output;
    errors->message[0] = '\0';
    return &errors->manager;
}

static void
source_nothing(j_decompress_ptr reader)
{
    (void)reader;
}

static boolean
source_fill(j_decompress_ptr reader)
{
    ERREXIT(reader, JERR_INPUT_EOF);
    return FALSE;
}

static void
source_skip(j_decompress_ptr reader, long count)
{
    if (count <= 0)
        return;
    if ((size_t)count > reader->src->bytes_in_buffer)
        ERREXIT(reader, JERR_INPUT_EOF);
    reader->src->next_input_byte += count;
    reader->src->bytes_in_buffer -= (size_t)count;
}

void
mc_jpeg_source(struct jpeg_decompress_struct *reader, const uint8_t *data, size_t size)
{
    struct jpeg_source_mgr *source =
        reader->mem->alloc_small((j_common_ptr)reader, JPOOL_PERMANENT, sizeof(struct jpeg_source_mgr));
    *source = (struct jpeg_source_mgr){ .next_input_byte = data,
                                        .bytes_in_buffer = size,
                                        .init_source = source_nothing,
                                        .fill_input_buffer = source_fill,
                                        .skip_input_data = source_skip,
                                        .resync_to_restart = jpeg_resync_to_restart,
                                        .term_source = source_nothing };
    reader->src = source;
}

/* Each scan of a progressive file goes over the whole image, however small the scan is. */
static void
on_progress(j_common_ptr codec)
{
    if (codec->is_decompressor && ((j_decompress_ptr)codec)->input_scan_number > SCANS_MAX)
        ERREXIT(codec, JERR_OUT_OF_MEMORY);
}

void
mc_jpeg_limit(struct jpeg_decompress_struct *reader, struct jpeg_progress_mgr *progress)
{
    *progress = (struct jpeg_progress_mgr){ .progress_monitor = on_progress };
    reader->progress = progress;
    reader->mem->max_memory_to_use = 1L << 29;
}

/* What a decoding must release after a jump. */
typedef struct jpeg_decoding {
    mc_pixels *target; /* where the image may go, its corner at x, y; NULL: to pixels of its own */
    int x, y;
    struct jpeg_decompress_struct reader;
    mc_jpeg_errors errors;
    struct jpeg_progress_mgr progress;
    mc_pixels part; /* of the target */
    mc_pixels *pixels;
    int left, top, right, bottom; /* what of the image falls into the target, when not all of it does */
    uint8_t *line;                /* scratch: a row of such an image */
    mc_error *error;
} jpeg_decoding;

/* How much around a part is decoded with it: the colours of neighbouring MCUs reach over its edge. */
enum { MARGIN = 16 };

static int
clamp_jpeg_coordinate(int value, int maximum)
{
    return value < 0 ? 0 : value < maximum ? value : maximum;
}

/* d->pixels: the image's place in the target if it lies wholly inside, pixels of its own without a target. Else d->line
 * for one row after the other. */
static mc_error *
find_room(jpeg_decoding *d, int width, int height, apr_pool_t *pool)
{
    const mc_pixels *target = d->target;
    if (target == NULL)
        return mc_pixels_create(&d->pixels, width, height, false, pool);
    d->left = clamp_jpeg_coordinate(-d->x, width);
    d->top = clamp_jpeg_coordinate(-d->y, height);
    d->right = clamp_jpeg_coordinate(target->width - d->x, width);
    d->bottom = clamp_jpeg_coordinate(target->height - d->y, height);
    if (d->right - d->left < width || d->bottom - d->top < height) {
        d->line = mc_scratch_acquire((size_t)width * 4);
        return d->line != NULL ? MC_OK : mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for %d pixels", width);
    }
    d->part.width = width;
    d->part.height = height;
    d->part.stride = target->stride;
    d->part.data = target->data + (size_t)d->y * target->stride + (size_t)d->x * 4;
    d->pixels = &d->part;
    return MC_OK;
}

/* CMYK as its writers mean it: Adobe's are inverted, so that each channel is how much of the colour is left. */
static void
convert_cmyk(uint8_t *row, int count, bool inverted)
{
    for (int x = 0; x < count; x++, row += 4) {
        unsigned ink[4];
        for (int c = 0; c < 4; c++)
            ink[c] = inverted ? row[c] : 255u - row[c];
        for (int c = 0; c < 3; c++)
            row[c] = (uint8_t)((ink[2 - c] * ink[3] + 127) / 255);
        row[3] = 255;
    }
}

static void
decode_jpeg_rows(jpeg_decoding *d)
{
    struct jpeg_decompress_struct *reader = &d->reader;
    bool cmyk = reader->out_color_space == JCS_CMYK;
    while (reader->output_scanline < reader->output_height) {
        uint8_t *rows[8];
        int first = (int)reader->output_scanline, count = d->pixels->height - first;
        if (count > 8)
            count = 8;
        for (int i = 0; i < count; i++)
            rows[i] = d->pixels->data + (size_t)(first + i) * d->pixels->stride;
        int read = (int)jpeg_read_scanlines(reader, rows, (JDIMENSION)count);
        for (int i = 0; cmyk && i < read; i++)
            convert_cmyk(rows[i], d->pixels->width, reader->saw_Adobe_marker);
    }
}

/* Decodes the rows and columns that are wanted, and little else; what follows them is not looked at. */
static void
decode_jpeg_part(jpeg_decoding *d)
{
    struct jpeg_decompress_struct *reader = &d->reader;
    JDIMENSION first = d->left > MARGIN ? (JDIMENSION)(d->left - MARGIN) : 0;
    JDIMENSION end = (JDIMENSION)d->right + MARGIN, width = reader->output_width;
    width = (end < width ? end : width) - first;
    bool cmyk = reader->out_color_space == JCS_CMYK;
    /* Progressive images are in memory as a whole by now, and libjpeg-turbo is not sure of parts of them. */
    if (reader->progressive_mode) {
        first = 0;
    } else {
        jpeg_crop_scanline(reader, &first, &width);
        jpeg_skip_scanlines(reader, (JDIMENSION)d->top);
    }
    while ((int)reader->output_scanline < d->bottom) {
        int y = (int)reader->output_scanline;
        jpeg_read_scanlines(reader, &d->line, 1);
        if (y < d->top)
            continue;
        uint8_t *part = d->line + (size_t)(d->left - (int)first) * 4;
        if (cmyk)
            convert_cmyk(part, d->right - d->left, reader->saw_Adobe_marker);
        memcpy(d->target->data + (size_t)(d->y + y) * d->target->stride + (size_t)(d->x + d->left) * 4, part,
               (size_t)(d->right - d->left) * 4);
    }
}

/* False after a jump (then d->errors.message says why) or with d->error set. */
static bool
decode_jpeg_data(jpeg_decoding *d, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    struct jpeg_decompress_struct *reader = &d->reader;
    if (setjmp(d->errors.jump) != 0)
        return false;
    jpeg_create_decompress(reader);
    mc_jpeg_limit(reader, &d->progress);
    mc_jpeg_source(reader, data, size);
    jpeg_read_header(reader, TRUE);
    d->error = mc_decode_check_size(reader->image_width, reader->image_height, pool);
    if (d->error != MC_OK)
        return false;
    bool four = reader->jpeg_color_space == JCS_CMYK || reader->jpeg_color_space == JCS_YCCK;
    reader->out_color_space = four ? JCS_CMYK : JCS_EXT_BGRA;
    d->error = find_room(d, (int)reader->image_width, (int)reader->image_height, pool);
    if (d->error != MC_OK)
        return false;
    if (d->line != NULL && (d->left >= d->right || d->top >= d->bottom))
        return true;
    jpeg_start_decompress(reader);
    if (d->line != NULL) {
        decode_jpeg_part(d);
        return true;
    }
    decode_jpeg_rows(d);
    jpeg_finish_decompress(reader);
    return true;
}

/* d->pixels holds the image, opaque, unless it went to its place by d->line; nothing after an error. */
static mc_error *
run_jpeg_decoder(jpeg_decoding *d, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    d->reader.err = mc_jpeg_errors_init(&d->errors);
    bool decoded = decode_jpeg_data(d, data, size, pool);
    jpeg_destroy_decompress(&d->reader);
    mc_scratch_release(d->line);
    if (decoded) {
        if (d->pixels != NULL)
            d->pixels->opacity = MC_OPAQUE;
        return MC_OK;
    }
    if (d->pixels != &d->part)
        mc_pixels_unref(d->pixels);
    return d->error != MC_OK ? d->error
                             : mc_error_create(pool, MC_ERR_CORRUPT, "not a usable JPEG image: %s", d->errors.message);
}

mc_error *
mc_jpeg_decode(mc_pixels **pixels, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    jpeg_decoding d = { .target = NULL };
    MC_TRY(run_jpeg_decoder(&d, data, size, pool));
    *pixels = d.pixels;
    return MC_OK;
}

mc_error *
mc_jpeg_draw(mc_pixels *target, int x, int y, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    jpeg_decoding d = { .target = target, .x = x, .y = y };
    MC_TRY(run_jpeg_decoder(&d, data, size, pool));
    bool whole = d.right - d.left == target->width && d.bottom - d.top == target->height;
    if (whole)
        target->opacity = MC_OPAQUE;
    else if (target->opacity != MC_OPAQUE && d.left < d.right && d.top < d.bottom)
        target->opacity = MC_OPACITY_UNKNOWN;
    return MC_OK;
}
