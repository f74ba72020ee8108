/* See mapped.h. */
#include "feature/mapped.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static apr_status_t
unmap(void *data)
{
    mc_mapped *file = data;
    munmap((void *)(uintptr_t)file->bytes, file->size);
    return APR_SUCCESS;
}

static mc_error *
failure(const char *path, apr_pool_t *pool)
{
    char text[128];
    return mc_error_create(pool, MC_ERR_IO, "%s: %s", path, strerror_r(errno, text, sizeof(text)));
}

mc_error *
mc_mapped_open(mc_mapped *file, bool *found, const char *path, apr_pool_t *pool)
{
    struct stat status;
    *file = (mc_mapped){ NULL, 0 };
    *found = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? MC_OK : failure(path, pool);
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(fd);
        return mc_error_create(pool, MC_ERR_IO, "%s is no file", path);
    }
    *found = true;
    if (status.st_size == 0) {
        close(fd);
        return MC_OK;
    }
    void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    mc_error *error = bytes == MAP_FAILED ? failure(path, pool) : MC_OK;
    close(fd);
    MC_TRY(error);
    *file = (mc_mapped){ bytes, (size_t)status.st_size };
    apr_pool_cleanup_register(pool, apr_pmemdup(pool, file, sizeof(*file)), unmap, apr_pool_cleanup_null);
    return MC_OK;
}
