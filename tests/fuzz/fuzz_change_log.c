/*
 * Any bytes as the rows of a change log: what is read is bounded, every box that is one lies in what its table has
 * changed, all else stands for the whole table, and tiles of boxes lie in the grid. Any text as a snapshot.
 * Input: fields of rows, each a byte of its size (255: null) and the bytes; 7 fields a row.
 */
#include "changes/change_log.c"

#include "changes/mark_boxes.h"
#include "db/postgres/postgres_engine.h"
#include "fuzz_support.h"

enum { COLUMNS = 7, ROWS_MOST = 3000, LEVELS = 12 };

static apr_pool_t *pool;
static mc_level levels[LEVELS];
static mc_tile_range limits[LEVELS];
static mc_grid grid = {
    .name = "g", .extent = { -1000, -1000, 1000, 1000 }, .tile_width = 256, .tile_height = 256, .level_count = LEVELS
};
static mc_grid_link whole_link = { .grid = &grid, .maxzoom = LEVELS - 1, .limits = limits };

int LLVMFuzzerInitialize(int *count, char ***values);
int
LLVMFuzzerInitialize(int *count, char ***values)
{
    (void)count;
    (void)values;
    grid.levels = levels;
    whole_link.extent = grid.extent;
    for (int z = 0; z < LEVELS; z++) {
        levels[z] = (mc_level){ 2000.0 / 256 / (1 << z), 1 << z, 1 << z };
        limits[z] = (mc_tile_range){ 0, 0, 1 << z, 1 << z };
    }
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : 1;
}

/* An answer whose rows are the fuzzer's. */
typedef struct fuzz_log {
    mc_postgres_result base; /* first */
    const uint8_t *at, *end;
    int rows;
    mc_postgres_field fields[COLUMNS];
    mc_postgres_row row;
} fuzz_log;

static mc_error *
give_row(const mc_postgres_row **row, mc_postgres_result *base)
{
    fuzz_log *log = (fuzz_log *)base;
    *row = NULL;
    if (log->at == log->end || log->rows++ >= ROWS_MOST)
        return MC_OK;
    for (int i = 0; i < COLUMNS; i++) {
        size_t size = log->at < log->end ? *log->at++ : 255, left = (size_t)(log->end - log->at);
        bool null = size == 255;
        size = null ? 0 : size < left ? size : left;
        log->fields[i] = (mc_postgres_field){ .data = apr_pstrmemdup(pool, (const char *)log->at, size),
                                              .size = null ? -1 : (int)size,
                                              .name = "" };
        log->at += size;
    }
    log->row = (mc_postgres_row){ COLUMNS, log->fields };
    *row = &log->row;
    return MC_OK;
}

static const mc_postgres_engine_ops engine = { .next = give_row };

/* What is known of the table that a row names has its box. */
static void
check_row(const mc_log_batch *batch, const mc_postgres_row *row)
{
    const char *relation = text_of(row, 0);
    if (relation == NULL || batch->lost)
        return;
    const mc_extent box = { coordinate_of(row, 2), coordinate_of(row, 3), coordinate_of(row, 4),
                            coordinate_of(row, 5) };
    bool sound = box.minx <= box.maxx && box.miny <= box.maxy && fabs(box.minx) <= 1e15 && fabs(box.miny) <= 1e15 &&
                 fabs(box.maxx) <= 1e15 && fabs(box.maxy) <= 1e15;
    int srid = 0;
    sound = sound && text_of(row, 1) != NULL && mc_parse_int(&srid, text_of(row, 1), 0, 999999);
    bool found = false;
    for (int i = 0; i < batch->tables->nelts && !found; i++) {
        const mc_log_table *table = &APR_ARRAY_IDX(batch->tables, i, const mc_log_table);
        if (table->relation != (uint32_t)strtoul(relation, NULL, 10) || (!table->boxes->whole && table->srid != srid))
            continue;
        found = table->boxes->whole;
        for (int j = 0; j < table->boxes->count && sound && !found; j++) {
            const mc_extent *known = &table->boxes->boxes[j];
            found = known->minx <= box.minx && known->miny <= box.miny && known->maxx >= box.maxx &&
                    known->maxy >= box.maxy;
        }
    }
    MC_ASSERT(found);
}

static void
check_tiles(const mc_log_batch *batch)
{
    for (int i = 0; i < batch->tables->nelts; i++) {
        const mc_box_set *boxes = APR_ARRAY_IDX(batch->tables, i, const mc_log_table).boxes;
        MC_ASSERT(boxes->count <= MC_BOX_SET_MAX);
        for (int j = 0; j < boxes->count && !boxes->whole; j++)
            for (int z = 0; z < LEVELS; z++) {
                mc_tile_range ranges[3];
                int count = mc_ranges_of_box(ranges, &whole_link, &boxes->boxes[j], j % 2 == 0 ? 0 : 2000, 16, z);
                MC_ASSERT(count >= 0 && count <= 3);
                for (int k = 0; k < count; k++)
                    MC_ASSERT(ranges[k].minx >= 0 && ranges[k].maxx <= 1 << z && ranges[k].miny >= 0 &&
                              ranges[k].maxy <= 1 << z && ranges[k].minx < ranges[k].maxx &&
                              ranges[k].miny < ranges[k].maxy);
            }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mc_log_batch batch = { .tables = apr_array_make(pool, 4, sizeof(mc_log_table)) };
    log_reading reading = {
        .batch = &batch, .tables = apr_hash_make(pool), .relations = apr_hash_make(pool), .pool = pool
    };
    fuzz_log log = { .base = { .ops = &engine }, .at = data, .end = data + size };
    MC_ASSERT(read_log_rows(&reading, &log.base) == MC_OK);
    MC_ASSERT(batch.tables->nelts <= SETS_MAX + RELATIONS_MAX);
    fuzz_log again = { .base = { .ops = &engine }, .at = data, .end = data + size };
    for (const mc_postgres_row *row;;) {
        MC_ASSERT(give_row(&row, &again.base) == MC_OK);
        if (row == NULL)
            break;
        check_row(&batch, row);
    }
    check_tiles(&batch);
    char *text = apr_pstrmemdup(pool, (const char *)data, size);
    (void)mc_log_covers(text, text);
    (void)mc_log_covers("5:9:6", text);
    apr_pool_clear(pool);
    return 0;
}
