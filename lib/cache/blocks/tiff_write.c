/*
 * Writing files of the cache "tiff": a file is written anew beside its place, with the tiles that it had and those that
 * are new, and renamed. So readers see the old file or the new one, and what was replaced leaves no gaps. Tiles are
 * whole JPEG streams; the tables that TIFF lets them share are empty, as tiles come from anywhere.
 */
#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/files.h"
#include "cache/blocks/tiff_cache.h"

enum { TAGS_MAX = 24, EXTRAS_MAX = 256, MAPPED_DOUBLES = 9 };

/* A file that is being written. Classic TIFF, little-endian. */
typedef struct tiff_output {
    const mc_grid *grid;
    int z;
    mc_tiff_block block;
    int file; /* -1: not open */
    const char *path, *temporary;
    uint64_t size;             /* of the file so far */
    uint8_t *offsets, *counts; /* of all tiles, 4 bytes each */
    uint32_t sampling;         /* of colour, as the tag has it; 0: not known yet */
    int stored;
    apr_pool_t *pool;
} tiff_output;

static mc_error *
tiff_write_error(const tiff_output *out, const char *what, apr_pool_t *pool)
{
    char text[128];
    mc_error *cause = mc_error_create(pool, MC_ERR_IO, "%s: %s", out->path, strerror_r(errno, text, sizeof(text)));
    return mc_error_wrap(pool, cause, MC_ERR_IO, "%s", what);
}

static uint8_t *
store_little16(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    return at + 2;
}

/* Sampling of the colours of a JPEG: its frame header (ITU T.81, B.2.2), as TIFF's tag 530 has it; 1 x 1 where nothing
 * is found. */
static uint32_t
sampling_of_jpeg(const uint8_t *data, size_t size)
{
    for (size_t at = 2; at + 16 < size && data[at] == 0xff;) {
        size_t length = (size_t)data[at + 2] << 8 | data[at + 3];
        bool frame = data[at + 1] >= 0xc0 && data[at + 1] <= 0xcf && data[at + 1] != 0xc4 && data[at + 1] != 0xc8 &&
                     data[at + 1] != 0xcc;
        if (frame && data[at + 9] == 3)
            return (uint32_t)(data[at + 11] >> 4) | (uint32_t)(data[at + 11] & 15) << 16;
        at += 2 + length;
    }
    return 1 | 1 << 16;
}

/* ---- the head: directory, arrays, what does not fit into entries */

typedef struct tiff_head {
    uint8_t *bytes;
    size_t entries;                /* so far */
    size_t directory, extras, end; /* where they begin, and the end of the extras */
} tiff_head;

static void
put_tiff_tag(tiff_head *head, unsigned tag, unsigned type, uint32_t count, uint32_t value)
{
    uint8_t *at = head->bytes + head->directory + 2 + 12 * head->entries++;
    MC_ASSERT(head->entries <= TAGS_MAX);
    at = store_little16(store_little16(at, tag), type);
    mc_store_little32(mc_store_little32(at, count), value);
}

/* Room for what an entry points to. */
static uint8_t *
put_tiff_extra(tiff_head *head, unsigned tag, unsigned type, uint32_t count, size_t size)
{
    uint8_t *at = head->bytes + head->end;
    put_tiff_tag(head, tag, type, count, (uint32_t)head->end);
    head->end += (size + 7) / 8 * 8;
    MC_ASSERT(head->end <= head->extras + EXTRAS_MAX);
    return at;
}

/* Where the file lies (OGC 19-008): its upper left corner, the size of a pixel, the code of the CRS. */
static void
put_geotiff_tags(tiff_head *head, const tiff_output *out)
{
    const mc_grid *grid = out->grid;
    const mc_level *level = &grid->levels[out->z];
    const mc_extent first = mc_grid_tile_extent(grid, out->z, out->block.x, out->block.y + out->block.rows - 1);
    const double numbers[MAPPED_DOUBLES] = {
        level->resolution, level->resolution, 0, 0, 0, 0, first.minx, first.maxy, 0
    };
    uint8_t *at = put_tiff_extra(head, 33550, 12, 3, 24);
    for (int i = 0; i < 3; i++)
        at = mc_store_little_double(at, numbers[i]);
    at = put_tiff_extra(head, 33922, 12, 6, 48);
    for (int i = 3; i < MAPPED_DOUBLES; i++)
        at = mc_store_little_double(at, numbers[i]);
    int code = grid->epsg == 900913 ? 3857 : grid->epsg;
    if (code <= 0 || code > 65535)
        return;
    bool degrees = grid->metres_per_unit > 1000;
    const unsigned keys[16] = {
        1, 1, 0, 3, 1024, 0, 1, degrees ? 2 : 1, 1025, 0, 1, 1, degrees ? 2048 : 3072, 0, 1, (unsigned)code
    };
    at = put_tiff_extra(head, 34735, 3, 16, 32);
    for (int i = 0; i < 16; i++)
        at = store_little16(at, keys[i]);
}

