/* See tiff_index.h. Tags by their numbers in TIFF 6.0, section 2 and 8 to 22; BigTIFF by libtiff's design page. */
#include "cache/archive/tiff_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cache/memory.h"

enum {
    DIRECTORIES_MAX = 64,
    ENTRIES_MAX = 1024,
    SIDE_MAX = 1 << 28,
    INDEX_OF_TIFF = 3, /* what is remembered of a file */
    TAG_SUBFILE = 254,
    TAG_WIDTH = 256,
    TAG_HEIGHT = 257,
    TAG_COMPRESSION = 259,
    TAG_PHOTOMETRIC = 262,
    TAG_SAMPLES = 277,
    TAG_PLANES = 284,
    TAG_TILE_WIDTH = 322,
    TAG_TILE_HEIGHT = 323,
    TAG_OFFSETS = 324,
    TAG_COUNTS = 325,
    TAG_TABLES = 347,
    PHOTOMETRIC_RGB = 2,
    ADOBE_BYTES = 16,
};

/* A file whose directories are read. */
typedef struct tiff_reading {
    mc_ranged_file *file;
    apr_pool_t *pool;
    bool big_endian, large; /* large: BigTIFF */
    mc_tiff_index *index;
    bool overview;
    int photometric;
    mc_tiff_array tables;
} tiff_reading;

static uint64_t
tiff_number(const uint8_t *bytes, int width, bool big_endian)
{
    uint64_t value = 0;
    for (int i = 0; i < width; i++)
        value |= (uint64_t)bytes[big_endian ? width - 1 - i : i] << (8 * i);
    return value;
}

static mc_error *
refuse_tiff(const char *why, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CORRUPT, "no TIFF with tiles: %s", why);
}

/* Bytes of a number by its type in the file; 0: not a whole number. */
static int
width_of_type(unsigned type)
{
    return type == 1 || type == 7 ? 1 : type == 3 ? 2 : type == 4 || type == 13 ? 4 : type == 16 || type == 18 ? 8 : 0;
}

/* One entry of a directory, of 12 or 20 bytes that stand at `at` in the file. */
static void
take_tiff_entry(tiff_reading *reading, const uint8_t *bytes, uint64_t at)
{
    mc_tiff_index *index = reading->index;
    int room = reading->large ? 8 : 4;
    unsigned tag = (unsigned)tiff_number(bytes, 2, reading->big_endian);
    mc_tiff_array array = { .width = width_of_type((unsigned)tiff_number(bytes + 2, 2, reading->big_endian)),
                            .count = tiff_number(bytes + 4, room, reading->big_endian) };
    const uint8_t *value = bytes + 4 + room;
    if (array.width == 0 || array.count == 0 || array.count > (uint64_t)1 << 40)
        return;
    bool inside = array.count * (unsigned)array.width <= (unsigned)room;
    array.offset = inside ? at + 4 + (unsigned)room : tiff_number(value, room, reading->big_endian);
    uint64_t first = inside ? tiff_number(value, array.width, reading->big_endian) : 0;
    uint32_t small = first > UINT32_MAX ? 0 : (uint32_t)first;
    switch (tag) {
    case TAG_SUBFILE:
        reading->overview = (first & 5) != 0; /* or a mask */
        break;
    case TAG_WIDTH:
        index->width = small;
        break;
    case TAG_HEIGHT:
        index->height = small;
        break;
    case TAG_COMPRESSION:
        index->compression = (int)(small & 0xffff);
        break;
    case TAG_PHOTOMETRIC:
        reading->photometric = (int)(small & 0xffff);
        break;
    case TAG_SAMPLES:
        index->samples = (int)(small & 0xffff);
        break;
    case TAG_PLANES:
        index->planes = (int)(small & 0xffff);
        break;
    case TAG_TILE_WIDTH:
        index->tile_width = small;
        break;
    case TAG_TILE_HEIGHT:
        index->tile_height = small;
        break;
    case TAG_OFFSETS:
        index->offsets = array;
        break;
    case TAG_COUNTS:
        index->counts = array;
        break;
    case TAG_TABLES:
        reading->tables = array;
        break;
    }
}

