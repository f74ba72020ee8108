/* What the stores of a tileset take up, hold of others, and could give back. */
#include "detail_stores.h"

#include <apr_strings.h>

#include "cli/common/stores.h"
#include "cli/common/words.h"

typedef struct stores {
    mc_json_writer *json;
    apr_array_header_t *lines; /* of const char *; or NULL */
    const mc_config *config;
    mc_cache *cache; /* that is being looked at */
    mc_ctx *ctx;
    mc_error *error;
    apr_array_header_t *orphans; /* of mc_store_group: of the store that is being looked at */
} stores;

static bool
is_detail_group_known(void *baton, const mc_store_group *group)
{
    const stores *report = baton;
    return mc_stores_known(report->config, report->cache, group);
}

static void
take_orphan(void *baton, const mc_store *store, const mc_store_group *group)
{
    stores *report = baton;
    apr_pool_t *pool = report->ctx->pool;
    mc_store_group *kept = &APR_ARRAY_PUSH(report->orphans, mc_store_group);
    (void)store;
    *kept = *group;
    kept->tileset = apr_pstrdup(pool, group->tileset);
    kept->grid = apr_pstrdup(pool, group->grid);
    kept->dim = apr_pstrdup(pool, group->dim);
}

/* Below 0: not known. */
static void
write_store_number(mc_json_writer *json, const char *name, int64_t value)
{
    if (value < 0)
        mc_json_null(json, name);
    else
        mc_json_integer(json, name, value);
}

static void
write_orphans(const stores *report)
{
    mc_json_writer *json = report->json;
    mc_json_open_array(json, "orphans");
    for (int i = 0; i < report->orphans->nelts; i++) {
        const mc_store_group *group = &APR_ARRAY_IDX(report->orphans, i, mc_store_group);
        mc_json_open_object(json, NULL);
        mc_json_string(json, "tileset", group->tileset);
        mc_json_string(json, "grid", group->grid);
        mc_json_string(json, "dimensions", group->dim);
        mc_json_integer(json, "level", group->z);
        mc_json_integer(json, "nb_tiles", group->tiles);
        mc_json_integer(json, "size", group->bytes);
        mc_json_close(json);
    }
    mc_json_close(json);
}

/* Below 0: not known. */
static const char *
known_size_words(int64_t bytes, apr_pool_t *pool)
{
    return bytes < 0 ? "?" : mc_cli_size_words((double)bytes, pool);
}

static const char *
describe_store(const mc_store *store, const mc_error *error, apr_pool_t *pool)
{
    if (error != MC_OK)
        return apr_psprintf(pool, "store %s (%s): %s", store->name, store->kind, mc_error_chain(error, pool));
    const char *line =
        apr_psprintf(pool, "store %s (%s): %s", store->name, store->kind, known_size_words(store->bytes, pool));
    if (store->tiles >= 0)
        line = apr_pstrcat(pool, line, ", ", mc_cli_count_words(store->tiles, "tile", pool), NULL);
    if (store->free_bytes > 0)
        line = apr_pstrcat(pool, line, ", ", known_size_words(store->free_bytes, pool), " to give back", NULL);
    if (store->orphans > 0)
        line = apr_pstrcat(pool, line, ", ", mc_cli_count_words(store->orphans, "orphaned tile", pool), " of ",
                           known_size_words(store->orphan_bytes, pool), NULL);
    if (store->leftovers > 0)
        line = apr_pstrcat(pool, line, ", ", mc_cli_count_words(store->leftovers, "leftover file", pool), NULL);
    return line;
}

static void
write_store(void *baton, const mc_store *store, const mc_store *after, const mc_error *error)
{
    stores *report = baton;
    mc_json_writer *json = report->json;
    (void)after;
    if (report->lines != NULL)
        APR_ARRAY_PUSH(report->lines, const char *) = describe_store(store, error, report->ctx->pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "cache", store->cache);
    mc_json_string(json, "type", store->kind);
    mc_json_string(json, "name", store->name);
    write_store_number(json, "size", store->bytes);
    write_store_number(json, "reclaimable_size", store->free_bytes);
    if (store->bytes > 0 && store->free_bytes >= 0)
        mc_json_decimals(json, "fragmentation", (double)store->free_bytes / (double)store->bytes, 4);
    write_store_number(json, "nb_tiles", store->tiles);
    write_store_number(json, "nb_blank_tiles", store->blanks);
    write_store_number(json, "tiles_size", store->tile_bytes);
    write_store_number(json, "nb_orphaned_tiles", store->orphans);
    write_store_number(json, "orphaned_size", store->orphan_bytes);
    write_orphans(report);
    write_store_number(json, "nb_leftover_files", store->leftovers);
    write_store_number(json, "leftover_size", store->leftover_bytes);
    if (error != MC_OK)
        mc_json_string(json, "error", mc_error_chain(error, report->ctx->pool));
    mc_json_close(json);
    apr_array_clear(report->orphans);
}

static void
report_cache_stores(void *baton, mc_cache *part)
{
    stores *report = baton;
    const mc_upkeep task = {
        .count = true, .known = is_detail_group_known, .orphan = take_orphan, .report = write_store, .baton = report
    };
    report->cache = part;
    if (report->error == MC_OK)
        report->error = mc_cache_upkeep(part, &task, report->ctx);
}

/* How a cache keeps to its <max_size>. */
static void
report_cache_quota(void *baton, mc_cache *part)
{
    stores *report = baton;
    apr_pool_t *pool = report->ctx->pool;
    mc_cache_quota state;
    if (part->quota == NULL)
        return;
    mc_error *error = mc_cache_quota_look(&state, part, report->ctx);
    mc_json_open_object(report->json, NULL);
    mc_json_string(report->json, "cache", part->name);
    mc_json_integer(report->json, "limit", part->max_size);
    if (error != MC_OK) {
        mc_json_string(report->json, "error", mc_error_chain(error, pool));
    } else {
        mc_json_integer(report->json, "size", state.bytes);
        mc_json_integer(report->json, "nb_removed_tiles", state.removed);
        write_store_number(report->json, "oldest_use", state.oldest);
        mc_json_boolean(report->json, "looked_through", state.complete);
    }
    mc_json_close(report->json);
    if (report->lines == NULL)
        return;
    const char *line =
        error != MC_OK
            ? mc_error_chain(error, pool)
            : apr_psprintf(pool, "%s of at most %s, %s removed%s", known_size_words(state.bytes, pool),
                           known_size_words(part->max_size, pool), mc_cli_count_words(state.removed, "tile", pool),
                           state.complete ? "" : "; not all is looked through yet");
    APR_ARRAY_PUSH(report->lines, const char *) = apr_psprintf(pool, "max_size of cache %s: %s", part->name, line);
}

mc_error *
mc_detail_stores(mc_json_writer *json, apr_array_header_t *lines, const mc_config *config, mc_cache *cache, mc_ctx *ctx)
{
    stores report = { .json = json,
                      .lines = lines,
                      .config = config,
                      .ctx = ctx,
                      .orphans = apr_array_make(ctx->pool, 4, sizeof(mc_store_group)) };
    mc_json_open_array(json, "stores");
    mc_cache_parts(cache, report_cache_stores, &report);
    mc_json_close(json);
    mc_json_open_array(json, "quotas");
    mc_cache_parts(cache, report_cache_quota, &report);
    mc_json_close(json);
    return report.error;
}
