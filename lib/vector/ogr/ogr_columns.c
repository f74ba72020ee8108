/*
 * Part of the module mapcache-gdal.so: features in columns, as Arrow's C data interface has them. OGR makes no object
 * of a feature there, and the geometry is WKB already.
 */
#include <apr_strings.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <ogr_api.h>
#include <ogr_recordbatch.h>
#include <string.h>

#include "text/text.h"
#include "vector/geometry/geometry.h"
#include "vector/ogr/ogr_file.h"

/* A column of the batches. The first ones are the feature's number and the fields that OGR does not ignore; the last
 * one is the geometry. */
typedef struct batch_column {
    char format; /* Arrow's: s, i, l, g, u, z; U and Z with long offsets */
    int field;   /* of the layer */
} batch_column;

typedef struct column_reader {
    mc_ogr_reading *reading;
    struct ArrowArrayStream stream;
    batch_column *columns;
    int count;
    int *wanted;         /* for each value: its column; -1: null */
    OGRFeatureH printer; /* writes numbers with decimals as OGR does */
} column_reader;

/* --- what a batch holds ------------------------------------------------------------------------------------------- */

/* Bits of booleans are wrong in GDAL 3.6 (GeoPackage, FlatGeobuf): where a query can, it makes numbers or texts of
 * them. */
static bool
is_format_of(char format, mc_field_type type)
{
    switch (type) {
    case MC_FIELD_BOOLEAN:
        return format == 'i' || format == 'l' || format == 'u';
    case MC_FIELD_INTEGER:
        return format == 's' || format == 'i' || format == 'l';
    case MC_FIELD_NUMBER:
        return format == 'g';
    default:
        return format == 'u' || format == 'U';
    }
}

/* Dates, lists, bytes and codes with texts are left to features, which write them in OGR's way. */
static bool
is_plain_field(OGRFieldDefnH field, const struct ArrowSchema *schema)
{
    OGRFieldType type = OGR_Fld_GetType(field);
    return (type == OFTInteger || type == OFTInteger64 || type == OFTReal || type == OFTString) &&
           schema->dictionary == NULL && strlen(schema->format) == 1 &&
           strcmp(schema->name, OGR_Fld_GetNameRef(field)) == 0;
}

static bool
match_wanted_columns(column_reader *c, const struct ArrowSchema *schema)
{
    const mc_ogr_reading *r = c->reading;
    OGRFeatureDefnH layer = OGR_L_GetLayerDefn(r->file->layer);
    int column = 1;
    for (int field = 0; field < r->file->about.field_count; field++) {
        OGRFieldDefnH definition = OGR_FD_GetFieldDefn(layer, field);
        if (OGR_Fld_IsIgnored(definition))
            continue;
        const struct ArrowSchema *child = column < c->count - 1 ? schema->children[column] : NULL;
        if (child == NULL || !is_plain_field(definition, child) ||
            !is_format_of(child->format[0], r->file->about.fields[field].type))
            return false;
        c->columns[column++] = (batch_column){ child->format[0], field };
    }
    for (int i = 0; i < r->field_count; i++) {
        c->wanted[i] = -1;
        for (int at = 1; at < column; at++)
            if (c->columns[at].field == r->fields[i])
                c->wanted[i] = at;
    }
    return column == c->count - 1;
}

static bool
match_columns(column_reader *c, const struct ArrowSchema *schema)
{
    apr_pool_t *pool = c->reading->pool;
    if (strcmp(schema->format, "+s") != 0 || schema->n_children < 2 || schema->n_children > INT16_MAX)
        return false;
    c->count = (int)schema->n_children;
    c->columns = apr_pcalloc(pool, sizeof(*c->columns) * (size_t)c->count);
    c->wanted = apr_palloc(pool, sizeof(*c->wanted) * (size_t)(c->reading->field_count + 1));
    const char *last = schema->children[c->count - 1]->format;
    if (strcmp(schema->children[0]->format, "l") != 0 || (strcmp(last, "z") != 0 && strcmp(last, "Z") != 0))
        return false;
    c->columns[c->count - 1] = (batch_column){ last[0], -1 };
    return match_wanted_columns(c, schema);
}

/* --- values of a row ---------------------------------------------------------------------------------------------- */

static bool
is_bit_set(const void *bits, int64_t at)
{
    return (((const uint8_t *)bits)[at / 8] >> (at % 8) & 1) != 0;
}

