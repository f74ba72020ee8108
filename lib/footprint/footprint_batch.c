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
#include "footprint/footprint_counters.h"
#include "footprint/footprint_private.h"
#include "mapcache/trace.h"

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

/* The folder that the last file was in, so that those beside it are looked at without walking the whole path again. */
typedef struct folder {
    const char *path; /* up to and without the last '/', of `size` bytes */
    size_t size;
    int descriptor; /* -1: not open */
} folder;

static void
close_folder(folder *folder)
{
    if (folder->descriptor >= 0)
        close(folder->descriptor);
    folder->descriptor = -1;
}

static bool
take_stamp(mc_stamp *stamp, folder *last, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return mc_stamp_take_plain(stamp, path);
    size_t size = (size_t)(slash - path);
    if (last->path == NULL || last->size != size || memcmp(last->path, path, size) != 0) {
        close_folder(last);
        *last = (folder){ path, size, -1 };
        return mc_stamp_take_plain(stamp, path);
    }
    if (last->descriptor < 0) {
        char name[MC_PATH_MAX];
        memcpy(name, path, size);
        name[size] = '\0';
        last->descriptor = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    return last->descriptor < 0 ? mc_stamp_take_plain(stamp, path)
                                : mc_stamp_take_in(stamp, last->descriptor, slash + 1);
}

static void
look_at_files(mc_footprints *batch)
{
    folder last = { NULL, 0, -1 };
    batch->taken = apr_time_now();
    for (int i = 0; i < batch->file_count; i++) {
        mc_batch_file *file = &batch->files[i];
        file->missing = take_stamp(&file->stamp, &last, file->path) ? 0 : errno;
    }
    close_folder(&last);
}

/* A text with its end, so that neighbours cannot be confused. What has grown too large is hashed away. */
static size_t
add_identity_text(mc_identity *identity, char *bytes, size_t size, const char *text)
{
    size_t length = strlen(text) + 1;
    if (size + length > MC_PATH_MAX) {
        *identity = mc_identity_of(identity, bytes, size);
        size = 0;
    }
    if (length > MC_PATH_MAX) {
        *identity = mc_identity_of(identity, text, length);
        return size;
    }
    memcpy(bytes + size, text, length);
    return size + length;
}

/* Everything but the stamp. */
static mc_identity
series_file_identity(const mc_batch_series *series, const char *path, unsigned generation)
{
    const mc_tile_key *key = series->key;
    const mc_level *level = &key->grid->levels[key->grid->level_count - 1];
    uint64_t head[4] = { series->how, (uint64_t)generation << 32 | (unsigned)key->dimension_count,
                         (uint64_t)(unsigned)level->columns << 32 | (unsigned)level->rows, key->grid->definition };
    char bytes[MC_PATH_MAX];
    mc_identity identity = mc_identity_first();
    memcpy(bytes, head, sizeof(head));
    size_t size = add_identity_text(&identity, bytes, sizeof(head), path);
    size = add_identity_text(&identity, bytes, size, key->tileset);
    size = add_identity_text(&identity, bytes, size, key->grid->name);
    for (int i = 0; i < key->dimension_count; i++)
        size = add_identity_text(&identity, bytes, size, key->dimensions[i].value);
    return mc_identity_of(&identity, bytes, size);
}

/*
 * Under the stamp of the file alone is remembered what was read while there was no -wal. Only where the file itself is
 * known not to use one, its look is spared.
 */
static void
recall_series(mc_batch_series *series, mc_batch_file *file, unsigned generation, mc_ctx *ctx)
{
    series->stampless = series_file_identity(series, file->path, generation);
    series->identity = mc_identity_of(&series->stampless, &file->stamp, offsetof(mc_stamp, wal_size));
    mc_file_facts *facts = mc_file_facts_find(&series->identity, ctx);
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
        recall_series(series, file, mc_memory_generation(memory, file->path), ctx);
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
            MC_SPAN(ctx, "mc_footprint_get");
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

static mc_footprints *
create_footprint_batch(mc_cache *cache, apr_pool_t *pool)
{
    mc_footprints *batch = apr_pcalloc(pool, sizeof(*batch));
    batch->cache = cache;
    apr_pool_cleanup_register(pool, batch, release_footprint_batch, apr_pool_cleanup_null);
    return batch;
}

static void
take_wants(mc_footprints *batch, mc_footprint_want *wants, int count, apr_pool_t *pool)
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

static void
recall_wants(mc_footprints *batch, mc_ctx *ctx)
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
    mc_footprints *batch = create_footprint_batch(cache, pool);
    take_wants(batch, wants, count, pool);
    mc_footprints_sort(batch, pool);
    look_at_files(batch);
    look_at_series(batch, ctx);
    recall_wants(batch, ctx);
    *made = batch;
    return MC_OK;
}

mc_error *
mc_footprints_begin(mc_footprints **made, mc_cache *cache, const mc_tile_key *key,
                    const mc_dimension_value *const *dimensions, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mc_footprints_look");
    mc_footprints *batch = create_footprint_batch(cache, pool);
    mc_footprint_want *probes = apr_palloc(pool, sizeof(*probes) * (size_t)(count + 1)); /* series keep their keys */
    for (int i = 0; i < count; i++) {
        probes[i].key = *key;
        probes[i].key.dimensions = dimensions[i];
    }
    take_wants(batch, probes, count, pool);
    mc_footprints_sort(batch, pool);
    batch->combinations = batch->series_of;
    batch->count = 0;
    *made = NULL;
    for (int i = 0; i < batch->series_count; i++)
        if (batch->series[i].by_tile)
            return MC_OK;
    look_at_files(batch);
    look_at_series(batch, ctx);
    *made = batch;
    return MC_OK;
}

bool
mc_footprints_may_have(mc_footprints *batch, int combination, const mc_tile_range *range)
{
    const mc_batch_series *series = &batch->series[batch->combinations[combination]];
    const mc_batch_file *file = series->file < 0 ? NULL : &batch->files[series->file];
    if (file == NULL || series->key->renderable)
        return true;
    if (file->missing != 0)
        return (file->missing != ENOENT && file->missing != ENOTDIR) || series->needed;
    const mc_file_facts *facts = atomic_load_explicit(&series->facts, memory_order_relaxed);
    if (!mc_identity_valid(&series->identity) || facts == NULL || facts->coverage == NULL)
        return true;
    int columns = range->maxx - range->minx, rows = range->maxy - range->miny, z = series->key->z;
    bool may = columns == 1 && rows == 1
                   ? mc_coverage_may_have(facts->coverage, z, range->minx, range->miny)
                   : mc_coverage_may_touch(facts->coverage, z, range->minx, range->miny, range->maxx, range->maxy);
    batch->skips += may ? 0 : columns * rows;
    return may;
}

mc_error *
mc_footprints_complete(mc_footprints *batch, mc_footprint_want *wants, const int *combinations, int count, mc_ctx *ctx,
                       apr_pool_t *pool)
{
    take_wants(batch, wants, count, pool);
    for (int i = 0; i < count; i++) {
        batch->series_of[i] = batch->combinations[combinations[i]];
        const mc_batch_series *series = &batch->series[batch->series_of[i]];
        wants[i].file = series->file >= 0 ? series->file : batch->file_count + series->group;
    }
    recall_wants(batch, ctx);
    return MC_OK;
}
