/* Part of the module mapcache-gdal.so: features one by one, for formats and fields that do not come in columns. */
#include <apr_strings.h>
#include <cpl_error.h>
#include <ogr_api.h>

#include "text/secret.h"
#include "vector/ogr/ogr_file.h"

enum { WKB_MAX = 128 << 20 };

static bool
row_meets_box(const mc_ogr_reading *r, OGRGeometryH geometry)
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
take_ogr_row(mc_ogr_reading *r, OGRFeatureH feature)
{
    OGRGeometryH geometry = OGR_F_GetGeometryRef(feature);
    size_t size;
    if (geometry == NULL || OGR_G_IsEmpty(geometry) || (r->filter && !row_meets_box(r, geometry)))
        return MC_OK;
    const void *wkb = ogr_wkb(&size, r->file, geometry);
    if (wkb == NULL) /* the reader of WKB counts an empty one, and says that it cannot be read */
        return r->visit(r->baton, OGR_F_GetFID(feature), "", 0, r->values);
    for (int i = 0; i < r->field_count; i++) {
        mc_field_type type = r->fields[i] < 0 ? MC_FIELD_TEXT : r->file->about.fields[r->fields[i]].type;
        r->values[i] = ogr_value(feature, r->fields[i], type, r->scratch);
    }
    return r->visit(r->baton, OGR_F_GetFID(feature), wkb, size, r->values);
}

mc_error *
mc_ogr_said(apr_pool_t *pool)
{
    if (CPLGetLastErrorType() < CE_Failure)
        return MC_OK;
    return mc_error_wrap(pool,
                         mc_error_create(pool, MC_ERR_IO, "%s", mc_hide_passwords(CPLGetLastErrorMsg(), NULL, pool)),
                         MC_ERR_IO, "the file could not be read to its end");
}

mc_error *
mc_ogr_read_features(mc_ogr_reading *r)
{
    mc_error *error = MC_OK;
    for (int i = 0; error == MC_OK; i++) {
        if (i % MC_OGR_BETWEEN_CHECKS == 0) {
            apr_pool_clear(r->scratch);
            error = mc_ctx_check(r->ctx, r->pool);
        }
        CPLErrorReset();
        OGRFeatureH feature = error == MC_OK ? OGR_L_GetNextFeature(r->file->layer) : NULL;
        if (feature == NULL)
            break;
        error = take_ogr_row(r, feature);
        OGR_F_Destroy(feature);
    }
    return error == MC_OK ? mc_ogr_said(r->pool) : error;
}
