/*
 * JPEG out through libjpeg: fixed Huffman tables and a restart marker after each row of MCUs unless told otherwise,
 * so that tiles can be joined without decoding, and so that idle workers can encode a large image in strips
 * (jpeg_encode.c).
 */
#include <jerror.h>
#include <stdlib.h>
#include <string.h>

#include "image/jpeg/jpeg_tables.h"

static void
sink_init(j_compress_ptr writer)
{
    mc_jpeg_sink *sink = (mc_jpeg_sink *)(void *)writer->dest;
    sink->data = malloc(sink->capacity);
    if (sink->data == NULL)
        ERREXIT1(writer, JERR_OUT_OF_MEMORY, 10);
    sink->manager.next_output_byte = sink->data;
    sink->manager.free_in_buffer = sink->capacity;
}

/* Called when the buffer is full, whatever the two counters say. */
static boolean
sink_grow(j_compress_ptr writer)
{
    mc_jpeg_sink *sink = (mc_jpeg_sink *)(void *)writer->dest;
    size_t filled = sink->capacity;
    uint8_t *data = realloc(sink->data, filled * 2);
    if (data == NULL)
        ERREXIT1(writer, JERR_OUT_OF_MEMORY, 10);
    sink->data = data;
    sink->capacity = filled * 2;
    sink->manager.next_output_byte = data + filled;
    sink->manager.free_in_buffer = filled;
    return TRUE;
}

static void
sink_finish(j_compress_ptr writer)
{
    mc_jpeg_sink *sink = (mc_jpeg_sink *)(void *)writer->dest;
    sink->size = sink->capacity - sink->manager.free_in_buffer;
}

void
mc_jpeg_destination(struct jpeg_compress_struct *writer, mc_jpeg_sink *sink, size_t expected)
{
    *sink = (mc_jpeg_sink){ .capacity = expected < 4096 ? 4096 : expected };
    sink->manager.init_destination = sink_init;
    sink->manager.empty_output_buffer = sink_grow;
    sink->manager.term_destination = sink_finish;
    writer->dest = &sink->manager;
}

/* One image, or one strip of it, and what must be released. */
typedef struct jpeg_write_encoding {
    struct jpeg_compress_struct writer;
    mc_jpeg_errors errors;
    mc_jpeg_sink sink;
} jpeg_write_encoding;

static void
configure_jpeg_writer(struct jpeg_compress_struct *writer, const mc_format *format)
{
    jpeg_set_defaults(writer);
    if (format->photometric == 1)
        jpeg_set_colorspace(writer, JCS_RGB);
    jpeg_set_quality(writer, format->quality, TRUE);
    if (format->optimize == MC_JPEG_OPTIMIZED)
        writer->optimize_coding = TRUE;
    else if (format->optimize == MC_JPEG_ARITHMETIC)
        writer->arith_code = TRUE;
    else {
        writer->restart_in_rows = 1;
        mc_jpeg_use_trained(writer);
    }
}

/* False after a jump; then e->errors.message says why. */
static bool
encode_all(jpeg_write_encoding *e, const mc_format *format, const mc_jpeg_input *input, int restart)
{
    struct jpeg_compress_struct *writer = &e->writer;
    if (setjmp(e->errors.jump) != 0)
        return false;
    jpeg_create_compress(writer);
    mc_jpeg_destination(writer, &e->sink, (size_t)input->width * (size_t)input->height / 4);
    writer->image_width = (JDIMENSION)input->width;
    writer->image_height = (JDIMENSION)input->height;
    writer->input_components = 4;
    writer->in_color_space = JCS_EXT_BGRX;
    configure_jpeg_writer(writer, format);
    if (restart > 0) {
        writer->restart_in_rows = 0;
        writer->restart_interval = (unsigned)restart;
    }
    jpeg_start_compress(writer, TRUE);
    while (writer->next_scanline < writer->image_height) {
        JSAMPROW rows[16];
        int first = (int)writer->next_scanline, count = input->height - first < 16 ? input->height - first : 16;
        for (int i = 0; i < count; i++)
            rows[i] = input->row(input->baton, first + i);
        jpeg_write_scanlines(writer, rows, (JDIMENSION)count);
    }
    jpeg_finish_compress(writer);
    return true;
}

mc_error *
mc_jpeg_encode_input(mc_jpeg_sink *sink, const mc_format *format, const mc_jpeg_input *input, int restart,
                     apr_pool_t *pool)
{
    jpeg_write_encoding e = { .sink = { .data = NULL } };
    e.writer.err = mc_jpeg_errors_init(&e.errors);
    bool encoded = encode_all(&e, format, input, restart);
    jpeg_destroy_compress(&e.writer);
    *sink = e.sink;
    return encoded ? MC_OK : mc_error_create(pool, MC_ERR_LIMIT, "no JPEG can be made of it: %s", e.errors.message);
}
