/*
 * Makes one JPEG of many without decoding. A restart marker resets the predictors and aligns the code to bytes, so
 * where each tile has one after every row of MCUs, those rows can be put side by side as they are; only the size in the
 * frame header and the markers' numbers change. Tiles without markers, or with Huffman tables of their own, are first
 * coded anew from their coefficients, which loses nothing.
 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/workers.h"
#include "image/codec.h"
#include "image/jpeg/jpeg_header.h"
#include "image/jpeg/jpeg_tables.h"

enum { JPEG_SIDE_MAX = 65500, TILE_SIDE_MAX = 4096, TILES_MAX = 65536 };

/* One place of the mosaic. Missing ones share the background's single segment. */
typedef struct jpeg_join_piece {
    mc_jpeg_parts parts;
    size_t *offsets; /* of its segments; NULL: missing */
} jpeg_join_piece;

typedef struct mosaic {
    jpeg_join_piece *pieces;
    int count, columns, rows;
    const jpeg_join_piece *model; /* whose header all have, but for codes that they do not need */
    mc_jpeg_header header;        /* the same with the codes that any of them has, */
    bool united;                  /* unless its tables are not where ours are: then all have the very same */
    const uint8_t *fill;          /* the segment of a row of MCUs in the background's colour */
    size_t fill_size;
    apr_pool_t *pool; /* scratch */
} mosaic;

static bool
fits_alone(const mc_jpeg_parts *parts)
{
    return parts->width % parts->unit_width == 0 && parts->height % parts->unit_height == 0 &&
           parts->restart_interval == parts->width / parts->unit_width;
}

static void
take_model(mosaic *m, const jpeg_join_piece *p)
{
    m->model = p;
    m->united = mc_jpeg_header_read(&m->header, &p->parts);
}

/* Whether a tile's code can stand under the model's header, which gets the codes that it lacks. */
static bool
shares_header(mosaic *m, const mc_jpeg_parts *tile)
{
    const mc_jpeg_parts *model = &m->model->parts;
    mc_jpeg_header header;
    if (tile->scan == model->scan && memcmp(tile->data, model->data, model->scan) == 0)
        return true;
    return m->united && mc_jpeg_header_read(&header, tile) && mc_jpeg_header_unite(&m->header, &header);
}

/* A transcoding of one tile and what it must release after a jump. */
typedef struct transcoding {
    struct jpeg_decompress_struct reader;
    struct jpeg_compress_struct writer;
    mc_jpeg_errors errors;
    struct jpeg_progress_mgr progress;
    mc_jpeg_sink sink;
} transcoding;

/* Which Huffman tables tiles get: those that our own tiles of their quantisation have, or the standard ones, which have
 * a code for everything. */
typedef enum tile_tables { TABLES_TRAINED, TABLES_STANDARD } tile_tables;

/* What transcoded tiles have in common: tiles of another size are not even read. */
typedef struct tile_form {
    int width, height;
    tile_tables tables;
} tile_form;

static bool
transcode_all(transcoding *t, const mc_buf *tile, const tile_form *form)
{
    if (setjmp(t->errors.jump) != 0)
        return false;
    jpeg_create_decompress(&t->reader);
    jpeg_create_compress(&t->writer);
    mc_jpeg_limit(&t->reader, &t->progress);
    mc_jpeg_source(&t->reader, tile->data, tile->size);
    jpeg_read_header(&t->reader, TRUE);
    if ((int)t->reader.image_width != form->width || (int)t->reader.image_height != form->height)
        return false;
    jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&t->reader);
    mc_jpeg_destination(&t->writer, &t->sink, tile->size + tile->size / 8);
    jpeg_copy_critical_parameters(&t->reader, &t->writer);
    t->writer.optimize_coding = FALSE;
    t->writer.arith_code = FALSE;
    t->writer.restart_in_rows = 1;
    if (form->tables == TABLES_TRAINED) {
        mc_jpeg_use_trained(&t->writer);
        if (!mc_jpeg_codes_all(&t->reader, coefficients, &t->writer))
            return false;
    }
    /* The density says nothing about map tiles, but would keep headers from being equal. */
    t->writer.density_unit = 0;
    t->writer.X_density = t->writer.Y_density = 1;
    t->writer.JFIF_minor_version = 1;
    jpeg_write_coefficients(&t->writer, coefficients);
    jpeg_finish_compress(&t->writer);
    jpeg_finish_decompress(&t->reader);
    return true;
}

