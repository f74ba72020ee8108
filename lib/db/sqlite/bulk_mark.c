/* The mark beside a file that a bulk load has taken out of WAL mode: whoever kills the load leaves the mark, and the
 * next writer puts the mode back. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "db/sqlite/handle_private.h"

enum { MARK_BYTES = 4096 + 8 };

/* False: the path is too long for a mark. */
static bool
bulk_mark_of(char mark[MARK_BYTES], const char *path)
{
    return snprintf(mark, MARK_BYTES, "%s-bulk", path) < MARK_BYTES;
}

int
mc_bulk_mark_set(const char *path)
{
    char mark[MARK_BYTES];
    int file = bulk_mark_of(mark, path) ? open(mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
    if (file < 0)
        return errno == EEXIST ? 0 : -1;
    close(file);
    return 1;
}

void
mc_bulk_mark_remove(const char *path)
{
    char mark[MARK_BYTES];
    if (bulk_mark_of(mark, path))
        (void)unlink(mark);
}

bool
mc_bulk_mark_is_set(const char *path)
{
    char mark[MARK_BYTES];
    return bulk_mark_of(mark, path) && access(mark, F_OK) == 0;
}
