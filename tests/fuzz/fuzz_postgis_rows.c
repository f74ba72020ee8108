/*
 * Any bytes as the rows of a layer in PostGIS: geometry as bytes, packed or as hex digits, the feature's number, whole
 * numbers as they travel, text; each in a column of its own, or many features in one value. Each feature that is handed
 * over has its values, and what is no row ends the reading with an error.
 */
#include "vector/postgis/postgis_reading.h"

#include "db/postgres/postgres_engine.h"
#include "fuzz_support.h"

enum { COLUMNS_MOST = 5, ROWS_MOST = 200, ATTRIBUTES = 2 };

/* An answer whose rows are the fuzzer's: for each field a byte of its size, 255 for null, and the bytes. */
typedef struct fuzz_answer {
    mc_postgres_result base;
    const uint8_t *at, *end;
    int columns, rows;
    mc_postgres_field fields[COLUMNS_MOST];
    char *bytes[COLUMNS_MOST]; /* each of its own, so that a step over its end is seen */
    mc_postgres_row row;
} fuzz_answer;

static void
free_row(fuzz_answer *answer)
{
    for (int i = 0; i < COLUMNS_MOST; i++) {
        free(answer->bytes[i]);
        answer->bytes[i] = NULL;
    }
}

/* As PostgreSQL's module gives a field: with a zero byte behind it. */
static void
take_field(fuzz_answer *answer, int column, bool large)
{
    size_t left = (size_t)(answer->end - answer->at), head = large ? 2 : 1, size = 0;
    bool null = left < head || (!large && answer->at[0] == 255);
    if (left >= head)
        size = large ? (size_t)answer->at[0] << 8 | answer->at[1] : answer->at[0];
    answer->at += left < head ? left : head;
    left = (size_t)(answer->end - answer->at);
    size = null ? 0 : size < left ? size : left;
    char *bytes = answer->bytes[column] = calloc(1, size + 1);
    MC_ASSERT(bytes != NULL);
    if (size > 0)
        memcpy(bytes, answer->at, size);
    answer->at += size;
    answer->fields[column] = (mc_postgres_field){ .data = bytes, .size = null ? -1 : (int)size, .name = "" };
}

static mc_error *
give_row(const mc_postgres_row **row, mc_postgres_result *base)
{
    fuzz_answer *answer = (fuzz_answer *)base;
    free_row(answer);
    *row = NULL;
    if (answer->at == answer->end || answer->rows++ >= ROWS_MOST)
        return MC_OK;
    for (int i = 0; i < answer->columns; i++)
        take_field(answer, i, i == 0);
    answer->row = (mc_postgres_row){ answer->columns, answer->fields };
    *row = &answer->row;
    return MC_OK;
}

static const mc_postgres_engine_ops engine = { .next = give_row };

static mc_error *
look_at_feature(void *baton, const mc_feature *feature, mc_ctx *ctx)
{
    int *features = baton;
    (void)ctx;
    MC_ASSERT(!mc_geometry_is_empty(feature->geometry));
    for (int i = 0; i < ATTRIBUTES; i++)
        MC_ASSERT(feature->values[i] == NULL || strlen(feature->values[i]) < 1 << 20);
    MC_ASSERT(feature->values[1] == NULL || mc_parse_int64(&(int64_t){ 0 }, feature->values[1], INT64_MIN, INT64_MAX));
    return ++*features > ROWS_MOST ? mc_error_create(ctx->pool, MC_ERR_LIMIT, "enough") : MC_OK;
}

static const uint8_t *input;
static size_t input_size;

/* The first byte says what was asked for. */
static mc_error *
read_fuzz_world(mc_feature_reading *base, apr_pool_t *pool)
{
    static const mc_transfer transfers[] = { MC_TRANSFER_BINARY, MC_TRANSFER_TWKB, MC_TRANSFER_HEX };
    static const bool integers[] = { false, true };
    mc_postgis_reading *r = (mc_postgis_reading *)base;
    uint8_t how = input[0];
    mc_postgis_request request = {
        .query = base->map, .transfer = transfers[how % 3], .integers = integers, .map_srid = (how & 64) != 0 ? 3857 : 0
    };
    r->request = &request;
    r->first = (how & 16) != 0 ? 2 : 1;
    mc_postgis_reserve_row(r, (how & 32) != 0, pool);
    fuzz_answer answer = { .base = { .ops = &engine, .ctx = base->ctx },
                           .at = input + 1,
                           .end = input + input_size,
                           .columns = r->fields != NULL ? 1 : r->first + ATTRIBUTES };
    mc_error *error = mc_postgis_read_rows(r, &answer.base, INT64_MAX, pool);
    free_row(&answer);
    return error;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[ATTRIBUTES] = { "text", "whole" };
    static mc_process process;
    static const mc_log log = { .level = MC_LOG_EMERG };
    if (size < 2)
        return 0;
    input = data;
    input_size = size;
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    mc_ctx ctx = { .pool = pool, .process = &process, .log = &log };
    mc_postgis_layer layer = { .data = { .name = "fuzz" } };
    const mc_postgis_column column = { .srid = 4326, .large = (data[0] & 128) != 0 };
    const mc_feature_query query = { .srs = "EPSG:4326",
                                     .box = { -180, -90, 180, 90 },
                                     .pixel_grid = { .x0 = -180, .y0 = 90, .per_x = 1, .per_y = 1 },
                                     .attributes = names,
                                     .attribute_count = ATTRIBUTES };
    int features = 0;
    mc_postgis_reading r = {
        .base = { .layer = "fuzz", .visit = look_at_feature, .baton = &features, .ctx = &ctx },
        .layer = &layer,
        .column = &column,
    };
    mc_error *error = mc_reading_worlds(&r.base, &query, NULL, NULL, read_fuzz_world, pool);
    MC_ASSERT(error == MC_OK || error->kind == MC_ERR_UPSTREAM || error->kind == MC_ERR_LIMIT);
    apr_pool_destroy(pool);
    return 0;
}
