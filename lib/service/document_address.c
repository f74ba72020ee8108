/* See document_address.h. */
#include "service/document_address.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool
mc_address_is_plain(const char *address)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/.-_~%[]";
    return address[strspn(address, plain)] == '\0';
}

/* The next mark from `at` on; NULL: there is none. */
static const char *
next_mark(const char *at, const mc_buf *text, const char *mark)
{
    const char *end = (const char *)text->data + text->size;
    return memmem(at, (size_t)(end - at), mark, strlen(mark));
}

bool
mc_address_can_be_filled(const mc_buf *text, const char *mark)
{
    const char *at = (const char *)text->data, *end = at + text->size;
    while ((at = next_mark(at, text, mark)) != NULL) {
        at += strlen(mark);
        if (at == end || (*at != '/' && *at != '?'))
            return false;
    }
    return true;
}

/* The most bytes of the text once each mark, with what follows it, has become one of `longest` bytes. */
static size_t
filled_size(const mc_buf *text, const char *mark, size_t longest)
{
    const size_t marked = strlen(mark) + 1;
    size_t size = text->size;
    if (longest <= marked)
        return size;
    for (const char *at = (const char *)text->data; (at = next_mark(at, text, mark)) != NULL; at += marked)
        size += longest - marked;
    return size;
}

/* New memory is given page by page as it is written to, which takes longer than all the rest: all of it at once. */
static void
fault_pages_in(uint8_t *data, size_t size)
{
#ifdef MADV_POPULATE_WRITE
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)data + page - 1) / page * page, end = ((uintptr_t)data + size) / page * page;
    if (begin < end)
        (void)madvise((void *)begin, end - begin, MADV_POPULATE_WRITE); /* Linux before 5.14 knows none */
#else
    (void)data;
    (void)size;
#endif
}

mc_error *
mc_address_fill(mc_buf **filled, const mc_buf *text, const char *mark, const mc_call *call, apr_pool_t *pool)
{
    const char *wms = mc_url_wms(call, pool), *at = (const char *)text->data, *end = at + text->size, *place;
    const size_t base_size = strlen(call->base), wms_size = strlen(wms), mark_size = strlen(mark);
    const size_t size = filled_size(text, mark, base_size > wms_size ? base_size : wms_size);
    *filled = mc_buf_attach(mc_buf_create(0, size), pool);
    MC_TRY(mc_buf_reserve(*filled, size, pool));
    fault_pages_in((*filled)->data, (*filled)->capacity);
    for (; (place = next_mark(at, text, mark)) != NULL; at = place + mark_size + 1) {
        const bool is_wms = place[mark_size] == '?';
        MC_TRY(mc_buf_append(*filled, at, (size_t)(place - at), pool));
        MC_TRY(mc_buf_append(*filled, is_wms ? wms : call->base, is_wms ? wms_size : base_size, pool));
    }
    return mc_buf_append(*filled, at, (size_t)(end - at), pool);
}
