/*
 * Shapefiles as data of a layer. The files and the index of their boxes stay open between maps; a look at them (stat)
 * before each map says whether they are still those. Maps that are under way keep the old ones until their end.
 */
#include "vector/shapefile/shapefile.h"

#include <apr_strings.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/references.h"
#include "base/stamp.h"
#include "base/workers.h"
#include "base/write_lock.h"
#include "mapcache/trace.h"
#include "vector/crs/projection.h"
#include "vector/feature/packet.h"
#include "vector/shapefile/shapefile_levels.h"

enum { STAMPS = 3 };

/* One opened generation of the files. */
typedef struct opened {
    atomic_uint references;
    apr_pool_t *pool; /* a root pool of its own */
    mc_stamp stamps[STAMPS];
    bool settled; /* the files were left alone for a while as they were opened */
    mc_shp *shp;
    mc_level_data origin; /* for its overviews */
    atomic_bool cut;      /* they are not what they were when they were opened */
} opened;

typedef struct shapefile {
    mc_feature_data data;
    mc_shapefile_config config;
    const char *paths[STAMPS];
    mc_shapefile_levels *levels; /* its overviews */
    mc_write_lock opening;       /* of whoever opens the files */
    opened *begun;               /* by an opener that had too little time; of who has `opening` */
    pthread_mutex_t lock;        /* of `current`, held for a moment */
    opened *current;
} shapefile;

static void
release_shapefile(opened *files)
{
    if (files != NULL && mc_references_drop(&files->references))
        mc_task_pool_release(files->pool);
}

/* Nothing is known of their records so far. */
static mc_error *
begin_opening_shapefile(opened **files, const shapefile *file, const mc_stamp *stamps, apr_pool_t *pool)
{
    apr_pool_t *own = mc_task_pool_acquire();
    opened *made = apr_pcalloc(own, sizeof(*made));
    const apr_time_t now = apr_time_now();
    made->settled = true;
    for (int i = 0; i < STAMPS; i++)
        made->settled = made->settled && mc_stamp_settled(&stamps[i], now);
    mc_error *error =
        mc_error_copy(mc_shp_begin_opening(&made->shp, file->config.path, file->config.encoding, own), pool);
    if (error == MC_OK && mc_shp_is_growing(made->shp, now)) /* a part of a map would be stored as all of it */
        error = mc_error_create(pool, MC_ERR_UNAVAILABLE, "its files are being written");
    if (error != MC_OK) {
        mc_task_pool_release(own);
        return error;
    }
    made->pool = own;
    memcpy(made->stamps, stamps, sizeof(made->stamps));
    atomic_init(&made->references, 1);
    atomic_init(&made->cut, false);
    *files = made;
    return MC_OK;
}

/* Whether what was opened is what is there now: .shp, .dbf and .qix, of which the last two may be missing. What was
 * read of files that were just changing may be older than the files. */
static bool
is_current(const opened *files, const mc_stamp *stamps)
{
    bool same = files != NULL && files->settled && !atomic_load(&files->cut);
    for (int i = 0; i < STAMPS && same; i++)
        same = mc_stamp_equal(&files->stamps[i], &stamps[i]);
    return same;
}

/* Goes on with what another map has begun, or begins. By who has `opening`. */
static mc_error *
open_shapefile(opened **files, shapefile *file, const mc_stamp *stamps, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_error *error = MC_OK;
    opened *made = file->begun;
    file->begun = NULL;
    if (!is_current(made, stamps)) {
        release_shapefile(made);
        made = NULL;
        error = begin_opening_shapefile(&made, file, stamps, pool);
    }
    if (error == MC_OK)
        error = mc_shp_go_on_opening(made->shp, ctx, pool);
    if (error == MC_OK) {
        mc_shapefile_origin_look(&made->origin, made->shp,
                                 file->config.srs != NULL ? file->config.srs : made->shp->projection);
        *files = made;
        return MC_OK;
    }
    if (error->kind == MC_ERR_UNAVAILABLE)
        file->begun = made;
    else
        release_shapefile(made);
    return mc_error_wrap(pool, error, error->kind, "the shapefile of layer \"%s\" cannot be read", file->data.name);
}

