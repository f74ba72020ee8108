/*
 * Looking after a table of tiles. VACUUM makes the space of dead rows free for new ones, beside everybody who uses the
 * table; giving it back to the disk (VACUUM FULL) would lock them all out, and is left to whoever may decide that.
 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "cache/postgresql/postgresql_base.h"
#include "mapcache/upkeep.h"

/* Microseconds that one statement may take: it reads or rewrites a whole table. Who is in a hurry interrupts it. */
#define WORK_TIME (7 * 24 * 3600 * APR_USEC_PER_SEC)

typedef struct cache_postgresql_upkeep {
    const postgresql_cache *cache;
    const mc_upkeep *task;
    mc_ctx *ctx;
    mc_store store;
    apr_array_header_t *orphans; /* of mc_store_group */
} cache_postgresql_upkeep;

static int64_t
parse_upkeep_number(const mc_postgres_field *field)
{
    return field->size <= 0 ? 0 : strtoll(field->data, NULL, 10);
}

/* Rows as text; params and take may be NULL. */
static mc_error *
run_upkeep_query(const cache_postgresql_upkeep *work, const char *sql, const tile_params *params,
                 void (*take)(void *baton, const mc_postgres_row *row), void *baton)
{
    apr_pool_t *pool = work->ctx->pool;
    mc_postgres *postgres = work->ctx->process == NULL ? NULL : work->ctx->process->postgres;
    mc_postgres_query query = { .connection = work->cache->connection,
                                .sql = sql,
                                .params = params == NULL ? NULL : params->list,
                                .param_count = params == NULL ? 0 : params->count,
                                .time = WORK_TIME };
    mc_postgres_result *result;
    const mc_postgres_row *row;
    mc_error *error = mc_postgres_start(&result, postgres, &query, work->ctx, pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL)
        if (take != NULL)
            take(baton, row);
    bool no_table = error != MC_OK && strcmp(mc_postgres_sqlstate(result), UNDEFINED_TABLE) == 0;
    mc_postgres_end(result);
    return error == MC_OK || no_table ? MC_OK : mc_postgresql_failure(error, work->cache, pool);
}

/* Bytes of all, live and dead rows. */
static void
take_sizes(void *baton, const mc_postgres_row *row)
{
    cache_postgresql_upkeep *work = baton;
    int64_t live = parse_upkeep_number(&row->fields[1]), dead = parse_upkeep_number(&row->fields[2]);
    work->store.bytes = parse_upkeep_number(&row->fields[0]);
    work->store.free_bytes =
        live + dead == 0 ? 0 : (int64_t)((double)work->store.bytes * (double)dead / (double)(live + dead));
}

static void
visit_group_row(void *baton, const mc_postgres_row *row)
{
    cache_postgresql_upkeep *work = baton;
    apr_pool_t *pool = work->ctx->pool;
    mc_store_group group = { apr_pstrdup(pool, row->fields[0].data), apr_pstrdup(pool, row->fields[1].data),
                             apr_pstrdup(pool, row->fields[2].data), (int)parse_upkeep_number(&row->fields[3]),
                             parse_upkeep_number(&row->fields[4]),   parse_upkeep_number(&row->fields[5]),
                             parse_upkeep_number(&row->fields[6]) };
    mc_store_add(&work->store, &group, work->task, work->orphans);
}

static mc_error *
measure_postgresql_store(cache_postgresql_upkeep *work)
{
    mc_store *store = &work->store;
    apr_array_clear(work->orphans);
    MC_TRY(run_upkeep_query(work, work->cache->sql.sizes, NULL, take_sizes, work));
    if (!work->task->count)
        return MC_OK;
    store->tiles = store->blanks = store->tile_bytes = store->orphans = store->orphan_bytes = 0;
    return run_upkeep_query(work, work->cache->sql.groups, NULL, visit_group_row, work);
}

static mc_error *
remove_postgresql_group(const cache_postgresql_upkeep *work, const mc_store_group *group, apr_pool_t *pool)
{
    tile_params params = { .count = 4 };
    const char *const texts[] = { group->tileset, group->grid, group->dim, apr_itoa(pool, group->z) };
    for (int i = 0; i < 4; i++)
        params.list[i] = (mc_postgres_param){ .value = texts[i], .type = i < 3 ? MC_POSTGRES_TEXT : MC_POSTGRES_INT4 };
    return run_upkeep_query(work, work->cache->sql.remove_group, &params, NULL, NULL);
}

static mc_error *
change_postgresql_store(cache_postgresql_upkeep *work, bool *changed)
{
    const mc_upkeep *task = work->task;
    apr_pool_t *pool = work->ctx->pool;
    for (int i = 0; i < work->orphans->nelts && task->remove_orphans; i++) {
        *changed = true;
        if (task->progress != NULL)
            task->progress(task->baton, &work->store, "removing", (double)i / work->orphans->nelts);
        MC_TRY(remove_postgresql_group(work, &APR_ARRAY_IDX(work->orphans, i, mc_store_group), pool));
    }
    if (!task->compact || work->store.bytes <= 0)
        return MC_OK;
    if (task->progress != NULL)
        task->progress(task->baton, &work->store, "compacting", 0);
    *changed = true;
    return run_upkeep_query(work, work->cache->sql.vacuum, NULL, NULL, NULL);
}

mc_error *
mc_postgresql_upkeep(mc_cache *base, const mc_upkeep *task, mc_ctx *ctx)
{
    const postgresql_cache *cache = (const postgresql_cache *)base;
    mc_ctx own = *ctx;
    bool changed = false;
    apr_pool_create(&own.pool, ctx->pool);
    cache_postgresql_upkeep work = { .cache = cache,
                                     .task = task,
                                     .ctx = &own,
                                     .store = { "postgresql", base->name, cache->table_name, 0, 0, -1, -1, -1, -1, -1,
                                                -1, -1 },
                                     .orphans = apr_array_make(own.pool, 4, sizeof(mc_store_group)) };
    mc_error *error = measure_postgresql_store(&work);
    mc_store before = work.store;
    mc_store_tell_orphans(&before, task, work.orphans);
    if (error == MC_OK)
        error = change_postgresql_store(&work, &changed);
    if (changed && error == MC_OK)
        error = measure_postgresql_store(&work);
    if (task->report != NULL)
        task->report(task->baton, &before, changed ? &work.store : NULL, error);
    apr_pool_destroy(own.pool);
    return MC_OK;
}

static void
read_single_number_row(void *baton, const mc_postgres_row *row)
{
    *(int64_t *)baton = parse_upkeep_number(&row->fields[0]);
}

mc_error *
mc_postgresql_measure(int64_t *bytes, int64_t *tiles, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    const postgresql_cache *cache = (const postgresql_cache *)base;
    cache_postgresql_upkeep work = { .cache = cache, .ctx = ctx };
    tile_params series;
    *bytes = *tiles = 0;
    mc_postgresql_series(&series, key, ctx->pool);
    MC_TRY(run_upkeep_query(&work, cache->sql.sizes, NULL, read_single_number_row, bytes));
    return run_upkeep_query(&work, cache->sql.count, &series, read_single_number_row, tiles);
}