/* *next: where the following directory is; 0: there is none. */
static mc_error *
read_tiff_directory(uint64_t *next, tiff_reading *reading, uint64_t offset)
{
    int room = reading->large ? 8 : 4, counter = reading->large ? 8 : 2, size = reading->large ? 20 : 12;
    uint8_t head[8], *entries;
    MC_TRY(mc_ranges_read(head, reading->file, offset, (size_t)counter, reading->pool));
    uint64_t count = tiff_number(head, counter, reading->big_endian);
    if (count == 0 || count > ENTRIES_MAX)
        return refuse_tiff("a directory is empty or too long", reading->pool);
    size_t bytes = (size_t)count * (size_t)size + (size_t)room;
    entries = apr_palloc(reading->pool, bytes);
    MC_TRY(mc_ranges_read(entries, reading->file, offset + (unsigned)counter, bytes, reading->pool));
    *reading->index = (mc_tiff_index){ .big_endian = reading->big_endian, .samples = 1, .planes = 1 };
    reading->overview = false;
    reading->photometric = 0;
    reading->tables = (mc_tiff_array){ 0 };
    for (uint64_t i = 0; i < count; i++)
        take_tiff_entry(reading, entries + i * (unsigned)size, offset + (unsigned)counter + i * (unsigned)size);
    *next = tiff_number(entries + count * (unsigned)size, room, reading->big_endian);
    return MC_OK;
}

/* Whether the numbers make a picture whose tiles have all a place in the arrays. */
static bool
is_tiff_index_whole(mc_tiff_index *index)
{
    if (index->width == 0 || index->height == 0 || index->width > SIDE_MAX || index->height > SIDE_MAX ||
        index->tile_width == 0 || index->tile_height == 0 || index->tile_width > SIDE_MAX ||
        index->tile_height > SIDE_MAX || index->offsets.width < 2 || index->counts.width < 2)
        return false;
    index->columns = (index->width + index->tile_width - 1) / index->tile_width;
    index->rows = (index->height + index->tile_height - 1) / index->tile_height;
    uint64_t tiles = (uint64_t)index->columns * index->rows;
    return index->offsets.count >= tiles && index->counts.count >= tiles;
}

/* Red, green and blue are told by the tags of the file; a JPEG on its own tells them by Adobe's marker. */
static void
mark_rgb_tables(mc_tiff_index *index)
{
    static const uint8_t marker[ADOBE_BYTES] = { 0xff, 0xee, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 0 };
    size_t end = index->tables_size - 2;
    memmove(index->tables + end + ADOBE_BYTES, index->tables + end, 2);
    memcpy(index->tables + end, marker, ADOBE_BYTES);
    index->tables_size += ADOBE_BYTES;
}

static mc_error *
read_tiff_tables(tiff_reading *reading)
{
    const mc_tiff_array *tables = &reading->tables;
    if (reading->index->compression != MC_TIFF_JPEG || tables->width != 1)
        return MC_OK;
    if (tables->count > MC_TIFF_TABLES_MAX - ADOBE_BYTES || tables->count < 4)
        return refuse_tiff("its JPEG tables are too long", reading->pool);
    reading->index->tables_size = (size_t)tables->count;
    MC_TRY(mc_ranges_read(reading->index->tables, reading->file, tables->offset, (size_t)tables->count, reading->pool));
    if (reading->photometric == PHOTOMETRIC_RGB && reading->index->samples == 3)
        mark_rgb_tables(reading->index);
    return MC_OK;
}

mc_error *
mc_tiff_read_index(mc_tiff_index *index, mc_ranged_file *file, apr_pool_t *pool)
{
    uint8_t head[16] = { 0 };
    tiff_reading reading = { .file = file, .pool = pool, .index = index };
    size_t size = mc_ranges_size(file) < sizeof(head) ? (size_t)mc_ranges_size(file) : sizeof(head);
    MC_TRY(mc_ranges_read(head, file, 0, size, pool));
    reading.big_endian = head[0] == 'M';
    if (size < 8 || (head[0] != 'M' && head[0] != 'I') || head[0] != head[1])
        return refuse_tiff("it does not begin as one", pool);
    uint64_t version = tiff_number(head + 2, 2, reading.big_endian);
    reading.large = version == 43;
    if ((version != 42 && version != 43) || (reading.large && size < 16))
        return refuse_tiff("it does not begin as one", pool);
    uint64_t next =
        reading.large ? tiff_number(head + 8, 8, reading.big_endian) : tiff_number(head + 4, 4, reading.big_endian);
    for (int i = 0; i < DIRECTORIES_MAX && next != 0; i++) {
        MC_TRY(read_tiff_directory(&next, &reading, next));
        if (!reading.overview && is_tiff_index_whole(index))
            return read_tiff_tables(&reading);
    }
    return refuse_tiff("it has no picture in tiles", pool);
}

