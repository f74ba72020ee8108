/*
 * Part of the module mapcache-gdal.so: features through OGR. A file is used by one thread at a time; between maps it
 * waits here, by its name and the stamp of the file, so that a file that was replaced is opened anew.
 */
#include "vector/ogr/ogr_reader.h"

#include <apr_strings.h>
#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <gdal.h>
#include <math.h>
#include <ogr_api.h>
#include <ogr_srs_api.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { IDLE_FILES = 16, BETWEEN_CHECKS = 256, WKB_MAX = 128 << 20 };

typedef struct ogr_stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec mtime, ctime;
} ogr_stamp;

struct mc_ogr_file {
    apr_pool_t *pool; /* a root pool of its own */
    const char *path, *table;
    ogr_stamp stamp;
    GDALDatasetH dataset;
    OGRLayerH layer;
    const char *index; /* the name of GeoPackage's table of boxes; NULL: none, or another format */
    mc_ogr_about about;
    uint8_t *wkb;
    size_t wkb_room;
    struct mc_ogr_file *next;
};

static pthread_once_t ogr_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER; /* of the next two */
static mc_ogr_file *idle;                                     /* latest first */
static int idle_count;

/* --- files -------------------------------------------------------------------------------------------------------- */

static bool
take_ogr_stamp(ogr_stamp *stamp, const char *path)
{
    struct stat status;
    memset(stamp, 0, sizeof(*stamp)); /* padding too: stamps are compared as bytes */
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    stamp->device = status.st_dev;
    stamp->inode = status.st_ino;
    stamp->size = status.st_size;
    stamp->mtime = status.st_mtim;
    stamp->ctime = status.st_ctim;
    return true;
}

static void
destroy_ogr_file(mc_ogr_file *file)
{
    if (file->dataset != NULL)
        GDALClose(file->dataset);
    free(file->wkb);
    apr_pool_destroy(file->pool);
}

static bool
is_ogr_table(const mc_ogr_file *file, const char *path, const char *table)
{
    return strcmp(file->path, path) == 0 &&
           (table == NULL ? file->table == NULL : file->table != NULL && strcmp(file->table, table) == 0);
}

static mc_ogr_file *
take_idle_file(const char *path, const char *table, const ogr_stamp *stamp)
{
    mc_ogr_file *taken = NULL, *outdated = NULL;
    pthread_mutex_lock(&idle_lock);
    for (mc_ogr_file **at = &idle; *at != NULL && taken == NULL;) {
        mc_ogr_file *file = *at;
        if (!is_ogr_table(file, path, table)) {
            at = &file->next;
            continue;
        }
        *at = file->next;
        idle_count--;
        if (memcmp(&file->stamp, stamp, sizeof(*stamp)) == 0) {
            taken = file;
        } else {
            file->next = outdated;
            outdated = file;
        }
    }
    pthread_mutex_unlock(&idle_lock);
    while (outdated != NULL) {
        mc_ogr_file *next = outdated->next;
        destroy_ogr_file(outdated);
        outdated = next;
    }
    return taken;
}

