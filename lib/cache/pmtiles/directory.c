/* Directories of PMTiles files: lists of tiles and of further directories, in columns of variable-length numbers. */
#include <stdlib.h>

#include "cache/pmtiles/format.h"
#include "compress/expand.h"
#include "compress/gzip.h"
#include "grid/tile_id.h"

/* What a directory of MC_PMTILES_ENTRIES_MAX entries may take, written as columns. */
enum { COLUMNS_MAX = MC_PMTILES_ENTRIES_MAX * 24 };

mc_error *
mc_pmtiles_expand(mc_buf **out, mc_buf *bytes, int compression, size_t most, apr_pool_t *pool)
{
    *out = bytes;
    switch (compression) {
    case MC_PMTILES_UNKNOWN:
    case MC_PMTILES_NONE:
        return MC_OK;
    case MC_PMTILES_GZIP:
        return mc_gunzip(out, bytes->data, bytes->size, most, pool);
    case MC_PMTILES_BROTLI:
        return mc_brotli_expand(out, bytes->data, bytes->size, most, pool);
    case MC_PMTILES_ZSTD:
        return mc_zstd_expand(out, bytes->data, bytes->size, most, pool);
    default:
        return mc_error_create(pool, MC_ERR_CONFIG,
                               "a PMTiles archive is compressed by a method of a later version: gzip, brotli, zstd and"
                               " none are read (pmtiles convert rewrites it)");
    }
}

/* Numbers that are still to be read. A broken one makes `broken` true, and all that follow 0. */
typedef struct varint_reader {
    const uint8_t *at, *end;
    bool broken;
} varint_reader;

static uint64_t
read_varint(varint_reader *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
        uint8_t byte = *reader->at++;
        if (shift == 63 && byte > 1)
            break;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    reader->broken = true;
    reader->at = reader->end;
    return 0;
}

static uint32_t
read_varint32(varint_reader *reader)
{
    uint64_t value = read_varint(reader);
    reader->broken = reader->broken || value > UINT32_MAX;
    return (uint32_t)value;
}

/* False: the columns are none of a directory. */
static bool
read_columns(mc_pmtiles_directory *directory, varint_reader *reader)
{
    const uint64_t most = mc_tile_first_id(MC_TILE_ID_LEVEL_MAX + 1);
    mc_pmtiles_entry *entries = directory->entries;
    uint64_t id = 0;
    for (uint32_t i = 0; i < directory->count; i++) {
        uint64_t step = read_varint(reader);
        if (step > most - id || (i > 0 && step == 0))
            return false;
        entries[i].id = id += step;
    }
    for (uint32_t i = 0; i < directory->count; i++)
        entries[i].run = read_varint32(reader);
    for (uint32_t i = 0; i < directory->count; i++) {
        entries[i].length = read_varint32(reader);
        if (entries[i].length == 0)
            return false;
    }
    for (uint32_t i = 0; i < directory->count; i++) {
        uint64_t offset = read_varint(reader);
        if ((offset == 0 && i == 0) || offset > (uint64_t)1 << 62)
            return false;
        entries[i].offset = offset > 0 ? offset - 1 : entries[i - 1].offset + entries[i - 1].length;
    }
    return !reader->broken;
}

mc_error *
mc_pmtiles_decode_directory(mc_pmtiles_directory **directory, const void *bytes, size_t size, int compression,
                            apr_pool_t *pool)
{
    mc_buf given = { .data = (uint8_t *)(uintptr_t)bytes, .size = size }, *columns;
    MC_TRY(mc_pmtiles_expand(&columns, &given, compression, COLUMNS_MAX, pool));
    varint_reader reader = { columns->data, columns->data + columns->size, false };
    uint64_t count = read_varint(&reader);
    if (count > MC_PMTILES_ENTRIES_MAX)
        return mc_error_create(pool, MC_ERR_LIMIT, "a directory of a PMTiles archive has more than %d entries",
                               MC_PMTILES_ENTRIES_MAX);
    if (count == 0 || count > (uint64_t)(reader.end - reader.at) / 4) /* each takes a byte in each of four columns */
        return mc_error_create(pool, MC_ERR_CORRUPT, "a directory of a PMTiles archive is cut off or empty");
    mc_pmtiles_directory *made = malloc(sizeof(*made) + count * sizeof(made->entries[0]));
    if (made == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for a directory of a PMTiles archive");
    made->count = (uint32_t)count;
    if (!read_columns(made, &reader)) {
        free(made);
        return mc_error_create(pool, MC_ERR_CORRUPT, "a directory of a PMTiles archive is damaged");
    }
    *directory = made;
    return MC_OK;
}

const mc_pmtiles_entry *
mc_pmtiles_find(const mc_pmtiles_directory *directory, uint64_t id)
{
    const mc_pmtiles_entry *entries = directory->entries;
    uint32_t first = 0, end = directory->count; /* entries before `first` have ids of at most `id`, those from `end`
                                                   on greater ones */
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        if (entries[middle].id <= id)
            first = middle + 1;
        else
            end = middle;
    }
    if (first == 0)
        return NULL;
    const mc_pmtiles_entry *entry = &entries[first - 1];
    return entry->run == 0 || id - entry->id < entry->run ? entry : NULL;
}

static size_t
put_varint(uint8_t *at, uint64_t value)
{
    size_t size = 0;
    for (; value > 127; value >>= 7)
        at[size++] = (uint8_t)(value | 128);
    at[size++] = (uint8_t)value;
    return size;
}

mc_error *
mc_pmtiles_encode_directory(mc_buf *out, const mc_pmtiles_entry *entries, size_t count, apr_pool_t *pool)
{
    MC_TRY(mc_buf_reserve(out, 10 + count * 30, pool));
    uint8_t *at = out->data + out->size;
    at += put_varint(at, count);
    for (size_t i = 0; i < count; i++)
        at += put_varint(at, entries[i].id - (i > 0 ? entries[i - 1].id : 0));
    for (size_t i = 0; i < count; i++)
        at += put_varint(at, entries[i].run);
    for (size_t i = 0; i < count; i++)
        at += put_varint(at, entries[i].length);
    for (size_t i = 0; i < count; i++) {
        bool follows = i > 0 && entries[i].offset == entries[i - 1].offset + entries[i - 1].length;
        at += put_varint(at, follows ? 0 : entries[i].offset + 1);
    }
    out->size = (size_t)(at - out->data);
    return MC_OK;
}
