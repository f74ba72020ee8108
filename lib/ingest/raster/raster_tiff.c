/*
 * TIFF images through libtiff, in a module of its own: a strip or a row of tiles at a time, in whatever form the file
 * has them, by libtiff's own conversion to eight bits.
 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>

#include "ingest/raster/raster.h"
#include "text/text.h"

#define STRIP_BYTES ((int64_t)1 << 30)

enum { TAG_SCALE = 33550, TAG_TIEPOINTS = 33922, TAG_MATRIX = 34264, TAG_KEYS = 34735, TAG_NO_DATA = 42113 };

typedef struct tiff_state {
    TIFF *tiff;
    bool tiled;
    uint32_t tile_width, tile_height; /* of a strip: the image's width */
    uint32_t *strip;                  /* R, G, B, A of the rows that were read last, from the top */
    uint32_t *tile;
    int first, count;    /* rows of the image in `strip` */
    char complaint[160]; /* of libtiff; empty: none */
} tiff_state;

static const TIFFFieldInfo geo_fields[] = {
    { TAG_SCALE, TIFF_VARIABLE, TIFF_VARIABLE, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1, (char *)"ModelPixelScale" },
    { TAG_TIEPOINTS, TIFF_VARIABLE, TIFF_VARIABLE, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1, (char *)"ModelTiepoint" },
    { TAG_MATRIX, TIFF_VARIABLE, TIFF_VARIABLE, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1, (char *)"ModelTransformation" },
    { TAG_KEYS, TIFF_VARIABLE, TIFF_VARIABLE, TIFF_SHORT, FIELD_CUSTOM, 1, 1, (char *)"GeoKeyDirectory" },
    { TAG_NO_DATA, TIFF_VARIABLE, TIFF_VARIABLE, TIFF_ASCII, FIELD_CUSTOM, 1, 0, (char *)"GDAL_NODATA" },
};

static TIFFExtendProc others; /* who else in the process knows tags */

static void
add_fields(TIFF *tiff)
{
    TIFFMergeFieldInfo(tiff, geo_fields, sizeof(geo_fields) / sizeof(geo_fields[0]));
    if (others != NULL)
        others(tiff);
}

/* The module is loaded once, before anything is opened through it. */
static __attribute__((constructor)) void
register_tiff_tags(void)
{
    others = TIFFSetTagExtender(add_fields);
}

static int keep_tiff_complaint(TIFF *tiff, void *baton, const char *module, const char *format, va_list args)
    MC_PRINTF(4, 0);

/* The first complaint of a step: what follows is its consequence. */
static int
keep_tiff_complaint(TIFF *tiff, void *baton, const char *module, const char *format, va_list args)
{
    tiff_state *state = baton;
    (void)tiff, (void)module;
    if (state->complaint[0] == '\0')
        vsnprintf(state->complaint, sizeof(state->complaint), format, args);
    return 1;
}

static int
ignore_tiff_warning(TIFF *tiff, void *baton, const char *module, const char *format, va_list args)
{
    (void)tiff, (void)baton, (void)module, (void)format, (void)args;
    return 1;
}

static mc_error *
raster_tiff_error(const tiff_state *state, const char *what, apr_pool_t *pool)
{
    const char *why = state->complaint[0] == '\0' ? what : mc_message_text(state->complaint, 150, pool);
    return mc_raster_broken(pool, "not a usable TIFF image: %s", why);
}

/* Without mapping: the file may be cut short meanwhile. */
static mc_error *
open_tiff(tiff_state *state, const char *path, apr_pool_t *pool)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (options != NULL) {
        TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)STRIP_BYTES);
        TIFFOpenOptionsSetErrorHandlerExtR(options, keep_tiff_complaint, state);
        TIFFOpenOptionsSetWarningHandlerExtR(options, ignore_tiff_warning, state);
        state->tiff = TIFFOpenExt(path, "rm", options);
    }
    TIFFOpenOptionsFree(options);
    return state->tiff != NULL ? MC_OK : raster_tiff_error(state, "it cannot be opened", pool);
}

static mc_error *
read_place(mc_raster *raster, TIFF *tiff, apr_pool_t *pool)
{
    mc_geotiff_tags tags = { 0 };
    uint16_t count = 0;
    double *numbers = NULL;
    uint16_t *keys = NULL;
    if (TIFFGetField(tiff, TAG_SCALE, &count, &numbers))
        tags.scale = numbers, tags.scale_count = count;
    if (TIFFGetField(tiff, TAG_TIEPOINTS, &count, &numbers))
        tags.tiepoints = numbers, tags.tiepoint_count = count;
    if (TIFFGetField(tiff, TAG_MATRIX, &count, &numbers))
        tags.matrix = numbers, tags.matrix_count = count;
    if (TIFFGetField(tiff, TAG_KEYS, &count, &keys))
        tags.keys = keys, tags.key_count = count;
    int epsg;
    bool found;
    MC_TRY(mc_geotiff_read(&found, raster->info.affine, &epsg, &tags, pool));
    if (epsg != 0)
        raster->info.srs = apr_psprintf(raster->pool, "EPSG:%d", epsg);
    raster->info.georeferenced = found;
    raster->info.origin = found ? "GeoTIFF tags" : NULL;
    return MC_OK;
}

