/*
 * Part of the module mapcache-gdal.so: features through OGR. A file is used by one thread at a time; between maps it
 * waits here, by its name and the stamp of the file, so that a file that was replaced is opened anew.
 */
#include <apr_strings.h>
#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <math.h>
#include <ogr_api.h>
#include <ogr_srs_api.h>
#include <pthread.h>
#include <string.h>

#include "text/secret.h"
#include "text/text.h"
#include "vector/ogr/ogr_memory.h"
#include "vector/ogr/ogr_watch.h"

enum {
    IDLE_FILES = 16,
    BATCH_ROWS = 512,
    BATCH_BYTES = 16 << 20, /* of the file, by the mean of its features */
};

static pthread_once_t ogr_once = PTHREAD_ONCE_INIT;

/* --- files -------------------------------------------------------------------------------------------------------- */

static void
register_ogr(void)
{
    mc_ogr_watch_databases();
    GDALAllRegister();
}

static void
ogr_start(void)
{
    pthread_once(&ogr_once, register_ogr);
}

static void
destroy_ogr_file(mc_idle_thing *thing)
{
    mc_ogr_file *file = (mc_ogr_file *)thing;
    if (file->dataset != NULL)
        GDALClose(file->dataset);
    if (file->memory != NULL)
        mc_ogr_memory_release(file->memory);
    free(file->wkb);
    apr_pool_destroy(file->pool);
}

static mc_idle idle_files = MC_IDLE(IDLE_FILES, SIZE_MAX, destroy_ogr_file);

static void
ogr_close_file(mc_ogr_file *file, bool keep)
{
    mc_idle_give(&idle_files, &file->idle, keep && file->memory == NULL);
}

/* --- what a layer is ---------------------------------------------------------------------------------------------- */

static const char *
name_ogr_srs(OGRLayerH layer, apr_pool_t *pool)
{
    OGRSpatialReferenceH crs = OGR_L_GetSpatialRef(layer);
    char *wkt = NULL;
    if (crs == NULL)
        return NULL;
    const char *authority = OSRGetAuthorityName(crs, NULL), *code = OSRGetAuthorityCode(crs, NULL);
    if (authority != NULL && code != NULL && strcmp(authority, "EPSG") == 0)
        return apr_pstrcat(pool, "EPSG:", code, NULL);
    const char *name = OSRExportToWkt(crs, &wkt) == OGRERR_NONE ? apr_pstrdup(pool, wkt) : NULL;
    CPLFree(wkt);
    return name;
}

static mc_field_type
type_of_ogr_field(OGRFieldDefnH field)
{
    switch (OGR_Fld_GetType(field)) {
    case OFTInteger:
    case OFTInteger64:
        return OGR_Fld_GetSubType(field) == OFSTBoolean ? MC_FIELD_BOOLEAN : MC_FIELD_INTEGER;
    case OFTReal:
        return MC_FIELD_NUMBER;
    default:
        return MC_FIELD_TEXT;
    }
}

static void
list_ogr_fields(mc_ogr_file *file)
{
    OGRFeatureDefnH definition = OGR_L_GetLayerDefn(file->layer);
    int count = OGR_FD_GetFieldCount(definition);
    mc_field *fields = apr_pcalloc(file->pool, sizeof(*fields) * (size_t)(count + 1));
    for (int i = 0; i < count; i++) {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(definition, i);
        fields[i] = (mc_field){ apr_pstrdup(file->pool, OGR_Fld_GetNameRef(field)), type_of_ogr_field(field) };
    }
    file->about.fields = fields;
    file->about.field_count = count;
}

/* So many that a batch of features of a mean size stays small. */
static int
choose_batch_rows(const mc_ogr_file *file)
{
    GIntBig count = OGR_L_GetFeatureCount(file->layer, FALSE);
    int64_t mean = count > 0 ? (int64_t)file->idle.key.stamp.size / count : 0;
    int64_t rows = mean > 0 ? BATCH_BYTES / mean : BATCH_ROWS;
    return rows < 1 ? 1 : rows > BATCH_ROWS ? BATCH_ROWS : (int)rows;
}

