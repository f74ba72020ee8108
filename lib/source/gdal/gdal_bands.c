/* See gdal_bands.h. */
#include "source/gdal/gdal_bands.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>

/* --- which bands -------------------------------------------------------------------------------------------------- */

static bool
is_gdal_alpha(GDALDatasetH raster, int number)
{
    return GDALGetRasterColorInterpretation(GDALGetRasterBand(raster, number)) == GCI_AlphaBand;
}

/* All bands of a raster of one to four. Where these are bytes, a fourth one is alpha whatever it says. */
static const char *
take_gdal_bands(int numbers[MC_GDAL_BANDS], int *taken, GDALDatasetH raster, apr_pool_t *pool)
{
    int count = GDALGetRasterCount(raster);
    if (count == 0)
        return GDALGetMetadata(raster, "SUBDATASETS") != NULL
                   ? "the raster has no bands, but subdatasets (gdalinfo lists them): <data> has to name one of them"
                   : "the raster has no bands";
    if (count > MC_GDAL_BANDS)
        return apr_psprintf(pool, "the raster has %d bands: <bands> has to say which of them make the picture", count);
    bool bytes = GDALGetRasterDataType(GDALGetRasterBand(raster, count)) == GDT_Byte;
    if (count % 2 == 0 && !is_gdal_alpha(raster, count) && !(count == MC_GDAL_BANDS && bytes))
        return apr_psprintf(pool,
                            "the raster has %d bands, of which none is alpha: <bands> has to say which of them make "
                            "the picture",
                            count);
    for (int i = 0; i < count; i++)
        numbers[i] = i + 1;
    *taken = count;
    return NULL;
}

static const char *
choose_gdal_bands(int numbers[MC_GDAL_BANDS], int *taken, GDALDatasetH raster, const mc_gdal_raster *wanted,
                  apr_pool_t *pool)
{
    if (wanted->band_count == 0)
        return take_gdal_bands(numbers, taken, raster, pool);
    for (int i = 0; i < wanted->band_count; i++) {
        numbers[i] = wanted->bands[i];
        if (numbers[i] > GDALGetRasterCount(raster))
            return apr_psprintf(pool, "<bands> names band %d of a raster of %d", numbers[i],
                                GDALGetRasterCount(raster));
    }
    *taken = wanted->band_count;
    return NULL;
}

const char *
mc_gdal_picture_find(mc_gdal_picture *picture, GDALDatasetH raster, const mc_gdal_raster *wanted, apr_pool_t *pool)
{
    int numbers[MC_GDAL_BANDS] = { 0 };
    int count = 0;
    const char *trouble = choose_gdal_bands(numbers, &count, raster, wanted, pool);
    if (trouble != NULL)
        return trouble;
    *picture = (mc_gdal_picture){ .colors = count >= MC_GDAL_COLORS ? MC_GDAL_COLORS : 1,
                                  .alpha = count % 2 == 0 ? numbers[count - 1] : 0,
                                  .measured = wanted->scaled || wanted->ramp_count > 0 };
    if (wanted->ramp_count > 0 && picture->colors > 1)
        return "a <ramp> is of one band: <bands> has to say which one";
    for (int i = 0; i < picture->colors; i++) {
        GDALDataType type = GDALGetRasterDataType(GDALGetRasterBand(raster, numbers[i]));
        if (GDALDataTypeIsComplex(type) || type == GDT_Unknown)
            return apr_psprintf(pool, "band %d of the raster is of type %s, whose values are no colours", numbers[i],
                                GDALGetDataTypeName(type));
        picture->numbers[i] = numbers[i];
        picture->measured = picture->measured || type != GDT_Byte;
    }
    picture->estimated = picture->measured && !wanted->scaled && wanted->ramp_count == 0;
    memcpy(picture->scale, wanted->scale, sizeof(picture->scale));
    if (count == 1 && !picture->measured)
        picture->palette = GDALGetRasterColorTable(GDALGetRasterBand(raster, numbers[0]));
    return NULL;
}

/* One scale for all colours, so that what is grey stays grey. */
const char *
mc_gdal_picture_scale(mc_gdal_picture *picture, mc_gdal_dataset *dataset, apr_pool_t *pool)
{
    double least = HUGE_VAL, greatest = -HUGE_VAL;
    if (!picture->estimated)
        return NULL;
    for (int i = 0; i < picture->colors; i++) {
        double range[2];
        if (!mc_gdal_range(range, dataset, picture->numbers[i]))
            return apr_psprintf(pool,
                                "nothing says which values of band %d are black and white: it has no statistics, and "
                                "no data to make them of; <scale> has to say it",
                                picture->numbers[i]);
        least = fmin(least, range[0]);
        greatest = fmax(greatest, range[1]);
    }
    for (int i = 0; i < picture->colors; i++) {
        picture->scale[i][0] = least;
        picture->scale[i][1] = greatest > least ? greatest : least + 1;
    }
    return NULL;
}

