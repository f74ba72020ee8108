/* See level_writer.h. */
#include "vector/levels/level_writer.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/files.h"

enum { SPOOL_BUFFER = 1 << 18, TRIES = 10 };

struct mc_level_spool {
    mc_level_writer *writer;
    FILE *file;
    apr_array_header_t *places; /* mc_level_place */
    uint64_t size;
    mc_level_range range;
    int digits;
    int64_t features;
};

struct mc_level_writer {
    const char *path, *temporary, *spool; /* spool: a name that each spool has for a moment */
    int fd;                               /* of the temporary file, which has the lock */
    apr_pool_t *pool;
    mc_level_spool *kept[MC_LEVELS_MAX];
    int count;
};

const char *
mc_level_file_path(const char *base, uint64_t style, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%s.%016" PRIx64 ".mcov", base, style);
}

static mc_error *
write_error(const char *path, apr_pool_t *pool)
{
    char text[128];
    return mc_error_create(pool, MC_ERR_IO, "overviews cannot be written to %s: %s", path,
                           strerror_r(errno, text, sizeof(text)));
}

static apr_status_t
close_writer(void *data)
{
    mc_level_writer *writer = data;
    if (writer->fd >= 0) {
        unlink(writer->temporary); /* not there any more where the file was renamed */
        close(writer->fd);
    }
    return APR_SUCCESS;
}

/* *busy: the process that has the lock, 0: none. False: the file cannot be opened. */
static bool
lock_temporary(int *fd, pid_t *busy, const char *path)
{
    struct stat own, named;
    *busy = 0;
    for (int i = 0; i < TRIES; i++) {
        struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (*fd < 0)
            return false;
        if (fcntl(*fd, F_SETLK, &all) == 0) {
            /* another builder may have renamed or removed the file meanwhile */
            const bool same = fstat(*fd, &own) == 0 && stat(path, &named) == 0 && own.st_ino == named.st_ino &&
                              own.st_dev == named.st_dev;
            if (same && S_ISREG(own.st_mode) && own.st_nlink == 1 && own.st_uid == geteuid())
                return true;
            if (same) /* somebody else's, who must not have it written over, or must not write to it meanwhile */
                unlink(path);
        } else if (errno != EACCES && errno != EAGAIN) {
            close(*fd);
            return false;
        } else if (fcntl(*fd, F_GETLK, &all) == 0 && all.l_type != F_UNLCK) {
            *busy = all.l_pid;
            i = TRIES;
        }
        close(*fd);
        *fd = -1;
    }
    return true;
}

mc_error *
mc_level_writer_open(mc_level_writer **writer, const char *path, apr_pool_t *pool)
{
    mc_level_writer *made = apr_pcalloc(pool, sizeof(*made));
    pid_t busy;
    made->path = path;
    made->temporary = apr_pstrcat(pool, path, ".tmp", NULL);
    made->pool = pool;
    if (!lock_temporary(&made->fd, &busy, made->temporary))
        return write_error(path, pool);
    if (made->fd < 0)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "somebody else builds %s: process %d", path, (int)busy);
    apr_pool_cleanup_register(pool, made, close_writer, apr_pool_cleanup_null);
    made->spool = apr_pstrcat(pool, made->temporary, ".spool", NULL);
    unlink(made->spool); /* of a builder that was killed */
    *writer = made;
    return MC_OK;
}

static apr_status_t
close_spool(void *data)
{
    fclose(((mc_level_spool *)data)->file);
    return APR_SUCCESS;
}

