/* See shapefile_levels.h. A look at the file (stat) before each map says whether it is still the one that is open. */
#include "vector/shapefile/shapefile_levels.h"

#include <apr_strings.h>
#include <pthread.h>
#include <string.h>

#include "base/hash.h"
#include "base/references.h"
#include "base/stamp.h"
#include "base/workers.h"
#include "base/write_lock.h"
#include "mapcache/trace.h"
#include "vector/levels/level_writer.h"

enum { STYLES = 4 /* whose files stay open */ };

/* A file that is open, or of which it is known that it is not there. Maps that read it hold it. */
typedef struct open_levels {
    atomic_uint references;
    apr_pool_t *pool; /* a root pool of its own */
    uint64_t style;
    mc_stamp stamp;
    bool settled;        /* the file was left alone for a while as it was opened */
    bool whole;          /* its index is read; else that is up to who has `opening`. Under `lock` */
    mc_level_file *file; /* NULL: none that can be used */
    atomic_bool broken;  /* a map has found a block that is none */
    const char *reason;  /* why; "" where it is not there */
} open_levels;

struct mc_shapefile_levels {
    const char *base, *layer;
    mc_write_lock opening; /* of whoever opens a file */
    pthread_mutex_t lock;  /* of all below, held for a moment; only who has `opening` changes the next two */
    open_levels *opened[STYLES];
    int next;
    uint64_t told; /* hash of the last reason that was logged */
};

static void
release_open_levels(open_levels *opened)
{
    if (opened != NULL && mc_references_drop(&opened->references))
        mc_task_pool_release(opened->pool);
}

static apr_status_t
close_shapefile_levels(void *data)
{
    mc_shapefile_levels *levels = data;
    for (int i = 0; i < STYLES; i++)
        release_open_levels(levels->opened[i]);
    pthread_mutex_destroy(&levels->lock);
    mc_write_lock_destroy(&levels->opening);
    return APR_SUCCESS;
}

const char *
mc_shapefile_base(const char *path, apr_pool_t *pool)
{
    const size_t length = strlen(path);
    return apr_pstrmemdup(pool, path, length < 4 ? length : length - 4);
}

mc_shapefile_levels *
mc_shapefile_levels_create(const char *path, const char *layer, apr_pool_t *pool)
{
    mc_shapefile_levels *made = apr_pcalloc(pool, sizeof(*made));
    made->base = mc_shapefile_base(path, pool);
    made->layer = layer;
    pthread_mutex_init(&made->lock, NULL);
    mc_write_lock_init(&made->opening);
    apr_pool_cleanup_register(pool, made, close_shapefile_levels, apr_pool_cleanup_null);
    return made;
}

void
mc_shapefile_origin_look(mc_level_data *origin, const mc_shp *shp, const char *srs)
{
    const char *page = shp->attributes == NULL ? NULL : shp->attributes->codepage;
    const int files[MC_LEVEL_ORIGINS] = { shp->main.fd, shp->entries.fd, shp->table.fd };
    uint64_t definition = mc_hash64(srs == NULL ? "" : srs, srs == NULL ? 0 : strlen(srs), 0);
    definition = mc_hash64(page == NULL ? "" : page, page == NULL ? 0 : strlen(page), definition);
    mc_level_data_look(origin, files, definition);
}

/* Once for each reason that is another than the last one; "" is none. */
static void
tell_level_reason(mc_shapefile_levels *levels, const char *reason, mc_ctx *ctx)
{
    const uint64_t hash = mc_hash64(reason, strlen(reason), 0);
    pthread_mutex_lock(&levels->lock);
    const bool again = levels->told == hash;
    levels->told = hash;
    pthread_mutex_unlock(&levels->lock);
    if (!again && *reason != '\0')
        mc_log_write(ctx, MC_LOG_WARN, "layer \"%s\" is drawn without its overviews: %s", levels->layer, reason);
}

/* Why the file cannot be used; "": it can, or there is none. */
static const char *
find_levels_fault(const open_levels *opened, const mc_error *error, const char *path)
{
    if (error != MC_OK)
        return mc_error_chain(error, opened->pool);
    if (opened->file == NULL)
        return "";
    if (opened->file->style != opened->style)
        return apr_pstrcat(opened->pool, path, " was built for another style", NULL);
    return "";
}

