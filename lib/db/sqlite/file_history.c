/* See file_history.h. */
#include "db/sqlite/file_history.h"

#include <apr_strings.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"

enum {
    REFUSED = 64, /* foreign -wal files that are remembered */
    WRITTEN = 64, /* files that were written, likewise */
};

struct foreign_wal {
    uint64_t device, inode;
    int64_t birth;
};

struct written {
    uint64_t path; /* its hash; 0: none */
    uint64_t folder_device;
};

struct mc_file_history {
    pthread_mutex_t mutex; /* guards all below; nothing else is locked under it */
    struct foreign_wal foreign[REFUSED];
    unsigned foreign_count;
    struct written written[WRITTEN];
    unsigned written_count;
};

mc_file_history *
mc_file_history_create(void)
{
    mc_file_history *history = calloc(1, sizeof(*history));
    MC_ASSERT(history != NULL);
    pthread_mutex_init(&history->mutex, NULL);
    return history;
}

void
mc_file_history_destroy(mc_file_history *history)
{
    pthread_mutex_destroy(&history->mutex);
    free(history);
}

/* When a file was made, by statx(); 0 where the file system does not know. */
static int64_t
birth_of(const char *path)
{
    struct statx info;
    if (statx(AT_FDCWD, path, 0, STATX_BTIME, &info) != 0 || !(info.stx_mask & STATX_BTIME))
        return 0;
    return info.stx_btime.tv_sec * APR_USEC_PER_SEC + info.stx_btime.tv_nsec / 1000;
}

static const char *
wal_of(const char *path, apr_pool_t *pool)
{
    return apr_pstrcat(pool, path, "-wal", NULL);
}

void
mc_file_history_note_wal(mc_file_history *history, const char *path, apr_time_t used, const mc_stamp *stamp,
                         apr_pool_t *pool)
{
    int64_t birth = birth_of(wal_of(path, pool));
    if (birth > used)
        return;
    pthread_mutex_lock(&history->mutex);
    history->foreign[history->foreign_count++ % REFUSED] =
        (struct foreign_wal){ stamp->device, stamp->wal_inode, birth };
    pthread_mutex_unlock(&history->mutex);
}

bool
mc_file_history_wal_is_foreign(mc_file_history *history, const char *path, const mc_stamp *stamp, apr_pool_t *pool)
{
    if (stamp == NULL || stamp->wal_size <= 0)
        return false;
    int64_t wal_birth = birth_of(wal_of(path, pool));
    int64_t file_birth = birth_of(path);
    if (wal_birth != 0 && file_birth != 0 && wal_birth < file_birth)
        return true;
    bool known = false;
    if (history != NULL) {
        pthread_mutex_lock(&history->mutex);
        for (int i = 0; i < REFUSED && !known; i++)
            known = history->foreign[i].inode == stamp->wal_inode && history->foreign[i].device == stamp->device &&
                    history->foreign[i].birth == wal_birth;
        pthread_mutex_unlock(&history->mutex);
    }
    return known;
}

/* The file system of a file's folder; false where there is no folder. */
static bool
find_folder(uint64_t *device, const char *path, apr_pool_t *pool)
{
    struct stat info;
    const char *slash = strrchr(path, '/');
    if (stat(slash == NULL ? "." : apr_pstrmemdup(pool, path, (size_t)(slash - path) + 1), &info) != 0)
        return false;
    *device = info.st_dev;
    return true;
}

/* Under the mutex. NULL: this process has not written the file, or many others since. */
static struct written *
find_written(mc_file_history *history, const char *path)
{
    uint64_t hash = mc_hash64(path, strlen(path), 0);
    for (int i = 0; i < WRITTEN; i++)
        if (history->written[i].path == hash)
            return &history->written[i];
    return NULL;
}

void
mc_file_history_note_written(mc_file_history *history, const char *path, apr_pool_t *pool)
{
    struct written now = { .path = mc_hash64(path, strlen(path), 0) };
    if (!find_folder(&now.folder_device, path, pool))
        return;
    pthread_mutex_lock(&history->mutex);
    struct written *known = find_written(history, path);
    if (known == NULL)
        known = &history->written[history->written_count++ % WRITTEN];
    *known = now;
    pthread_mutex_unlock(&history->mutex);
}

mc_error *
mc_file_history_check_away(mc_file_history *history, const char *path, apr_pool_t *pool)
{
    uint64_t device;
    pthread_mutex_lock(&history->mutex);
    const struct written *known = find_written(history, path);
    uint64_t before = known == NULL ? 0 : known->folder_device;
    pthread_mutex_unlock(&history->mutex);
    if (known == NULL || (find_folder(&device, path, pool) && device == before))
        return MC_OK;
    return mc_error_create(pool, MC_ERR_UNAVAILABLE, "the folder of %s has gone, or is another one: is it mounted?",
                           path);
}