static bool
is_null_at(const struct ArrowArray *column, int64_t at)
{
    return column->null_count != 0 && column->buffers[0] != NULL && !is_bit_set(column->buffers[0], at);
}

/* The bytes of a text or of a geometry. */
static const char *
bytes_at(size_t *size, const struct ArrowArray *column, char format, int64_t at)
{
    int64_t begin, end;
    if (format == 'U' || format == 'Z') {
        const int64_t *offsets = column->buffers[1];
        begin = offsets[at];
        end = offsets[at + 1];
    } else {
        const int32_t *offsets = column->buffers[1];
        begin = offsets[at];
        end = offsets[at + 1];
    }
    *size = end > begin ? (size_t)(end - begin) : 0;
    return *size > 0 ? (const char *)column->buffers[2] + begin : "";
}

static int64_t
integer_at(const void *values, char format, int64_t at)
{
    return format == 's'   ? ((const int16_t *)values)[at]
           : format == 'i' ? ((const int32_t *)values)[at]
                           : ((const int64_t *)values)[at];
}

static const char *
boolean_at(const struct ArrowArray *column, char format, int64_t at)
{
    size_t size;
    if (format != 'u')
        return integer_at(column->buffers[1], format, at) != 0 ? "true" : "false";
    const char *text = bytes_at(&size, column, format, at);
    return size == 1 && *text == '0' ? "false" : "true";
}

static const char *
column_value(column_reader *c, const struct ArrowArray *column, const batch_column *about, int64_t row)
{
    apr_pool_t *pool = c->reading->scratch;
    int64_t at = row + column->offset;
    size_t size;
    if (is_null_at(column, at))
        return NULL;
    switch (c->reading->file->about.fields[about->field].type) {
    case MC_FIELD_BOOLEAN:
        return boolean_at(column, about->format, at);
    case MC_FIELD_INTEGER:
        return apr_ltoa(pool, integer_at(column->buffers[1], about->format, at));
    case MC_FIELD_NUMBER:
        OGR_F_SetFieldDouble(c->printer, about->field, ((const double *)column->buffers[1])[at]);
        return apr_pstrdup(pool, OGR_F_GetFieldAsString(c->printer, about->field));
    default: {
        const char *text = bytes_at(&size, column, about->format, at);
        return apr_pstrmemdup(pool, text, size);
    }
    }
}

static mc_error *
visit_batch_row(column_reader *c, const struct ArrowArray *batch, int64_t row)
{
    mc_ogr_reading *r = c->reading;
    const struct ArrowArray *ids = batch->children[0], *shapes = batch->children[c->count - 1];
    int64_t at = row + shapes->offset;
    size_t size;
    bool meets;
    if (is_null_at(shapes, at))
        return MC_OK;
    const char *wkb = bytes_at(&size, shapes, c->columns[c->count - 1].format, at);
    if (r->filter && mc_wkb_measure(&meets, wkb, size, r->box) > 0 && !meets)
        return MC_OK;
    for (int i = 0; i < r->field_count; i++)
        r->values[i] =
            c->wanted[i] < 0 ? NULL : column_value(c, batch->children[c->wanted[i]], &c->columns[c->wanted[i]], row);
    return r->visit(r->baton, ((const int64_t *)ids->buffers[1])[row + ids->offset], wkb, size, r->values);
}

/* --- batches ------------------------------------------------------------------------------------------------------ */

static mc_error *
visit_batch(column_reader *c, const struct ArrowArray *batch)
{
    mc_ogr_reading *r = c->reading;
    mc_error *error = MC_OK;
    for (int64_t row = 0; row < batch->length && error == MC_OK; row++) {
        if (row % MC_OGR_BETWEEN_CHECKS == 0) {
            apr_pool_clear(r->scratch);
            error = mc_ctx_check(r->ctx, r->pool);
        }
        if (error == MC_OK)
            error = visit_batch_row(c, batch, row + batch->offset);
    }
    return error;
}