/* Why there is nothing to use, or none so far. */
static void
note_levels_fault(open_levels *opened, const mc_error *error, const char *path)
{
    opened->reason = find_levels_fault(opened, error, path);
    if (*opened->reason != '\0')
        opened->file = NULL;
}

/* Nothing of its index is read. */
static open_levels *
begin_style_levels(const char *path, uint64_t style, const mc_stamp *stamp, int shapefile)
{
    apr_pool_t *own = mc_task_pool_acquire();
    open_levels *made = apr_pcalloc(own, sizeof(*made));
    mc_error *error = mc_level_file_begin_opening(&made->file, path, shapefile, own);
    /* What keeps a file from being opened may pass without a change of the file, as too many open ones: the next map
     * looks again. */
    made->settled =
        (stamp->inode == 0 || mc_stamp_settled(stamp, apr_time_now())) && (error == MC_OK || error->kind != MC_ERR_IO);
    made->pool = own;
    made->style = style;
    made->stamp = *stamp;
    note_levels_fault(made, error, path);
    atomic_init(&made->references, 1);
    atomic_init(&made->broken, false);
    return made;
}

static int
find_style_slot(const mc_shapefile_levels *levels, uint64_t style)
{
    for (int i = 0; i < STYLES; i++)
        if (levels->opened[i] != NULL && levels->opened[i]->style == style)
            return i;
    return -1;
}

/* What is open of the file as it is now; NULL: it is to be opened. Data that were read under the stamp of a file that
 * was just changing may be older than the file. */
static open_levels *
find_current_levels(const mc_shapefile_levels *levels, uint64_t style, const mc_stamp *stamp)
{
    const int slot = find_style_slot(levels, style);
    open_levels *found = slot < 0 ? NULL : levels->opened[slot];
    return found != NULL && found->settled && mc_stamp_equal(&found->stamp, stamp) ? found : NULL;
}

/* With a reference for the caller; NULL: there is none. */
static open_levels *
take_whole_levels(mc_shapefile_levels *levels, uint64_t style, const mc_stamp *stamp)
{
    pthread_mutex_lock(&levels->lock);
    open_levels *found = find_current_levels(levels, style, stamp);
    found = found != NULL && found->whole ? found : NULL;
    if (found != NULL)
        mc_references_take(&found->references);
    pthread_mutex_unlock(&levels->lock);
    return found;
}

/* Below: by who has `opening`. In the place of an older file of the style, or of the one that was opened first. */
static void
keep_style_levels(mc_shapefile_levels *levels, open_levels *made)
{
    pthread_mutex_lock(&levels->lock);
    int slot = find_style_slot(levels, made->style);
    if (slot < 0) {
        slot = levels->next;
        levels->next = (levels->next + 1) % STYLES;
    }
    open_levels *before = levels->opened[slot];
    levels->opened[slot] = made;
    pthread_mutex_unlock(&levels->lock);
    release_open_levels(before);
}

/* Goes on with what another map has begun, or begins. */
static mc_error *
open_style_levels(open_levels **opened, mc_shapefile_levels *levels, const char *path, uint64_t style,
                  const mc_stamp *stamp, int shapefile, mc_ctx *ctx, apr_pool_t *pool)
{
    open_levels *made = find_current_levels(levels, style, stamp);
    if (made == NULL) {
        made = begin_style_levels(path, style, stamp, shapefile);
        keep_style_levels(levels, made);
    }
    mc_error *error = made->file == NULL ? MC_OK : mc_level_file_go_on_opening(made->file, ctx, made->pool);
    if (error != MC_OK && (error->kind == MC_ERR_UNAVAILABLE || error->kind == MC_ERR_NO_MEMORY))
        return mc_error_copy(error, pool);
    if (error != MC_OK)
        note_levels_fault(made, error, path);
    pthread_mutex_lock(&levels->lock);
    made->whole = true;
    mc_references_take(&made->references);
    pthread_mutex_unlock(&levels->lock);
    *opened = made;
    return MC_OK;
}