static void
describe_ogr_layer(mc_ogr_file *file)
{
    OGREnvelope box;
    file->about.driver = apr_pstrdup(file->pool, GDALGetDriverShortName(GDALGetDatasetDriver(file->dataset)));
    file->about.srs = name_ogr_srs(file->layer, file->pool);
    file->about.indexed = OGR_L_TestCapability(file->layer, OLCFastSpatialFilter) != 0;
    file->about.kept =
        strncmp(file->about.driver, "GeoJSON", 7) == 0 && file->idle.key.stamp.size <= MC_OGR_MEMORY_FILE;
    if (OGR_L_GetExtent(file->layer, &box, file->about.kept) == OGRERR_NONE && isfinite(box.MinX) &&
        isfinite(box.MaxX)) {
        file->about.has_bounds = true;
        file->about.bounds = (mc_extent){ box.MinX, box.MinY, box.MaxX, box.MaxY };
    }
    if (file->about.indexed && strcmp(file->about.driver, "GPKG") == 0)
        file->index = mc_sql_name(apr_pstrcat(file->pool, "rtree_", OGR_L_GetName(file->layer), "_",
                                              OGR_L_GetGeometryColumn(file->layer), NULL),
                                  file->pool);
    file->batch_rows = choose_batch_rows(file);
    list_ogr_fields(file);
}

static mc_error *
choose_ogr_layer(mc_ogr_file *file, apr_pool_t *pool)
{
    int count = GDALDatasetGetLayerCount(file->dataset);
    if (file->table != NULL)
        file->layer = GDALDatasetGetLayerByName(file->dataset, file->table);
    else if (count == 1)
        file->layer = GDALDatasetGetLayer(file->dataset, 0);
    if (file->layer != NULL)
        return MC_OK;
    if (file->table != NULL)
        return mc_error_create(pool, MC_ERR_CONFIG, "%s has no layer \"%s\"",
                               mc_hide_address_password(file->path, pool), file->table);
    return mc_error_create(pool, MC_ERR_CONFIG, "%s has %d layers: <table> has to name one",
                           mc_hide_address_password(file->path, pool), count);
}

static mc_error *
open_ogr_dataset(mc_ogr_file *file, apr_pool_t *pool)
{
    static const char *const drivers[] = { "GPKG", "FlatGeobuf", "GeoJSON", "GeoJSONSeq", NULL };
    CPLErrorReset();
    file->dataset =
        GDALOpenEx(file->path, GDAL_OF_VECTOR | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR, drivers, NULL, NULL);
    if (file->dataset == NULL) {
        const char *said = CPLGetLastErrorMsg();
        return mc_error_create(pool, MC_ERR_CONFIG, "%s is no GeoPackage, FlatGeobuf or GeoJSON file%s%s",
                               mc_hide_address_password(file->path, pool), *said == '\0' ? "" : ": ",
                               mc_hide_passwords(said, file->path, pool));
    }
    MC_TRY(choose_ogr_layer(file, pool));
    describe_ogr_layer(file);
    return MC_OK;
}

static mc_ogr_file *
create_ogr_file(const char *path, const char *table, const mc_idle_key *key)
{
    apr_pool_t *own;
    apr_pool_create_unmanaged_ex(&own, mc_memory_exhausted, NULL);
    mc_ogr_file *made = apr_pcalloc(own, sizeof(*made));
    made->pool = own;
    made->path = apr_pstrdup(own, path);
    made->table = table == NULL ? NULL : apr_pstrdup(own, table);
    made->idle.key = *key;
    made->idle.key.text = apr_pstrdup(own, key->text);
    return made;
}

static mc_error *
ogr_open_file(mc_ogr_file **file, const char *path, const char *table, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_stamp stamp;
    if (!mc_stamp_take_plain(&stamp, path))
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "there is no file %s", path);
    mc_idle_key key = mc_idle_key_of(table == NULL ? path : apr_pstrcat(pool, path, "\n", table, NULL), &stamp);
    *file = (mc_ogr_file *)mc_idle_take(&idle_files, &key);
    if (*file != NULL)
        return MC_OK;
    mc_ogr_file *made = create_ogr_file(path, table, &key);
    made->memory = mc_ogr_memory_find(&key);
    if (made->memory != NULL) {
        made->about = *mc_ogr_memory_about(made->memory);
        *file = made;
        return MC_OK;
    }
    ogr_start();
    CPLPushErrorHandler(CPLQuietErrorHandler);
    mc_ogr_watch_begin(ctx);
    mc_error *error = mc_ogr_watch_end(open_ogr_dataset(made, pool), pool);
    CPLPopErrorHandler();
    if (error != MC_OK) {
        destroy_ogr_file(&made->idle);
        return error;
    }
    *file = made;
    return MC_OK;
}

static const mc_ogr_about *
ogr_about_file(const mc_ogr_file *file)
{
    return &file->about;
}

/* --- reading -------------------------------------------------------------------------------------------------------
 */

