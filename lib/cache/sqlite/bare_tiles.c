/*
 * All entries of the index of a small file are read when it is opened: that costs little more than looking for one, and
 * nothing of the order in which SQLite sorts values has to be known. A tile is then found by the number of its row.
 */
#include "cache/sqlite/bare_tiles.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "db/sqlite/page_schema.h"

enum {
    INDEX_PAGES = 16,
    MOST_TILES = 1024,
    FEW_TILES = 64,
    TIME_SIZE = 19,    /* "2026-01-31 23:59:59" */
    BETWEEN_MAX = 4096 /* bytes of other columns that are read with those of a tile */
};

struct mc_bare_tiles {
    mc_page_file *file;
    uint32_t root;  /* of the table */
    int data, time; /* columns of the table; time -1: it is not asked for */
    const mc_plain_get *get;
    const mc_tile_key *key;      /* of the series, */
    const char *dim;             /* and what its dimensions are named */
    int places[MC_TILE_COLUMNS]; /* of the columns in the index; -1: they are not in it */
    int width;                   /* columns of the index */
    int count, room;
    mc_coverage_tile *tiles;
    int64_t *rows;
};

/* The index that has just the columns that the get statement compares: SQLite reads with it, too. */
static const struct mc_page_index *
choose_index(mc_bare_tiles *bare, const mc_page_schema *schema)
{
    for (int i = 0; i < schema->index_count; i++) {
        const struct mc_page_index *index = &schema->indexes[i];
        unsigned columns = 0;
        int known = 0;
        for (int c = 0; c < MC_TILE_COLUMNS; c++) {
            bare->places[c] = mc_schema_find_column(&index->columns, mc_tile_columns[c]);
            columns |= bare->places[c] >= 0 ? 1U << c : 0;
            known += bare->places[c] >= 0;
        }
        bare->width = index->columns.count;
        if (columns == bare->get->columns && known == index->columns.count)
            return index;
    }
    return NULL;
}

static void
add_bare_tile(mc_bare_tiles *bare, mc_coverage_tile tile, int64_t row)
{
    if (bare->count == bare->room) {
        bare->room = bare->room == 0 ? FEW_TILES : bare->room * 4;
        bare->tiles = realloc(bare->tiles, sizeof(*bare->tiles) * (size_t)bare->room);
        bare->rows = realloc(bare->rows, sizeof(*bare->rows) * (size_t)bare->room);
        MC_ASSERT(bare->tiles != NULL && bare->rows != NULL);
    }
    bare->tiles[bare->count] = tile;
    bare->rows[bare->count++] = row;
}

/* 1: the entry is of this series, 0: of another one, -1: not known. */
static int
is_of_series(const mc_bare_tiles *bare, const uint8_t *record, const mc_record_field *fields)
{
    const char *const wanted[MC_TILE_COLUMNS] = {
        [MC_TILE_TILESET] = bare->key->tileset, [MC_TILE_GRID] = bare->key->grid->name, [MC_TILE_DIM] = bare->dim
    };
    int is = 1;
    for (int c = MC_TILE_TILESET; c < MC_TILE_COLUMNS; c++) {
        if (bare->places[c] < 0)
            continue;
        const mc_record_field *field = &fields[bare->places[c]];
        if (field->kind != MC_FIELD_TEXT || wanted[c] == NULL)
            return -1;
        if (field->size != strlen(wanted[c]) || memcmp(record + field->at, wanted[c], field->size) != 0)
            is = 0;
    }
    return is;
}

static bool
visit_index_entry(void *baton, const uint8_t *record, size_t size)
{
    mc_bare_tiles *bare = baton;
    mc_record_field fields[MC_TILE_COLUMNS + 1];
    int numbers[3];
    if (mc_record_read(fields, bare->width + 1, record, size, size) != bare->width + 1 ||
        fields[bare->width].kind != MC_FIELD_INTEGER)
        return false;
    for (int c = MC_TILE_Z; c <= MC_TILE_Y; c++) {
        const mc_record_field *field = &fields[bare->places[c]];
        if (field->kind != MC_FIELD_INTEGER || field->integer < INT_MIN || field->integer > INT_MAX)
            return false;
        numbers[c] = (int)field->integer;
    }
    int is = is_of_series(bare, record, fields);
    if (is < 0 || bare->count == MOST_TILES)
        return false;
    if (is > 0)
        add_bare_tile(bare, (mc_coverage_tile){ numbers[MC_TILE_Z], numbers[MC_TILE_X], numbers[MC_TILE_Y] },
                      fields[bare->width].integer);
    return true;
}

static bool
read_bare_index(mc_bare_tiles *bare)
{
    mc_page_schema schema;
    if (!mc_page_schema_read(&schema, bare->file, "tiles"))
        return false;
    bare->root = schema.root;
    bare->data = mc_schema_find_column(&schema.columns, "data");
    bare->time = bare->get->timed ? mc_schema_find_column(&schema.columns, "ctime") : -1;
    if (bare->data < 0 || (bare->get->timed && bare->time < 0))
        return false;
    const struct mc_page_index *index = choose_index(bare, &schema);
    return index != NULL && mc_tree_walk(bare->file, index->root, false, INDEX_PAGES, visit_index_entry, bare);
}