/* What is worth a line of the log, once for each generation of the files. */
static void
log_shapefile_faults(const shapefile *file, const mc_shp *shp, mc_ctx *ctx)
{
    if (shp->table_error != NULL)
        mc_log_write(ctx, MC_LOG_WARN, "layer \"%s\" has no attributes: %s", file->data.name,
                     shp->table_error->message);
    if (shp->stale_tree)
        mc_log_write(ctx, MC_LOG_WARN, "layer \"%s\": its .qix is older than its .shp and is not used",
                     file->data.name);
    if (shp->broken > 0)
        mc_log_write(ctx, MC_LOG_WARN, "layer \"%s\": %u shapes cannot be read", file->data.name, shp->broken);
    if (shp->unlisted)
        mc_log_write(ctx, MC_LOG_WARN, "layer \"%s\": its .shx ends before its .shp does", file->data.name);
    if (shp->search == MC_SHP_SCAN)
        mc_log_write(ctx, MC_LOG_WARN, "layer \"%s\" has %u shapes and no .qix: each map looks at all of them",
                     file->data.name, shp->count);
}

/* With a reference for the caller; NULL: what is open is not what is there now. */
static opened *
take_current(shapefile *file, const mc_stamp *stamps)
{
    pthread_mutex_lock(&file->lock);
    opened *found = is_current(file->current, stamps) ? file->current : NULL;
    if (found != NULL)
        mc_references_take(&found->references);
    pthread_mutex_unlock(&file->lock);
    return found;
}

/* Opens the files, unless another map has done so. By who has `opening`. */
static mc_error *
renew_shapefile(opened **files, shapefile *file, const mc_stamp *stamps, mc_ctx *ctx, apr_pool_t *pool)
{
    *files = take_current(file, stamps);
    if (*files != NULL)
        return MC_OK;
    MC_TRY(open_shapefile(files, file, stamps, ctx, pool));
    mc_references_take(&(*files)->references);
    pthread_mutex_lock(&file->lock);
    opened *before = file->current;
    file->current = *files;
    pthread_mutex_unlock(&file->lock);
    release_shapefile(before);
    log_shapefile_faults(file, (*files)->shp, ctx);
    return MC_OK;
}

/* The files as they are now, with a reference for the caller. */
static mc_error *
acquire_shapefile(opened **files, shapefile *file, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_stamp stamps[STAMPS] = { 0 };
    for (int i = 0; i < STAMPS; i++)
        if (!mc_stamp_take_plain(&stamps[i], file->paths[i]) && i == 0)
            return mc_error_create(pool, MC_ERR_UNAVAILABLE, "the shapefile of layer \"%s\" is not there",
                                   file->data.name);
    *files = take_current(file, stamps);
    if (*files != NULL)
        return MC_OK;
    if (!mc_write_lock_await(&file->opening, ctx))
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "the shapefile of layer \"%s\" is being opened",
                               file->data.name);
    mc_error *error = renew_shapefile(files, file, stamps, ctx, pool);
    mc_write_lock_give(&file->opening);
    return error;
}

/* One reading of a file. */
typedef struct shapefile_reading {
    mc_feature_reading base;
    const mc_shp *shp;
    mc_level_data *origin;
    mc_shapefile_levels *levels;
    const char *srs;               /* of the data; NULL: that of the map */
    const mc_feature_query *query; /* in the CRS of the data */
    const int *fields;             /* of the table, for each wanted attribute; -1: it has none of that name */
    mc_dbf_reader table;
    const char **values;
    mc_packet_decoders decoders; /* where records are decoded by others */
} shapefile_reading;

