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
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "source/gdal/gdal_pool.h"
#include "source/gdal/gdal_warp.h"

enum { SAMPLES = 5, BLOCK_CACHE_BYTES = 32 << 20 };

/* Pixels of the raster by which an interpolated position may be off. */
static const double transformer_error = 0.125;

static pthread_once_t gdal_once = PTHREAD_ONCE_INIT;
/* One map under way on this thread. */
typedef struct gdal_warp_job {
    const mc_gdal_raster *raster;
    const mc_render *wanted;
    mc_ctx *ctx;
    apr_pool_t *pool;
    const char *reason; /* GDAL's last failure, or NULL */
} gdal_warp_job;

/* Which bands make the picture. */
typedef struct bands {
    int colors; /* 1: gray or palette, 3: RGB */
    int alpha;  /* number of the band, 0: none */
    GDALColorTableH palette;
} bands;

static void
init_gdal(void)
{
    GDALAllRegister();
    GDALSetCacheMax64(BLOCK_CACHE_BYTES);
}

/* GDAL's messages of this thread: to our log, the last failure kept as the cause of an error. */
static void CPL_STDCALL
take_message(CPLErr level, CPLErrorNum number, const char *text)
{
    (void)number;
    gdal_warp_job *j = CPLGetErrorHandlerUserData();
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
    mc_error *cause =
        mc_error_create(j->pool, kind, "%s: %s", j->raster->data, j->reason == NULL ? "no reason given" : j->reason);
    if (j->ctx->deadline != 0 && mc_clock_now() >= j->ctx->deadline)
        return mc_error_wrap(j->pool, cause, MC_ERR_TIMEOUT, "source \"%s\": the raster took too long",
                             j->raster->source);
    if (!continue_gdal_warp(0, NULL, j))
        return mc_error_wrap(j->pool, cause, MC_ERR_UNAVAILABLE, "the client has gone");
    return mc_error_wrap(j->pool, cause, kind, "source \"%s\": %s", j->raster->source, what);
}

