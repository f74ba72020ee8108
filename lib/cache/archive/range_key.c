/* What parts of files are remembered under. */
#include <string.h>

#include "cache/archive/ranges.h"

void
mc_ranges_key(mc_range_key *key, const mc_ranged_file *file, uint64_t what, uint64_t offset, uint64_t size)
{
    struct {
        uint64_t what, offset, size;
        mc_stamp stamp;
    } head;
    size_t path = strlen(file->path);
    memset(&head, 0, sizeof(head));
    head.what = what;
    head.offset = offset;
    head.size = size;
    head.stamp = file->stamp;
    key->size = sizeof(head) + path <= sizeof(key->bytes) ? sizeof(head) + path : 0;
    if (key->size == 0)
        return;
    memcpy(key->bytes, &head, sizeof(head));
    memcpy(key->bytes + sizeof(head), file->path, path);
}
