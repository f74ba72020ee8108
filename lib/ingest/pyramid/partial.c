/* See partial.h. */
#include "ingest/pyramid/partial.h"
#include "base/files.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mc_partials {
    int width, height;
    size_t bytes; /* of the pixels of a tile */
    int64_t limit, used, peak, spooled;
    const char *folder;
    int file; /* -1: none yet */
    int64_t slots;
    apr_array_header_t *free_slots; /* int64_t */
    apr_hash_t *table;
    mc_partial ends; /* of the list of those in memory: older is the newest, newer the oldest */
};

static apr_status_t
partials_cleanup(void *data)
{
    mc_partials *partials = data;
    for (apr_hash_index_t *i = apr_hash_first(NULL, partials->table); i != NULL; i = apr_hash_next(i)) {
        void *value;
        apr_hash_this(i, NULL, NULL, &value);
        mc_partial *partial = value;
        mc_pixels_unref(partial->pixels);
        free(partial);
    }
    if (partials->file >= 0)
        close(partials->file);
    return APR_SUCCESS;
}

mc_partials *
mc_partials_create(int width, int height, int64_t limit, const char *folder, apr_pool_t *pool)
{
    mc_partials *made = apr_pcalloc(pool, sizeof(*made));
    made->width = width;
    made->height = height;
    made->bytes = (size_t)width * (size_t)height * 4;
    made->limit = limit;
    made->folder = folder;
    made->file = -1;
    made->free_slots = apr_array_make(pool, 64, sizeof(int64_t));
    made->table = apr_hash_make(pool);
    made->ends.older = made->ends.newer = &made->ends;
    apr_pool_cleanup_register(pool, made, partials_cleanup, apr_pool_cleanup_null);
    return made;
}

static void
unlink_from(mc_partial *partial)
{
    partial->older->newer = partial->newer;
    partial->newer->older = partial->older;
}

static void
link_newest(mc_partials *partials, mc_partial *partial)
{
    partial->newer = &partials->ends;
    partial->older = partials->ends.older;
    partial->older->newer = partial;
    partials->ends.older = partial;
}

static mc_error *
scratch_failed(const mc_partials *partials, const char *what, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_IO,
                           "the scratch file in %s cannot be %s: %s (--scratch names another folder, "
                           "--cachelimit the memory above which it is used)",
                           partials->folder, what, strerror(errno));
}

static mc_error *
open_scratch(mc_partials *partials, apr_pool_t *pool)
{
    partials->file = open(partials->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (partials->file >= 0)
        return MC_OK;
    char *name = apr_pstrcat(pool, partials->folder, "/mapcache-ingest-XXXXXX", NULL); /* not every file system can */
    partials->file = mkostemp(name, O_CLOEXEC);
    if (partials->file < 0)
        return scratch_failed(partials, "made", pool);
    unlink(name);
    return MC_OK;
}

/* All bytes; false with errno. */
static bool
transfer_partial_pixels(mc_partials *partials, mc_partial *partial, bool out)
{
    uint64_t at = (uint64_t)partial->slot * partials->bytes;
    uint8_t *bytes = partial->pixels->data;
    return out ? mc_files_write_at(partials->file, at, bytes, partials->bytes)
               : mc_files_read_at(partials->file, at, bytes, partials->bytes) == partials->bytes;
}

static mc_error *
spool_partial_tile(mc_partials *partials, mc_partial *partial, apr_pool_t *pool)
{
    if (partials->file < 0)
        MC_TRY(open_scratch(partials, pool));
    MC_ASSERT(partial->pixels->stride * (size_t)partials->height == partials->bytes);
    if (partial->slot < 0) {
        const int64_t *spare = apr_array_pop(partials->free_slots);
        partial->slot = spare != NULL ? *spare : partials->slots++;
    }
    if (!transfer_partial_pixels(partials, partial, true))
        return scratch_failed(partials, "written", pool);
    mc_pixels_unref(partial->pixels);
    partial->pixels = NULL;
    partials->used -= (int64_t)partials->bytes;
    partials->spooled++;
    unlink_from(partial);
    return MC_OK;
}

static mc_error *
bring_back(mc_partials *partials, mc_partial *partial, bool is_new, apr_pool_t *pool)
{
    MC_TRY(mc_pixels_create(&partial->pixels, partials->width, partials->height, is_new, pool));
    partials->used += (int64_t)partials->bytes;
    if (partials->used > partials->peak)
        partials->peak = partials->used;
    link_newest(partials, partial);
    partial->pixels->opacity = is_new ? MC_EMPTY : MC_OPACITY_UNKNOWN;
    return is_new || transfer_partial_pixels(partials, partial, false) ? MC_OK : scratch_failed(partials, "read", pool);
}

mc_error *
mc_partial_hold(mc_partial **partial, bool *is_new, mc_partials *partials, int z, int x, int y, apr_pool_t *pool)
{
    mc_partial wanted = { .at = { z, x, y } };
    *partial = apr_hash_get(partials->table, &wanted.at, sizeof(wanted.at));
    *is_new = *partial == NULL;
    if (*is_new) {
        *partial = calloc(1, sizeof(**partial));
        MC_ASSERT(*partial != NULL);
        (*partial)->at.z = z;
        (*partial)->at.x = x;
        (*partial)->at.y = y;
        (*partial)->slot = -1;
        apr_hash_set(partials->table, &(*partial)->at, sizeof(wanted.at), *partial);
    }
    if ((*partial)->pixels == NULL) {
        MC_TRY(bring_back(partials, *partial, *is_new, pool));
    } else {
        unlink_from(*partial);
        link_newest(partials, *partial);
    }
    (*partial)->holds++;
    return MC_OK;
}

void
mc_partial_let_go(mc_partial *partial)
{
    MC_ASSERT(partial->holds > 0);
    partial->holds--;
}

void
mc_partial_drop(mc_partials *partials, mc_partial *partial)
{
    apr_hash_set(partials->table, &partial->at, sizeof(partial->at), NULL);
    if (partial->pixels != NULL) {
        unlink_from(partial);
        partials->used -= (int64_t)partials->bytes;
    }
    if (partial->slot >= 0)
        APR_ARRAY_PUSH(partials->free_slots, int64_t) = partial->slot;
    mc_pixels_unref(partial->pixels);
    free(partial);
}

mc_error *
mc_partials_trim(mc_partials *partials, apr_pool_t *pool)
{
    mc_partial *next;
    for (mc_partial *at = partials->ends.newer; at != &partials->ends && partials->used > partials->limit; at = next) {
        next = at->newer;
        if (at->holds == 0)
            MC_TRY(spool_partial_tile(partials, at, pool));
    }
    return MC_OK;
}

int
mc_partials_count(const mc_partials *partials)
{
    return (int)apr_hash_count(partials->table);
}

int64_t
mc_partials_peak(const mc_partials *partials)
{
    return partials->peak;
}

int64_t
mc_partials_spooled(const mc_partials *partials)
{
    return partials->spooled;
}