/* The file as it is now, with a reference for the caller. */
static mc_error *
acquire_levels(open_levels **opened, mc_shapefile_levels *levels, uint64_t style, int shapefile, mc_ctx *ctx,
               apr_pool_t *pool)
{
    const char *path = mc_level_file_path(levels->base, style, pool);
    mc_stamp stamp = { 0 };
    if (!mc_stamp_take_plain(&stamp, path))
        stamp = (mc_stamp){ 0 };
    *opened = take_whole_levels(levels, style, &stamp);
    if (*opened != NULL)
        return MC_OK;
    if (!mc_write_lock_await(&levels->opening, ctx))
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "the overviews of layer \"%s\" are being opened",
                               levels->layer);
    mc_error *error = MC_OK;
    *opened = take_whole_levels(levels, style, &stamp);
    if (*opened == NULL)
        error = open_style_levels(opened, levels, path, style, &stamp, shapefile, ctx, pool);
    mc_write_lock_give(&levels->opening);
    return error;
}

static void
trace_shapefile_level(const mc_level_reading *r, const mc_level_range *range)
{
    const mc_ctx *ctx = r->base->ctx;
    if (ctx->trace != NULL)
        mc_trace_say(ctx->trace, "shapefile:",
                     apr_psprintf(ctx->pool, "%" APR_INT64_T_FMT " features, overview of %g units a pixel of layer %s",
                                  (apr_int64_t)r->features, range->resolution, r->base->layer));
}

#define BROKEN "a block of them is broken: build them again"

/* A level that turns out to be broken before its first feature is not used; behind that the map fails, and the next one
 * reads the shapefile. */
static mc_error *
read_opened_level(bool *used, open_levels *opened, mc_feature_reading *reading, int level, apr_pool_t *pool)
{
    mc_level_reading r;
    mc_level_reading_begin(&r, reading, false, pool);
    mc_error *error = mc_level_file_read(&r, opened->file, level, &reading->map->box, pool);
    mc_level_reading_end(&r);
    *used = true;
    if (error == MC_OK)
        trace_shapefile_level(&r, &opened->file->ranges[level]);
    else if (error->kind == MC_ERR_CORRUPT) {
        atomic_store(&opened->broken, true);
        *used = r.features > 0;
    }
    return *used ? error : MC_OK;
}

/* -1: there is none for the map. *reason: why levels are not used, "": none. */
static int
choose_opened_level(const char **reason, const open_levels *opened, const mc_feature_query *own, mc_level_data *origin,
                    mc_ctx *ctx, apr_pool_t *pool)
{
    *reason = opened->reason;
    if (opened->file == NULL)
        return -1;
    const int found = mc_level_find(opened->file->ranges, opened->file->count, own);
    if (found < 0)
        return -1;
    const mc_level_kinship kinship = mc_level_data_compare(origin, &opened->file->origin, ctx, pool);
    const char *fault = mc_level_kinship_fault(kinship);
    if (fault == NULL && atomic_load(&opened->broken))
        fault = BROKEN;
    *reason = fault == NULL ? "" : fault;
    return fault == NULL && kinship == MC_LEVEL_OF_THESE ? found : -1;
}

static mc_error *
read_shapefile_levels(bool *used, mc_shapefile_levels *levels, open_levels *opened, mc_feature_reading *reading,
                      const mc_feature_query *own, mc_level_data *origin, apr_pool_t *pool)
{
    const char *reason;
    mc_error *error = MC_OK;
    const int level = choose_opened_level(&reason, opened, own, origin, reading->ctx, pool);
    if (level >= 0)
        error = read_opened_level(used, opened, reading, level, pool);
    if (level >= 0 || *reason != '\0')
        tell_level_reason(levels, atomic_load(&opened->broken) ? BROKEN : reason, reading->ctx);
    return error;
}

mc_error *
mc_shapefile_levels_read(bool *used, mc_shapefile_levels *levels, mc_feature_reading *reading,
                         const mc_feature_query *own, mc_level_data *origin, apr_pool_t *pool)
{
    *used = false;
    if (own->ids || !mc_level_may_serve(own))
        return MC_OK;
    open_levels *opened;
    MC_TRY(acquire_levels(&opened, levels, own->style, origin->files[0], reading->ctx, pool));
    mc_error *error = read_shapefile_levels(used, levels, opened, reading, own, origin, pool);
    release_open_levels(opened);
    return error;
}