mc_error *
mc_level_spool_create(mc_level_spool **spool, mc_level_writer *writer)
{
    mc_level_spool *made = apr_pcalloc(writer->pool, sizeof(*made));
    int fd = open(writer->spool, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return write_error(writer->spool, writer->pool);
    unlink(writer->spool);
    made->file = fdopen(fd, "w+");
    if (made->file == NULL) {
        close(fd);
        return write_error(writer->spool, writer->pool);
    }
    made->writer = writer;
    made->places = apr_array_make(writer->pool, 256, sizeof(mc_level_place));
    apr_pool_cleanup_register(writer->pool, made, close_spool, apr_pool_cleanup_null);
    *spool = made;
    return MC_OK;
}

mc_error *
mc_level_spool_add(mc_level_spool *spool, const mc_level_place *place, const void *bytes)
{
    if (place->size > MC_LEVEL_BLOCK_MAX)
        return mc_error_create(spool->writer->pool, MC_ERR_LIMIT, "a block of an overview is too large");
    if (fwrite(bytes, 1, place->size, spool->file) != place->size)
        return write_error(spool->writer->path, spool->writer->pool);
    mc_level_place *added = &APR_ARRAY_PUSH(spool->places, mc_level_place);
    *added = *place;
    added->begin = spool->size; /* in the spool */
    spool->size += place->size;
    return MC_OK;
}

static int
compare_level_places(const void *a, const void *b)
{
    const mc_level_place *left = a, *right = b;
    if (left->part != right->part)
        return left->part < right->part ? -1 : 1;
    return left->begin < right->begin ? -1 : left->begin > right->begin;
}

mc_error *
mc_level_spool_read(mc_level_reading *r, mc_level_spool *spool, const mc_extent *box, apr_pool_t *pool)
{
    mc_level_file file = { .fd = fileno(spool->file), .count = 1, .block_counts = { (uint32_t)spool->places->nelts } };
    if (fflush(spool->file) != 0)
        return write_error(spool->writer->path, pool);
    qsort(spool->places->elts, (size_t)spool->places->nelts, sizeof(mc_level_place), compare_level_places);
    file.places[0] = (mc_level_place *)spool->places->elts;
    return mc_level_file_read(r, &file, 0, box, pool);
}

uint64_t
mc_level_spool_keep(mc_level_spool *spool, const mc_level_range *range, int digits, int64_t features)
{
    mc_level_writer *writer = spool->writer;
    spool->range = *range;
    spool->digits = digits;
    spool->features = features;
    qsort(spool->places->elts, (size_t)spool->places->nelts, sizeof(mc_level_place), compare_level_places);
    if (writer->count < MC_LEVELS_MAX)
        writer->kept[writer->count++] = spool;
    return spool->size + (uint64_t)spool->places->nelts * MC_LEVEL_FILE_BLOCK + MC_LEVEL_FILE_LEVEL;
}

/* The head and the levels; the index of each is followed by its blocks. */
static bool
write_file_head(FILE *out, const mc_level_writer *writer, uint64_t style, const mc_level_origin *origin)
{
    uint8_t bytes[MC_LEVEL_FILE_HEAD + MC_LEVELS_MAX * MC_LEVEL_FILE_LEVEL], *at = bytes;
    uint64_t size = MC_LEVEL_FILE_HEAD + (uint64_t)writer->count * MC_LEVEL_FILE_LEVEL, begin = size;
    for (int i = 0; i < writer->count; i++)
        size += writer->kept[i]->size + (uint64_t)writer->kept[i]->places->nelts * MC_LEVEL_FILE_BLOCK;
    memcpy(at, MC_LEVEL_FILE_MAGIC, 8);
    at = mc_store_little64(mc_store_little64(at + 8, style), origin->definition);
    at = mc_store_little64(at, origin->content);
    for (int i = 0; i < MC_LEVEL_ORIGINS; i++) {
        const mc_level_origin_file *file = &origin->files[i];
        at = mc_store_little64(mc_store_little64(at, (uint64_t)file->size), file->inode);
        at = mc_store_little64(mc_store_little64(at, (uint64_t)file->changed), (uint64_t)file->touched);
    }
    at = mc_store_little32(mc_store_little32(mc_store_little64(at, size), (uint32_t)writer->count), 0);
    for (int i = 0; i < writer->count; i++) {
        const mc_level_spool *spool = writer->kept[i];
        at = mc_store_little_double(mc_store_little_double(at, spool->range.resolution), spool->range.until);
        at = mc_store_little_double(at, spool->range.metres_per_unit);
        at = mc_store_little32(mc_store_little32(at, (uint32_t)spool->digits), (uint32_t)spool->places->nelts);
        at = mc_store_little64(mc_store_little64(at, begin), (uint64_t)spool->features);
        begin += spool->size + (uint64_t)spool->places->nelts * MC_LEVEL_FILE_BLOCK;
    }
    return fwrite(bytes, 1, (size_t)(at - bytes), out) == (size_t)(at - bytes);
}

static bool
copy_spooled_block(FILE *out, const mc_level_spool *spool, const mc_level_place *place, uint8_t *buffer)
{
    for (uint32_t done = 0; done < place->size;) {
        const size_t some = place->size - done < SPOOL_BUFFER ? place->size - done : SPOOL_BUFFER;
        if (mc_files_read_at(fileno(spool->file), place->begin + done, buffer, some) < some ||
            fwrite(buffer, 1, some, out) < some)
            return false;
        done += (uint32_t)some;
    }
    return true;
}

static bool
write_file_level(FILE *out, mc_level_spool *spool, uint64_t *begin, uint8_t *buffer)
{
    const mc_level_place *places = (const mc_level_place *)spool->places->elts;
    bool good = fflush(spool->file) == 0;
    *begin += (uint64_t)spool->places->nelts * MC_LEVEL_FILE_BLOCK;
    for (int i = 0; good && i < spool->places->nelts; i++) {
        uint8_t entry[MC_LEVEL_FILE_BLOCK];
        const mc_extent *box = &places[i].box;
        uint8_t *at = mc_store_little_double(mc_store_little_double(entry, box->minx), box->miny);
        at = mc_store_little64(mc_store_little_double(mc_store_little_double(at, box->maxx), box->maxy), *begin);
        (void)mc_store_little32(mc_store_little32(at, places[i].size), places[i].part);
        good = fwrite(entry, 1, sizeof(entry), out) == sizeof(entry);
        *begin += places[i].size;
    }
    for (int i = 0; good && i < spool->places->nelts; i++)
        good = copy_spooled_block(out, spool, &places[i], buffer);
    return good;
}

mc_error *
mc_level_writer_finish(mc_level_writer *writer, uint64_t style, const mc_level_origin *origin)
{
    bool removed;
    if (writer->count == 0)
        return mc_level_writer_remove(&removed, writer);
    uint64_t begin = MC_LEVEL_FILE_HEAD + (uint64_t)writer->count * MC_LEVEL_FILE_LEVEL;
    uint8_t *buffer = apr_palloc(writer->pool, SPOOL_BUFFER);
    /* closing any descriptor of the file would give up the lock: the stream has the file's own, which is kept */
    FILE *out = ftruncate(writer->fd, 0) == 0 ? fdopen(writer->fd, "w") : NULL;
    if (out == NULL)
        return write_error(writer->path, writer->pool);
    bool good = write_file_head(out, writer, style, origin);
    for (int i = 0; good && i < writer->count; i++)
        good = write_file_level(out, writer->kept[i], &begin, buffer);
    good = good && fflush(out) == 0 && fsync(writer->fd) == 0 && rename(writer->temporary, writer->path) == 0;
    mc_error *error = good ? MC_OK : write_error(writer->path, writer->pool);
    if (!good)
        unlink(writer->temporary);
    fclose(out);
    writer->fd = -1;
    return error;
}

mc_error *
mc_level_writer_remove(bool *removed, mc_level_writer *writer)
{
    *removed = unlink(writer->path) == 0;
    return *removed || errno == ENOENT ? MC_OK : write_error(writer->path, writer->pool);
}
