/* Expire lists: no bytes break the reader, wherever the pieces end; its boxes lie in the world and are bounded. */
#include "changes/expire_list.h"

#include "fuzz_support.h"

static apr_pool_t *pool;
static int64_t complaints, last;

int LLVMFuzzerInitialize(int *count, char ***values);
int
LLVMFuzzerInitialize(int *count, char ***values)
{
    (void)count;
    (void)values;
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : 1;
}

static void
count_complaint(void *baton, int64_t line)
{
    (void)baton;
    MC_ASSERT(line > last);
    last = line;
    complaints++;
}

/* The first byte is the size of the pieces. */
static mc_expire_list *
read_pieces(const uint8_t *data, size_t size, size_t piece)
{
    complaints = last = 0;
    mc_expire_list *list = mc_expire_list_create(count_complaint, NULL, pool);
    for (size_t at = 0; at < size; at += piece)
        mc_expire_list_feed(list, (const char *)data + at, size - at < piece ? size - at : piece);
    mc_expire_list_end(list);
    MC_ASSERT(complaints == list->broken && list->tiles + list->broken <= list->line);
    return list;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const double world = 20037508.35;
    if (size < 1)
        return 0;
    const mc_expire_list *list = read_pieces(data + 1, size - 1, data[0] + 1U);
    const mc_expire_list *whole = read_pieces(data + 1, size - 1, size);
    MC_ASSERT(list->tiles == whole->tiles && list->broken == whole->broken && list->line == whole->line);
    MC_ASSERT(!list->boxes->whole && list->boxes->count <= MC_BOX_SET_MAX);
    MC_ASSERT((list->boxes->count > 0) == (list->tiles > 0) && list->boxes->count == whole->boxes->count);
    for (int i = 0; i < list->boxes->count; i++) {
        const mc_extent *box = &list->boxes->boxes[i];
        MC_ASSERT(box->minx < box->maxx && box->miny < box->maxy);
        MC_ASSERT(box->minx >= -world && box->miny >= -world && box->maxx <= world && box->maxy <= world);
    }
    apr_pool_clear(pool);
    return 0;
}
