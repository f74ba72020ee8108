/* See file.h. */
#include "vector/shapefile/file.h"
#include "base/budget.h"
#include "base/files.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A record of tens of thousands of vertices. */
enum { COUNTED_FROM = 1 << 20 };

static apr_status_t
close_file_cleanup(void *data)
{
    close(*(const int *)data);
    return APR_SUCCESS;
}

mc_error *
mc_file_open(mc_file *file, const char *path, apr_pool_t *pool)
{
    struct stat status;
    char text[128];
    *file = (mc_file){ -1, 0 };
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO does not wait for its other end */
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return MC_OK;
    if (fd < 0)
        return mc_error_create(pool, MC_ERR_IO, "%s: %s", path, strerror_r(errno, text, sizeof(text)));
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(fd);
        return mc_error_create(pool, MC_ERR_IO, "%s is no file", path);
    }
    *file = (mc_file){ fd, (uint64_t)status.st_size };
    apr_pool_cleanup_register(pool, apr_pmemdup(pool, &fd, sizeof(fd)), close_file_cleanup, apr_pool_cleanup_null);
    return MC_OK;
}

size_t
mc_file_read(const mc_file *file, uint64_t offset, void *buffer, size_t size)
{
    return file->fd < 0 ? 0 : mc_files_read_at(file->fd, offset, buffer, size);
}

/* Gives back what a view has. */
static void
release_window(mc_file_view *view)
{
    free(view->bytes);
    mc_budget_give(view->counted);
    view->bytes = NULL;
    view->room = view->size = view->counted = 0;
}

/* Room for so many bytes; what was inside is given up. Parts of usual size are not counted. */
static bool
reserve_window(mc_file_view *view, size_t size)
{
    if (view->room >= size)
        return true;
    release_window(view);
    view->refused = size >= COUNTED_FROM && !mc_budget_take(size);
    if (view->refused)
        return false;
    view->counted = size >= COUNTED_FROM ? size : 0;
    view->bytes = malloc(size);
    view->refused = view->bytes == NULL;
    view->room = view->refused ? 0 : size;
    return !view->refused;
}

const uint8_t *
mc_file_view_at(mc_file_view *view, uint64_t offset, size_t size, size_t ahead)
{
    if (offset >= view->begin && offset - view->begin <= view->size &&
        size <= view->size - (size_t)(offset - view->begin))
        return view->bytes + (offset - view->begin);
    uint64_t left = offset < view->file->size ? view->file->size - offset : 0;
    if (size > left || size > MC_FILE_VIEW_MAX)
        return NULL;
    size_t wanted = ahead < left - size ? size + ahead : (size_t)left;
    if (!reserve_window(view, wanted))
        return NULL;
    view->begin = offset;
    view->size = mc_file_read(view->file, offset, view->bytes, wanted);
    view->cut = view->cut || view->size < size;
    return view->size >= size ? view->bytes : NULL;
}

void
mc_file_view_free(mc_file_view *view)
{
    release_window(view);
    *view = (mc_file_view){ .file = view->file, .refused = view->refused, .cut = view->cut };
}
