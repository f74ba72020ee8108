/* What the stores of a tileset take up, hold of others, and could give back. */
#include "detail_stores.h"

#include <apr_strings.h>

#include "cli/common/stores.h"
#include "detail_json.h"

typedef struct stores {
    FILE *out;
    const mc_config *config;
    mc_cache *cache; /* that is being looked at */
    mc_ctx *ctx;
    bool first;
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

static void
write_store_number(FILE *out, const char *name, int64_t value)
{
    if (value < 0)
        fprintf(out, ",\n\t\t\t\"%s\":\tnull", name);
    else
        fprintf(out, ",\n\t\t\t\"%s\":\t%lld", name, (long long)value);
}

static void
write_store_text(FILE *out, const char *name, const char *value)
{
    fprintf(out, "\"%s\":\t", name);
    if (value == NULL)
        fputs("null", out);
    else
        mc_detail_text(out, value);
}

static void
write_orphans(const stores *report)
{
    FILE *out = report->out;
    fputs(",\n\t\t\t\"orphans\":\t[", out);
    for (int i = 0; i < report->orphans->nelts; i++) {
        const mc_store_group *group = &APR_ARRAY_IDX(report->orphans, i, mc_store_group);
        fputs(i == 0 ? "{" : ", {", out);
        write_store_text(out, "tileset", group->tileset);
        fputs(", ", out);
        write_store_text(out, "grid", group->grid);
        fputs(", ", out);
        write_store_text(out, "dimensions", group->dim);
        fprintf(out, ", \"level\":\t%d, \"nb_tiles\":\t%lld, \"size\":\t%lld}", group->z, (long long)group->tiles,
                (long long)group->bytes);
    }
    fputc(']', out);
}

static void
write_store(void *baton, const mc_store *store, const mc_store *after, const mc_error *error)
{
    stores *report = baton;
    FILE *out = report->out;
    (void)after;
    fputs(report->first ? "{\n\t\t\t" : ", {\n\t\t\t", out);
    report->first = false;
    write_store_text(out, "cache", store->cache);
    fputs(",\n\t\t\t", out);
    write_store_text(out, "type", store->kind);
    fputs(",\n\t\t\t", out);
    write_store_text(out, "name", store->name);
    write_store_number(out, "size", store->bytes);
    write_store_number(out, "reclaimable_size", store->free_bytes);
    if (store->bytes > 0 && store->free_bytes >= 0)
        fprintf(out, ",\n\t\t\t\"fragmentation\":\t%.4f", (double)store->free_bytes / (double)store->bytes);
    write_store_number(out, "nb_tiles", store->tiles);
    write_store_number(out, "nb_blank_tiles", store->blanks);
    write_store_number(out, "tiles_size", store->tile_bytes);
    write_store_number(out, "nb_orphaned_tiles", store->orphans);
    write_store_number(out, "orphaned_size", store->orphan_bytes);
    write_orphans(report);
    write_store_number(out, "nb_leftover_files", store->leftovers);
    write_store_number(out, "leftover_size", store->leftover_bytes);
    if (error != MC_OK) {
        fputs(",\n\t\t\t", out);
        write_store_text(out, "error", mc_error_chain(error, report->ctx->pool));
    }
    fputs("\n\t\t}", out);
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

mc_error *
mc_detail_stores(FILE *out, const mc_config *config, mc_cache *cache, mc_ctx *ctx)
{
    stores report = { .out = out,
                      .config = config,
                      .ctx = ctx,
                      .first = true,
                      .orphans = apr_array_make(ctx->pool, 4, sizeof(mc_store_group)) };
    fputs(",\n\t\"stores\":\t[", out);
    mc_cache_parts(cache, report_cache_stores, &report);
    fputc(']', out);
    return report.error;
}