static mc_error *
visit_record(shapefile_reading *r, const mc_shp_record *record, apr_pool_t *scratch)
{
    const bool there = mc_dbf_row(&r->table, record->number);
    MC_TRY(mc_dbf_check(&r->table, scratch));
    if (!there)
        return MC_OK;
    mc_error *error = mc_shp_geometry(&r->base.geometry, record, &r->query->pixel_grid, scratch);
    if (!mc_reading_draws(&r->base, error, scratch))
        return MC_OK;
    for (int i = 0; i < r->query->attribute_count; i++)
        r->values[i] = mc_dbf_value(&r->table, r->fields[i], scratch);
    return mc_reading_visit(&r->base, record->number, r->values);
}

static mc_error *
read_records(shapefile_reading *r, mc_shp_reader *shapes, apr_pool_t *scratch, apr_pool_t *pool)
{
    enum { BETWEEN_CHECKS = 1024 };
    mc_shp_record record;
    mc_error *error = MC_OK;
    for (int i = 0; error == MC_OK && mc_shp_next(shapes, &record); i++) {
        if (i % BETWEEN_CHECKS == 0)
            error = mc_ctx_check(r->base.ctx, pool);
        if (error == MC_OK)
            error = mc_error_copy(visit_record(r, &record, scratch), pool);
        apr_pool_clear(scratch);
    }
    return error == MC_OK ? mc_shp_check(shapes, pool) : error;
}

/* ---- Records that others decode ---- */

enum { PACKET_RECORDS = 1024, PACKET_BYTES = 1 << 18 };

typedef struct record_packet {
    mc_feature_packet base;
    shapefile_reading *of;
    mc_shp_reader records; /* that nobody has begun to read */
} record_packet;

/* What a thread needs to read records. */
typedef struct record_decoder {
    mc_packet_decoder base;
    shapefile_reading reading; /* its base is a copy of the decoder's while the decoder works */
    mc_feature_query query;
    apr_pool_t *scratch;
} record_decoder;

static mc_error *
acquire_record_decoder(record_decoder **decoder, shapefile_reading *of, apr_pool_t *pool)
{
    *decoder = (record_decoder *)mc_packet_decoders_take(&of->decoders);
    if (*decoder != NULL)
        return MC_OK;
    record_decoder *made = (record_decoder *)mc_packet_decoder_create(sizeof(*made), &of->base);
    mc_error *error = mc_error_copy(
        mc_feature_query_project(&made->query, of->base.map, of->srs, of->base.layer, made->base.root), pool);
    if (error != MC_OK) {
        mc_task_pool_release(made->base.root);
        return error;
    }
    made->reading = (shapefile_reading){ .shp = of->shp, .srs = of->srs, .query = &made->query, .fields = of->fields };
    made->reading.values =
        apr_pcalloc(made->base.root, sizeof(*made->reading.values) * (size_t)(made->query.attribute_count + 1));
    apr_pool_create(&made->scratch, made->base.root);
    mc_dbf_begin(&made->reading.table, of->shp->attributes);
    *decoder = made;
    return MC_OK;
}

static void
end_record_decoder(mc_packet_decoder *decoder)
{
    mc_dbf_end(&((record_decoder *)decoder)->reading.table);
}

static mc_error *
decode_record_packet(const mc_feature_packet *packet, mc_feature_visitor *visit, void *baton, mc_ctx *ctx,
                     apr_pool_t *pool)
{
    shapefile_reading *of = ((const record_packet *)packet)->of;
    mc_shp_reader records = ((const record_packet *)packet)->records;
    record_decoder *decoder;
    MC_TRY(acquire_record_decoder(&decoder, of, pool));
    mc_feature_reading *base = &decoder->reading.base;
    *base = decoder->base.reading;
    base->visit = visit;
    base->baton = baton;
    base->ctx = ctx;
    records.ctx = ctx;
    int64_t before = base->skipped;
    mc_error *error = read_records(&decoder->reading, &records, decoder->scratch, pool);
    mc_shp_end(&records);
    decoder->base.reading.geometry = base->geometry;
    mc_packet_decoders_give(&of->decoders, &decoder->base, error == MC_OK ? base->skipped - before : 0);
    return error;
}

