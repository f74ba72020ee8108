/* See tiff_index.h. Tags by their numbers in TIFF 6.0, section 2 and 8 to 22; BigTIFF by libtiff's design page. */
#include "cache/archive/tiff_index.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cache/archive/tiff_numbers.h"
#include "cache/memory.h"

enum {
    DIRECTORIES_MAX = 64,
    ENTRIES_MAX = 1024,
    SIDE_MAX = 1 << 28,
    INDEX_OF_TIFF = 3, /* what is remembered of a file */
    LEVELS_OF_TIFF = 7,
    GEO_KEYS_MAX = 256,
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
    TAG_PIXEL = 33550, /* GeoTIFF 1.1 (OGC 19-008r4), 7.1 */
    TAG_TIE = 33922,
    TAG_MATRIX = 34264,
    TAG_GEO_KEYS = 34735,
    TYPE_DOUBLE = 12,
    PHOTOMETRIC_RGB = 2,
    ADOBE_BYTES = 16,
};

/* A file whose directories are read. */
typedef struct tiff_reading {
    mc_ranged_file *file;
    apr_pool_t *pool;
    bool big_endian, large; /* large: BigTIFF */
    mc_tiff_index *index;
    int photometric;
    mc_tiff_array tables, pixel, tie, matrix, geo_keys;
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

/* Where an array of a tag is kept; NULL: the tag is no array. */
static mc_tiff_array *
array_of_tag(tiff_reading *reading, unsigned tag)
{
    return tag == TAG_OFFSETS    ? &reading->index->offsets
           : tag == TAG_COUNTS   ? &reading->index->counts
           : tag == TAG_TABLES   ? &reading->tables
           : tag == TAG_GEO_KEYS ? &reading->geo_keys
           : tag == TAG_PIXEL    ? &reading->pixel
           : tag == TAG_TIE      ? &reading->tie
           : tag == TAG_MATRIX   ? &reading->matrix
                                 : NULL;
}

static bool
is_tag_of_doubles(unsigned tag)
{
    return tag == TAG_PIXEL || tag == TAG_TIE || tag == TAG_MATRIX;
}

/* One entry of a directory, of 12 or 20 bytes that stand at `at` in the file. */
static void
take_tiff_entry(tiff_reading *reading, const uint8_t *bytes, uint64_t at)
{
    mc_tiff_index *index = reading->index;
    int room = reading->large ? 8 : 4;
    unsigned tag = (unsigned)tiff_number(bytes, 2, reading->big_endian);
    unsigned type = (unsigned)tiff_number(bytes + 2, 2, reading->big_endian);
    mc_tiff_array *kept = array_of_tag(reading, tag);
    mc_tiff_array array = { .width = !is_tag_of_doubles(tag) ? width_of_type(type)
                                     : type == TYPE_DOUBLE   ? 8
                                                             : 0,
                            .count = tiff_number(bytes + 4, room, reading->big_endian) };
    const uint8_t *value = bytes + 4 + room;
    if (array.width == 0 || array.count == 0 || array.count > (uint64_t)1 << 40)
        return;
    bool inside = array.count * (unsigned)array.width <= (unsigned)room;
    array.offset = inside ? at + 4 + (unsigned)room : tiff_number(value, room, reading->big_endian);
    uint64_t first = inside ? tiff_number(value, array.width, reading->big_endian) : 0;
    uint32_t small = first > UINT32_MAX ? 0 : (uint32_t)first;
    if (kept != NULL)
        *kept = array;
    switch (tag) {
    case TAG_SUBFILE:
        index->part = (first & 4) != 0 ? MC_TIFF_MASK : (first & 1) != 0 ? MC_TIFF_OVERVIEW : MC_TIFF_PICTURE;
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
    reading->photometric = 0;
    reading->tables = reading->pixel = reading->tie = reading->matrix = reading->geo_keys = (mc_tiff_array){ 0 };
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

/* Whether the two bytes are JPEG's start of image. */
static bool
is_jpeg_begin(const uint8_t *bytes)
{
    return bytes[0] == 0xff && bytes[1] == 0xd8;
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
    if (!is_jpeg_begin(reading->index->tables) || reading->index->tables[tables->count - 2] != 0xff ||
        reading->index->tables[tables->count - 1] != 0xd9)
        return refuse_tiff("its JPEG tables do not end", reading->pool);
    if (reading->photometric == PHOTOMETRIC_RGB && reading->index->samples == 3)
        mark_rgb_tables(reading->index);
    return MC_OK;
}

/* *first: where the first directory is. */
static mc_error *
read_tiff_head(uint64_t *first, tiff_reading *reading)
{
    uint8_t head[16] = { 0 };
    mc_ranged_file *file = reading->file;
    apr_pool_t *pool = reading->pool;
    size_t size = mc_ranges_size(file) < sizeof(head) ? (size_t)mc_ranges_size(file) : sizeof(head);
    MC_TRY(mc_ranges_read(head, file, 0, size, pool));
    reading->big_endian = head[0] == 'M';
    if (size < 8 || (head[0] != 'M' && head[0] != 'I') || head[0] != head[1])
        return refuse_tiff("it does not begin as one", pool);
    uint64_t version = tiff_number(head + 2, 2, reading->big_endian);
    reading->large = version == 43;
    if ((version != 42 && version != 43) || (reading->large && size < 16))
        return refuse_tiff("it does not begin as one", pool);
    *first =
        reading->large ? tiff_number(head + 8, 8, reading->big_endian) : tiff_number(head + 4, 4, reading->big_endian);
    return MC_OK;
}

mc_error *
mc_tiff_read_index(mc_tiff_index *index, mc_ranged_file *file, apr_pool_t *pool)
{
    tiff_reading reading = { .file = file, .pool = pool, .index = index };
    uint64_t next = 0;
    MC_TRY(read_tiff_head(&next, &reading));
    for (int i = 0; i < DIRECTORIES_MAX && next != 0; i++) {
        MC_TRY(read_tiff_directory(&next, &reading, next));
        if (index->part == MC_TIFF_PICTURE && is_tiff_index_whole(index))
            return read_tiff_tables(&reading);
    }
    return refuse_tiff("it has no picture in tiles", pool);
}

/* --- all images --------------------------------------------------------------------------------------------------- */

/* The first `count` numbers of an array, which has as many at least; false: it has not. */
static mc_error *
read_tiff_doubles(bool *found, double *numbers, const mc_tiff_array *array, uint64_t count, tiff_reading *reading)
{
    uint8_t bytes[16 * 8];
    *found = array->width == 8 && array->count >= count && count <= 16;
    if (!*found)
        return MC_OK;
    MC_TRY(mc_ranges_read(bytes, reading->file, array->offset, (size_t)count * 8, reading->pool));
    for (uint64_t i = 0; i < count; i++) {
        uint64_t number = tiff_number(bytes + 8 * i, 8, reading->big_endian);
        memcpy(&numbers[i], &number, sizeof(number));
    }
    return MC_OK;
}

/* *point: coordinates are those of the middle of a pixel (GeoTIFF 1.1, 7.2 and 7.3). */
static mc_error *
read_geo_keys(bool *point, mc_tiff_place *place, tiff_reading *reading)
{
    enum { RASTER_TYPE = 1025, RASTER_IS_POINT = 2, GEODETIC_CRS = 2048, PROJECTED_CRS = 3072, USER_DEFINED = 32767 };
    const mc_tiff_array *array = &reading->geo_keys;
    uint8_t bytes[(GEO_KEYS_MAX + 1) * 8];
    uint64_t count = array->count / 4;
    int projected = 0, geodetic = 0;
    *point = false;
    if (array->width != 2 || count < 1 || count > GEO_KEYS_MAX)
        return MC_OK;
    MC_TRY(mc_ranges_read(bytes, reading->file, array->offset, (size_t)count * 8, reading->pool));
    for (uint64_t i = 1; i < count; i++) {
        unsigned key = (unsigned)tiff_number(bytes + 8 * i, 2, reading->big_endian);
        bool here = tiff_number(bytes + 8 * i + 2, 2, reading->big_endian) == 0;
        int value = here ? (int)tiff_number(bytes + 8 * i + 6, 2, reading->big_endian) : 0;
        if (key == RASTER_TYPE)
            *point = value == RASTER_IS_POINT;
        else if (key == PROJECTED_CRS)
            projected = value;
        else if (key == GEODETIC_CRS)
            geodetic = value;
    }
    place->epsg = projected != 0 ? projected : geodetic;
    if (place->epsg == USER_DEFINED)
        place->epsg = 0;
    return MC_OK;
}

static mc_error *
read_tiff_place(mc_tiff_place *place, tiff_reading *reading)
{
    double pixel[2] = { 0 }, tie[6] = { 0 }, matrix[16] = { 0 };
    bool scaled, tied, turned, point;
    *place = (mc_tiff_place){ 0 };
    MC_TRY(read_tiff_doubles(&scaled, pixel, &reading->pixel, 2, reading));
    MC_TRY(read_tiff_doubles(&tied, tie, &reading->tie, 6, reading));
    MC_TRY(read_tiff_doubles(&turned, matrix, &reading->matrix, 16, reading));
    MC_TRY(read_geo_keys(&point, place, reading));
    if (scaled && tied) {
        *place =
            (mc_tiff_place){ true,       tie[3] - tie[0] * pixel[0], tie[4] + tie[1] * pixel[1], pixel[0], pixel[1],
                             place->epsg };
    } else if (turned && matrix[1] == 0 && matrix[4] == 0) {
        *place = (mc_tiff_place){ true, matrix[3], matrix[7], matrix[0], -matrix[5], place->epsg };
    }
    if (point) {
        place->x -= place->width / 2;
        place->y += place->height / 2;
    }
    place->known = place->known && isfinite(place->x) && isfinite(place->y) && isfinite(place->width) &&
                   isfinite(place->height) && place->width > 0 && place->height > 0;
    return MC_OK;
}

/* The images in tiles of all directories, into `indexes` of DIRECTORIES_MAX. */
static mc_error *
read_tiff_images(mc_tiff_index *indexes, int *count, mc_tiff_place *place, tiff_reading *reading)
{
    uint64_t next = 0, seen[DIRECTORIES_MAX];
    MC_TRY(read_tiff_head(&next, reading));
    *count = 0;
    for (int i = 0; i < DIRECTORIES_MAX && next != 0; i++) {
        for (int before = 0; before < i; before++)
            if (seen[before] == next)
                return refuse_tiff("its directories lead round in a circle", reading->pool);
        seen[i] = next;
        reading->index = &indexes[*count];
        MC_TRY(read_tiff_directory(&next, reading, next));
        bool first = *count == 0, picture = reading->index->part == MC_TIFF_PICTURE;
        if (first != picture || !is_tiff_index_whole(reading->index))
            continue;
        MC_TRY(read_tiff_tables(reading));
        if (first)
            MC_TRY(read_tiff_place(place, reading));
        *count += 1;
    }
    return *count > 0 ? MC_OK : refuse_tiff("it has no picture in tiles", reading->pool);
}

mc_error *
mc_tiff_find_levels(const mc_tiff_levels **levels, mc_clock_cache_entry **held, mc_ranged_file *file, mc_ctx *ctx,
                    apr_pool_t *pool)
{
    mc_range_key key;
    struct mc_memory *memory = ctx->process == NULL ? NULL : ctx->process->memory;
    mc_ranges_key(&key, file, LEVELS_OF_TIFF, 0, 0);
    *levels = mc_memory_find(memory, MC_SHARE_LARGE, held, key.bytes, key.size);
    if (*levels != NULL)
        return MC_OK;
    *held = NULL;
    tiff_reading reading = { .file = file, .pool = pool };
    mc_tiff_levels *made = apr_palloc(pool, sizeof(*made) + DIRECTORIES_MAX * sizeof(mc_tiff_index));
    MC_TRY(read_tiff_images(made->indexes, &made->count, &made->place, &reading));
    *levels = made;
    size_t bytes = sizeof(*made) + (size_t)made->count * sizeof(mc_tiff_index);
    bool keep = memory != NULL && mc_stamp_settled(&file->stamp, file->taken) && mc_ranges_unchanged(file);
    mc_tiff_levels *kept = keep ? malloc(bytes) : NULL;
    if (kept == NULL)
        return MC_OK;
    memcpy(kept, made, bytes);
    mc_memory_keep(ctx, MC_SHARE_LARGE, key.bytes, key.size, kept, bytes, free);
    return MC_OK;
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
    if (file->remote == NULL || !mc_tiff_remembered_number(bytes, array, at, index, file))
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

/* Whether a tile may have so many bytes there. */
static mc_error *
check_tile_part(const mc_range_part *part, const mc_tiff_index *index, const mc_ranged_file *file, apr_pool_t *pool)
{
    if (part->size > MC_TILE_BYTES_MAX || (index->tables_size > 0 && part->size <= 2))
        return mc_error_create(pool, MC_ERR_CORRUPT, "a tile of a TIFF cannot have %lu bytes",
                               (unsigned long)part->size);
    if (!mc_ranges_holds(file, part->offset, part->size)) /* also what is beyond the largest number */
        return refuse_tiff("a tile lies beyond the end of the file", pool);
    return MC_OK;
}

mc_error *
mc_tiff_find_tiles(mc_range_part *parts, const mc_tiff_index *index, mc_ranged_file *file, const int64_t *numbers,
                   int count, apr_pool_t *pool)
{
    if (file->remote != NULL)
        MC_TRY(mc_tiff_prepare_numbers(index, file, numbers, count, pool));
    for (int i = 0; i < count; i++) {
        uint64_t offset = 0, size = 0;
        if (numbers[i] >= 0)
            MC_TRY(mc_tiff_find_tile(&offset, &size, index, file, (uint64_t)numbers[i], pool));
        parts[i] = (mc_range_part){ .offset = offset, .size = (size_t)size };
        if (size > 0)
            MC_TRY(check_tile_part(&parts[i], index, file, pool));
    }
    return MC_OK;
}

mc_error *
mc_tiff_join_tile(mc_buf **data, const mc_tiff_index *index, const mc_buf *stored, apr_pool_t *pool)
{
    size_t shared = index->tables_size > 0 ? index->tables_size - 2 : 0; /* without the end of image */
    size_t begin = shared > 0 ? 2 : 0;                                   /* without the start of image */
    if (begin > 0 && (stored->size < begin || !is_jpeg_begin(stored->data)))
        return refuse_tiff("a tile is no JPEG", pool);
    *data = mc_buf_attach(mc_buf_create(shared + stored->size, shared + stored->size), pool);
    MC_TRY(mc_buf_reserve(*data, shared + stored->size, pool));
    memcpy((*data)->data, index->tables, shared);
    memcpy((*data)->data + shared, stored->data + begin, stored->size - begin);
    (*data)->size = shared + stored->size - begin;
    return MC_OK;
}

mc_error *
mc_tiff_read_tile(mc_buf **data, const mc_tiff_index *index, mc_ranged_file *file, uint64_t number, apr_pool_t *pool)
{
    const int64_t wanted = number > INT64_MAX ? -1 : (int64_t)number;
    mc_range_part part;
    *data = NULL;
    MC_TRY(mc_tiff_find_tiles(&part, index, file, &wanted, 1, pool));
    if (part.size == 0)
        return MC_OK;
    MC_TRY(mc_ranges_read_buf(data, file, part.offset, part.size, pool));
    return index->tables_size == 0 ? MC_OK : mc_tiff_join_tile(data, index, *data, pool);
}
