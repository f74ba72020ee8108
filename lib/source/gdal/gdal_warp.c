/*
 * The module mapcache-gdal.so: rasters warped to maps, straight into the memory of our pixels. Open datasets come from
 * gdal_pool.c.
 */
#include <apr_strings.h>
#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <gdal.h>
#include <gdalwarper.h>
#include <math.h>
#include <ogr_srs_api.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "source/gdal/gdal_bands.h"
#include "source/gdal/gdal_inspect.h"
#include "source/gdal/gdal_place.h"
#include "text/secret.h"

enum { SAMPLES = 5 };

/* Pixels of the raster by which an interpolated position may be off. */
static const double transformer_error = 0.125;

/* One map under way on this thread. */
typedef struct gdal_warp_job {
    const mc_gdal_raster *raster;
    const mc_render *wanted;
    mc_ctx *ctx;
    apr_pool_t *pool;
    const char *reason; /* GDAL's last failure, or NULL */
} gdal_warp_job;

/* GDAL's messages of this thread: to our log, the last failure kept as the cause of an error. */
static void CPL_STDCALL
take_message(CPLErr level, CPLErrorNum number, const char *text)
{
    (void)number;
    gdal_warp_job *j = CPLGetErrorHandlerUserData();
    text = mc_hide_passwords(text, j->raster->data, j->pool);
    if (level >= CE_Failure)
        j->reason = apr_pstrdup(j->pool, text);
    mc_log_write(j->ctx, MC_LOG_DEBUG, "source \"%s\": GDAL: %s", j->raster->source, text);
}

static int CPL_STDCALL
continue_gdal_warp(double done, const char *text, void *baton)
{
    (void)done;
    (void)text;
    const mc_ctx *ctx = ((gdal_warp_job *)baton)->ctx;
    bool late = ctx->deadline != 0 && mc_clock_now() >= ctx->deadline;
    return !late && !mc_ctx_abandoned(ctx);
}

static mc_error *
gdal_warp_error(gdal_warp_job *j, mc_error_kind kind, const char *what)
{
    mc_error *cause = mc_error_create(j->pool, kind, "%s%s%s", j->raster->data, j->reason == NULL ? "" : ": ",
                                      j->reason == NULL ? "" : j->reason);
    if (j->ctx->deadline != 0 && mc_clock_now() >= j->ctx->deadline)
        return mc_error_wrap(j->pool, cause, MC_ERR_TIMEOUT, "source \"%s\": the raster took too long",
                             j->raster->source);
    if (!continue_gdal_warp(0, NULL, j))
        return mc_error_wrap(j->pool, cause, MC_ERR_UNAVAILABLE, "the client has gone");
    return mc_error_wrap(j->pool, cause, kind, "source \"%s\": %s", j->raster->source, what);
}

/* CRS texts that PROJ does not know and grids still use, all of them spherical Mercator. */
static bool
is_old_mercator(const char *srs)
{
    static const char *const names[] = { "EPSG:900913", "EPSG:102113", "EPSG:102100", "EPSG:3785" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcasecmp(srs, names[i]) == 0)
            return true;
    return false;
}

static bool
parse_crs(OGRSpatialReferenceH crs, const char *text)
{
    return OSRSetFromUserInput(crs, is_old_mercator(text) ? "EPSG:3857" : text) == OGRERR_NONE;
}

/* The grid's CRS with x, y axes. The caller releases it. */
static mc_error *
grid_crs(OGRSpatialReferenceH *crs, gdal_warp_job *j)
{
    const mc_grid *grid = j->wanted->grid;
    *crs = OSRNewSpatialReference(NULL);
    OSRSetAxisMappingStrategy(*crs, OAMS_TRADITIONAL_GIS_ORDER);
    bool known = parse_crs(*crs, grid->srs);
    for (int i = 0; !known && grid->aliases != NULL && i < grid->aliases->nelts; i++)
        known = parse_crs(*crs, APR_ARRAY_IDX(grid->aliases, i, const char *));
    if (known)
        return MC_OK;
    OSRRelease(*crs);
    return mc_error_create(j->pool, MC_ERR_CONFIG, "source \"%s\": the CRS \"%s\" is not known", j->raster->source,
                           grid->srs);
}