static mc_error *
find_bands(bands *found, GDALDatasetH raster, gdal_warp_job *j)
{
    int count = GDALGetRasterCount(raster);
    bool usable = count >= 1 && count <= 4;
    for (int i = 1; usable && i <= count; i++)
        usable = GDALGetRasterDataType(GDALGetRasterBand(raster, i)) == GDT_Byte;
    GDALRasterBandH last = usable ? GDALGetRasterBand(raster, count) : NULL;
    if (usable && count == 2)
        usable = GDALGetRasterColorInterpretation(last) == GCI_AlphaBand;
    if (!usable)
        return gdal_warp_error(j, MC_ERR_CONFIG, "the raster is not made of 8-bit gray, palette, RGB or RGBA bands");
    found->colors = count >= 3 ? 3 : 1;
    found->alpha = count % 2 == 0 ? count : 0;
    found->palette = count == 1 ? GDALGetRasterColorTable(last) : NULL;
    return MC_OK;
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

/* The map's memory as a dataset: one band or three for the colours, in the order of our pixels, and one for alpha. */
static GDALDatasetH
map_dataset(const mc_pixels *pixels, int colors, OGRSpatialReferenceH crs, const mc_render *wanted)
{
    static const int offsets[] = { 2, 1, 0, 3 };
    static const GDALColorInterp meanings[] = { GCI_RedBand, GCI_GreenBand, GCI_BlueBand, GCI_AlphaBand };
    GDALDatasetH map = GDALCreate(GDALGetDriverByName("MEM"), "", wanted->width, wanted->height, 0, GDT_Byte, NULL);
    for (int i = 0; map != NULL && i < 4; i++) {
        if (colors == 1 && (i == 1 || i == 2))
            continue;
        char pointer[32], stride[32];
        pointer[CPLPrintPointer(pointer, pixels->data + offsets[i], sizeof(pointer) - 1)] = '\0';
        snprintf(stride, sizeof(stride), "%lu", (unsigned long)pixels->stride);
        char **options = CSLSetNameValue(NULL, "DATAPOINTER", pointer);
        options = CSLSetNameValue(options, "PIXELOFFSET", "4");
        options = CSLSetNameValue(options, "LINEOFFSET", stride);
        GDALAddBand(map, GDT_Byte, options);
        CSLDestroy(options);
        GDALSetRasterColorInterpretation(GDALGetRasterBand(map, GDALGetRasterCount(map)), meanings[i]);
    }
    if (map == NULL || GDALGetRasterCount(map) != colors + 1) {
        if (map != NULL)
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
set_nodata(GDALWarpOptions *options, GDALDatasetH read)
{
    enum { NO_BYTE = -99999 };
    double values[3];
    int with = 0;
    for (int i = 0; i < options->nBandCount; i++) {
        int has = 0;
        values[i] = GDALGetRasterNoDataValue(GDALGetRasterBand(read, i + 1), &has);
        if (has)
            with++;
        else
            values[i] = NO_BYTE;
    }
    if (with == 0)
        return;
    options->padfSrcNoDataReal = CPLMalloc(sizeof(values));
    memcpy(options->padfSrcNoDataReal, values, sizeof(values));
    options->papszWarpOptions = CSLSetNameValue(options->papszWarpOptions, "UNIFIED_SRC_NODATA", "YES");
}

static GDALWarpOptions *
warp_options(GDALDatasetH read, GDALDatasetH map, const bands *b, void *transformer, gdal_warp_job *j)
{
    static const GDALResampleAlg algorithms[] = { GRA_NearestNeighbour, GRA_Bilinear, GRA_Cubic,
                                                  GRA_CubicSpline,      GRA_Lanczos,  GRA_Average };
    GDALWarpOptions *options = GDALCreateWarpOptions();
    options->hSrcDS = read;
    options->hDstDS = map;
    options->eResampleAlg = b->palette != NULL ? GRA_NearestNeighbour : algorithms[j->raster->resample];
    options->nBandCount = b->colors;
    options->panSrcBands = CPLMalloc(sizeof(int) * 3);
    options->panDstBands = CPLMalloc(sizeof(int) * 3);
    for (int i = 0; i < b->colors; i++)
        options->panSrcBands[i] = options->panDstBands[i] = i + 1;
    options->nSrcAlphaBand = b->alpha;
    options->nDstAlphaBand = b->colors + 1;
    options->pfnTransformer = GDALApproxTransform;
    options->pTransformerArg = transformer;
    options->pfnProgress = continue_gdal_warp;
    options->pProgressArg = j;
    options->papszWarpOptions = CSLSetNameValue(NULL, "INIT_DEST", "0");
    /* The edge alone does not tell the raster's part where the map's box reaches beyond what the CRS covers. */
    options->papszWarpOptions = CSLSetNameValue(options->papszWarpOptions, "SAMPLE_GRID", "YES");
    if (b->alpha == 0)
        set_nodata(options, read);
    return options;
}

static mc_error *
warp_gdal_raster(mc_gdal_dataset *d, GDALDatasetH map, const bands *b, gdal_warp_job *j)
{
    void *exact;
    GDALDatasetH read;
    MC_TRY(create_transformer(&exact, &read, d, map, j));
    void *transformer = GDALCreateApproxTransformer(GDALGenImgProjTransform, exact, transformer_error);
    GDALApproxTransformerOwnsSubtransformer(transformer, TRUE);
    GDALWarpOptions *options = warp_options(read, map, b, transformer, j);
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
static mc_error *
compare_crs(bool *same, GDALDatasetH raster, OGRSpatialReferenceH crs, gdal_warp_job *j)
{
    static const char *const options[] = { "IGNORE_DATA_AXIS_TO_SRS_AXIS_MAPPING=YES", "CRITERION=EQUIVALENT", NULL };
    OGRSpatialReferenceH own = GDALGetSpatialRef(raster);
    if (own == NULL && GDALGetGCPSpatialRef(raster) == NULL)
        return gdal_warp_error(j, MC_ERR_CONFIG, "the raster has no CRS");
    *same = own != NULL && OSRIsSameEx(own, crs, options);
    return MC_OK;
}

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

/* From what GDAL wrote to premultiplied pixels; finds out their opacity on the way. */
static void
finish_pixels(mc_pixels *pixels, const bands *b)
{
    uint8_t entries[256][4];
    if (b->palette != NULL)
        expand_palette(entries, b->palette);
    uint8_t every = 255, any = 0;
    for (int row = 0; row < pixels->height; row++) {
        uint8_t *pixel = pixels->data + (size_t)row * pixels->stride;
        for (int column = 0; column < pixels->width; column++, pixel += 4) {
            if (b->palette != NULL) {
                const uint8_t *entry = entries[pixel[2]];
                uint8_t alpha = multiply_gdal_alpha(entry[3], pixel[3]);
                memcpy(pixel, entry, 3);
                pixel[3] = alpha;
            } else if (b->colors == 1)
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

static mc_error *
draw_gdal_raster(mc_pixels *pixels, mc_gdal_dataset *d, gdal_warp_job *j)
{
    bands b;
    MC_TRY(find_bands(&b, mc_gdal_raster_of(d), j));
    OGRSpatialReferenceH crs;
    MC_TRY(grid_crs(&crs, j));
    bool same = false;
    mc_error *error = compare_crs(&same, mc_gdal_raster_of(d), crs, j);
    if (error == MC_OK) {
        GDALDatasetH map = map_dataset(pixels, b.colors, same ? NULL : crs, j->wanted);
        error =
            map == NULL ? gdal_warp_error(j, MC_ERR_IO, "the map cannot be set up") : warp_gdal_raster(d, map, &b, j);
        if (map != NULL)
            GDALClose(map);
    }
    OSRRelease(crs);
    if (error == MC_OK)
        finish_pixels(pixels, &b);
    return error;
}

static mc_error *
open_and_draw(mc_pixels *pixels, gdal_warp_job *j)
{
    mc_gdal_dataset *d = mc_gdal_open(j->raster->data, j->raster->pooled);
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
    pthread_once(&gdal_once, init_gdal);
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

const mc_gdal_ops mc_gdal_warp_ops = { gdal_warp_render };
