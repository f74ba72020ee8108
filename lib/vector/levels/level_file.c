/* See level_file.h. Files are read by position, never mapped: what is cut short gives fewer bytes. */
#include "vector/levels/level_file.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/files.h"

/* Bytes of the indexes of all levels: two million blocks, each of which has the features of some thousand pixels. */
#define INDEX_MOST ((uint64_t)96 << 20)

enum { INDEX_PIECE = 1 << 14 /* blocks of an index that are read at once */ };

static apr_status_t
close_level_file(void *data)
{
    close(((mc_level_file *)data)->fd);
    return APR_SUCCESS;
}

static mc_error *
broken_file_error(const char *path, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CORRUPT, "%s is no overview of this version, or is broken", path);
}

static bool
read_level_place(mc_level_place *place, const mc_level_file *file, const uint8_t *at)
{
    *place = (mc_level_place){ .box = { mc_little_double(at), mc_little_double(at + 8), mc_little_double(at + 16),
                                        mc_little_double(at + 24) },
                               .begin = mc_little64(at + 32),
                               .size = mc_little32(at + 40),
                               .part = mc_little32(at + 44) };
    return place->box.minx <= place->box.maxx && place->box.miny <= place->box.maxy &&
           place->size <= MC_LEVEL_BLOCK_MAX && place->begin <= file->size && place->size <= file->size - place->begin;
}

/* Some more of the index of a level. */
static bool
read_index_piece(mc_level_file *file, int level, uint8_t bytes[INDEX_PIECE * MC_LEVEL_FILE_BLOCK])
{
    const uint32_t first = file->read_blocks, left = file->block_counts[level] - first;
    const uint32_t count = left < INDEX_PIECE ? left : INDEX_PIECE;
    mc_level_place *places = file->places[level];
    const uint64_t begin = file->next_index + (uint64_t)first * MC_LEVEL_FILE_BLOCK;
    const size_t size = (size_t)count * MC_LEVEL_FILE_BLOCK;
    bool good = mc_files_read_at(file->fd, begin, bytes, size) == size;
    for (uint32_t i = first; good && i < first + count; i++)
        good = read_level_place(&places[i], file, bytes + (size_t)(i - first) * MC_LEVEL_FILE_BLOCK) &&
               (i == 0 ||
                (places[i].part >= places[i - 1].part && places[i].begin >= places[i - 1].begin + places[i - 1].size));
    file->read_blocks += count;
    return good;
}

/* What stands of a level before its index, and room for that. The index is no larger than the file, nor are all blocks
 * together: none overlaps another. */
static bool
read_level_head(mc_level_file *file, int level)
{
    uint8_t bytes[MC_LEVEL_FILE_LEVEL];
    mc_level_range *range = &file->ranges[level];
    if (mc_files_read_at(file->fd, MC_LEVEL_FILE_HEAD + (uint64_t)level * sizeof(bytes), bytes, sizeof(bytes)) <
        sizeof(bytes))
        return false;
    *range = (mc_level_range){ mc_little_double(bytes), mc_little_double(bytes + 8), mc_little_double(bytes + 16) };
    file->block_counts[level] = mc_little32(bytes + 28);
    file->features[level] = (int64_t)mc_little64(bytes + 40);
    file->next_index = mc_little64(bytes + 32);
    const uint64_t size = (uint64_t)file->block_counts[level] * MC_LEVEL_FILE_BLOCK;
    file->indexed += size;
    if (file->next_index > file->size || size > file->size - file->next_index || file->indexed > INDEX_MOST)
        return false;
    file->places[level] = apr_palloc(file->pool, sizeof(**file->places) * ((size_t)file->block_counts[level] + 1));
    return range->resolution > 0 && isfinite(range->until) && range->until > range->resolution &&
           range->metres_per_unit > 0 && isfinite(range->metres_per_unit) &&
           (level == 0 || range->resolution > file->ranges[level - 1].resolution);
}

static bool
read_level_file_head(mc_level_file *file)
{
    uint8_t head[MC_LEVEL_FILE_HEAD];
    if (mc_files_read_at(file->fd, 0, head, sizeof(head)) < sizeof(head) || memcmp(head, MC_LEVEL_FILE_MAGIC, 8) != 0)
        return false;
    const uint32_t levels = mc_little32(head + MC_LEVEL_FILE_HEAD - 8);
    file->style = mc_little64(head + 8);
    file->origin.definition = mc_little64(head + 16);
    file->origin.content = mc_little64(head + 24);
    for (int i = 0; i < MC_LEVEL_ORIGINS; i++) {
        const uint8_t *at = head + 32 + MC_LEVEL_FILE_ORIGIN * i;
        file->origin.files[i] = (mc_level_origin_file){ (int64_t)mc_little64(at), mc_little64(at + 8),
                                                        (int64_t)mc_little64(at + 16), (int64_t)mc_little64(at + 24) };
    }
    if (levels > MC_LEVELS_MAX || mc_little64(head + MC_LEVEL_FILE_HEAD - 16) != file->size)
        return false;
    file->count = (int)levels;
    return true;
}