/* Adds a band whose values are in our memory, `step` bytes from pixel to pixel and `stride` from row to row. */
static void
add_memory_band(GDALDatasetH map, GDALDataType type, void *memory, size_t step, size_t stride, GDALColorInterp meaning)
{
    char pointer[32], number[32];
    pointer[CPLPrintPointer(pointer, memory, sizeof(pointer) - 1)] = '\0';
    char **options = CSLSetNameValue(NULL, "DATAPOINTER", pointer);
    snprintf(number, sizeof(number), "%lu", (unsigned long)step);
    options = CSLSetNameValue(options, "PIXELOFFSET", number);
    snprintf(number, sizeof(number), "%lu", (unsigned long)stride);
    options = CSLSetNameValue(options, "LINEOFFSET", number);
    if (GDALAddBand(map, type, options) == CE_None)
        GDALSetRasterColorInterpretation(GDALGetRasterBand(map, GDALGetRasterCount(map)), meaning);
    CSLDestroy(options);
}

/* The map's memory as a dataset: one band or three for the colours, in the order of our pixels or of `values` (not
 * NULL: band after band), and one for alpha. */
static GDALDatasetH
map_dataset(const mc_pixels *pixels, float *values, int colors, OGRSpatialReferenceH crs, const mc_render *wanted)
{
    static const GDALColorInterp meanings[] = { GCI_RedBand, GCI_GreenBand, GCI_BlueBand };
    size_t width = (size_t)wanted->width, height = (size_t)wanted->height;
    GDALDatasetH map = GDALCreate(GDALGetDriverByName("MEM"), "", wanted->width, wanted->height, 0, GDT_Byte, NULL);
    if (map == NULL)
        return NULL;
    for (int i = 0; i < colors; i++)
        if (values != NULL)
            add_memory_band(map, GDT_Float32, values + (size_t)i * width * height, sizeof(float), sizeof(float) * width,
                            meanings[i]);
        else
            add_memory_band(map, GDT_Byte, pixels->data + 2 - i, 4, pixels->stride, meanings[i]);
    add_memory_band(map, GDT_Byte, pixels->data + 3, 4, pixels->stride, GCI_AlphaBand);
    if (GDALGetRasterCount(map) != colors + 1) {
        GDALClose(map);
        return NULL;
    }
    const mc_extent *box = &wanted->box;
    double transform[6] = { box->minx, (box->maxx - box->minx) / wanted->width,  0, box->maxy,
                            0,         -(box->maxy - box->miny) / wanted->height };
    GDALSetGeoTransform(map, transform);
    if (crs != NULL)
        GDALSetSpatialRef(map, crs);
    return map;
}

/* How many raster pixels lie on one pixel of the map where they are densest; 0 where nothing can be said. */
static double
raster_pixels_per_pixel(void *transformer, const mc_render *wanted)
{
    double least = 0;
    for (int i = 0; i < SAMPLES * SAMPLES; i++) {
        double column = (i % SAMPLES + 0.5) * wanted->width / SAMPLES;
        double row = (i / SAMPLES + 0.5) * wanted->height / SAMPLES;
        double x[3] = { column, column + 1, column }, y[3] = { row, row, row + 1 }, z[3] = { 0 };
        int success[3] = { 0 };
        GDALGenImgProjTransform(transformer, TRUE, 3, x, y, z, success);
        if (!success[0] || !success[1] || !success[2])
            continue;
        double scale = sqrt(fabs((x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0])));
        if (isfinite(scale) && (least == 0 || scale < least))
            least = scale;
    }
    return least;
}

/* Index of the overview to read, -1 for the raster itself. */
static int
choose_overview(GDALDatasetH raster, void *transformer, const gdal_warp_job *j)
{
    GDALRasterBandH band = GDALGetRasterBand(raster, 1);
    int count = GDALGetOverviewCount(band);
    if (count > MC_GDAL_OVERVIEWS)
        count = MC_GDAL_OVERVIEWS;
    if (j->raster->overviews == MC_GDAL_NONE || count == 0)
        return -1;
    if (j->raster->overviews == MC_GDAL_LEVEL)
        return j->raster->level < count ? j->raster->level : count - 1;
    double scale = raster_pixels_per_pixel(transformer, j->wanted) * 1.01;
    int chosen = -1;
    double coarsest = 1;
    for (int i = 0; i < count; i++) {
        double factor = (double)GDALGetRasterXSize(raster) / GDALGetRasterBandXSize(GDALGetOverview(band, i));
        if (factor <= scale && factor > coarsest) {
            coarsest = factor;
            chosen = i;
        }
    }
    chosen -= j->raster->level;
    return chosen < -1 ? -1 : chosen;
}

