/*
 * The cache "postgresql": tiles as rows of a table that any number of servers and seeders share. All tiles of a map
 * come in one answer, all tiles of a put go in one statement: both are one round trip, and a put is all or nothing.
 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cache/postgresql/postgresql_array.h"
#include "cache/postgresql/postgresql_base.h"
#include "mapcache/trace.h"

/* Seconds from 1970 to 2000, where timestamps of PostgreSQL's wire format begin (<datatype/timestamp.h>). */
#define POSTGRES_EPOCH 946684800

/* Tiles of one answer of a list; as the statement says. */
enum { LISTED_AT_ONCE = 4096 };

#define FIELD(field) offsetof(postgresql_cache, field)
static const mc_key postgresql_keys[] = {
    MC_CACHE_KEYS(postgresql_cache),
    MC_KEY_TEXT("connection", FIELD(connection),
                "Connection string or URI of libpq, e.g. `host=db.example dbname=tiles user=maps`.",
                .flags = MC_KEY_OURS | MC_KEY_REQUIRED),
    MC_KEY_TEXT("table", FIELD(table_name),
                "Table of the tiles, with its schema if wanted: it is made with the first tile.", .flags = MC_KEY_OURS,
                .fallback = "mapcache_tiles"),
    MC_KEY_FLAG("detect_blank", FIELD(detect_blank), "Store tiles of one colour as that colour.", .flags = MC_KEY_OURS),
    MC_KEY_END,
};

static void
add_int4_param(tile_params *params, int index, int value)
{
    (void)mc_store_big32(params->numbers[index], (uint32_t)value);
    params->list[params->count++] =
        (mc_postgres_param){ .value = params->numbers[index], .size = 4, .binary = true, .type = MC_POSTGRES_INT4 };
}

static void
key_params(tile_params *params, const mc_tile_key *key, apr_pool_t *pool)
{
    mc_postgresql_series(params, key, pool);
    params->by_key = true;
    add_int4_param(params, 0, key->z);
    add_int4_param(params, 1, key->x);
    add_int4_param(params, 2, key->y);
}

static int
decode_int4_field(const mc_postgres_field *field)
{
    return (int)(uint32_t)mc_big_number(field->data, field->size < 4 ? field->size : 4);
}

/* Columns `first` and the next: the bytes, and when they were stored. */
static mc_error *
read_row_tile(mc_tile **tile, const mc_postgres_row *row, int first, apr_pool_t *pool)
{
    *tile = NULL;
    const mc_postgres_field *data = &row->fields[first], *time = &row->fields[first + 1];
    if (data->size <= 0 || time->size != 8)
        return MC_OK;
    uint64_t since = mc_big_number(time->data, 8);
    apr_time_t mtime = (apr_time_t)(since + (uint64_t)apr_time_from_sec(POSTGRES_EPOCH)); /* also of "infinity" */
    mc_buf *bytes;
    MC_TRY(mc_buf_duplicate(&bytes, data->data, (size_t)data->size, pool));
    *tile = mc_tile_create(bytes, apr_time_from_sec(apr_time_sec(mtime)), pool);
    return MC_OK;
}

/* A table that nobody has made yet holds nothing. A value of a dimension comes from a client, and may be no text. */
static mc_error *
end_read(mc_postgres_result *result, mc_error *error, const postgresql_cache *cache, const mc_tile_key *key,
         apr_pool_t *pool)
{
    bool no_table = error != MC_OK && strcmp(mc_postgres_sqlstate(result), UNDEFINED_TABLE) == 0;
    bool no_text = error != MC_OK && strcmp(mc_postgres_sqlstate(result), NO_TEXT) == 0 && key->dimension_count > 0;
    mc_postgres_end(result);
    if (no_text)
        return mc_error_wrap(pool, error, MC_ERR_INVALID_DIMENSION, "the value of a dimension is no text in UTF-8");
    return error == MC_OK || no_table ? MC_OK : mc_postgresql_failure(error, cache, pool);
}

