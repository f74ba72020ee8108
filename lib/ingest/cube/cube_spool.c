/* Room for decoded images. */
#include "ingest/cube/cube_spool.h"
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <apr_strings.h>

static mc_error *
file_failure(const char *what, apr_pool_t *pool)
{
    char words[200];
    apr_strerror(errno, words, sizeof(words));
    return mc_error_create(pool, MC_ERR_IO, "the scratch file %s: %s", what, words);
}

/* Large pages: filling it by small ones costs as much as the copying. */
static mc_error *
open_memory(mc_spool *spool, apr_pool_t *pool)
{
    void *memory = mmap(NULL, spool->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return mc_error_create(pool, MC_ERR_LIMIT, "there are no %lu MB of memory for decoded images",
                               (unsigned long)(spool->size >> 20));
    (void)madvise(memory, spool->size, MADV_HUGEPAGE);
    spool->memory = memory;
    return MC_OK;
}

mc_error *
mc_spool_open(mc_spool *spool, size_t size, const char *folder, apr_pool_t *pool)
{
    *spool = (mc_spool){ NULL, size, -1 };
    if (folder == NULL)
        return open_memory(spool, pool);
    spool->file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (spool->file < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) { /* a file system that has no such files */
        char *name = apr_pstrcat(pool, folder, "/mapcache-cube-XXXXXX", NULL);
        spool->file = mkostemp(name, O_CLOEXEC);
        if (spool->file >= 0)
            unlink(name);
    }
    if (spool->file < 0)
        return file_failure(apr_psprintf(pool, "in %s cannot be made", folder), pool);
    return ftruncate(spool->file, (off_t)size) == 0 ? MC_OK : file_failure("cannot be as large as it must", pool);
}

void
mc_spool_close(mc_spool *spool)
{
    if (spool->memory != NULL)
        munmap(spool->memory, spool->size);
    if (spool->file >= 0)
        close(spool->file);
    *spool = (mc_spool){ NULL, 0, -1 };
}

mc_error *
mc_spool_keep(const mc_spool *spool, size_t offset, const uint8_t *bytes, size_t size, apr_pool_t *pool)
{
    if (spool->memory != NULL) {
        if (bytes != spool->memory + offset)
            memcpy(spool->memory + offset, bytes, size);
        return MC_OK;
    }
    return mc_files_write_at(spool->file, offset, bytes, size) ? MC_OK : file_failure("cannot be written", pool);
}

mc_error *
mc_spool_look(const uint8_t **bytes, const mc_spool *spool, size_t offset, size_t size, uint8_t *buffer,
              apr_pool_t *pool)
{
    *bytes = buffer;
    if (spool->memory != NULL) {
        *bytes = spool->memory + offset;
        return MC_OK;
    }
    return mc_files_read_at(spool->file, offset, buffer, size) == size ? MC_OK : file_failure("cannot be read", pool);
}
