/* See gdal_stretch.h. The same raster gives the same values in every process. */
#include "source/gdal/gdal_stretch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE_SIDE = 512, READ_MAX = 16 << 20, SAMPLES_LEAST = 16 };

#define CUT 0.02

static int
compare_samples(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The smallest overview of at least the sample's size, or the band itself; NULL: it is too large to be read. */
static GDALRasterBandH
find_sampled_band(GDALRasterBandH band)
{
    GDALRasterBandH best = band;
    for (int i = 0; i < GDALGetOverviewCount(band); i++) {
        GDALRasterBandH overview = GDALGetOverview(band, i);
        if (overview != NULL && GDALGetRasterBandXSize(overview) < GDALGetRasterBandXSize(best) &&
            (double)GDALGetRasterBandXSize(overview) * GDALGetRasterBandYSize(overview) >=
                (double)SAMPLE_SIDE * SAMPLE_SIDE / 4)
            best = overview;
    }
    double pixels = (double)GDALGetRasterBandXSize(best) * GDALGetRasterBandYSize(best);
    return pixels <= READ_MAX ? best : NULL;
}

/* Values that are data, to the front. Returns how many. */
static size_t
drop_no_data(double *values, size_t count, GDALRasterBandH band)
{
    int has = 0;
    double none = GDALGetRasterNoDataValue(band, &has);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i]) && (!has || values[i] != none))
            values[kept++] = values[i];
    return kept;
}

bool
mc_gdal_stretch(double range[2], GDALRasterBandH band)
{
    GDALRasterBandH sampled = find_sampled_band(band);
    if (sampled == NULL)
        return false;
    int width = GDALGetRasterBandXSize(sampled), height = GDALGetRasterBandYSize(sampled);
    int columns = width < SAMPLE_SIDE ? width : SAMPLE_SIDE, rows = height < SAMPLE_SIDE ? height : SAMPLE_SIDE;
    double *values = malloc(sizeof(*values) * (size_t)columns * (size_t)rows);
    bool found = false;
    if (values != NULL &&
        GDALRasterIO(sampled, GF_Read, 0, 0, width, height, values, columns, rows, GDT_Float64, 0, 0) == CE_None) {
        size_t count = drop_no_data(values, (size_t)columns * (size_t)rows, band);
        qsort(values, count, sizeof(*values), compare_samples);
        if (count >= SAMPLES_LEAST) {
            range[0] = values[(size_t)((double)(count - 1) * CUT)];
            range[1] = values[(size_t)ceil((double)(count - 1) * (1 - CUT))];
            found = range[1] > range[0];
        }
    }
    free(values);
    return found;
}