/* With room for a piece of an index. */
static mc_error *
read_level_indexes(mc_level_file *file, uint8_t *bytes, mc_ctx *ctx, apr_pool_t *pool)
{
    for (; file->read < file->count; file->read++, file->read_blocks = 0) {
        const int level = file->read;
        if (file->read_blocks == 0 && !read_level_head(file, level))
            return broken_file_error(file->path, pool);
        while (file->read_blocks < file->block_counts[level]) {
            if (!read_index_piece(file, level, bytes))
                return broken_file_error(file->path, pool);
            if (ctx != NULL && file->read_blocks < file->block_counts[level])
                MC_TRY(mc_ctx_check(ctx, pool));
        }
    }
    return MC_OK;
}

mc_error *
mc_level_file_go_on_opening(mc_level_file *file, mc_ctx *ctx, apr_pool_t *pool)
{
    uint8_t *bytes = malloc((size_t)INDEX_PIECE * MC_LEVEL_FILE_BLOCK);
    if (bytes == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "there is no memory for the index of an overview");
    mc_error *error = read_level_indexes(file, bytes, ctx, pool);
    free(bytes);
    return error;
}

/* Of a folder that is open, so that what is looked at and what is opened are in the same one. A FIFO or a device is not
 * waited for, a symbolic link, which anybody can set to any file, is not followed. -1: errno tells why. */
static int
open_in_folder(struct stat *folder, const char *path, apr_pool_t *pool)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    const int fd = open(slash == NULL ? "." : apr_pstrmemdup(pool, path, (size_t)(slash - path) + 1),
                        O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const int file =
        fstat(fd, folder) != 0 ? -1 : openat(fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
    const int reason = errno;
    close(fd);
    errno = reason;
    return file;
}

/* Where everybody may write to the folder, a file is used only if it is root's, the server's or of who owns the data.
 * Members of a folder's group are trusted: folders of data are theirs to write by design, so they may set the data
 * themselves. */
static bool
is_trusted_file(const struct stat *folder, const struct stat *own, int data)
{
    struct stat status;
    return (folder->st_mode & S_IWOTH) == 0 || own->st_uid == 0 || own->st_uid == geteuid() ||
           (data >= 0 && fstat(data, &status) == 0 && own->st_uid == status.st_uid);
}

mc_error *
mc_level_file_begin_opening(mc_level_file **file, const char *path, int data, apr_pool_t *pool)
{
    char text[128];
    struct stat status, folder;
    *file = NULL;
    int fd = open_in_folder(&folder, path, pool);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return MC_OK;
    if (fd < 0 && errno == ELOOP)
        return mc_error_create(pool, MC_ERR_IO, "%s is a symbolic link", path);
    if (fd < 0)
        return mc_error_create(pool, MC_ERR_IO, "%s: %s", path, strerror_r(errno, text, sizeof(text)));
    mc_level_file *made = apr_pcalloc(pool, sizeof(*made));
    made->fd = fd;
    apr_pool_cleanup_register(pool, made, close_level_file, apr_pool_cleanup_null);
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return mc_error_create(pool, MC_ERR_IO, "%s is no file", path);
    if (!is_trusted_file(&folder, &status, data))
        return mc_error_create(pool, MC_ERR_FORBIDDEN, "%s is another user's, in a folder where everybody may write",
                               path);
    made->size = (uint64_t)status.st_size;
    made->pool = pool;
    made->path = apr_pstrdup(pool, path);
    if (!read_level_file_head(made))
        return broken_file_error(path, pool);
    *file = made;
    return MC_OK;
}

mc_error *
mc_level_file_open(mc_level_file **file, const char *path, int data, apr_pool_t *pool)
{
    mc_level_file *made;
    *file = NULL;
    MC_TRY(mc_level_file_begin_opening(&made, path, data, pool));
    if (made != NULL)
        MC_TRY(mc_level_file_go_on_opening(made, NULL, pool));
    *file = made;
    return MC_OK;
}

static bool
is_block_wanted(const mc_level_place *place, const mc_extent *box)
{
    return place->box.minx <= box->maxx && place->box.maxx >= box->minx && place->box.miny <= box->maxy &&
           place->box.maxy >= box->miny;
}

static mc_error *
add_file_block(mc_level_reading *r, uint8_t **bytes, const mc_level_file *file, const mc_level_place *place,
               apr_pool_t *pool)
{
    uint8_t *room = realloc(*bytes, (size_t)place->size + 1);
    if (room == NULL)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "there is no memory for a block of an overview");
    *bytes = room;
    if (mc_files_read_at(file->fd, place->begin, room, place->size) < place->size)
        return mc_error_create(pool, MC_ERR_CORRUPT, "an overview of layer \"%s\" ends too early", r->base->layer);
    return mc_error_copy(mc_level_window_add(r->window, room, place->size), pool);
}

/* A window is whole when the next block is of another part. */
mc_error *
mc_level_file_read(mc_level_reading *r, const mc_level_file *file, int level, const mc_extent *box, apr_pool_t *pool)
{
    const mc_level_place *places = file->places[level], *last = NULL;
    uint8_t *bytes = NULL;
    mc_error *error = MC_OK;
    for (uint32_t i = 0; error == MC_OK && i < file->block_counts[level]; i++) {
        if (!is_block_wanted(&places[i], box))
            continue;
        error = mc_ctx_check(r->base->ctx, pool);
        if (error == MC_OK && last != NULL && last->part != places[i].part)
            error = mc_level_reading_visit(r);
        if (error == MC_OK)
            error = add_file_block(r, &bytes, file, &places[i], pool);
        last = &places[i];
    }
    free(bytes);
    return error == MC_OK ? mc_level_reading_visit(r) : error;
}