mc_bare_tiles *
mc_bare_tiles_open(const char *path, const mc_plain_get *get, const mc_tile_key *key, apr_pool_t *pool)
{
    mc_page_file *file = get->unindexed || get->raw_time ? NULL : mc_page_file_open(path);
    if (file == NULL)
        return NULL;
    mc_bare_tiles *bare = calloc(1, sizeof(*bare));
    MC_ASSERT(bare != NULL);
    bare->file = file;
    bare->get = get;
    bare->key = key;
    bare->dim = (get->columns >> MC_TILE_DIM & 1) != 0 ? mc_cache_dimension_key(key, pool) : NULL;
    if (read_bare_index(bare))
        return bare;
    mc_bare_tiles_close(bare);
    return NULL;
}

void
mc_bare_tiles_close(mc_bare_tiles *bare)
{
    if (bare == NULL)
        return;
    mc_page_file_close(bare->file);
    free(bare->tiles);
    free(bare->rows);
    free(bare);
}

bool
mc_bare_tiles_serve(const mc_bare_tiles *bare, const mc_tile_key *key)
{
    return bare->key->tileset == key->tileset && bare->key->grid == key->grid &&
           bare->key->dimension_count == key->dimension_count && bare->key->dimensions == key->dimensions;
}

/* The number of so many digits; -1: they are none. */
static int
read_time_digits(const uint8_t *at, int count)
{
    int number = 0;
    for (int i = 0; i < count; i++) {
        if (at[i] < '0' || at[i] > '9')
            return -1;
        number = number * 10 + (at[i] - '0');
    }
    return number;
}

/* As strftime('%s') has it, where there is no doubt. False: there is. */
static bool
read_bare_time(apr_time_t *time, const uint8_t *text)
{
    struct tm parts = { .tm_year = read_time_digits(text, 4) - 1900,
                        .tm_mon = read_time_digits(text + 5, 2) - 1,
                        .tm_mday = read_time_digits(text + 8, 2),
                        .tm_hour = read_time_digits(text + 11, 2),
                        .tm_min = read_time_digits(text + 14, 2),
                        .tm_sec = read_time_digits(text + 17, 2) };
    if (parts.tm_year < 0 || parts.tm_mon < 0 || parts.tm_mon > 11 || parts.tm_mday < 1 || parts.tm_mday > 31 ||
        parts.tm_hour < 0 || parts.tm_hour > 23 || parts.tm_min < 0 || parts.tm_min > 59 || parts.tm_sec < 0 ||
        parts.tm_sec > 59 || text[4] != '-' || text[7] != '-' || text[10] != ' ' || text[13] != ':' || text[16] != ':')
        return false;
    *time = apr_time_from_sec((apr_time_t)timegm(&parts));
    return true;
}

/* What is read of a record: from the first byte of tile and time to the last one of them. */
typedef struct bare_piece {
    size_t data, data_size, time, from, end;
} bare_piece;

static bool
find_bare_piece(bare_piece *piece, const mc_bare_tiles *bare, const mc_tree_row *row)
{
    mc_record_field fields[MC_SCHEMA_COLUMNS];
    int last = bare->data > bare->time ? bare->data : bare->time;
    if (mc_record_read(fields, last + 1, row->record, row->there, row->size) != last + 1)
        return false;
    const mc_record_field *data = &fields[bare->data], *time = bare->time < 0 ? NULL : &fields[bare->time];
    if (data->kind != MC_FIELD_BLOB || data->size == 0 || data->size > MC_TILE_BYTES_MAX)
        return false;
    *piece = (bare_piece){ data->at, data->size, 0, data->at, data->at + data->size };
    if (time == NULL)
        return true;
    if (time->kind != MC_FIELD_TEXT || time->size != TIME_SIZE)
        return false;
    piece->time = time->at;
    piece->from = time->at < piece->from ? time->at : piece->from;
    piece->end = time->at + TIME_SIZE > piece->end ? time->at + TIME_SIZE : piece->end;
    return piece->end - piece->from <= data->size + BETWEEN_MAX;
}

static bool
read_bare_row(mc_tile **tile, mc_bare_tiles *bare, int64_t number, apr_pool_t *pool)
{
    mc_tree_row row;
    bare_piece piece;
    if (!mc_tree_find(&row, bare->file, bare->root, number) || !find_bare_piece(&piece, bare, &row))
        return false;
    size_t size = piece.end - piece.from;
    mc_buf *data = mc_buf_attach(mc_buf_create(0, size), pool);
    apr_time_t time = 0;
    if (mc_buf_reserve(data, size, pool) != MC_OK)
        return false; /* SQLite's way says it */
    if (!mc_tree_copy(data->data, &row, bare->file, piece.from, size) ||
        (bare->time >= 0 && !read_bare_time(&time, data->data + (piece.time - piece.from))))
        return false;
    if (piece.data > piece.from)
        memmove(data->data, data->data + (piece.data - piece.from), piece.data_size);
    data->size = piece.data_size;
    *tile = mc_tile_create(data, time, pool);
    return true;
}

bool
mc_bare_tiles_get(mc_tile **tile, mc_bare_tiles *bare, const mc_tile_key *key, apr_pool_t *pool)
{
    int found = -1;
    *tile = NULL;
    for (int i = 0; i < bare->count; i++) {
        const mc_coverage_tile *at = &bare->tiles[i];
        if (at->z != key->z || at->x != key->x || at->y != key->y)
            continue;
        if (found >= 0) /* the index is not unique: which row SQLite gives is its own affair */
            return false;
        found = i;
    }
    return found < 0 || read_bare_row(tile, bare, bare->rows[found], pool);
}

mc_coverage *
mc_bare_tiles_coverage(const mc_bare_tiles *bare)
{
    return mc_coverage_create(bare->tiles, bare->count);
}
