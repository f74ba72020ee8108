/*
 * Storing tiles in PostgreSQL. A metatile is one statement, so one round trip. A bulk load's transaction goes through
 * COPY, which spares the server half of its work: what is there of its tiles is deleted, and all of them copied in.
 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cache/postgresql/postgresql_array.h"
#include "cache/postgresql/postgresql_base.h"

/* One statement carries no more than this, whatever a put holds. */
#define BYTES_AT_ONCE ((size_t)32 << 20)

enum {
    WORTH_COPYING = 32, /* tiles for which five round trips are less than what they save */
    PIECE = 64 << 10,   /* bytes of a COPY that are sent together */
};

/* What is written: the tile's bytes, or '#' and its colour. */
static mc_byte_span
bytes_of(const postgresql_cache *cache, const mc_tile_write *tile, apr_pool_t *pool)
{
    const uint8_t blank[5] = { '#', tile->bgra[0], tile->bgra[1], tile->bgra[2], tile->bgra[3] };
    if (cache->detect_blank && tile->uniform)
        return (mc_byte_span){ apr_pmemdup(pool, blank, sizeof(blank)), sizeof(blank) };
    return (mc_byte_span){ tile->data->data, tile->data->size };
}

static int
compare_put_places(const void *a, const void *b)
{
    const mc_tile_write *one = *(const mc_tile_write *const *)a, *other = *(const mc_tile_write *const *)b;
    const mc_tile_key *k = &one->key, *l = &other->key;
    if (k->z != l->z || k->x != l->x || k->y != l->y)
        return k->z != l->z ? k->z - l->z : k->x != l->x ? k->x - l->x : k->y - l->y;
    return one < other ? -1 : one > other;
}

/* In one order for all, so that no two statements wait for each other; of a tile that comes twice the last, as a
 * statement must not name a row again. Returns how many. */
static int
sort_unique_puts(const mc_tile_write **sorted, const mc_tile_write *tiles, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++)
        sorted[i] = &tiles[i];
    qsort(sorted, (size_t)count, sizeof(*sorted), compare_put_places);
    for (int i = 0; i < count; i++) {
        const mc_tile_key *key = &sorted[i]->key, *next = i + 1 < count ? &sorted[i + 1]->key : NULL;
        if (next == NULL || key->z != next->z || key->x != next->x || key->y != next->y)
            sorted[kept++] = sorted[i];
    }
    return kept;
}

/* Tiles of one tileset, grid and dimensions, in order. */
typedef struct postgresql_put_batch {
    const mc_tile_write **sorted;
    int rows;
    tile_params params; /* $1 to $6: the series, and arrays of z, x and y */
    mc_byte_span *data;
} postgresql_put_batch;

static void
fill_put_batch(postgresql_put_batch *batch, const postgresql_cache *cache, const mc_tile_write *tiles, int count,
               apr_pool_t *pool)
{
    int *numbers[3];
    batch->sorted = apr_palloc(pool, sizeof(*batch->sorted) * (size_t)count);
    batch->rows = sort_unique_puts(batch->sorted, tiles, count);
    batch->data = apr_palloc(pool, sizeof(*batch->data) * (size_t)count);
    for (int i = 0; i < 3; i++)
        numbers[i] = apr_palloc(pool, sizeof(int) * (size_t)count);
    for (int i = 0; i < batch->rows; i++) {
        numbers[0][i] = batch->sorted[i]->key.z;
        numbers[1][i] = batch->sorted[i]->key.x;
        numbers[2][i] = batch->sorted[i]->key.y;
        batch->data[i] = bytes_of(cache, batch->sorted[i], pool);
    }
    mc_postgresql_series(&batch->params, &tiles[0].key, pool);
    for (int i = 0; i < 3; i++)
        batch->params.list[batch->params.count++] = mc_postgres_int_array(numbers[i], batch->rows, pool);
}

/* In one statement. */
static mc_error *
put_by_arrays(const postgresql_cache *cache, postgresql_put_batch *batch, mc_ctx *ctx, apr_pool_t *pool)
{
    tile_params params = batch->params;
    params.list[params.count++] = mc_postgres_bytea_array(batch->data, batch->rows, pool);
    char state[6];
    mc_error *error = MC_OK;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        error = mc_postgresql_run(state, cache, NULL, cache->sql.put, &params, ctx, pool);
        if (error == MC_OK)
            return MC_OK;
        if (strcmp(state, UNDEFINED_TABLE) == 0)
            MC_TRY(mc_postgresql_run(state, cache, NULL, cache->sql.create, NULL, ctx, pool));
        else if (strcmp(state, DEADLOCK) != 0)
            break;
    }
    return error;
}

static uint8_t *
put_field(uint8_t *at, const void *bytes, size_t size)
{
    at = mc_store_big32(at, (unsigned)size);
    memcpy(at, bytes, size);
    return at + size;
}

