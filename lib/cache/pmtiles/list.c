/* Which tiles a PMTiles store has: those of its archive and of its draft, in the order of their ids. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cache/pmtiles/pmtiles_base.h"
#include "grid/tile_id.h"

enum {
    ROWS_AT_ONCE = 4096,  /* of a draft: nobody holds a lock on it while tiles are told */
    LOOK_EVERY = 1 << 16, /* tiles, at the deadline */
};

typedef struct drafted_tile {
    uint64_t id;
    bool removed;
} drafted_tile;

typedef struct pmtiles_listing {
    const pmtiles_cache *cache;
    const mc_tile_key *key;
    const mc_tile_range *area;
    mc_tile_visit *visit;
    void *baton;
    mc_ctx *ctx;
    bool enough; /* `visit` has said so */
    uint64_t end;
    /* Of the draft: rows that have been read, and where the others begin. */
    const char *draft;
    drafted_tile rows[ROWS_AT_ONCE];
    int count, next;
    uint64_t from;
    bool exhausted;
} pmtiles_listing;

/* An error, which is none, ends the walk. */
static mc_error *
tell_archived_tile(pmtiles_listing *listing, uint64_t id)
{
    int z;
    uint32_t column, row;
    const mc_tile_range *area = listing->area;
    const mc_grid *grid = listing->key->grid;
    if (listing->enough || !mc_tile_place(&z, &column, &row, id))
        return MC_OK;
    int x = mc_grid_from_west(grid, z, (int)column), y = mc_grid_flip_y(grid, z, (int)row);
    if (x < area->minx || x >= area->maxx || y < area->miny || y >= area->maxy)
        return MC_OK;
    listing->enough = !listing->visit(listing->baton, x, y);
    return listing->enough ? mc_error_create(listing->ctx->pool, MC_ERR_LIMIT, "enough tiles are listed") : MC_OK;
}

/* A mc_handle_work. */
static mc_error *
read_draft_rows(void *baton, mc_handle *handle)
{
    pmtiles_listing *listing = baton;
    apr_pool_t *pool = listing->ctx->pool;
    const uint64_t from = listing->from;
    mc_draft_cursor cursor;
    listing->count = 0;
    mc_error *error = mc_draft_begin(&cursor, handle, from, listing->end, pool);
    for (; error == MC_OK && cursor.present && listing->count < ROWS_AT_ONCE; error = mc_draft_step(&cursor, pool)) {
        listing->rows[listing->count++] = (drafted_tile){ cursor.id, cursor.data == NULL };
        listing->from = cursor.id + 1;
    }
    listing->exhausted = !cursor.present;
    listing->from = error == MC_OK ? listing->from : from;
    mc_draft_end(&cursor);
    return error;
}

static mc_error *
fill_draft_rows(pmtiles_listing *listing)
{
    mc_stamp stamp;
    bool present = false;
    mc_ctx *ctx = listing->ctx;
    listing->count = listing->next = 0;
    if (!listing->exhausted)
        MC_TRY(mc_handle_look(&present, &stamp, listing->draft, ctx->pool));
    listing->exhausted = !present;
    if (!present)
        return MC_OK;
    mc_handles *handles = ctx->process == NULL ? NULL : ctx->process->handles;
    return mc_handle_read(handles, listing->draft, &stamp, &listing->cache->draft->reading, read_draft_rows, listing,
                          ctx, ctx->pool);
}

/* Tells of the draft's tiles before `id`. *row: what the draft has of `id` itself, or NULL. */
static mc_error *
tell_drafted_before(const drafted_tile **row, pmtiles_listing *listing, uint64_t id)
{
    *row = NULL;
    for (;;) {
        if (listing->next == listing->count) {
            if (listing->exhausted)
                return MC_OK;
            MC_TRY(fill_draft_rows(listing));
            continue;
        }
        const drafted_tile *first = &listing->rows[listing->next];
        if (first->id > id)
            return MC_OK;
        listing->next++;
        if (first->id == id) {
            *row = first;
            return MC_OK;
        }
        if (!first->removed)
            MC_TRY(tell_archived_tile(listing, first->id));
    }
}

static mc_error *
tell_archived_entry(void *baton, const mc_pmtiles_entry *entry)
{
    pmtiles_listing *listing = baton;
    uint64_t first = mc_tile_first_id(listing->key->z), end = entry->id + entry->run;
    for (uint64_t id = entry->id < first ? first : entry->id; id < end && id < listing->end; id++) {
        const drafted_tile *row;
        if (id % LOOK_EVERY == 0) /* a run may be a whole level */
            MC_TRY(mc_ctx_check(listing->ctx, listing->ctx->pool));
        MC_TRY(tell_drafted_before(&row, listing, id));
        if (row == NULL || !row->removed)
            MC_TRY(tell_archived_tile(listing, id));
    }
    return MC_OK;
}

/* An archive that is not there is no error: archive->file.missing says so. */
static mc_error *
look_at_listed_archive(mc_pmtiles_archive *archive, const pmtiles_cache *cache, const char *path, mc_ctx *ctx)
{
    MC_TRY(mc_archive_place_look(&archive->file, &cache->place, path, ctx, ctx->pool));
    if (archive->file.missing != 0 && !mc_stamp_absent(archive->file.missing))
        return mc_error_create(ctx->pool, MC_ERR_IO, "%s cannot be looked at", path);
    return MC_OK;
}