/* The colour of an entry of a palette, as libtiff shows it: entries have 16 bits, or 8 where none has more. */
static bool
palette_color(uint8_t rgb[3], TIFF *tiff, unsigned bits, unsigned index)
{
    uint16_t *maps[3] = { NULL };
    uint16_t all = 0;
    if (index >= 1U << bits || !TIFFGetField(tiff, TIFFTAG_COLORMAP, &maps[0], &maps[1], &maps[2]))
        return false;
    for (int band = 0; band < 3; band++)
        for (unsigned i = 0; i < 1U << bits; i++)
            all |= maps[band][i];
    for (int band = 0; band < 3; band++)
        rgb[band] = (uint8_t)(all < 256 ? maps[band][index] : maps[band][index] >> 8);
    return true;
}

/* GDAL's tag of the value that means nothing: of an index its colour; of grey and colours only of 8 bits, where it is
 * one. */
static void
read_no_data(mc_raster *raster, TIFF *tiff)
{
    char *text = NULL;
    double value;
    uint16_t bits = 0, photometric = PHOTOMETRIC_MINISBLACK;
    if (raster->options.has_no_data || !TIFFGetField(tiff, TAG_NO_DATA, &text) || text == NULL ||
        !TIFFGetField(tiff, TIFFTAG_BITSPERSAMPLE, &bits) || bits > 8 || !mc_parse_double(&value, text))
        return;
    if (!(value >= 0 && value <= 255) || value != (double)(int)value)
        return;
    TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric);
    if (photometric == PHOTOMETRIC_PALETTE) {
        raster->options.has_no_data = palette_color(raster->options.no_data, tiff, bits, (unsigned)value);
        return;
    }
    raster->options.has_no_data = bits == 8;
    memset(raster->options.no_data, photometric == PHOTOMETRIC_MINISWHITE ? 255 - (int)value : (int)value, 3);
}

static mc_error *
check_form(mc_raster *raster, TIFF *tiff, apr_pool_t *pool)
{
    uint16_t samples = 1, orientation = ORIENTATION_TOPLEFT, extra = 0, *kinds = NULL, photometric = 0;
    char reason[1024] = "";
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &orientation);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &extra, &kinds);
    TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric);
    if (orientation != ORIENTATION_TOPLEFT)
        return mc_raster_broken(pool, "its rows do not run from the top left: it has another orientation");
    if (!TIFFRGBAImageOK(tiff, reason))
        return mc_raster_broken(pool,
                                "its form cannot be shown (%s): convert it to 8-bit samples, as gdal_translate "
                                "-ot Byte -scale does",
                                mc_message_text(reason, 200, pool));
    raster->info.bands = samples;
    raster->info.opaque = extra == 0 && !raster->options.has_no_data;
    return MC_OK;
}

/* What is decoded at a time, and memory for it. */
static mc_error *
find_strips(mc_raster *raster, tiff_state *state, apr_pool_t *pool)
{
    uint32_t width = (uint32_t)raster->info.width, height = (uint32_t)raster->info.height;
    state->tiled = TIFFIsTiled(state->tiff) != 0;
    state->tile_width = width;
    state->tile_height = height;
    if (state->tiled) {
        TIFFGetField(state->tiff, TIFFTAG_TILEWIDTH, &state->tile_width);
        TIFFGetField(state->tiff, TIFFTAG_TILELENGTH, &state->tile_height);
    } else {
        TIFFGetFieldDefaulted(state->tiff, TIFFTAG_ROWSPERSTRIP, &state->tile_height);
        state->tile_height = state->tile_height > height ? height : state->tile_height;
    }
    if (state->tile_width == 0 || state->tile_height == 0)
        return mc_raster_broken(pool, "its tiles have no size");
    int64_t strip = (int64_t)width * state->tile_height * 4, tile = (int64_t)state->tile_width * state->tile_height * 4;
    if (strip > STRIP_BYTES || tile > STRIP_BYTES)
        return mc_error_create(
            pool, MC_ERR_LIMIT,
            "%u rows of it have to be decoded at once: store it in tiles (gdal_translate -co TILED=YES)",
            (unsigned)state->tile_height);
    return MC_OK;
}