/* Only what is asked for is decoded. */
static void
ignore_other_fields(const mc_ogr_reading *r)
{
    const mc_ogr_about *about = &r->file->about;
    char **ignored = NULL;
    for (int field = 0; field < about->field_count; field++) {
        bool wanted = false;
        for (int i = 0; i < r->field_count; i++)
            wanted = wanted || r->fields[i] == field;
        if (!wanted)
            ignored = CSLAddString(ignored, about->fields[field].name);
    }
    OGR_L_SetIgnoredFields(r->file->layer, (const char **)ignored);
    CSLDestroy(ignored);
}

/*
 * The features that may meet the box. Those of a GeoPackage come by their numbers: SQLite goes through the numbers of a
 * list in their order (and makes the list much faster if they are sorted first). OGR's own filter would give them in
 * the order of the index, which is another one for another box.
 */
static void
restrict_to_box(mc_ogr_reading *r)
{
    const mc_ogr_about *about = &r->file->about;
    mc_extent all = { -HUGE_VAL, -HUGE_VAL, HUGE_VAL, HUGE_VAL };
    const mc_extent *box = r->box;
    bool finite = isfinite(box->minx) && isfinite(box->miny) && isfinite(box->maxx) && isfinite(box->maxy);
    bool whole = !finite || (about->has_bounds && box->minx <= about->bounds.minx && box->miny <= about->bounds.miny &&
                             box->maxx >= about->bounds.maxx && box->maxy >= about->bounds.maxy);
    OGR_L_SetSpatialFilter(r->file->layer, NULL);
    OGR_L_SetAttributeFilter(r->file->layer, NULL);
    r->filter = !whole && !about->indexed;
    if (!finite)
        r->box = apr_pmemdup(r->pool, &all, sizeof(all));
    if (whole || !about->indexed)
        return;
    if (r->file->index == NULL) {
        OGR_L_SetSpatialFilterRect(r->file->layer, box->minx, box->miny, box->maxx, box->maxy);
        return;
    }
    r->where = apr_psprintf(r->pool,
                            "%s IN (SELECT id FROM %s WHERE maxx >= %.17g AND minx <= %.17g AND maxy >= %.17g AND "
                            "miny <= %.17g ORDER BY id)",
                            mc_sql_name(OGR_L_GetFIDColumn(r->file->layer), r->pool), r->file->index, box->minx,
                            box->maxx, box->miny, box->maxy);
}

static mc_error *
read_ogr_layer(mc_ogr_reading *r)
{
    bool read;
    ignore_other_fields(r);
    restrict_to_box(r);
    OGR_L_ResetReading(r->file->layer);
    mc_error *error = mc_ogr_read_columns(&read, r);
    if (error == MC_OK && !read) {
        OGR_L_SetAttributeFilter(r->file->layer, r->where);
        error = mc_ogr_read_features(r);
    }
    OGR_L_ResetReading(r->file->layer);
    return error;
}

/* OGR parses a GeoJSON file anew for each map: the features of one that is not too large are kept. */
static mc_error *
hold_ogr_file(mc_ogr_file *file, mc_ctx *ctx, apr_pool_t *pool)
{
    if (file->memory != NULL || !file->about.kept || !file->idle.key.settled)
        return MC_OK;
    OGR_L_SetIgnoredFields(file->layer, NULL);
    OGR_L_SetSpatialFilter(file->layer, NULL);
    OGR_L_SetAttributeFilter(file->layer, NULL);
    OGR_L_ResetReading(file->layer);
    return mc_ogr_memory_make(&file->memory, file, ctx, pool);
}

static mc_error *
ogr_read_file(mc_ogr_file *file, const mc_extent *box, const int *fields, int field_count, mc_ogr_visitor *visit,
              void *baton, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_ogr_reading r = { .file = file,
                         .box = box,
                         .fields = fields,
                         .field_count = field_count,
                         .visit = visit,
                         .baton = baton,
                         .ctx = ctx,
                         .pool = pool };
    r.values = apr_pcalloc(pool, sizeof(*r.values) * (size_t)(field_count + 1));
    apr_pool_create(&r.scratch, pool);
    CPLPushErrorHandler(CPLQuietErrorHandler);
    mc_ogr_watch_begin(ctx);
    mc_error *error = hold_ogr_file(file, ctx, pool);
    if (error == MC_OK)
        error = file->memory != NULL ? mc_ogr_read_memory(&r, file->memory) : read_ogr_layer(&r);
    error = mc_ogr_watch_end(error, pool);
    CPLPopErrorHandler();
    apr_pool_destroy(r.scratch);
    return error;
}

const mc_ogr_ops mc_ogr_reader_ops = { ogr_start, ogr_open_file, ogr_about_file, ogr_read_file, ogr_close_file };