static mc_feature_packet *
keep_record_packet(const mc_feature_packet *packet)
{
    record_packet *kept = malloc(sizeof(*kept));
    if (kept != NULL)
        *kept = *(const record_packet *)packet;
    return kept == NULL ? NULL : &kept->base;
}

static void
release_record_packet(mc_feature_packet *packet)
{
    free(packet);
}

static const mc_packet_ops record_packets = { decode_record_packet, keep_record_packet, release_record_packet, NULL };

static mc_error *
hand_over_records(shapefile_reading *r, mc_shp_reader *shapes, apr_pool_t *pool)
{
    mc_packet_taker *taker = r->base.map->taker;
    record_packet packet = { .base = { &record_packets, r->base.map }, .of = r };
    mc_error *error = MC_OK;
    mc_packet_decoders_begin(&r->decoders, r->base.skipped);
    while (error == MC_OK && mc_shp_begin_part(&packet.records, shapes, PACKET_RECORDS, PACKET_BYTES)) {
        error = mc_ctx_check(r->base.ctx, pool);
        if (error == MC_OK)
            error = taker->take(taker, &packet.base, r->base.ctx);
    }
    error = taker->settle(taker, error);
    r->base.skipped = mc_packet_decoders_end(&r->decoders, end_record_decoder);
    return error;
}

static mc_error *
read_all_records(shapefile_reading *r, apr_pool_t *pool)
{
    apr_pool_t *scratch;
    mc_shp_reader shapes;
    mc_error *error;
    apr_pool_create(&scratch, pool);
    mc_shp_begin(&shapes, r->shp, &r->query->box, pool);
    shapes.ctx = r->base.ctx;
    if (r->base.map->taker != NULL && shapes.end > PACKET_RECORDS)
        error = hand_over_records(r, &shapes, pool);
    else
        error = read_records(r, &shapes, scratch, pool);
    mc_shp_end(&shapes);
    apr_pool_destroy(scratch);
    return error;
}

/* What one of the worlds shows: of an overview, where there is one for the map. */
static mc_error *
read_shapefile_world(mc_feature_reading *base, apr_pool_t *pool)
{
    shapefile_reading *r = (shapefile_reading *)base;
    mc_feature_query own;
    bool used;
    MC_TRY(mc_feature_query_project(&own, base->map, r->srs, base->layer, pool));
    MC_TRY(mc_shapefile_levels_read(&used, r->levels, base, &own, r->origin, pool));
    if (used)
        return MC_OK;
    r->query = &own;
    mc_dbf_begin(&r->table, r->shp->attributes);
    mc_error *error = read_all_records(r, pool);
    mc_dbf_end(&r->table);
    r->query = NULL;
    return error;
}

static mc_error *
shapefile_read(mc_feature_data *data, const mc_feature_query *query, mc_feature_visitor *visit, void *baton,
               int64_t *skipped, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_ABOUT(ctx, "mapcache_shapefile_read", data->name);
    shapefile *file = (shapefile *)data;
    opened *files;
    MC_TRY(acquire_shapefile(&files, file, ctx, pool));
    const mc_shp *shp = files->shp;
    int *fields = apr_palloc(pool, sizeof(*fields) * (size_t)(query->attribute_count + 1));
    for (int i = 0; i < query->attribute_count; i++)
        fields[i] = shp->attributes == NULL ? -1 : mc_dbf_find(shp->attributes, query->attributes[i]);
    shapefile_reading r = { .base = { .layer = data->name, .visit = visit, .baton = baton, .ctx = ctx },
                            .shp = shp,
                            .origin = &files->origin,
                            .levels = file->levels,
                            .srs = file->config.srs != NULL ? file->config.srs : shp->projection,
                            .fields = fields };
    r.values = apr_pcalloc(pool, sizeof(*r.values) * (size_t)(query->attribute_count + 1));
    mc_error *error = mc_reading_worlds(&r.base, query, r.srs, &shp->box, read_shapefile_world, pool);
    *skipped = r.base.skipped;
    const bool cut = error != MC_OK && error->kind == MC_ERR_IO;
    if (cut) /* of the .shx no stamp tells: the next map opens all anew */
        atomic_store(&files->cut, true);
    release_shapefile(files);
    return cut ? mc_error_wrap(pool, error, MC_ERR_IO, "the shapefile of layer \"%s\" cannot be read", data->name)
               : error;
}