/* The same coefficients with other tables and a restart marker after each row of MCUs: a reference, the caller's. NULL
 * when that fails. */
static mc_buf *
transcode_jpeg_tile(const mc_buf *tile, const tile_form *form)
{
    transcoding t = { .sink = { .data = NULL } };
    t.reader.err = t.writer.err = mc_jpeg_errors_init(&t.errors);
    bool done = transcode_all(&t, tile, form);
    jpeg_destroy_compress(&t.writer);
    jpeg_destroy_decompress(&t.reader);
    mc_buf *copy = done ? mc_buf_copy(t.sink.data, t.sink.size) : NULL;
    free(t.sink.data);
    return copy;
}

/* Tiles to be transcoded, and what has become of them. */
typedef struct jpeg_join_batch {
    mc_buf *const *tiles;
    mc_buf **copies;
    const int *wanted; /* which tiles */
    const tile_form *form;
} jpeg_join_batch;

static mc_error *
transcode_job(void *baton, int index, mc_ctx *ctx)
{
    const jpeg_join_batch *b = baton;
    MC_TRY(mc_ctx_check(ctx, ctx->pool));
    int i = b->wanted[index];
    b->copies[i] = transcode_jpeg_tile(b->tiles[i], b->form);
    return MC_OK;
}

/* Fills `copies` of the `count` tiles that are wanted; idle workers help. They are attached to m->pool. */
static mc_error *
transcode_many(mc_buf **copies, const mosaic *m, mc_buf *const *tiles, const int *wanted, int count,
               const tile_form *form, mc_ctx *ctx)
{
    mc_workers *workers = ctx->process == NULL ? NULL : ctx->process->workers;
    jpeg_join_batch b = { tiles, copies, wanted, form };
    mc_error *error = MC_OK;
    if (workers != NULL)
        error = mc_workers_run(workers, transcode_job, &b, count, mc_workers_spare(workers), ctx, m->pool);
    for (int i = 0; i < count && workers == NULL; i++)
        error = transcode_job(&b, i, ctx);
    for (int i = 0; i < count; i++)
        if (copies[wanted[i]] != NULL)
            mc_buf_attach(copies[wanted[i]], m->pool);
    return error;
}

static bool
parse_jpeg_piece(jpeg_join_piece *p, const mc_buf *tile)
{
    return mc_jpeg_parse(&p->parts, tile->data, tile->size) && fits_alone(&p->parts);
}

/* Takes the tiles as they are. False where headers differ or a tile has not the form. */
static bool
take_native(mosaic *m, mc_buf *const *tiles)
{
    m->model = NULL;
    for (int i = 0; i < m->count; i++) {
        if (tiles[i] == NULL)
            continue;
        if (!parse_jpeg_piece(&m->pieces[i], tiles[i]))
            return false;
        if (m->model == NULL)
            take_model(m, &m->pieces[i]);
        else if (!shares_header(m, &m->pieces[i].parts))
            return false;
    }
    return m->model != NULL;
}

static bool
is_like_model(mosaic *m, jpeg_join_piece *p, const mc_buf *tile)
{
    return parse_jpeg_piece(p, tile) && shares_header(m, &p->parts);
}

/* After the first one is transcoded, the tiles that have its header need no transcoding: with trained tables, these are
 * the ones that our own encoder wrote. */
