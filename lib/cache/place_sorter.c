/* See place_sorter.h: sorted runs in a file, merged by a heap. */
#include "cache/place_sorter.h"

#include <apr_strings.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLACES_MOST = 1 << 20, PLACES_FIRST = 1024, PLACES_READ = 1024, LOOK_AFTER = 4096 };

/* A sorted part of the file while it is merged. */
typedef struct place_run {
    off_t next, end;  /* bytes of the file that are still to be read */
    uint64_t *places; /* that were read */
    int at, count;
} place_run;

struct mc_place_sorter {
    apr_pool_t *pool;
    uint64_t *places;
    int count, room, most;
    FILE *file; /* NULL: there is none yet */
    off_t size;
    apr_array_header_t *ends; /* off_t: where each run ends */
};

static apr_status_t
end_place_sorter(void *data)
{
    mc_place_sorter *sorter = data;
    free(sorter->places);
    if (sorter->file != NULL)
        (void)fclose(sorter->file);
    return APR_SUCCESS;
}

mc_place_sorter *
mc_place_sorter_create(int most, apr_pool_t *pool)
{
    mc_place_sorter *sorter = apr_pcalloc(pool, sizeof(*sorter));
    sorter->pool = pool;
    sorter->most = most > 0 ? most : PLACES_MOST;
    sorter->ends = apr_array_make(pool, 8, sizeof(off_t));
    apr_pool_cleanup_register(pool, sorter, end_place_sorter, apr_pool_cleanup_null);
    return sorter;
}

static int
compare_places(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* What is in memory, sorted, each once. */
static void
sort_places(mc_place_sorter *sorter)
{
    int kept = 0;
    if (sorter->count > 1)
        qsort(sorter->places, (size_t)sorter->count, sizeof(*sorter->places), compare_places);
    for (int i = 0; i < sorter->count; i++)
        if (i == 0 || sorter->places[i] != sorter->places[kept - 1])
            sorter->places[kept++] = sorter->places[i];
    sorter->count = kept;
}

static mc_error *
place_file_error(const char *what, apr_pool_t *pool)
{
    char text[128];
    return mc_error_create(pool, MC_ERR_IO, "the folder for temporary files cannot be %s: %s", what,
                           strerror_r(errno, text, sizeof(text)));
}

/* Memory becomes a run of the file. */
static mc_error *
write_place_run(mc_place_sorter *sorter, apr_pool_t *pool)
{
    if (sorter->file == NULL && (sorter->file = tmpfile()) == NULL)
        return place_file_error("written", pool);
    const char *bytes = (const char *)sorter->places;
    for (size_t left = (size_t)sorter->count * sizeof(*sorter->places); left > 0;) {
        ssize_t written = pwrite(fileno(sorter->file), bytes, left, sorter->size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return place_file_error("written", pool);
        bytes += written;
        left -= (size_t)written;
        sorter->size += written;
    }
    APR_ARRAY_PUSH(sorter->ends, off_t) = sorter->size;
    sorter->count = 0;
    return MC_OK;
}

mc_error *
mc_place_sorter_add(mc_place_sorter *sorter, int x, int y, apr_pool_t *pool)
{
    if (sorter->count == sorter->room && sorter->room == sorter->most) {
        sort_places(sorter); /* what comes again and again may have left room */
        if (sorter->count > sorter->most / 2)
            MC_TRY(write_place_run(sorter, pool));
    } else if (sorter->count == sorter->room) {
        sorter->room = sorter->room == 0 ? PLACES_FIRST : 2 * sorter->room;
        sorter->room = sorter->room < sorter->most ? sorter->room : sorter->most;
        sorter->places = realloc(sorter->places, (size_t)sorter->room * sizeof(*sorter->places));
        MC_ASSERT(sorter->places != NULL);
    }
    sorter->places[sorter->count++] = (uint64_t)(unsigned)y << 32 | (unsigned)x;
    return MC_OK;
}

/* --- merging ------------------------------------------------------------------------------------------------------ */

/* More of a run, once all that was read of it is used; the run is at its end where count stays 0. */
static mc_error *
read_place_run(place_run *run, const mc_place_sorter *sorter, apr_pool_t *pool)
{
    if (run->at < run->count || run->next == run->end)
        return MC_OK;
    off_t most = PLACES_READ * (off_t)sizeof(*run->places), size = run->end - run->next;
    size = size < most ? size : most;
    for (off_t done = 0; done < size;) {
        ssize_t got = pread(fileno(sorter->file), (char *)run->places + done, (size_t)(size - done), run->next + done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return place_file_error("read", pool);
        done += got;
    }
    run->next += size;
    run->at = 0;
    run->count = (int)(size / (off_t)sizeof(*run->places));
    return MC_OK;
}

/* Puts heap[at] below those that come before it. */
static void
sink_place_run(place_run **heap, int count, int at)
{
    for (int child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child + 1]->places[heap[child + 1]->at] < heap[child]->places[heap[child]->at])
            child++;
        if (heap[at]->places[heap[at]->at] <= heap[child]->places[heap[child]->at])
            return;
        place_run *moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
    }
}

static mc_error *
open_place_runs(place_run ***heap, int *count, mc_place_sorter *sorter, apr_pool_t *pool)
{
    const int runs = sorter->ends->nelts;
    place_run *all = apr_pcalloc(pool, sizeof(*all) * (size_t)(runs + 1));
    *heap = apr_palloc(pool, sizeof(place_run *) * (size_t)(runs + 1));
    *count = 0;
    for (int i = 0; i < runs; i++) {
        all[i].next = i == 0 ? 0 : APR_ARRAY_IDX(sorter->ends, i - 1, off_t);
        all[i].end = APR_ARRAY_IDX(sorter->ends, i, off_t);
        all[i].places = apr_palloc(pool, PLACES_READ * sizeof(uint64_t));
        MC_TRY(read_place_run(&all[i], sorter, pool));
        (*heap)[(*count)++] = &all[i];
    }
    if (sorter->count > 0) { /* the last run is in memory */
        all[runs] = (place_run){ .places = sorter->places, .count = sorter->count };
        (*heap)[(*count)++] = &all[runs];
    }
    for (int i = *count / 2; i >= 0; i--)
        sink_place_run(*heap, *count, i);
    return MC_OK;
}

mc_error *
mc_place_sorter_visit(mc_place_sorter *sorter, mc_tile_visit *visit, void *baton, mc_ctx *ctx)
{
    place_run **heap;
    int count;
    uint64_t last = UINT64_MAX; /* no place: rows are less */
    sort_places(sorter);
    MC_TRY(open_place_runs(&heap, &count, sorter, sorter->pool));
    for (int looked = 0; count > 0; looked++) {
        place_run *first = heap[0];
        const uint64_t place = first->places[first->at++];
        if (place != last && !visit(baton, (int)(place & UINT32_MAX), (int)(place >> 32)))
            return MC_OK;
        last = place;
        MC_TRY(looked % LOOK_AFTER != 0 ? MC_OK : mc_ctx_check(ctx, ctx->pool));
        MC_TRY(read_place_run(first, sorter, ctx->pool));
        if (first->at == first->count)
            heap[0] = heap[--count];
        sink_place_run(heap, count, 0);
    }
    return MC_OK;
}