/* N and F are numbers with decimals or without, L is true or false; dates and all that is unknown are text. */
static mc_field_type
dbf_field_type(const mc_dbf_field *field)
{
    switch (field->type) {
    case 'N':
    case 'F':
        return field->decimals > 0 || field->width > 18 ? MC_FIELD_NUMBER : MC_FIELD_INTEGER;
    case 'I':
    case '+':
        return MC_FIELD_INTEGER;
    case 'O':
    case 'B':
    case 'Y':
        return MC_FIELD_NUMBER;
    case 'L':
        return MC_FIELD_BOOLEAN;
    default:
        return MC_FIELD_TEXT;
    }
}

static mc_error *
shapefile_fields(apr_array_header_t **fields, mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool)
{
    opened *files;
    MC_TRY(acquire_shapefile(&files, (shapefile *)data, ctx, pool));
    const mc_dbf *table = files->shp->attributes;
    *fields = apr_array_make(pool, 16, sizeof(mc_field));
    for (int i = 0; table != NULL && i < table->field_count; i++)
        APR_ARRAY_PUSH(*fields, mc_field) =
            (mc_field){ apr_pstrdup(pool, table->fields[i].name), dbf_field_type(&table->fields[i]) };
    release_shapefile(files);
    return MC_OK;
}

/* By the header, where the box of all shapes stands. */
static mc_error *
shapefile_place(mc_place *place, mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool)
{
    shapefile *file = (shapefile *)data;
    opened *files;
    MC_TRY(acquire_shapefile(&files, file, ctx, pool));
    const char *srs = file->config.srs != NULL ? file->config.srs : files->shp->projection;
    place->known = srs != NULL && files->shp->count > 0;
    place->box = files->shp->box;
    place->srs = srs == NULL ? NULL : apr_pstrdup(pool, srs);
    release_shapefile(files);
    return MC_OK;
}

static const mc_feature_ops shapefile_ops = {
    .type = "shapefile", .read = shapefile_read, .fields = shapefile_fields, .place = shapefile_place
};

const mc_shapefile_config *
mc_shapefile_config_of(const mc_feature_data *data)
{
    return data->ops == &shapefile_ops ? &((const shapefile *)data)->config : NULL;
}

static apr_status_t
close_shapefile(void *data)
{
    shapefile *file = data;
    release_shapefile(file->current);
    release_shapefile(file->begun);
    pthread_mutex_destroy(&file->lock);
    mc_write_lock_destroy(&file->opening);
    return APR_SUCCESS;
}

/* The file beside `path` with another ending. */
static const char *
sibling_path(const char *path, const char *ending, apr_pool_t *pool)
{
    size_t length = strlen(path);
    return apr_pstrcat(pool, apr_pstrmemdup(pool, path, length < 4 ? length : length - 4), ending, NULL);
}

mc_feature_data *
mc_shapefile_create(const mc_shapefile_config *config, const char *layer, apr_pool_t *pool)
{
    shapefile *made = apr_pcalloc(pool, sizeof(*made));
    made->data = (mc_feature_data){ &shapefile_ops, layer, true, NULL };
    made->config = *config;
    made->paths[0] = config->path;
    made->paths[1] = sibling_path(config->path, ".dbf", pool);
    made->paths[2] = sibling_path(config->path, ".qix", pool);
    made->levels = mc_shapefile_levels_create(made->config.path, layer, pool);
    pthread_mutex_init(&made->lock, NULL);
    mc_write_lock_init(&made->opening);
    apr_pool_cleanup_register(pool, made, close_shapefile, apr_pool_cleanup_null);
    return &made->data;
}
