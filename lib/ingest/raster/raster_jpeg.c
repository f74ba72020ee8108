/* JPEG images, row by row through libjpeg. */
#include "image/jpeg/jpeg.h"

#include "ingest/raster/raster.h"

typedef struct jpeg_state {
    struct jpeg_decompress_struct reader;
    mc_jpeg_errors errors;
    struct jpeg_progress_mgr progress;
    bool made, begun;
} jpeg_state;

/* False after a jump; then errors.message says why. */
static bool
read_raster_jpeg_head(jpeg_state *state, FILE *file)
{
    if (setjmp(state->errors.jump) != 0)
        return false;
    jpeg_create_decompress(&state->reader);
    state->made = true;
    mc_jpeg_limit(&state->reader, &state->progress);
    jpeg_stdio_src(&state->reader, file);
    jpeg_read_header(&state->reader, TRUE);
    return true;
}

static mc_error *
raster_jpeg_error(const jpeg_state *state, apr_pool_t *pool)
{
    return mc_raster_broken(pool, "not a usable JPEG image: %s", state->errors.message);
}

static mc_error *
jpeg_open(mc_raster *raster, apr_pool_t *pool)
{
    jpeg_state *state = raster->state = apr_pcalloc(raster->pool, sizeof(*state));
    struct jpeg_decompress_struct *reader = &state->reader;
    reader->err = mc_jpeg_errors_init(&state->errors);
    if (!read_raster_jpeg_head(state, raster->file))
        return raster_jpeg_error(state, pool);
    MC_TRY(mc_raster_check_size(reader->image_width, reader->image_height, pool));
    raster->info.width = (int)reader->image_width;
    raster->info.height = (int)reader->image_height;
    raster->info.bands = reader->num_components;
    raster->info.opaque = !raster->options.has_no_data;
    bool four = reader->jpeg_color_space == JCS_CMYK || reader->jpeg_color_space == JCS_YCCK;
    if (four)
        return mc_raster_broken(pool, "its colours are CMYK: convert it to RGB first");
    reader->out_color_space = JCS_EXT_BGRA;
    return MC_OK;
}

static bool
read_raster_jpeg_rows(jpeg_state *state, uint8_t *bgra, size_t stride, int count)
{
    if (setjmp(state->errors.jump) != 0)
        return false;
    if (!state->begun)
        jpeg_start_decompress(&state->reader);
    state->begun = true;
    for (int y = 0; y < count;) {
        JSAMPROW rows[16];
        int some = count - y < 16 ? count - y : 16;
        for (int i = 0; i < some; i++)
            rows[i] = bgra + (size_t)(y + i) * stride;
        y += (int)jpeg_read_scanlines(&state->reader, rows, (JDIMENSION)some);
    }
    if (state->reader.output_scanline == state->reader.output_height)
        jpeg_finish_decompress(&state->reader);
    return true;
}

static mc_error *
jpeg_rows(mc_raster *raster, uint8_t *bgra, size_t stride, int count, apr_pool_t *pool)
{
    jpeg_state *state = raster->state;
    return count == 0 || read_raster_jpeg_rows(state, bgra, stride, count) ? MC_OK : raster_jpeg_error(state, pool);
}

static void
jpeg_close(mc_raster *raster)
{
    jpeg_state *state = raster->state;
    if (state != NULL && state->made)
        jpeg_destroy_decompress(&state->reader);
}

const mc_raster_ops mc_raster_jpeg = { "JPEG", jpeg_open, jpeg_rows, NULL, jpeg_close };
