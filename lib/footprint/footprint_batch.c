/* A look at the files of a batch, and what memory knows of its wants. */
#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/metrics.h"
#include "cache/memory.h"
#include "cache/uses.h"
#include "footprint/coverage_index.h"
#include "footprint/footprint_counters.h"
#include "footprint/footprint_private.h"
#include "mapcache/trace.h"

/* So many files are worth a look into the index of coverage. */
enum {
    MANY = 64,
    FILES_AT_ONCE = 64, /* that are looked at between two looks at the deadline */
};

static apr_status_t
release_footprint_batch(void *data)
{
    mc_footprints *batch = data;
    for (int i = 0; i < batch->count; i++)
        mc_footprint_unref(batch->held[i]);
    for (int i = 0; i < batch->series_count; i++)
        mc_file_facts_unref(batch->series[i].first);
    for (mc_batch_held *held = atomic_load(&batch->facts), *next; held != NULL; held = next) {
        next = held->next;
        mc_file_facts_unref(held->facts);
        free(held);
    }
    return APR_SUCCESS;
}

void
mc_batch_learn(mc_footprints *batch, mc_batch_series *series, mc_file_facts *facts)
{
    mc_batch_held *held = malloc(sizeof(*held));
    MC_ASSERT(held != NULL);
    held->facts = facts;
    held->next = atomic_load_explicit(&batch->facts, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&batch->facts, &held->next, held))
        ;
    atomic_store_explicit(&series->facts, facts, memory_order_release);
}

void
mc_folder_cursor_close(mc_folder_cursor *cursor)
{
    if (cursor->descriptor >= 0)
        close(cursor->descriptor);
    cursor->descriptor = -1;
}