/* COPY's binary format (PostgreSQL manual, COPY, File Formats): a head, rows of counted fields, an end. */
static mc_error *
copy_rows(mc_postgres_session *session, const postgresql_put_batch *batch, apr_pool_t *pool)
{
    enum { HEAD = 19, FIELDS = 7 };
    static const char head[HEAD] = "PGCOPY\n\377\r\n";
    const mc_tile_key *series = &batch->sorted[0]->key;
    const char *texts[3] = { series->tileset, series->grid->name, mc_cache_dimension_key(series, pool) };
    size_t fixed = 2 + 4 * FIELDS + 3 * 4, largest = 0;
    for (int i = 0; i < 3; i++)
        fixed += strlen(texts[i]);
    for (int i = 0; i < batch->rows; i++)
        largest = batch->data[i].size > largest ? batch->data[i].size : largest;
    uint8_t *bytes = apr_palloc(pool, HEAD + PIECE + fixed + largest), *at = bytes + HEAD;
    memcpy(bytes, head, HEAD);
    for (int i = 0; i < batch->rows; i++) {
        const mc_tile_key *key = &batch->sorted[i]->key;
        const int place[3] = { key->z, key->x, key->y };
        *at++ = 0;
        *at++ = FIELDS;
        for (int j = 0; j < 3; j++)
            at = put_field(at, texts[j], strlen(texts[j]));
        for (int j = 0; j < 3; j++)
            at = mc_store_big32(mc_store_big32(at, 4), (unsigned)place[j]);
        at = put_field(at, batch->data[i].data, batch->data[i].size);
        if (at - bytes < PIECE)
            continue;
        MC_TRY(mc_postgres_copy_bytes(session, bytes, (size_t)(at - bytes)));
        at = bytes;
    }
    *at++ = 0xff; /* -1 fields: the end */
    *at++ = 0xff;
    return mc_postgres_copy_bytes(session, bytes, (size_t)(at - bytes));
}

static mc_error *
copy_in(const postgresql_cache *cache, mc_postgres_session *session, const postgresql_put_batch *batch, mc_ctx *ctx,
        apr_pool_t *pool)
{
    char state[6];
    MC_TRY(mc_postgresql_run(state, cache, session, "BEGIN", NULL, ctx, pool));
    MC_TRY(mc_postgresql_run(state, cache, session, cache->sql.remove_all, &batch->params, ctx, pool));
    MC_TRY(mc_postgres_copy_begin(session, cache->sql.copy));
    MC_TRY(copy_rows(session, batch, pool));
    MC_TRY(mc_postgres_copy_end(session));
    return mc_postgresql_run(state, cache, session, "COMMIT", NULL, ctx, pool);
}

/*
 * In one transaction, or none of it. Whatever goes wrong (there is no table yet, another seeder puts the same tiles,
 * the connection had ended) the one statement of the other way will say, or mend.
 */
static bool
put_by_copy(const postgresql_cache *cache, const postgresql_put_batch *batch, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_postgres_session *session;
    mc_postgres *postgres = ctx->process == NULL ? NULL : ctx->process->postgres;
    if (mc_postgres_session_open(&session, postgres, cache->connection, ctx, pool) != MC_OK)
        return false;
    mc_error *error = copy_in(cache, session, batch, ctx, pool);
    mc_postgres_session_close(session);
    if (error != MC_OK)
        mc_log_write(ctx, MC_LOG_DEBUG, "cache \"%s\": tiles could not be copied into their table: %s",
                     cache->base.cache.name, mc_error_chain(error, pool));
    return error == MC_OK;
}

static mc_error *
put_some(const postgresql_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    postgresql_put_batch batch;
    fill_put_batch(&batch, cache, tiles, count, pool);
    if (ctx->bulk && batch.rows >= WORTH_COPYING && put_by_copy(cache, &batch, ctx, pool))
        return MC_OK;
    return put_by_arrays(cache, &batch, ctx, pool);
}

static bool
same_put_series(const mc_tile_key *a, const mc_tile_key *b, apr_pool_t *pool)
{
    return strcmp(a->tileset, b->tileset) == 0 && strcmp(a->grid->name, b->grid->name) == 0 &&
           (a->dimensions == b->dimensions ||
            strcmp(mc_cache_dimension_key(a, pool), mc_cache_dimension_key(b, pool)) == 0);
}

/* How many from `first` on go in one statement. */
static int
count_together(const mc_tile_write *tiles, int first, int count, apr_pool_t *pool)
{
    size_t bytes = tiles[first].data->size;
    int end = first + 1;
    while (end < count && same_put_series(&tiles[first].key, &tiles[end].key, pool) &&
           (bytes += tiles[end].data->size) <= BYTES_AT_ONCE)
        end++;
    return end - first;
}

mc_error *
mc_postgresql_put(mc_cache *base, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    const postgresql_cache *cache = (const postgresql_cache *)base;
    apr_pool_t *pool;
    apr_pool_create(&pool, ctx->pool);
    mc_error *error = MC_OK;
    for (int i = 0, taken; i < count && error == MC_OK; i += taken) {
        apr_pool_clear(pool);
        taken = count_together(tiles, i, count, pool);
        error = put_some(cache, &tiles[i], taken, ctx, pool);
    }
    error = mc_error_copy(error, ctx->pool);
    apr_pool_destroy(pool);
    return error == MC_OK ? MC_OK : mc_postgresql_failure(error, cache, ctx->pool);
}