static mc_error *
postgresql_get(mc_tile **tile, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "_mapcache_cache_postgresql_get");
    const postgresql_cache *cache = (const postgresql_cache *)base;
    mc_postgres_result *result;
    const mc_postgres_row *row = NULL;
    tile_params params;
    key_params(&params, key, pool);
    *tile = NULL;
    mc_error *error = mc_postgresql_start(&result, cache, NULL, cache->sql.get, &params, ctx, pool);
    if (error == MC_OK)
        error = mc_postgres_next(&row, result);
    if (error == MC_OK && row != NULL)
        error = read_row_tile(tile, row, 0, pool);
    error = end_read(result, error, cache, key, pool);
    mc_cache_note_get(&span, error, *tile);
    return error;
}

/* The tile goes to every key that asks for it. */
static void
assign_found_tile(mc_tile **tiles, const mc_tile_key *keys, int count, int x, int y, mc_tile *tile)
{
    for (int i = 0; i < count; i++)
        if (keys[i].x == x && keys[i].y == y)
            tiles[i] = tile;
}

/* Level, columns and rows of keys of one series and level. */
static void
places_params(tile_params *params, const mc_tile_key *keys, int count, apr_pool_t *pool)
{
    int *numbers = apr_palloc(pool, sizeof(int) * (size_t)count);
    mc_postgresql_series(params, &keys[0], pool);
    params->by_key = true;
    add_int4_param(params, 0, keys[0].z);
    for (int i = 0; i < count; i++)
        numbers[i] = keys[i].x;
    params->list[params->count++] = mc_postgres_int_array(numbers, count, pool);
    for (int i = 0; i < count; i++)
        numbers[i] = keys[i].y;
    params->list[params->count++] = mc_postgres_int_array(numbers, count, pool);
}

static mc_error *
postgresql_get_all(mc_tile **tiles, mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "_mapcache_cache_postgresql_get");
    const postgresql_cache *cache = (const postgresql_cache *)base;
    mc_postgres_result *result;
    const mc_postgres_row *row = NULL;
    tile_params params;
    places_params(&params, keys, count, pool);
    mc_error *error = mc_postgresql_start(&result, cache, NULL, cache->sql.get_all, &params, ctx, pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL) {
        mc_tile *tile;
        error = read_row_tile(&tile, row, 2, pool);
        assign_found_tile(tiles, keys, count, decode_int4_field(&row->fields[0]), decode_int4_field(&row->fields[1]),
                          tile);
    }
    error = end_read(result, error, cache, &keys[0], pool);
    if (error != MC_OK)
        mc_span_note(&span, "ERROR");
    return error;
}

static mc_error *
postgresql_exists(bool *exists, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    const postgresql_cache *cache = (const postgresql_cache *)base;
    mc_postgres_result *result;
    const mc_postgres_row *row = NULL;
    tile_params params;
    key_params(&params, key, ctx->pool);
    mc_error *error = mc_postgresql_start(&result, cache, NULL, cache->sql.exists, &params, ctx, ctx->pool);
    if (error == MC_OK)
        error = mc_postgres_next(&row, result);
    *exists = error == MC_OK && row != NULL;
    return end_read(result, error, cache, key, ctx->pool);
}

static mc_error *
postgresql_remove(mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    const postgresql_cache *cache = (const postgresql_cache *)base;
    tile_params params;
    char state[6];
    key_params(&params, key, ctx->pool);
    mc_error *error = mc_postgresql_run(state, cache, NULL, cache->sql.remove, &params, ctx, ctx->pool);
    return error == MC_OK || strcmp(state, UNDEFINED_TABLE) == 0 ? MC_OK
                                                                 : mc_postgresql_failure(error, cache, ctx->pool);
}

static mc_error *
postgresql_remove_all(mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    const postgresql_cache *cache = (const postgresql_cache *)base;
    tile_params params;
    char state[6];
    int *numbers = apr_palloc(ctx->pool, sizeof(int) * (size_t)count * 3);
    mc_postgresql_series(&params, &keys[0], ctx->pool);
    for (int i = 0; i < count; i++) {
        numbers[i] = keys[i].z;
        numbers[count + i] = keys[i].x;
        numbers[2 * count + i] = keys[i].y;
    }
    for (int i = 0; i < 3; i++)
        params.list[params.count++] = mc_postgres_int_array(numbers + i * count, count, ctx->pool);
    mc_error *error;
    int attempt = 0;
    do
        error = mc_postgresql_run(state, cache, NULL, cache->sql.remove_all, &params, ctx, ctx->pool);
    while (error != MC_OK && strcmp(state, DEADLOCK) == 0 && ++attempt < ATTEMPTS);
    return error == MC_OK || strcmp(state, UNDEFINED_TABLE) == 0 ? MC_OK
                                                                 : mc_postgresql_failure(error, cache, ctx->pool);
}