static void
fill_tiff_tags(tiff_head *head, const tiff_output *out, uint32_t arrays)
{
    const mc_grid *grid = out->grid;
    uint32_t tiles = (uint32_t)(out->block.columns * out->block.rows);
    uint8_t *bits;
    put_tiff_tag(head, 254, 4, 1, 0);
    put_tiff_tag(head, 256, 4, 1, (uint32_t)(out->block.columns * grid->tile_width));
    put_tiff_tag(head, 257, 4, 1, (uint32_t)(out->block.rows * grid->tile_height));
    bits = put_tiff_extra(head, 258, 3, 3, 6);
    store_little16(store_little16(store_little16(bits, 8), 8), 8);
    put_tiff_tag(head, 259, 3, 1, MC_TIFF_JPEG);
    put_tiff_tag(head, 262, 3, 1, 6); /* YCbCr */
    put_tiff_tag(head, 274, 3, 1, 1); /* the first row is at the top */
    put_tiff_tag(head, 277, 3, 1, 3);
    put_tiff_tag(head, 284, 3, 1, 1);
    put_tiff_tag(head, 322, 4, 1, (uint32_t)grid->tile_width);
    put_tiff_tag(head, 323, 4, 1, (uint32_t)grid->tile_height);
    put_tiff_tag(head, 324, 4, tiles, tiles == 1 ? mc_little32(out->offsets) : arrays);
    put_tiff_tag(head, 325, 4, tiles, tiles == 1 ? mc_little32(out->counts) : arrays + 4 * tiles);
    put_tiff_tag(head, 347, 7, 4, 0xd9ffd8ff); /* FF D8 FF D9: no tables */
    put_tiff_tag(head, 530, 3, 2, out->sampling);
    put_geotiff_tags(head, out);
}

static size_t
size_of_tiff_head(const tiff_output *out)
{
    return 8 + 2 + 12 * TAGS_MAX + 4 + 2 + EXTRAS_MAX + 8 * (size_t)(out->block.columns * out->block.rows);
}

static mc_error *
write_tiff_head(const tiff_output *out)
{
    size_t tiles = (size_t)(out->block.columns * out->block.rows), size = size_of_tiff_head(out);
    tiff_head head = { .bytes = apr_pcalloc(out->pool, size), .directory = 8 };
    head.extras = head.end = 8 + 2 + 12 * TAGS_MAX + 4 + 2;
    size_t arrays = head.extras + EXTRAS_MAX;
    memcpy(head.bytes, "II*\0\10\0\0\0", 8);
    memcpy(head.bytes + arrays, out->offsets, 4 * tiles);
    memcpy(head.bytes + arrays + 4 * tiles, out->counts, 4 * tiles);
    fill_tiff_tags(&head, out, (uint32_t)arrays);
    store_little16(head.bytes + head.directory, (unsigned)head.entries);
    if (!mc_files_write_at(out->file, 0, head.bytes, size))
        return tiff_write_error(out, "a file of tiles cannot be written", out->pool);
    return MC_OK;
}

/* ---- tiles */

static mc_error *
append_tiff_tile(tiff_output *out, uint64_t number, const mc_buf *data)
{
    if (out->size + data->size > UINT32_MAX)
        return mc_error_create(out->pool, MC_ERR_LIMIT,
                               "a file of a tiff cache would have more than 4 GB: smaller <xcount> and <ycount> help");
    if (!mc_files_write_at(out->file, out->size, data->data, data->size))
        return tiff_write_error(out, "a file of tiles cannot be written", out->pool);
    mc_store_little32(out->offsets + 4 * number, (uint32_t)out->size);
    mc_store_little32(out->counts + 4 * number, (uint32_t)data->size);
    if (out->sampling == 0)
        out->sampling = sampling_of_jpeg(data->data, data->size);
    out->size += data->size;
    out->stored++;
    return MC_OK;
}