static mc_error *
read_batches(column_reader *c)
{
    apr_pool_t *pool = c->reading->pool;
    mc_error *error = mc_ctx_check(c->reading->ctx, pool);
    while (error == MC_OK) {
        struct ArrowArray batch = { 0 };
        CPLErrorReset();
        int failed = c->stream.get_next(&c->stream, &batch);
        error = mc_ogr_said(pool);
        if (error == MC_OK && failed != 0)
            error = mc_error_create(pool, MC_ERR_IO, "the file could not be read to its end");
        bool any = failed == 0 && batch.release != NULL;
        if (error == MC_OK && any)
            error = batch.n_children == c->count
                        ? visit_batch(c, &batch)
                        : mc_error_create(pool, MC_ERR_IO, "the file's columns change while they are read");
        if (any)
            batch.release(&batch);
        if (!any)
            break;
    }
    return error;
}

/* Rows of a GeoPackage: its layer would read them in a thread of its own, the answer to a query does not. NULL: it has
 * no column of numbers. */
static const char *
write_package_query(const mc_ogr_reading *r)
{
    OGRLayerH layer = r->file->layer;
    OGRFeatureDefnH definition = OGR_L_GetLayerDefn(layer);
    if (*OGR_L_GetFIDColumn(layer) == '\0' || *OGR_L_GetGeometryColumn(layer) == '\0')
        return NULL;
    apr_array_header_t *words = apr_array_make(r->pool, 16, sizeof(const char *));
    APR_ARRAY_PUSH(words, const char *) = "SELECT ";
    APR_ARRAY_PUSH(words, const char *) = mc_sql_name(OGR_L_GetFIDColumn(layer), r->pool);
    for (int field = 0; field < r->file->about.field_count; field++) {
        OGRFieldDefnH one = OGR_FD_GetFieldDefn(definition, field);
        if (OGR_Fld_IsIgnored(one))
            continue;
        const char *name = mc_sql_name(OGR_Fld_GetNameRef(one), r->pool);
        bool cast = r->file->about.fields[field].type == MC_FIELD_BOOLEAN;
        APR_ARRAY_PUSH(words, const char *) = ", ";
        APR_ARRAY_PUSH(words, const char *) =
            cast ? apr_pstrcat(r->pool, "CAST(", name, " AS INTEGER) AS ", name, NULL) : name;
    }
    APR_ARRAY_PUSH(words, const char *) = ", ";
    APR_ARRAY_PUSH(words, const char *) = mc_sql_name(OGR_L_GetGeometryColumn(layer), r->pool);
    APR_ARRAY_PUSH(words, const char *) = " FROM ";
    APR_ARRAY_PUSH(words, const char *) = mc_sql_name(OGR_L_GetName(layer), r->pool);
    if (r->where != NULL)
        APR_ARRAY_PUSH(words, const char *) = apr_pstrcat(r->pool, " WHERE ", r->where, NULL);
    return apr_array_pstrcat(r->pool, words, '\0');
}

static mc_error *
read_stream(bool *read, column_reader *c, OGRLayerH layer)
{
    struct ArrowSchema schema = { 0 };
    mc_error *error = MC_OK;
    char **options = CSLSetNameValue(NULL, "MAX_FEATURES_IN_BATCH",
                                     apr_psprintf(c->reading->pool, "%d", c->reading->file->batch_rows));
    if (OGR_L_GetArrowStream(layer, &c->stream, options)) {
        if (c->stream.get_schema(&c->stream, &schema) == 0) {
            *read = match_columns(c, &schema);
            schema.release(&schema);
        }
        if (*read)
            error = read_batches(c);
        c->stream.release(&c->stream);
    }
    CSLDestroy(options);
    return error;
}

mc_error *
mc_ogr_read_columns(bool *read, mc_ogr_reading *r)
{
    const mc_ogr_file *file = r->file;
    column_reader c = { .reading = r };
    OGRLayerH layer = file->layer;
    bool package = strcmp(file->about.driver, "GPKG") == 0;
    *read = false;
    if (package) {
        const char *query = write_package_query(r);
        layer = query == NULL ? NULL : GDALDatasetExecuteSQL(file->dataset, query, NULL, NULL);
    }
    if (layer == NULL)
        return MC_OK;
    mc_error *error = MC_OK;
    if (OGR_L_TestCapability(layer, OLCFastGetArrowStream)) {
        c.printer = OGR_F_Create(OGR_L_GetLayerDefn(file->layer));
        error = read_stream(read, &c, layer);
        OGR_F_Destroy(c.printer);
    }
    if (package)
        GDALDatasetReleaseResultSet(file->dataset, layer);
    return error;
}