/* A transformer from raster to map pixels, by the overview that suits; *read is the dataset it belongs to. */
static mc_error *
create_transformer(void **transformer, GDALDatasetH *read, mc_gdal_dataset *d, GDALDatasetH map, gdal_warp_job *j)
{
    *read = mc_gdal_raster_of(d);
    *transformer = GDALCreateGenImgProjTransformer2(mc_gdal_raster_of(d), map, NULL);
    if (*transformer == NULL)
        return gdal_warp_error(j, MC_ERR_IO, "the raster cannot be brought to the grid's CRS");
    *read = mc_gdal_overview(d, choose_overview(mc_gdal_raster_of(d), *transformer, j));
    if (*read == mc_gdal_raster_of(d))
        return MC_OK;
    GDALDestroyGenImgProjTransformer(*transformer);
    *transformer = GDALCreateGenImgProjTransformer2(*read, map, NULL);
    return *transformer != NULL ? MC_OK
                                : gdal_warp_error(j, MC_ERR_IO, "an overview cannot be brought to the grid's CRS");
}

static void
set_nodata(GDALWarpOptions *options, GDALDatasetH read, const mc_gdal_raster *raster)
{
    static const double no_value = -1e300; /* of bands that have none: no type of pixels holds it */
    double values[MC_GDAL_COLORS];
    int with = 0;
    if (raster->no_data_kind == MC_GDAL_ALL_DATA)
        return;
    for (int i = 0; i < options->nBandCount; i++) {
        int has = raster->no_data_kind == MC_GDAL_NO_DATA_IS;
        values[i] =
            has ? raster->no_data : GDALGetRasterNoDataValue(GDALGetRasterBand(read, options->panSrcBands[i]), &has);
        if (has)
            with++;
        else
            values[i] = no_value;
    }
    if (with == 0)
        return;
    options->padfSrcNoDataReal = CPLMalloc(sizeof(values));
    memcpy(options->padfSrcNoDataReal, values, sizeof(values));
    options->papszWarpOptions = CSLSetNameValue(options->papszWarpOptions, "UNIFIED_SRC_NODATA", "YES");
}

static GDALWarpOptions *
warp_options(GDALDatasetH read, GDALDatasetH map, const mc_gdal_picture *picture, void *transformer, gdal_warp_job *j)
{
    static const GDALResampleAlg algorithms[] = { GRA_NearestNeighbour, GRA_Bilinear, GRA_Cubic,
                                                  GRA_CubicSpline,      GRA_Lanczos,  GRA_Average };
    GDALWarpOptions *options = GDALCreateWarpOptions();
    options->hSrcDS = read;
    options->hDstDS = map;
    options->eResampleAlg = picture->palette != NULL ? GRA_NearestNeighbour : algorithms[j->raster->resample];
    options->nBandCount = picture->colors;
    options->panSrcBands = CPLMalloc(sizeof(int) * 3);
    options->panDstBands = CPLMalloc(sizeof(int) * 3);
    for (int i = 0; i < picture->colors; i++) {
        options->panSrcBands[i] = picture->numbers[i];
        options->panDstBands[i] = i + 1;
    }
    options->eWorkingDataType = picture->measured ? GDT_Float32 : GDT_Byte;
    options->nSrcAlphaBand = picture->alpha;
    options->nDstAlphaBand = picture->colors + 1;
    options->pfnTransformer = GDALApproxTransform;
    options->pTransformerArg = transformer;
    options->pfnProgress = continue_gdal_warp;
    options->pProgressArg = j;
    options->papszWarpOptions = CSLSetNameValue(NULL, "INIT_DEST", "0");
    /* The edge alone does not tell the raster's part where the map's box reaches beyond what the CRS covers. */
    options->papszWarpOptions = CSLSetNameValue(options->papszWarpOptions, "SAMPLE_GRID", "YES");
    if (picture->alpha == 0)
        set_nodata(options, read, j->raster);
    return options;
}