bool
mc_folder_cursor_look(mc_stamp *stamp, bool *sole, mc_folder_cursor *last, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return mc_stamp_take_sole(stamp, sole, AT_FDCWD, path);
    size_t size = (size_t)(slash - path);
    if (last->path == NULL || last->size != size || memcmp(last->path, path, size) != 0) {
        mc_folder_cursor_close(last);
        *last = (mc_folder_cursor){ path, size, -1 };
        return mc_stamp_take_sole(stamp, sole, AT_FDCWD, path);
    }
    if (last->descriptor < 0) {
        char name[MC_PATH_MAX];
        memcpy(name, path, size);
        name[size] = '\0';
        last->descriptor = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    return last->descriptor < 0 ? mc_stamp_take_sole(stamp, sole, AT_FDCWD, path)
                                : mc_stamp_take_sole(stamp, sole, last->descriptor, slash + 1);
}

static bool
is_late(mc_ctx *ctx)
{
    mc_error *error = mc_ctx_check(ctx, ctx->pool);
    mc_error_ignore(error);
    return error != MC_OK;
}

/* Files that were not looked at in time count as those that cannot be looked at. */
static void
look_at_files(mc_footprints *batch, mc_ctx *ctx)
{
    mc_folder_cursor last = { NULL, 0, -1 };
    bool late = false;
    batch->taken = apr_time_now();
    for (int i = 0; i < batch->file_count; i++) {
        mc_batch_file *file = &batch->files[i];
        late = late || (i % FILES_AT_ONCE == FILES_AT_ONCE - 1 && is_late(ctx));
        if (late)
            file->missing = ETIMEDOUT;
        else
            file->missing = mc_folder_cursor_look(&file->stamp, &file->sole, &last, file->path) ? 0 : errno;
    }
    mc_folder_cursor_close(&last);
}

/*
 * Under the stamp of the file alone is remembered what was read while there was no -wal. Only where the file itself is
 * known not to use one, its look is spared.
 */
static void
recall_series(mc_batch_series *series, mc_batch_file *file, unsigned generation, bool many, mc_ctx *ctx)
{
    series->stampless = mc_series_identity(mc_identity_first(), series, file->path, generation);
    series->identity = mc_identity_of(&series->stampless, &file->stamp, offsetof(mc_stamp, wal_size));
    mc_file_facts *facts = mc_file_facts_find(&series->identity, ctx);
    if (facts == NULL && many && generation == 0) {
        facts = mc_coverage_index_recall(ctx->process->coverages, series, file);
        if (facts != NULL)
            mc_file_facts_keep(&series->identity, facts, ctx);
    }
    if (facts != NULL && facts->rollback)
        file->rollback = true;
    if (!file->rollback && !file->wal_looked) {
        mc_stamp_take_wal(&file->stamp, file->path);
        file->wal_looked = true;
    }
    if (file->stamp.wal_size >= 0) {
        mc_file_facts_unref(facts);
        series->identity = mc_identity_of(&series->identity, &file->stamp, sizeof(file->stamp));
        facts = mc_file_facts_find(&series->identity, ctx);
    }
    series->first = facts;
    atomic_store_explicit(&series->facts, facts, memory_order_relaxed);
}

static void
look_at_series(mc_footprints *batch, mc_ctx *ctx)
{
    struct mc_memory *memory = ctx->process == NULL ? NULL : ctx->process->memory;
    if (memory != NULL && batch->series_count >= MANY)
        mc_coverage_index_want(ctx->process->coverages, &batch->series[0], batch->series_count);
    for (int i = 0; i < batch->series_count; i++) {
        mc_batch_series *series = &batch->series[i];
        mc_batch_file *file = series->file < 0 ? NULL : &batch->files[series->file];
        if (file == NULL || file->missing != 0)
            continue;
        if (memory == NULL || !series->cache->remember || !mc_stamp_settled(&file->stamp, batch->taken)) {
            if (!file->wal_looked)
                mc_stamp_take_wal(&file->stamp, file->path);
            file->wal_looked = true;
            continue;
        }
        recall_series(series, file, mc_memory_generation(memory, file->path), batch->series_count >= MANY, ctx);
        if (!mc_stamp_settled(&file->stamp, batch->taken)) /* the -wal */
            series->identity = (mc_identity){ 0, 0 };
    }
}

typedef struct tally {
    int footprints, absences, skips;
} tally;

/* What is known of a want without reading. */
static void
recall_want(mc_footprints *batch, int index, tally *tally, mc_ctx *ctx)
{
    mc_footprint_want *want = &batch->wants[index];
    mc_batch_series *series = &batch->series[batch->series_of[index]];
    const mc_batch_file *file = series->file < 0 ? NULL : &batch->files[series->file];
    if (file != NULL && file->missing != 0) {
        want->known =
            (file->missing == ENOENT || file->missing == ENOTDIR) && (want->key.renderable || !series->needed);
    } else if (file != NULL && mc_identity_valid(&series->identity)) {
        const mc_file_facts *facts = atomic_load_explicit(&series->facts, memory_order_relaxed);
        if (facts != NULL && facts->coverage != NULL && !want->key.renderable &&
            !mc_coverage_may_have(facts->coverage, want->key.z, want->key.x, want->key.y)) {
            want->known = true;
            tally->skips++;
        } else if (mc_footprint_find(&batch->held[index], &series->identity, &want->key, ctx)) {
            MC_SPAN_MOMENT(ctx, "mc_footprint_get");
            want->footprint = batch->held[index];
            want->known = want->footprint != NULL || !want->key.renderable;
            tally->footprints += want->footprint != NULL;
            if (want->footprint != NULL && series->cache->uses != NULL)
                mc_uses_note(series->cache->uses, &want->key, ctx);
            tally->absences += want->footprint == NULL && want->known;
        }
    }
    series->unknown += !want->known;
}

void
mc_batch_look(mc_footprints *batch, mc_ctx *ctx)
{
    look_at_files(batch, ctx);
    look_at_series(batch, ctx);
}

mc_footprints *
mc_batch_create(mc_cache *cache, apr_pool_t *pool)
{
    mc_footprints *batch = apr_pcalloc(pool, sizeof(*batch));
    batch->cache = cache;
    apr_pool_cleanup_register(pool, batch, release_footprint_batch, apr_pool_cleanup_null);
    return batch;
}

void
mc_batch_take(mc_footprints *batch, mc_footprint_want *wants, int count, apr_pool_t *pool)
{
    batch->wants = wants;
    batch->count = count;
    batch->held = apr_pcalloc(pool, sizeof(*batch->held) * (size_t)(count + 1));
    batch->series_of = apr_palloc(pool, sizeof(*batch->series_of) * (size_t)(count + 1));
    for (int i = 0; i < count; i++) {
        wants[i].footprint = NULL;
        wants[i].known = false;
    }
}

void
mc_batch_recall(mc_footprints *batch, mc_ctx *ctx)
{
    tally tally = { 0, 0, batch->skips };
    for (int i = 0; i < batch->count; i++)
        recall_want(batch, i, &tally, ctx);
    mc_metrics *metrics = ctx->process == NULL ? NULL : ctx->process->metrics;
    mc_count(metrics, MC_COUNT_footprint_hits_total, (uint64_t)tally.footprints);
    mc_count(metrics, MC_COUNT_footprint_absences_total, (uint64_t)tally.absences);
    mc_count(metrics, MC_COUNT_coverage_skips_total, (uint64_t)tally.skips);
}

mc_error *
mc_footprints_look(mc_footprints **made, mc_cache *cache, mc_footprint_want *wants, int count, mc_ctx *ctx,
                   apr_pool_t *pool)
{
    MC_SPAN(ctx, "mc_footprints_look");
    mc_footprints *batch = mc_batch_create(cache, pool);
    mc_batch_take(batch, wants, count, pool);
    mc_footprints_sort(batch, pool);
    mc_batch_look(batch, ctx);
    mc_batch_recall(batch, ctx);
    *made = batch;
    return MC_OK;
}