static void
ogr_close_file(mc_ogr_file *file, bool keep)
{
    mc_ogr_file *dropped = keep ? NULL : file;
    if (keep) {
        pthread_mutex_lock(&idle_lock);
        file->next = idle;
        idle = file;
        if (++idle_count > IDLE_FILES) {
            mc_ogr_file **last = &idle;
            while ((*last)->next != NULL)
                last = &(*last)->next;
            dropped = *last;
            *last = NULL;
            idle_count--;
        }
        pthread_mutex_unlock(&idle_lock);
    }
    if (dropped != NULL)
        destroy_ogr_file(dropped);
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

static const char *
quote_sql_name(const char *name, apr_pool_t *pool)
{
    char *quoted = apr_palloc(pool, 2 * strlen(name) + 3), *to = quoted;
    *to++ = '"';
    for (; *name != '\0'; *to++ = *name++)
        if (*name == '"')
            *to++ = '"';
    *to++ = '"';
    *to = '\0';
    return quoted;
}

static void
describe_ogr_layer(mc_ogr_file *file)
{
    OGREnvelope box;
    file->about.driver = apr_pstrdup(file->pool, GDALGetDriverShortName(GDALGetDatasetDriver(file->dataset)));
    file->about.srs = name_ogr_srs(file->layer, file->pool);
    file->about.indexed = OGR_L_TestCapability(file->layer, OLCFastSpatialFilter) != 0;
    if (OGR_L_GetExtent(file->layer, &box, FALSE) == OGRERR_NONE && isfinite(box.MinX) && isfinite(box.MaxX)) {
        file->about.has_bounds = true;
        file->about.bounds = (mc_extent){ box.MinX, box.MinY, box.MaxX, box.MaxY };
    }
    if (file->about.indexed && strcmp(file->about.driver, "GPKG") == 0)
        file->index = quote_sql_name(apr_pstrcat(file->pool, "rtree_", OGR_L_GetName(file->layer), "_",
                                                 OGR_L_GetGeometryColumn(file->layer), NULL),
                                     file->pool);
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
        return mc_error_create(pool, MC_ERR_CONFIG, "%s has no layer \"%s\"", file->path, file->table);
    return mc_error_create(pool, MC_ERR_CONFIG, "%s has %d layers: <table> has to name one", file->path, count);
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
        return mc_error_create(pool, MC_ERR_CONFIG, "%s is no GeoPackage, FlatGeobuf or GeoJSON file%s%s", file->path,
                               *said == '\0' ? "" : ": ", said);
    }
    MC_TRY(choose_ogr_layer(file, pool));
    describe_ogr_layer(file);
    return MC_OK;
}

static mc_error *
ogr_open_file(mc_ogr_file **file, const char *path, const char *table, apr_pool_t *pool)
{
    ogr_stamp stamp;
    apr_pool_t *own;
    if (!take_ogr_stamp(&stamp, path))
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "there is no file %s", path);
    *file = take_idle_file(path, table, &stamp);
    if (*file != NULL)
        return MC_OK;
    pthread_once(&ogr_once, GDALAllRegister);
    apr_pool_create_unmanaged_ex(&own, NULL, NULL);
    mc_ogr_file *made = apr_pcalloc(own, sizeof(*made));
    made->pool = own;
    made->path = apr_pstrdup(own, path);
    made->table = table == NULL ? NULL : apr_pstrdup(own, table);
    made->stamp = stamp;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    mc_error *error = open_ogr_dataset(made, pool);
    CPLPopErrorHandler();
    if (error != MC_OK) {
        destroy_ogr_file(made);
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

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* One reading. */
typedef struct row_reader {
    mc_ogr_file *file;
    const mc_extent *box;
    bool filter; /* OGR does not look at boxes: it is done here, where the deadline is kept between two features */
    const int *fields;
    int field_count;
    const char **values;
    apr_pool_t *scratch;
} row_reader;

static bool
row_meets_box(const row_reader *r, OGRGeometryH geometry)
{
    OGREnvelope around;
    OGR_G_GetEnvelope(geometry, &around);
    return around.MinX <= r->box->maxx && around.MaxX >= r->box->minx && around.MinY <= r->box->maxy &&
           around.MaxY >= r->box->miny;
}

static const char *
ogr_value(OGRFeatureH feature, int field, mc_field_type type, apr_pool_t *pool)
{
    if (field < 0 || !OGR_F_IsFieldSetAndNotNull(feature, field))
        return NULL;
    if (type == MC_FIELD_BOOLEAN)
        return OGR_F_GetFieldAsInteger(feature, field) != 0 ? "true" : "false";
    return apr_pstrdup(pool, OGR_F_GetFieldAsString(feature, field));
}

/* NULL: there is no memory, or it is larger than any geometry may be. */
static const void *
ogr_wkb(size_t *size, mc_ogr_file *file, OGRGeometryH geometry)
{
    *size = OGR_G_WkbSizeEx(geometry);
    if (*size > WKB_MAX)
        return NULL;
    if (*size > file->wkb_room) {
        uint8_t *grown = realloc(file->wkb, *size * 2);
        if (grown == NULL)
            return NULL;
        file->wkb = grown;
        file->wkb_room = *size * 2;
    }
    return OGR_G_ExportToIsoWkb(geometry, wkbNDR, file->wkb) == OGRERR_NONE ? file->wkb : NULL;
}

static mc_error *
take_ogr_row(row_reader *r, OGRFeatureH feature, mc_ogr_visitor *visit, void *baton)
{
    OGRGeometryH geometry = OGR_F_GetGeometryRef(feature);
    size_t size;
    if (geometry == NULL || OGR_G_IsEmpty(geometry) || (r->filter && !row_meets_box(r, geometry)))
        return MC_OK;
    const void *wkb = ogr_wkb(&size, r->file, geometry);
    if (wkb == NULL) /* the reader of WKB counts an empty one, and says that it cannot be read */
        return visit(baton, OGR_F_GetFID(feature), "", 0, r->values);
    for (int i = 0; i < r->field_count; i++) {
        mc_field_type type = r->fields[i] < 0 ? MC_FIELD_TEXT : r->file->about.fields[r->fields[i]].type;
        r->values[i] = ogr_value(feature, r->fields[i], type, r->scratch);
    }
    return visit(baton, OGR_F_GetFID(feature), wkb, size, r->values);
}

/* Only what is asked for is decoded. */
static void
ignore_other_fields(const row_reader *r)
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
 * list in their order. OGR's own filter would give them in the order of the index, which is another one for another
 * box.
 */
static void
restrict_to_box(row_reader *r)
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
        r->box = apr_pmemdup(r->scratch, &all, sizeof(all));
    if (whole || !about->indexed)
        return;
    if (r->file->index == NULL) {
        OGR_L_SetSpatialFilterRect(r->file->layer, box->minx, box->miny, box->maxx, box->maxy);
        return;
    }
    const char *number = quote_sql_name(OGR_L_GetFIDColumn(r->file->layer), r->scratch);
    OGR_L_SetAttributeFilter(r->file->layer,
                             apr_psprintf(r->scratch,
                                          "%s IN (SELECT id FROM %s WHERE maxx >= %.17g AND minx <= %.17g AND "
                                          "maxy >= %.17g AND miny <= %.17g)",
                                          number, r->file->index, box->minx, box->maxx, box->miny, box->maxy));
}

