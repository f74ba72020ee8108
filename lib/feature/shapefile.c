/*
 * Shapefiles as data of a layer. The files stay mapped between maps; a look at the file (stat) before each map says
 * whether they are still those. Maps that are under way keep the old ones until their end.
 */
#include "feature/shapefile.h"

#include <apr_strings.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/workers.h"
#include "db/handles.h"
#include "feature/shp.h"
#include "mapcache/trace.h"

/* One opened generation of the files. */
typedef struct opened {
    atomic_int references;
    apr_pool_t *pool; /* a root pool of its own */
    mc_stamp stamp;
    mc_shp *shp;
} opened;

typedef struct shapefile {
    mc_feature_data data;
    const char *path;
    pthread_mutex_t lock; /* of `current` */
    opened *current;
} shapefile;

static void
let_go(opened *files)
{
    if (files != NULL && atomic_fetch_sub(&files->references, 1) == 1)
        mc_job_pool_release(files->pool);
}

static mc_error *
open_files(opened **files, const shapefile *file, const mc_stamp *stamp, apr_pool_t *pool)
{
    apr_pool_t *own = mc_job_pool_acquire();
    opened *made = apr_pcalloc(own, sizeof(*made));
    mc_error *error = mc_error_copy(mc_shp_open(&made->shp, file->path, own), pool);
    if (error != MC_OK) {
        mc_job_pool_release(own);
        return mc_error_wrap(pool, error, error->kind, "the shapefile of layer \"%s\" cannot be read", file->data.name);
    }
    made->pool = own;
    made->stamp = *stamp;
    atomic_init(&made->references, 1);
    *files = made;
    return MC_OK;
}

/* The files as they are now, with a reference for the caller. */
static mc_error *
acquire(opened **files, shapefile *file, apr_pool_t *pool)
{
    mc_stamp stamp;
    if (!mc_stamp_take_plain(&stamp, file->path))
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "the shapefile of layer \"%s\" is not there", file->data.name);
    mc_error *error = MC_OK;
    pthread_mutex_lock(&file->lock);
    if (file->current == NULL || !mc_stamp_equal(&file->current->stamp, &stamp)) {
        opened *fresh = NULL;
        error = open_files(&fresh, file, &stamp, pool);
        if (error == MC_OK) {
            let_go(file->current);
            file->current = fresh;
        }
    }
    if (error == MC_OK) {
        *files = file->current;
        atomic_fetch_add(&(*files)->references, 1);
    }
    pthread_mutex_unlock(&file->lock);
    return error;
}

/* One reading of a file. */
typedef struct reading {
    const mc_shp *shp;
    const mc_feature_query *query;
    const int *fields; /* of the table, for each wanted attribute; -1: it has none of that name */
    const char **values;
    mc_geometry geometry;
    int64_t skipped;
    mc_ctx *ctx;
} reading;

static void
read_values(reading *r, uint32_t row, apr_pool_t *scratch)
{
    for (int i = 0; i < r->query->attribute_count; i++)
        r->values[i] = r->fields[i] < 0 ? NULL : mc_dbf_value(r->shp->attributes, row, r->fields[i], scratch);
}

static mc_error *
hand_over(reading *r, const mc_shp_record *record, mc_feature_taker *take, void *baton, apr_pool_t *scratch)
{
    mc_error *error = mc_shp_geometry(&r->geometry, record, &r->query->lattice, scratch);
    if (error != MC_OK) {
        if (r->skipped++ == 0)
            mc_log_error(r->ctx, MC_LOG_WARN, error);
        return MC_OK;
    }
    if (mc_geometry_is_empty(&r->geometry))
        return MC_OK;
    read_values(r, record->number, scratch);
    const mc_feature feature = { .id = record->number, .geometry = &r->geometry, .values = r->values };
    return take(baton, &feature, r->ctx);
}

static mc_error *
read_all(reading *r, mc_feature_taker *take, void *baton, apr_pool_t *pool)
{
    enum { BETWEEN_CHECKS = 1024 };
    apr_pool_t *scratch;
    mc_shp_record record;
    mc_error *error = MC_OK;
    size_t at = 0;
    apr_pool_create(&scratch, pool);
    for (int i = 0; error == MC_OK && mc_shp_next(r->shp, &at, &record); i++) {
        if (i % BETWEEN_CHECKS == 0)
            error = mc_ctx_check(r->ctx, pool);
        const mc_extent *b = &record.box, *q = &r->query->box;
        if (error != MC_OK || !record.has_box ||
            !(b->minx <= q->maxx && b->maxx >= q->minx && b->miny <= q->maxy && b->maxy >= q->miny))
            continue;
        error = mc_error_copy(hand_over(r, &record, take, baton, scratch), pool);
        apr_pool_clear(scratch);
    }
    apr_pool_destroy(scratch);
    return error;
}

static mc_error *
shapefile_read(mc_feature_data *data, const mc_feature_query *query, mc_feature_taker *take, void *baton,
               int64_t *skipped, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_shapefile_read");
    shapefile *file = (shapefile *)data;
    opened *files;
    MC_TRY(acquire(&files, file, pool));
    int *fields = apr_palloc(pool, sizeof(*fields) * (size_t)(query->attribute_count + 1));
    for (int i = 0; i < query->attribute_count; i++)
        fields[i] = files->shp->attributes == NULL ? -1 : mc_dbf_find(files->shp->attributes, query->attributes[i]);
    reading r = { .shp = files->shp, .query = query, .fields = fields, .ctx = ctx };
    r.values = apr_pcalloc(pool, sizeof(*r.values) * (size_t)(query->attribute_count + 1));
    mc_error *error = read_all(&r, take, baton, pool);
    mc_geometry_free(&r.geometry);
    let_go(files);
    *skipped = r.skipped;
    return error;
}

/* dBASE: N and F are numbers (with decimals or not), I an integer, L true or false; all others are text. */
static mc_field_type
type_of(const mc_dbf_field *field)
{
    switch (field->type) {
    case 'N':
    case 'F':
        return field->decimals > 0 || field->width > 18 ? MC_FIELD_NUMBER : MC_FIELD_INTEGER;
    case 'L':
        return MC_FIELD_BOOLEAN;
    default:
        return MC_FIELD_TEXT;
    }
}

static mc_error *
shapefile_fields(apr_array_header_t **fields, mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)ctx;
    opened *files;
    MC_TRY(acquire(&files, (shapefile *)data, pool));
    const mc_dbf *table = files->shp->attributes;
    *fields = apr_array_make(pool, 16, sizeof(mc_field));
    for (int i = 0; table != NULL && i < table->field_count; i++)
        APR_ARRAY_PUSH(*fields, mc_field) =
            (mc_field){ apr_pstrdup(pool, table->fields[i].name), type_of(&table->fields[i]) };
    let_go(files);
    return MC_OK;
}

static const mc_feature_ops shapefile_ops = { "shapefile", shapefile_read, shapefile_fields };

static apr_status_t
close_shapefile(void *data)
{
    shapefile *file = data;
    let_go(file->current);
    pthread_mutex_destroy(&file->lock);
    return APR_SUCCESS;
}

mc_feature_data *
mc_shapefile_create(const char *path, const char *layer, apr_pool_t *pool)
{
    shapefile *made = apr_pcalloc(pool, sizeof(*made));
    made->data = (mc_feature_data){ &shapefile_ops, layer, true };
    made->path = apr_pstrdup(pool, path);
    pthread_mutex_init(&made->lock, NULL);
    apr_pool_cleanup_register(pool, made, close_shapefile, apr_pool_cleanup_null);
    return &made->data;
}