mc_error *
mc_tiff_find_index(mc_tiff_index *index, mc_ranged_file *file, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_range_key key;
    mc_clock_cache_entry *entry;
    struct mc_memory *memory = ctx->process == NULL ? NULL : ctx->process->memory;
    mc_ranges_key(&key, file, INDEX_OF_TIFF, 0, 0);
    const mc_tiff_index *known = mc_memory_find(memory, MC_SHARE_LARGE, &entry, key.bytes, key.size);
    if (known != NULL) {
        memcpy(index, known, sizeof(*index));
        mc_clock_cache_release(entry);
        return MC_OK;
    }
    MC_TRY(mc_tiff_read_index(index, file, pool));
    mc_tiff_index *kept = memory != NULL && mc_stamp_settled(&file->stamp, file->taken) && mc_ranges_unchanged(file)
                              ? malloc(sizeof(*kept))
                              : NULL;
    if (kept == NULL)
        return MC_OK;
    memcpy(kept, index, sizeof(*kept));
    mc_memory_keep(ctx, MC_SHARE_LARGE, key.bytes, key.size, kept, sizeof(*kept), free);
    return MC_OK;
}

static mc_error *
read_tiff_number(uint64_t *number, const mc_tiff_array *array, uint64_t at, const mc_tiff_index *index,
                 mc_ranged_file *file, apr_pool_t *pool)
{
    uint8_t bytes[8];
    if (array->offset > (uint64_t)1 << 62)
        return refuse_tiff("its index lies beyond the end of the file", pool);
    MC_TRY(mc_ranges_read(bytes, file, array->offset + at * (unsigned)array->width, (size_t)array->width, pool));
    *number = tiff_number(bytes, array->width, index->big_endian);
    return MC_OK;
}

mc_error *
mc_tiff_find_tile(uint64_t *offset, uint64_t *size, const mc_tiff_index *index, mc_ranged_file *file, uint64_t number,
                  apr_pool_t *pool)
{
    *offset = *size = 0;
    if (number >= (uint64_t)index->columns * index->rows)
        return MC_OK;
    MC_TRY(read_tiff_number(offset, &index->offsets, number, index, file, pool));
    MC_TRY(read_tiff_number(size, &index->counts, number, index, file, pool));
    if (*offset == 0)
        *size = 0;
    return MC_OK;
}

mc_error *
mc_tiff_read_tile(mc_buf **data, const mc_tiff_index *index, mc_ranged_file *file, uint64_t number, apr_pool_t *pool)
{
    uint64_t offset, size;
    size_t shared = index->tables_size > 0 ? index->tables_size - 2 : 0; /* without the end of image */
    size_t begin = shared > 0 ? 2 : 0;                                   /* without the start of image */
    *data = NULL;
    MC_TRY(mc_tiff_find_tile(&offset, &size, index, file, number, pool));
    if (size == 0)
        return MC_OK;
    if (size > MC_TILE_BYTES_MAX || size <= begin)
        return mc_error_create(pool, MC_ERR_CORRUPT, "a tile of a TIFF cannot have %lu bytes", (unsigned long)size);
    if (!mc_ranges_holds(file, offset, size)) /* also what is beyond the largest number */
        return refuse_tiff("a tile lies beyond the end of the file", pool);
    *data = mc_buf_attach(mc_buf_create(shared + size, shared + size), pool);
    MC_TRY(mc_buf_reserve(*data, shared + (size_t)size, pool));
    memcpy((*data)->data, index->tables, shared);
    MC_TRY(mc_ranges_read((*data)->data + shared, file, offset + begin, (size_t)size - begin, pool));
    (*data)->size = shared + (size_t)size - begin;
    return MC_OK;
}