static mc_error *
read_ogr_rows(row_reader *r, mc_ogr_visitor *visit, void *baton, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_error *error = MC_OK;
    OGR_L_ResetReading(r->file->layer);
    for (int i = 0; error == MC_OK; i++) {
        if (i % BETWEEN_CHECKS == 0) {
            apr_pool_clear(r->scratch);
            error = mc_ctx_check(ctx, pool);
        }
        CPLErrorReset();
        OGRFeatureH feature = error == MC_OK ? OGR_L_GetNextFeature(r->file->layer) : NULL;
        if (feature == NULL)
            break;
        error = take_ogr_row(r, feature, visit, baton);
        OGR_F_Destroy(feature);
    }
    if (error == MC_OK && CPLGetLastErrorType() >= CE_Failure)
        error = mc_error_wrap(pool, mc_error_create(pool, MC_ERR_IO, "%s", CPLGetLastErrorMsg()), MC_ERR_IO,
                              "the file could not be read to its end");
    return error;
}

static mc_error *
ogr_read_file(mc_ogr_file *file, const mc_extent *box, const int *fields, int field_count, mc_ogr_visitor *visit,
              void *baton, mc_ctx *ctx, apr_pool_t *pool)
{
    row_reader r = { .file = file, .box = box, .fields = fields, .field_count = field_count };
    apr_pool_t *rows;
    r.values = apr_pcalloc(pool, sizeof(*r.values) * (size_t)(field_count + 1));
    r.scratch = pool;
    apr_pool_create(&rows, pool);
    CPLPushErrorHandler(CPLQuietErrorHandler);
    ignore_other_fields(&r);
    restrict_to_box(&r);
    r.scratch = rows;
    mc_error *error = read_ogr_rows(&r, visit, baton, ctx, pool);
    OGR_L_ResetReading(file->layer);
    CPLPopErrorHandler();
    apr_pool_destroy(rows);
    return error;
}

const mc_ogr_ops mc_ogr_reader_ops = { ogr_open_file, ogr_about_file, ogr_read_file, ogr_close_file };