static mc_error *
take_with_tables(bool *taken, mosaic *m, mc_buf *const *tiles, tile_tables tables, mc_ctx *ctx)
{
    mc_buf **copies = apr_pcalloc(m->pool, sizeof(*copies) * (size_t)m->count);
    int *wanted = apr_palloc(m->pool, sizeof(*wanted) * (size_t)m->count), count = 0, first = 0;
    *taken = false;
    while (first < m->count && tiles[first] == NULL)
        first++;
    tile_form form = { .tables = tables };
    if (first == m->count ||
        mc_jpeg_size(&form.width, &form.height, tiles[first]->data, tiles[first]->size, m->pool) != MC_OK ||
        form.width > TILE_SIDE_MAX || form.height > TILE_SIDE_MAX)
        return MC_OK;
    MC_TRY(transcode_many(copies, m, tiles, &first, 1, &form, ctx));
    if (copies[first] == NULL || !parse_jpeg_piece(&m->pieces[first], copies[first]))
        return MC_OK;
    take_model(m, &m->pieces[first]);
    for (int i = first + 1; i < m->count; i++)
        if (tiles[i] != NULL && !is_like_model(m, &m->pieces[i], tiles[i]))
            wanted[count++] = i;
    MC_TRY(transcode_many(copies, m, tiles, wanted, count, &form, ctx));
    for (int i = 0; i < count; i++)
        if (copies[wanted[i]] == NULL || !is_like_model(m, &m->pieces[wanted[i]], copies[wanted[i]]))
            return MC_OK;
    *taken = true;
    return MC_OK;
}

/* Encoders that overshoot leave coefficients for which trained tables have no code. */
static mc_error *
take_transcoded(bool *taken, mosaic *m, mc_buf *const *tiles, mc_ctx *ctx)
{
    MC_TRY(take_with_tables(taken, m, tiles, TABLES_TRAINED, ctx));
    return *taken ? MC_OK : take_with_tables(taken, m, tiles, TABLES_STANDARD, ctx);
}

static int
unit_rows(const mosaic *m)
{
    return m->model->parts.height / m->model->parts.unit_height;
}

static bool
find_segments(mosaic *m, mc_buf *const *tiles)
{
    int segments = unit_rows(m);
    for (int i = 0; i < m->count; i++) {
        if (tiles[i] == NULL)
            continue;
        jpeg_join_piece *p = &m->pieces[i];
        p->offsets = apr_palloc(m->pool, sizeof(size_t) * (size_t)(segments + 1));
        if (!mc_jpeg_segments(p->offsets, segments, &p->parts))
            return false;
    }
    return true;
}

/* libjpeg divides by what a file's quantisation tables hold when it encodes with them. */
static bool
can_quantize(const struct jpeg_decompress_struct *reader)
{
    for (int c = 0; c < reader->num_components; c++) {
        int number = reader->comp_info[c].quant_tbl_no;
        const JQUANT_TBL *table = number < 0 || number >= NUM_QUANT_TBLS ? NULL : reader->quant_tbl_ptrs[number];
        for (int i = 0; i < DCTSIZE2; i++)
            if (table == NULL || table->quantval[i] == 0)
                return false;
    }
    return true;
}

/* The tables of the model itself may lack codes that a background needs. */
static bool
use_tables_of_model(transcoding *t)
{
    for (int i = 0; i < NUM_HUFF_TBLS; i++) {
        if (t->reader.dc_huff_tbl_ptrs[i] != NULL && t->writer.dc_huff_tbl_ptrs[i] != NULL)
            *t->writer.dc_huff_tbl_ptrs[i] = *t->reader.dc_huff_tbl_ptrs[i];
        if (t->reader.ac_huff_tbl_ptrs[i] != NULL && t->writer.ac_huff_tbl_ptrs[i] != NULL)
            *t->writer.ac_huff_tbl_ptrs[i] = *t->reader.ac_huff_tbl_ptrs[i];
    }
    for (int c = 0; c < t->writer.num_components; c++) {
        t->writer.comp_info[c].dc_tbl_no = t->reader.comp_info[c].dc_tbl_no;
        t->writer.comp_info[c].ac_tbl_no = t->reader.comp_info[c].ac_tbl_no;
    }
    return true;
}