/* The tiles of the file that is there, but for those that are put or removed (`taken`, by their numbers). */
static mc_error *
copy_tiff_tiles(tiff_output *out, const uint8_t *taken, mc_ctx *ctx)
{
    mc_ranged_file file;
    mc_tiff_index *index = apr_palloc(out->pool, sizeof(*index));
    apr_pool_t *scratch;
    mc_ranges_look(&file, out->path);
    if (file.missing == ENOENT || file.missing == ENOTDIR)
        return MC_OK;
    mc_error *error = mc_tiff_read_index(index, &file, out->pool);
    if (error == MC_OK && !mc_tiff_block_fits(index, &out->block, out->grid))
        error = mc_error_create(out->pool, MC_ERR_CORRUPT, "%s has tiles of another layout, and is not written to",
                                out->path);
    apr_pool_create(&scratch, out->pool);
    for (uint64_t i = 0; error == MC_OK && i < (uint64_t)out->block.columns * (uint64_t)out->block.rows; i++) {
        mc_buf *data = NULL;
        apr_pool_clear(scratch);
        if (taken[i] != 0)
            continue;
        error = mc_ctx_check(ctx, out->pool);
        if (error == MC_OK)
            error = mc_error_copy(mc_tiff_read_tile(&data, index, &file, i, scratch), out->pool);
        if (error == MC_OK && data != NULL)
            error = append_tiff_tile(out, i, data);
    }
    apr_pool_destroy(scratch);
    mc_ranges_close(&file);
    return error;
}

/* Of a tile that comes twice the last one counts. */
static mc_error *
fill_tiff_file(tiff_output *out, const tiff_cache *cache, const mc_tile_write *const *tiles, int count, mc_ctx *ctx)
{
    size_t all = (size_t)(out->block.columns * out->block.rows);
    uint8_t *taken = apr_pcalloc(out->pool, all);
    out->offsets = apr_pcalloc(out->pool, 4 * all);
    out->counts = apr_pcalloc(out->pool, 4 * all);
    out->size = size_of_tiff_head(out);
    for (int i = count - 1; i >= 0; i--) {
        uint64_t number = mc_tiff_block_of(cache, &tiles[i]->key).number;
        if (taken[number] != 0)
            continue;
        taken[number] = 1;
        if (tiles[i]->data != NULL)
            MC_TRY(append_tiff_tile(out, number, tiles[i]->data));
    }
    MC_TRY(copy_tiff_tiles(out, taken, ctx));
    return out->stored == 0 ? MC_OK : write_tiff_head(out);
}

static mc_error *
place_tiff_file(tiff_output *out)
{
    if (out->stored == 0) {
        if (unlink(out->path) != 0 && errno != ENOENT)
            return tiff_write_error(out, "a file of tiles cannot be removed", out->pool);
        return MC_OK;
    }
    if (fdatasync(out->file) != 0 || rename(out->temporary, out->path) != 0)
        return tiff_write_error(out, "a file of tiles cannot be put in its place", out->pool);
    out->temporary = NULL;
    return MC_OK;
}

static mc_error *
rewrite_tiff_file(const tiff_cache *cache, const char *path, const mc_tile_write *const *tiles, int count, mc_ctx *ctx)
{
    static _Atomic unsigned counter;
    const mc_tile_key *key = &tiles[0]->key;
    tiff_output out = { .grid = key->grid, .z = key->z, .path = path, .pool = ctx->pool };
    out.block = mc_tiff_block_of(cache, key);
    out.temporary = apr_psprintf(ctx->pool, "%s.%d.%u.tmp", path, (int)getpid(), atomic_fetch_add(&counter, 1));
    out.file = open(out.temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (out.file < 0)
        return tiff_write_error(&out, "a file of tiles cannot be written", ctx->pool);
    mc_error *error = fill_tiff_file(&out, cache, tiles, count, ctx);
    if (error == MC_OK)
        error = place_tiff_file(&out);
    close(out.file);
    if (out.temporary != NULL)
        (void)unlink(out.temporary);
    return error;
}

mc_error *
mc_tiff_write(tiff_cache *cache, const char *path, const mc_tile_write *const *tiles, int count, mc_ctx *ctx)
{
    mc_lock *lock;
    bool waited, puts = false;
    for (int i = 0; i < count; i++)
        puts = puts || tiles[i]->data != NULL;
    if (!puts && access(path, F_OK) != 0)
        return mc_stamp_absent(errno)
                   ? MC_OK
                   : tiff_write_error(&(tiff_output){ .path = path }, "a file of tiles cannot be looked at", ctx->pool);
    int code = mc_files_make_folders(apr_pstrdup(ctx->pool, path));
    if (code != 0) {
        errno = code;
        return tiff_write_error(&(tiff_output){ .path = path }, "a folder of tiles cannot be made", ctx->pool);
    }
    MC_TRY(mc_locker_acquire(&lock, &waited, cache->locker, path, ctx, ctx->pool));
    mc_error *error = rewrite_tiff_file(cache, path, tiles, count, ctx);
    mc_lock_release(lock);
    return error;
}