static mc_error *
warp_gdal_raster(mc_gdal_dataset *d, GDALDatasetH map, const mc_gdal_picture *picture, gdal_warp_job *j)
{
    void *exact;
    GDALDatasetH read;
    MC_TRY(create_transformer(&exact, &read, d, map, j));
    void *transformer = GDALCreateApproxTransformer(GDALGenImgProjTransform, exact, transformer_error);
    GDALApproxTransformerOwnsSubtransformer(transformer, TRUE);
    GDALWarpOptions *options = warp_options(read, map, picture, transformer, j);
    GDALWarpOperationH operation = GDALCreateWarpOperation(options);
    CPLErr result = CE_Failure;
    if (operation != NULL)
        result = GDALChunkAndWarpImage(operation, 0, 0, j->wanted->width, j->wanted->height);
    if (operation != NULL)
        GDALDestroyWarpOperation(operation);
    GDALDestroyWarpOptions(options);
    GDALDestroyApproxTransformer(transformer);
    return result == CE_None ? MC_OK : gdal_warp_error(j, MC_ERR_IO, "the raster cannot be warped");
}

/* Whether raster and map have the same CRS, so that nothing is reprojected. */
static bool
has_map_crs(GDALDatasetH raster, OGRSpatialReferenceH crs)
{
    static const char *const options[] = { "IGNORE_DATA_AXIS_TO_SRS_AXIS_MAPPING=YES", "CRITERION=EQUIVALENT", NULL };
    OGRSpatialReferenceH own = GDALGetSpatialRef(raster);
    return own != NULL && OSRIsSameEx(own, crs, options);
}

static mc_error *
warp_to_pixels(mc_pixels *pixels, float *values, mc_gdal_dataset *d, const mc_gdal_picture *picture, gdal_warp_job *j)
{
    OGRSpatialReferenceH crs;
    MC_TRY(grid_crs(&crs, j));
    bool same = has_map_crs(mc_gdal_raster_of(d), crs);
    GDALDatasetH map = map_dataset(pixels, values, picture->colors, same ? NULL : crs, j->wanted);
    mc_error *error =
        map == NULL ? gdal_warp_error(j, MC_ERR_IO, "the map cannot be set up") : warp_gdal_raster(d, map, picture, j);
    if (map != NULL)
        GDALClose(map);
    OSRRelease(crs);
    return error;
}

static mc_error *
draw_gdal_raster(mc_pixels *pixels, mc_gdal_dataset *d, gdal_warp_job *j)
{
    mc_gdal_picture picture;
    float *values = NULL;
    const char *trouble = mc_gdal_picture_find(&picture, mc_gdal_raster_of(d), j->raster, j->pool);
    if (trouble == NULL)
        trouble = mc_gdal_place_missing(mc_gdal_raster_of(d));
    if (trouble == NULL)
        trouble = mc_gdal_picture_scale(&picture, d, j->pool);
    if (trouble != NULL)
        return gdal_warp_error(j, MC_ERR_CONFIG, trouble);
    if (picture.measured) {
        size_t count = (size_t)pixels->width * (size_t)pixels->height * (size_t)picture.colors;
        values = calloc(count, sizeof(*values)); /* bounded with the pixels */
        if (values == NULL)
            return gdal_warp_error(j, MC_ERR_LIMIT, "there is no memory for the values of the map");
    }
    mc_error *error = warp_to_pixels(pixels, values, d, &picture, j);
    if (error == MC_OK)
        mc_gdal_pixels_finish(pixels, values, &picture, j->raster);
    free(values);
    return error;
}

static mc_error *
open_and_draw(mc_pixels *pixels, gdal_warp_job *j)
{
    mc_gdal_dataset *d = mc_gdal_open(j->raster->data, j->raster->drivers, j->raster->pooled);
    if (d == NULL)
        return gdal_warp_error(j, MC_ERR_CONFIG, "the raster cannot be opened");
    mc_error *error = draw_gdal_raster(pixels, d, j);
    mc_gdal_close(d, error == MC_OK && j->raster->pooled);
    return error;
}

static mc_error *
gdal_warp_render(mc_pixels **pixels, const mc_gdal_raster *raster, const mc_render *wanted, mc_ctx *ctx,
                 apr_pool_t *pool)
{
    mc_gdal_start();
    gdal_warp_job j = { .raster = raster, .wanted = wanted, .ctx = ctx, .pool = pool };
    mc_pixels *map;
    MC_TRY(mc_pixels_create(&map, wanted->width, wanted->height, true, pool));
    mc_pixels_attach(map, pool);
    CPLPushErrorHandlerEx(take_message, &j);
    mc_error *error = open_and_draw(map, &j);
    CPLPopErrorHandler();
    if (error == MC_OK)
        *pixels = map;
    return error;
}

const mc_gdal_ops mc_gdal_warp_ops = { gdal_warp_render, mc_gdal_start, mc_gdal_find_place, mc_gdal_inspect };
