/* See config_files.h. */
#include "config/config_files.h"

#include <apr_strings.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"

/* Contents of larger files are not compared: for those a new time is a change. */
#define COMPARED_BYTES (64 << 20)

enum { CHUNK = 1 << 16 };

typedef struct read_file {
    const char *path;
    struct stat stamp; /* before it was read; zero: it was not there */
    uint64_t contents; /* hash; 0: not known */
} read_file;

struct mc_config_files {
    apr_pool_t *pool;
    apr_array_header_t *files; /* of read_file */
    apr_hash_t *known;         /* path to anything */
};

/* What may differ between two looks at a file, and nothing else; zero where there is no regular file. */
static struct stat
look_at_config_file(const char *path)
{
    struct stat now;
    if (stat(path, &now) != 0 || !S_ISREG(now.st_mode))
        return (struct stat){ 0 };
    return now;
}

/* A hash of the contents; 0 where they cannot be read, or are more than is compared. */
static uint64_t
hash_config_file(const char *path, const struct stat *stamp)
{
    uint64_t hash = 1;
    size_t size = CHUNK;
    char *chunk;
    if (stamp->st_ino == 0 || stamp->st_size > COMPARED_BYTES)
        return 0;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return 0;
    chunk = malloc(CHUNK);
    MC_ASSERT(chunk != NULL);
    for (uint64_t at = 0; size == CHUNK && at <= COMPARED_BYTES; at += size) {
        size = mc_files_read_at(file, at, chunk, CHUNK);
        hash = mc_hash64(chunk, size, hash);
    }
    free(chunk);
    close(file);
    return hash == 0 ? 1 : hash;
}

mc_config_files *
mc_config_files_create(apr_pool_t *pool)
{
    mc_config_files *files = apr_palloc(pool, sizeof(*files));
    *files = (mc_config_files){ pool, apr_array_make(pool, 8, sizeof(read_file)), apr_hash_make(pool) };
    return files;
}

static void
push_config_file(mc_config_files *files, const read_file *file)
{
    read_file *made = &APR_ARRAY_PUSH(files->files, read_file);
    *made = *file;
    made->path = apr_pstrdup(files->pool, file->path);
    apr_hash_set(files->known, made->path, APR_HASH_KEY_STRING, "");
}

void
mc_config_files_note(mc_config_files *files, const char *path)
{
    if (files == NULL || *path == '\0' || apr_hash_get(files->known, path, APR_HASH_KEY_STRING) != NULL)
        return;
    read_file file = { path, look_at_config_file(path), 0 };
    file.contents = hash_config_file(path, &file.stamp);
    push_config_file(files, &file);
}

mc_config_files *
mc_config_files_copy(const mc_config_files *files, apr_pool_t *pool)
{
    mc_config_files *copy = mc_config_files_create(pool);
    for (int i = 0; i < files->files->nelts; i++)
        push_config_file(copy, &APR_ARRAY_IDX(files->files, i, read_file));
    return copy;
}

int
mc_config_files_count(const mc_config_files *files)
{
    return files->files->nelts;
}

const char *
mc_config_files_path(const mc_config_files *files, int index)
{
    return APR_ARRAY_IDX(files->files, index, read_file).path;
}

/* Whether a file with another stamp has the contents that it had. */
static bool
has_same_contents(const read_file *file, const struct stat *now)
{
    return file->contents != 0 && now->st_size == file->stamp.st_size &&
           hash_config_file(file->path, now) == file->contents;
}

const char *
mc_config_files_changed(mc_config_files *files)
{
    for (int i = 0; i < files->files->nelts; i++) {
        read_file *file = &APR_ARRAY_IDX(files->files, i, read_file);
        const struct stat now = look_at_config_file(file->path);
        if (mc_files_same(&now, &file->stamp))
            continue;
        if (i == 0 || !has_same_contents(file, &now))
            return file->path;
        file->stamp = now;
    }
    return NULL;
}

uint64_t
mc_config_files_stamp(const mc_config_files *files)
{
    uint64_t hash = 0;
    for (int i = 0; i < files->files->nelts; i++) {
        const char *path = APR_ARRAY_IDX(files->files, i, read_file).path;
        const struct stat now = look_at_config_file(path);
        const int64_t told[] = { (int64_t)now.st_dev,          (int64_t)now.st_ino,  (int64_t)now.st_size,
                                 (int64_t)now.st_mtim.tv_sec,  now.st_mtim.tv_nsec,  (int64_t)now.st_ctim.tv_sec,
                                 (int64_t)now.st_ctim.tv_nsec, (int64_t)strlen(path) };
        hash = mc_hash64(path, strlen(path), mc_hash64(told, sizeof(told), hash));
    }
    return hash;
}