static mc_error *
tiff_open(mc_raster *raster, apr_pool_t *pool)
{
    tiff_state *state = raster->state = apr_pcalloc(raster->pool, sizeof(*state));
    uint32_t width = 0, height = 0;
    MC_TRY(open_tiff(state, raster->info.path, pool));
    TIFFGetField(state->tiff, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(state->tiff, TIFFTAG_IMAGELENGTH, &height);
    MC_TRY(mc_raster_check_size(width, height, pool));
    raster->info.width = (int)width;
    raster->info.height = (int)height;
    read_no_data(raster, state->tiff);
    MC_TRY(check_form(raster, state->tiff, pool));
    MC_TRY(read_place(raster, state->tiff, pool));
    return find_strips(raster, state, pool);
}

/* libtiff fills from the bottom: the rows of a strip that is cut short stand at the beginning, those of a tile at the
 * end. */
static mc_error *
read_tiles(mc_raster *raster, tiff_state *state, int count, apr_pool_t *pool)
{
    uint32_t width = (uint32_t)raster->info.width, rows = state->tile_height;
    for (uint32_t x = 0; x < width; x += state->tile_width) {
        uint32_t columns = width - x < state->tile_width ? width - x : state->tile_width;
        if (!TIFFReadRGBATileExt(state->tiff, x, (uint32_t)state->first, state->tile, 1))
            return raster_tiff_error(state, "a tile cannot be decoded", pool);
        for (uint32_t y = 0; y < (uint32_t)count; y++)
            memcpy(state->strip + (size_t)y * width + x, state->tile + (size_t)(rows - 1 - y) * state->tile_width,
                   (size_t)columns * 4);
    }
    return MC_OK;
}

static void
turn_rows(uint32_t *strip, size_t width, int count)
{
    for (int y = 0; y < count / 2; y++) {
        uint32_t *a = strip + (size_t)y * width, *b = strip + (size_t)(count - 1 - y) * width;
        for (size_t x = 0; x < width; x++) {
            uint32_t kept = a[x];
            a[x] = b[x];
            b[x] = kept;
        }
    }
}

/* The strip, or row of tiles, that begins with `row`. */
static mc_error *
read_strip(mc_raster *raster, tiff_state *state, int row, apr_pool_t *pool)
{
    size_t width = (size_t)raster->info.width;
    int left = raster->info.height - row, count = (int)state->tile_height < left ? (int)state->tile_height : left;
    if (state->strip == NULL)
        state->strip = malloc(width * state->tile_height * 4);
    if (state->tiled && state->tile == NULL)
        state->tile = malloc((size_t)state->tile_width * state->tile_height * 4);
    if (state->strip == NULL || (state->tiled && state->tile == NULL))
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for %d of its rows", count);
    state->complaint[0] = '\0';
    state->first = row;
    state->count = 0;
    if (state->tiled) {
        MC_TRY(read_tiles(raster, state, count, pool));
    } else {
        if (!TIFFReadRGBAStripExt(state->tiff, (uint32_t)row, state->strip, 1))
            return raster_tiff_error(state, "a strip cannot be decoded", pool);
        turn_rows(state->strip, width, count);
    }
    state->count = count;
    return MC_OK;
}

/* R, G, B, A in the bytes of a word from the lowest on; premultiplied by libtiff. */
static void
convert_row(uint8_t *out, const uint32_t *in, int width)
{
    for (int x = 0; x < width; x++) {
        uint8_t a = (uint8_t)TIFFGetA(in[x]), r = (uint8_t)TIFFGetR(in[x]), g = (uint8_t)TIFFGetG(in[x]);
        uint8_t b = (uint8_t)TIFFGetB(in[x]);
        out[(size_t)x * 4] = b < a ? b : a;
        out[(size_t)x * 4 + 1] = g < a ? g : a;
        out[(size_t)x * 4 + 2] = r < a ? r : a;
        out[(size_t)x * 4 + 3] = a;
    }
}

static mc_error *
tiff_rows(mc_raster *raster, uint8_t *bgra, size_t stride, int count, apr_pool_t *pool)
{
    tiff_state *state = raster->state;
    for (int y = 0; y < count; y++) {
        int row = raster->row + y;
        if (row >= state->first + state->count)
            MC_TRY(read_strip(raster, state, row, pool));
        convert_row(bgra + (size_t)y * stride, state->strip + (size_t)(row - state->first) * (size_t)raster->info.width,
                    raster->info.width);
    }
    return MC_OK;
}

static void
tiff_close(mc_raster *raster)
{
    tiff_state *state = raster->state;
    if (state == NULL)
        return;
    free(state->strip);
    free(state->tile);
    state->strip = state->tile = NULL;
    if (state->tiff != NULL)
        TIFFClose(state->tiff);
    state->tiff = NULL;
}

const mc_raster_ops mc_raster_tiff = { "TIFF", tiff_open, tiff_rows, NULL, tiff_close };