static mc_error *
list_archived(pmtiles_listing *listing, const char *path)
{
    mc_pmtiles_archive archive;
    apr_pool_t *pool = listing->ctx->pool;
    mc_error *error = look_at_listed_archive(&archive, listing->cache, path, listing->ctx);
    if (error != MC_OK || archive.file.missing != 0) {
        mc_ranges_close(&archive.file);
        return error;
    }
    error = mc_pmtiles_open(&archive, listing->ctx, pool);
    if (error == MC_OK)
        error = mc_pmtiles_walk(&archive, mc_tile_first_id(listing->key->z), listing->end, tell_archived_entry, listing,
                                pool);
    if (error == MC_OK && !mc_ranges_unchanged(&archive.file))
        error = mc_error_create(pool, MC_ERR_UNAVAILABLE, "%s was written to while it was listed", path);
    mc_pmtiles_close(&archive);
    return error;
}

mc_error *
mc_pmtiles_list(mc_cache *base, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit, void *baton,
                mc_ctx *ctx)
{
    const pmtiles_cache *cache = (const pmtiles_cache *)base;
    char path[MC_PATH_MAX], draft[MC_PATH_MAX];
    bool drafted;
    const drafted_tile *row;
    MC_TRY(mc_pmtiles_archive_path(path, cache, key, ctx->pool));
    MC_TRY(mc_pmtiles_draft_path(draft, &drafted, cache, key, ctx, ctx->pool));
    pmtiles_listing *listing = apr_pcalloc(ctx->pool, sizeof(*listing));
    *listing = (pmtiles_listing){ .cache = cache,
                                  .key = key,
                                  .area = area,
                                  .visit = visit,
                                  .baton = baton,
                                  .ctx = ctx,
                                  .end = mc_tile_first_id(key->z + 1),
                                  .draft = draft,
                                  .from = mc_tile_first_id(key->z),
                                  .exhausted = !drafted };
    mc_error *error = list_archived(listing, path);
    if (error == MC_OK)
        error = tell_drafted_before(&row, listing, UINT64_MAX);
    return listing->enough ? MC_OK : error;
}

typedef struct draft_counting {
    int64_t *count;
    apr_pool_t *pool;
} draft_counting;

/* A mc_handle_work. */
static mc_error *
count_rows(void *baton, mc_handle *handle)
{
    const draft_counting *counting = baton;
    sqlite3_stmt *statement;
    MC_TRY(mc_handle_statement(&statement, handle, "SELECT count(*) FROM tiles", counting->pool));
    return mc_handle_number(counting->count, handle, statement, "a draft of a PMTiles archive cannot be read",
                            counting->pool);
}

/* Rows of a draft: tiles that are new, and those that hide one of the archive. */
static mc_error *
count_draft_rows(int64_t *count, const pmtiles_cache *cache, const char *draft, mc_ctx *ctx)
{
    mc_stamp stamp;
    bool present;
    draft_counting counting = { count, ctx->pool };
    mc_handles *handles = ctx->process == NULL ? NULL : ctx->process->handles;
    *count = 0;
    MC_TRY(mc_handle_look(&present, &stamp, draft, ctx->pool));
    if (!present)
        return MC_OK;
    return mc_handle_read(handles, draft, &stamp, &cache->draft->reading, count_rows, &counting, ctx, ctx->pool);
}

/* Tiles: those of the archive and those of the draft, so that those that are in both count twice until the merge. */
mc_error *
mc_pmtiles_measure(int64_t *bytes, int64_t *tiles, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    const pmtiles_cache *cache = (const pmtiles_cache *)base;
    char path[MC_PATH_MAX], draft[MC_PATH_MAX];
    struct stat info;
    bool drafted;
    mc_pmtiles_archive archive;
    *bytes = *tiles = 0;
    MC_TRY(mc_pmtiles_archive_path(path, cache, key, ctx->pool));
    MC_TRY(mc_pmtiles_draft_path(draft, &drafted, cache, key, ctx, ctx->pool));
    if (*draft != '\0' && stat(draft, &info) == 0)
        *bytes += info.st_size;
    if (drafted)
        MC_TRY(count_draft_rows(tiles, cache, draft, ctx));
    mc_error *error = look_at_listed_archive(&archive, cache, path, ctx);
    if (error != MC_OK || archive.file.missing != 0) {
        mc_ranges_close(&archive.file);
        return error;
    }
    error = mc_pmtiles_open(&archive, ctx, ctx->pool);
    *bytes += (int64_t)mc_ranges_size(&archive.file);
    *tiles += error == MC_OK && archive.header.addressed < INT64_MAX / 2 ? (int64_t)archive.header.addressed : 0;
    mc_pmtiles_close(&archive);
    return error;
}

/* Of the archive: a draft alone says nothing. */
mc_error *
mc_pmtiles_metadata(mc_buf **json, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    const pmtiles_cache *cache = (const pmtiles_cache *)base;
    char path[MC_PATH_MAX];
    mc_pmtiles_archive archive = { .root = NULL };
    *json = NULL;
    MC_TRY(mc_pmtiles_archive_path(path, cache, key, pool));
    mc_error *error = look_at_listed_archive(&archive, cache, path, ctx);
    if (error == MC_OK && archive.file.missing == 0) {
        error = mc_pmtiles_open(&archive, ctx, pool);
        if (error == MC_OK)
            error = mc_pmtiles_read_metadata(json, &archive, pool);
    }
    mc_pmtiles_close(&archive);
    return error;
}