const char *
mc_gdal_place_missing(GDALDatasetH raster)
{
    double transform[6];
    if (GDALGetSpatialRef(raster) == NULL && GDALGetGCPSpatialRef(raster) == NULL)
        return "the raster has no CRS (gdal_edit.py -a_srs, or a .vrt of gdal_translate -a_srs, gives it one)";
    if (GDALGetGeoTransform(raster, transform) != CE_None && GDALGetGCPCount(raster) == 0 &&
        GDALGetMetadata(raster, "RPC") == NULL && GDALGetMetadata(raster, "GEOLOCATION") == NULL)
        return "the raster has a CRS, but nothing says where in it the raster lies";
    return NULL;
}

/* --- colours ------------------------------------------------------------------------------------------------------ */

/* Palette as four bytes for each of 256 values, in our order; not premultiplied. */
static void
expand_palette(uint8_t entries[256][4], GDALColorTableH palette)
{
    memset(entries, 0, 256 * 4);
    int count = GDALGetColorEntryCount(palette);
    for (int i = 0; i < count && i < 256; i++) {
        GDALColorEntry entry;
        if (!GDALGetColorEntryAsRGB(palette, i, &entry))
            continue;
        entries[i][0] = (uint8_t)entry.c3;
        entries[i][1] = (uint8_t)entry.c2;
        entries[i][2] = (uint8_t)entry.c1;
        entries[i][3] = (uint8_t)entry.c4;
    }
}

static uint8_t
multiply_gdal_alpha(unsigned value, unsigned alpha)
{
    return (uint8_t)((value * alpha + 127) / 255);
}

/* A pixel whose colour and alpha are not multiplied yet. */
static void
set_gdal_pixel(uint8_t *pixel, const uint8_t bgra[4])
{
    uint8_t alpha = multiply_gdal_alpha(bgra[3], pixel[3]);
    memcpy(pixel, bgra, 3);
    pixel[3] = alpha;
}

static void
set_ramp_color(uint8_t *pixel, double value, const mc_gdal_raster *raster)
{
    const mc_gdal_stop *stops = raster->ramp;
    int low = 0, high = raster->ramp_count - 1;
    if (value <= stops[low].value || low == high) {
        set_gdal_pixel(pixel, stops[low].bgra);
        return;
    }
    if (value >= stops[high].value) {
        set_gdal_pixel(pixel, stops[high].bgra);
        return;
    }
    while (high - low > 1) {
        int middle = (low + high) / 2;
        *(value >= stops[middle].value ? &low : &high) = middle;
    }
    double share = (value - stops[low].value) / (stops[high].value - stops[low].value);
    uint8_t mixed[4];
    for (int i = 0; i < 4; i++)
        mixed[i] = (uint8_t)lrint(stops[low].bgra[i] + share * (stops[high].bgra[i] - stops[low].bgra[i]));
    set_gdal_pixel(pixel, mixed);
}

static uint8_t
scale_gdal_value(double value, const double scale[2])
{
    double share = (value - scale[0]) / (scale[1] - scale[0]);
    return (uint8_t)lrint(fmin(fmax(share, 0), 1) * 255);
}

/* values: of the pixel's first colour; those of the next ones are `apart` values on. */
static void
set_measured_pixel(uint8_t *pixel, const float *values, size_t apart, const mc_gdal_picture *picture,
                   const mc_gdal_raster *raster)
{
    bool data = pixel[3] != 0;
    for (int i = 0; i < picture->colors; i++)
        data = data && !isnan(values[(size_t)i * apart]);
    if (!data) {
        memset(pixel, 0, 4);
        return;
    }
    if (raster->ramp_count > 0) {
        set_ramp_color(pixel, (double)values[0], raster);
        return;
    }
    for (int i = 0; i < picture->colors; i++)
        pixel[2 - i] = scale_gdal_value((double)values[(size_t)i * apart], picture->scale[i]);
}

void
mc_gdal_pixels_finish(mc_pixels *pixels, const float *values, const mc_gdal_picture *picture,
                      const mc_gdal_raster *raster)
{
    uint8_t entries[256][4];
    size_t apart = (size_t)pixels->width * (size_t)pixels->height;
    if (picture->palette != NULL)
        expand_palette(entries, picture->palette);
    uint8_t every = 255, any = 0;
    for (int row = 0; row < pixels->height; row++) {
        uint8_t *pixel = pixels->data + (size_t)row * pixels->stride;
        for (int column = 0; column < pixels->width; column++, pixel += 4) {
            if (values != NULL)
                set_measured_pixel(pixel, values++, apart, picture, raster);
            else if (picture->palette != NULL)
                set_gdal_pixel(pixel, entries[pixel[2]]);
            if (picture->colors == 1 && picture->palette == NULL && raster->ramp_count == 0)
                pixel[0] = pixel[1] = pixel[2];
            if (pixel[3] != 255)
                for (int i = 0; i < 3; i++)
                    pixel[i] = multiply_gdal_alpha(pixel[i], pixel[3]);
            every &= pixel[3];
            any |= pixel[3];
        }
    }
    pixels->opacity = any == 0 ? MC_EMPTY : every == 255 ? MC_OPAQUE : MC_TRANSLUCENT;
}
