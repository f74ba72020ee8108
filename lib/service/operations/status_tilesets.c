/* Requests and tilesets as the status page shows them: counted by all processes since the server's start. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "changes/watch.h"
#include "mapcache/server.h"
#include "service/operations/status.h"
#include "telemetry/answers.h"
#include "telemetry/process_reports.h"
#include "text/secret.h"

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static void
write_results(mc_json_writer *json, const uint64_t *results)
{
    mc_json_open_object(json, "results");
    for (int i = 0; i < MC_ANSWER_RESULT_COUNT; i++)
        mc_json_integer(json, mc_answer_result_name((mc_answer_result)i), (int64_t)results[i]);
    mc_json_close(json);
}

static void
write_times(mc_json_writer *json, const mc_histogram *times)
{
    static const struct {
        const char *name;
        double share;
    } quantiles[] = { { "p50_ms", 0.5 }, { "p95_ms", 0.95 }, { "p99_ms", 0.99 } };
    mc_json_open_array(json, "buckets");
    for (int i = 0; i < MC_HISTOGRAM_BUCKETS; i++)
        mc_json_integer(json, NULL, (int64_t)times->buckets[i]);
    mc_json_close(json);
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
        mc_json_decimals(json, quantiles[i].name, mc_histogram_quantile(times, quantiles[i].share) / 1000, 3);
}

static void
add_sums(mc_answer_sums *to, const mc_answer_sums *sums)
{
    for (int i = 0; i < MC_ANSWER_RESULT_COUNT; i++)
        to->results[i] += sums->results[i];
    mc_histogram_add_all(&to->times, &sums->times);
}

static uint64_t
count_answers(const mc_answer_sums *sums)
{
    uint64_t count = 0;
    for (int i = 0; i < MC_ANSWER_RESULT_COUNT; i++)
        count += sums->results[i];
    return count;
}

static void
add_answers(void *baton, const mc_answer_sums *sums)
{
    add_sums(baton, sums);
}

void
mc_status_write_requests(mc_json_writer *json, mc_metrics *metrics)
{
    mc_answer_sums all = { 0 };
    mc_answers_visit(metrics, add_answers, &all);
    mc_json_open_object(json, "requests");
    mc_json_integer(json, "total", (int64_t)count_answers(&all));
    write_results(json, all.results);
    mc_json_open_array(json, "bounds_ms");
    for (int i = 0; i < MC_HISTOGRAM_BOUNDS; i++)
        mc_json_digits(json, NULL, (double)mc_histogram_bound(i) / 1000, 6);
    mc_json_close(json);
    write_times(json, &all.times);
    mc_json_close(json);
}

/* --- tilesets ----------------------------------------------------------------------------------------------------- */

/* A tileset of the configuration, or a name that another configuration of the server has. */
typedef struct tileset_row {
    const char *name, *title;
    const mc_tileset *tileset; /* NULL: of another configuration */
    mc_answer_sums sums;
    uint64_t answers;
} tileset_row;

typedef struct tileset_rows {
    apr_array_header_t *rows; /* of tileset_row * */
    apr_hash_t *by_name;
    apr_pool_t *pool;
} tileset_rows;

static tileset_row *
add_tileset_row(tileset_rows *rows, const char *name)
{
    tileset_row *row = apr_pcalloc(rows->pool, sizeof(*row));
    row->name = row->title = apr_pstrdup(rows->pool, name);
    APR_ARRAY_PUSH(rows->rows, tileset_row *) = row;
    apr_hash_set(rows->by_name, apr_pstrndup(rows->pool, name, MC_ANSWER_NAME_SIZE - 1), APR_HASH_KEY_STRING, row);
    return row;
}

static void
add_counted_tileset(void *baton, const mc_answer_sums *sums)
{
    tileset_rows *rows = baton;
    if (!sums->named)
        return;
    tileset_row *row = apr_hash_get(rows->by_name, sums->tileset, APR_HASH_KEY_STRING);
    if (row == NULL)
        row = add_tileset_row(rows, sums->tileset);
    row->sums = *sums;
    row->answers = count_answers(sums);
}

static bool
is_tileset_wanted(const tileset_row *row, const char *find)
{
    return find == NULL || strcasestr(row->name, find) != NULL || strcasestr(row->title, find) != NULL;
}