/* The trained ones: false where the model's components have others. */
static bool
use_tables_of_ours(transcoding *t)
{
    for (int c = 0; c < t->writer.num_components; c++)
        if (t->writer.comp_info[c].dc_tbl_no != t->reader.comp_info[c].dc_tbl_no ||
            t->writer.comp_info[c].ac_tbl_no != t->reader.comp_info[c].ac_tbl_no)
            return false;
    mc_jpeg_use_trained(&t->writer);
    return true;
}

static bool
encode_background(transcoding *t, const mosaic *m, const uint8_t rgb[3], bool (*use_tables)(transcoding *t))
{
    const mc_jpeg_parts *model = &m->model->parts;
    if (setjmp(t->errors.jump) != 0)
        return false;
    jpeg_create_decompress(&t->reader);
    jpeg_create_compress(&t->writer);
    mc_jpeg_source(&t->reader, model->data, model->end + 2);
    jpeg_read_header(&t->reader, TRUE);
    if (!can_quantize(&t->reader))
        return false;
    mc_jpeg_destination(&t->writer, &t->sink, 4096);
    t->writer.in_color_space = JCS_RGB;
    t->writer.input_components = 3;
    jpeg_copy_critical_parameters(&t->reader, &t->writer);
    t->writer.in_color_space = JCS_RGB;
    t->writer.input_components = 3;
    t->writer.image_width = (JDIMENSION)model->width;
    t->writer.image_height = (JDIMENSION)model->unit_height;
    if (!use_tables(t))
        return false;
    uint8_t *row = apr_palloc(m->pool, (size_t)model->width * 3);
    for (int x = 0; x < model->width; x++)
        memcpy(row + (size_t)x * 3, rgb, 3);
    jpeg_start_compress(&t->writer, TRUE);
    while (t->writer.next_scanline < t->writer.image_height)
        jpeg_write_scanlines(&t->writer, &row, 1);
    jpeg_finish_compress(&t->writer);
    return true;
}

/* One row of MCUs in the background's colour. */
static bool
make_fill_by(mosaic *m, const uint8_t rgb[3], bool (*use_tables)(transcoding *t))
{
    transcoding t = { .sink = { .data = NULL } };
    t.reader.err = t.writer.err = mc_jpeg_errors_init(&t.errors);
    bool done = encode_background(&t, m, rgb, use_tables);
    jpeg_destroy_compress(&t.writer);
    jpeg_destroy_decompress(&t.reader);
    mc_jpeg_parts parts;
    done = done && mc_jpeg_parse(&parts, t.sink.data, t.sink.size);
    if (done && use_tables == use_tables_of_ours) {
        uint8_t *header = apr_pmemdup(m->pool, parts.data, parts.scan);
        mc_jpeg_header ours;
        parts.data = header;
        done = m->united && mc_jpeg_header_read(&ours, &parts) && mc_jpeg_tables_unite(&m->header, &ours);
        parts.data = t.sink.data;
    }
    if (done) {
        m->fill_size = parts.end - parts.scan;
        m->fill = apr_pmemdup(m->pool, parts.data + parts.scan, m->fill_size);
    }
    free(t.sink.data);
    return done;
}

/* Tiles of ours lack codes that they do not need, and the background may need. */
static bool
make_fill(mosaic *m, const uint8_t rgb[3])
{
    return make_fill_by(m, rgb, use_tables_of_ours) || make_fill_by(m, rgb, use_tables_of_model);
}

/* A segment of a piece, by its row of MCUs. */
static size_t
find_piece_segment(const uint8_t **segment, const mosaic *m, const jpeg_join_piece *p, int row)
{
    if (p->offsets == NULL) {
        *segment = m->fill;
        return m->fill_size;
    }
    *segment = p->parts.data + p->offsets[row];
    return p->offsets[row + 1] - 2 - p->offsets[row];
}

static size_t
joined_size(const mosaic *m)
{
    size_t size = (m->united ? mc_jpeg_header_size(&m->header) : m->model->parts.scan) + 2;
    for (int i = 0; i < m->count; i++) {
        const jpeg_join_piece *p = &m->pieces[i];
        size += p->offsets == NULL ? (m->fill_size + 2) * (size_t)unit_rows(m) : p->parts.end + 2 - p->parts.scan;
    }
    return size;
}