/* The next tiles behind last->x, last->y, two numbers each. */
static mc_error *
list_some(apr_array_header_t *numbers, const postgresql_cache *cache, const mc_tile_key *last,
          const mc_tile_range *area, mc_ctx *ctx)
{
    int limits[] = { area->maxx, area->miny, area->maxy };
    uint8_t wire[3][4];
    mc_postgres_result *result;
    const mc_postgres_row *row = NULL;
    tile_params params;
    key_params(&params, last, ctx->pool);
    for (int i = 0; i < 3; i++) {
        (void)mc_store_big32(wire[i], (uint32_t)limits[i]);
        params.list[params.count++] =
            (mc_postgres_param){ .value = wire[i], .size = 4, .binary = true, .type = MC_POSTGRES_INT4 };
    }
    mc_error *error = mc_postgresql_start(&result, cache, NULL, cache->sql.list, &params, ctx, ctx->pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL)
        for (int i = 0; i < 2; i++)
            APR_ARRAY_PUSH(numbers, int) = decode_int4_field(&row->fields[i]);
    return end_read(result, error, cache, last, ctx->pool);
}

static mc_error *
postgresql_list(mc_cache *base, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit, void *baton,
                mc_ctx *ctx)
{
    const postgresql_cache *cache = (const postgresql_cache *)base;
    mc_tile_key last = *key;
    mc_ctx own = *ctx;
    int count = 0;
    mc_error *error = MC_OK;
    last.x = area->minx - 1;
    last.y = area->maxy;
    apr_pool_create(&own.pool, ctx->pool);
    do {
        apr_pool_clear(own.pool);
        apr_array_header_t *numbers = apr_array_make(own.pool, 2 * LISTED_AT_ONCE, sizeof(int));
        error = list_some(numbers, cache, &last, area, &own);
        count = error == MC_OK ? numbers->nelts / 2 : 0;
        for (int i = 0; i < count; i++) {
            last.x = APR_ARRAY_IDX(numbers, 2 * i, int);
            last.y = APR_ARRAY_IDX(numbers, 2 * i + 1, int);
            if (!visit(baton, last.x, last.y))
                count = 0;
        }
    } while (error == MC_OK && count == LISTED_AT_ONCE);
    error = mc_error_copy(error, ctx->pool);
    apr_pool_destroy(own.pool);
    return error;
}

static bool
postgresql_lists(const mc_cache *cache, const mc_tile_key *key)
{
    (void)cache, (void)key;
    return true;
}

static mc_cache *
postgresql_cache_from_config(const mc_node *node, mc_build *build)
{
    postgresql_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    if (!mc_cache_read(&cache->base, &mc_cache_postgresql, false, node, build))
        return NULL;
    mc_postgres_configure(cache->connection, node, build);
    mc_postgresql_statements(&cache->sql, cache->table_name, build->pool);
    return &cache->base.cache;
}

static bool
postgresql_tells_grids(const mc_cache *cache)
{
    (void)cache; /* a column of the table says it */
    return true;
}

/* Asks for a tile that nobody stores: the database, the rights and the table's columns are looked at. */
static mc_error *
postgresql_reach(mc_cache *base, mc_ctx *ctx)
{
    static const mc_grid grid = { .name = "" };
    const mc_tile_key key = { .tileset = "", .grid = &grid, .extension = "", .renderable = true };
    bool exists;
    return postgresql_exists(&exists, base, &key, ctx);
}

const mc_cache_ops mc_cache_postgresql = {
    MC_KIND("postgresql", postgresql_keys, postgresql_cache_from_config,
            "Tiles as rows of a PostgreSQL table that several servers and seeders share."),
    .get = postgresql_get,
    .get_all = postgresql_get_all,
    .exists = postgresql_exists,
    .put = mc_postgresql_put,
    .remove = postgresql_remove,
    .remove_all = postgresql_remove_all,
    .tells_grids = postgresql_tells_grids,
    .upkeep = mc_postgresql_upkeep,
    .measure = mc_postgresql_measure,
    .list = postgresql_list,
    .lists = postgresql_lists,
    .reach = postgresql_reach,
};