static int
compare_tileset_rows(const void *a, const void *b)
{
    const tileset_row *one = *(const tileset_row *const *)a, *other = *(const tileset_row *const *)b;
    if (one->answers != other->answers)
        return one->answers > other->answers ? -1 : 1;
    return strcmp(one->name, other->name);
}

/* All that match, those with the most requests first. */
static apr_array_header_t *
list_tileset_rows(int *total, const char *find, const mc_config *config, mc_metrics *metrics, apr_pool_t *pool)
{
    tileset_rows rows = { apr_array_make(pool, 64, sizeof(void *)), apr_hash_make(pool), pool };
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *);
        tileset_row *row = add_tileset_row(&rows, tileset->name);
        const char *title = mc_meta(tileset->metadata, "title");
        row->tileset = tileset;
        if (title != NULL)
            row->title = title;
    }
    mc_answers_visit(metrics, add_counted_tileset, &rows);
    apr_array_header_t *wanted = apr_array_make(pool, rows.rows->nelts + 1, sizeof(void *));
    for (int i = 0; i < rows.rows->nelts; i++)
        if (is_tileset_wanted(APR_ARRAY_IDX(rows.rows, i, tileset_row *), find))
            APR_ARRAY_PUSH(wanted, tileset_row *) = APR_ARRAY_IDX(rows.rows, i, tileset_row *);
    qsort(wanted->elts, (size_t)wanted->nelts, sizeof(tileset_row *), compare_tileset_rows);
    *total = rows.rows->nelts;
    return wanted;
}

/* The change logs that a tileset follows, by the names that the list of logs has. */
static void
write_tileset_logs(mc_json_writer *json, const mc_tileset *tileset, apr_pool_t *pool)
{
    char name[sizeof(((mc_backend_report *)0)->name)];
    const char *last = "";
    if (tileset->watch == NULL)
        return;
    mc_json_open_array(json, "logs");
    for (int i = 0; i < tileset->watch->tables->nelts; i++) {
        const char *connection = APR_ARRAY_IDX(tileset->watch->tables, i, const mc_watch_table).connection;
        if (strcmp(connection, last) == 0)
            continue;
        mc_monitor_copy_text(name, sizeof(name), mc_hide_address_password(connection, pool));
        mc_json_string(json, NULL, name);
        last = connection;
    }
    mc_json_close(json);
}

static void
write_short_text(mc_json_writer *json, const char *key, const char *text)
{
    char cut[128];
    mc_monitor_copy_text(cut, sizeof(cut), text);
    mc_json_string(json, key, cut);
}

static void
write_tileset_row(mc_json_writer *json, const tileset_row *row, apr_pool_t *pool)
{
    const mc_tileset *tileset = row->tileset;
    mc_json_open_object(json, NULL);
    write_short_text(json, "name", row->name);
    if (tileset != NULL) {
        write_short_text(json, "title", row->title);
        if (tileset->cache != NULL)
            write_short_text(json, "store", tileset->cache->name);
        if (tileset->source != NULL)
            write_short_text(json, "source", tileset->source->name);
        if (tileset->position.file != NULL)
            mc_json_integer(json, "line", tileset->position.line);
        if (tileset->not_built != NULL)
            write_short_text(json, "trouble", tileset->not_built);
        write_tileset_logs(json, tileset, pool);
    }
    mc_json_integer(json, "total", (int64_t)row->answers);
    write_results(json, row->sums.results);
    write_times(json, &row->sums.times);
    mc_json_close(json);
}

void
mc_status_write_tilesets(mc_json_writer *json, const mc_status_params *params, const mc_call *call, mc_metrics *metrics,
                         apr_pool_t *pool)
{
    int total;
    apr_array_header_t *rows = list_tileset_rows(&total, params->find, call->config, metrics, pool);
    mc_json_open_object(json, "tilesets");
    mc_json_integer(json, "total", total);
    mc_json_integer(json, "matching", rows->nelts);
    mc_json_integer(json, "offset", params->offset);
    mc_json_open_array(json, "items");
    for (int i = params->offset; i < rows->nelts && i - params->offset < params->limit; i++)
        write_tileset_row(json, APR_ARRAY_IDX(rows, i, const tileset_row *), pool);
    mc_json_close(json);
    mc_json_close(json);
}