/* *result is a reference, the caller's, also after an error. */
static mc_error *
splice_jpeg_mosaic(mc_buf **result, const mosaic *m)
{
    const mc_jpeg_parts *model = &m->model->parts;
    size_t size = joined_size(m);
    mc_buf *joined = *result = mc_buf_create(size, size);
    MC_TRY(mc_buf_reserve(joined, size, m->pool));
    uint8_t *out = joined->data;
    size_t header = model->scan;
    if (m->united)
        header = mc_jpeg_header_write(out, &m->header);
    else
        memcpy(out, model->data, header);
    unsigned height = (unsigned)(model->height * m->rows), width = (unsigned)(model->width * m->columns);
    uint8_t *frame = out + model->frame;
    frame[0] = (uint8_t)(height >> 8);
    frame[1] = (uint8_t)height;
    frame[2] = (uint8_t)(width >> 8);
    frame[3] = (uint8_t)width;
    out += header;
    unsigned marker = 0;
    for (int tile_row = 0; tile_row < m->rows; tile_row++) {
        for (int row = 0; row < unit_rows(m); row++) {
            for (int column = 0; column < m->columns; column++) {
                const uint8_t *segment;
                size_t length = find_piece_segment(&segment, m, &m->pieces[tile_row * m->columns + column], row);
                memcpy(out, segment, length);
                out[length] = 0xff;
                out[length + 1] = (uint8_t)(0xd0 + (marker++ & 7));
                out += length + 2;
            }
        }
    }
    out[-1] = 0xd9; /* the last restart marker becomes the end of the image */
    joined->size = (size_t)(out - joined->data);
    return MC_OK;
}

static bool
size_fits(const mosaic *m)
{
    const mc_jpeg_parts *model = &m->model->parts;
    return model->width <= TILE_SIDE_MAX && model->height <= TILE_SIDE_MAX &&
           (int64_t)model->width * m->columns <= JPEG_SIDE_MAX && (int64_t)model->height * m->rows <= JPEG_SIDE_MAX;
}

static mc_error *
join_jpeg_mosaic(mc_buf **joined, mosaic *m, mc_buf *const *tiles, const uint8_t background[3], mc_ctx *ctx)
{
    bool missing = false;
    for (int i = 0; i < m->count; i++)
        missing |= tiles[i] == NULL;
    bool native = take_native(m, tiles), taken = native;
    if (!native)
        MC_TRY(take_transcoded(&taken, m, tiles, ctx));
    if (!taken || !size_fits(m) || !find_segments(m, tiles))
        return MC_OK;
    /* Tables made for one tile may lack the codes that the background needs. */
    if (missing && !make_fill(m, background)) {
        taken = false;
        if (native)
            MC_TRY(take_transcoded(&taken, m, tiles, ctx));
        if (!taken || !find_segments(m, tiles) || !make_fill(m, background))
            return MC_OK;
    }
    return splice_jpeg_mosaic(joined, m);
}

mc_error *
mc_jpeg_join(mc_buf **joined, mc_buf *const *tiles, int columns, int rows, const uint8_t background[3], mc_ctx *ctx,
             apr_pool_t *pool)
{
    *joined = NULL;
    MC_ASSERT(columns > 0 && rows > 0);
    if ((int64_t)columns * rows > TILES_MAX)
        return MC_OK;
    apr_pool_t *scratch;
    apr_pool_create(&scratch, ctx->pool);
    mosaic m = { .count = columns * rows, .columns = columns, .rows = rows, .pool = scratch };
    m.pieces = apr_pcalloc(scratch, sizeof(jpeg_join_piece) * (size_t)m.count);
    mc_buf *result = NULL;
    mc_error *error = mc_error_copy(join_jpeg_mosaic(&result, &m, tiles, background, ctx), pool);
    apr_pool_destroy(scratch);
    if (result != NULL)
        *joined = mc_buf_attach(result, pool);
    return error;
}
