/* A footprint: made from a decoded tile, shared by reference. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cache/footprint_private.h"
#include "image/box.h"

typedef struct footprint {
    mc_footprint head;
    mc_pixels *whole; /* what head.pixels points into, or NULL: into `own` */
    uint8_t own[];
} footprint;

static footprint *
allocate(size_t own)
{
    footprint *made = malloc(sizeof(*made) + own);
    MC_ASSERT(made != NULL);
    *made = (footprint){ 0 };
    atomic_init(&made->head.references, 1);
    return made;
}

/* A copy of the box alone, unless it is nearly all there is. */
static footprint *
cut_out(mc_pixels *pixels, const mc_box *box)
{
    size_t row = (size_t)box->width * 4;
    size_t bytes = row * (size_t)box->height;
    const uint8_t *corner = pixels->data + (size_t)box->top * pixels->stride + (size_t)box->left * 4;
    bool keep = bytes > pixels->capacity / 4 * 3;
    footprint *made = allocate(keep ? 0 : bytes);
    if (keep) {
        made->whole = mc_pixels_ref(pixels);
        made->head.stride = pixels->stride;
        made->head.pixels = corner;
        return made;
    }
    made->head.stride = row;
    made->head.pixels = made->own;
    for (int y = 0; y < box->height; y++)
        memcpy(made->own + row * (size_t)y, corner + pixels->stride * (size_t)y, row);
    return made;
}

mc_footprint *
mc_footprint_create(mc_pixels *pixels, mc_tile *tile)
{
    mc_box box = mc_pixels_box(pixels);
    footprint *made = cut_out(pixels, &box);
    mc_footprint *head = &made->head;
    head->tile_width = pixels->width;
    head->tile_height = pixels->height;
    head->left = box.left;
    head->top = box.top;
    head->width = box.width;
    head->height = box.height;
    head->opacity = box.opacity;
    head->tag = mc_tile_tag(tile);
    head->mtime = tile->mtime;
    return head;
}

size_t
mc_footprint_bytes(const mc_footprint *head)
{
    const footprint *made = (const footprint *)head;
    return sizeof(*made) + (made->whole != NULL ? made->whole->capacity : head->stride * (size_t)head->height);
}

mc_footprint *
mc_footprint_ref(mc_footprint *footprint)
{
    atomic_fetch_add_explicit(&footprint->references, 1, memory_order_relaxed);
    return footprint;
}

void
mc_footprint_unref(mc_footprint *head)
{
    if (head == NULL)
        return;
    unsigned before = atomic_fetch_sub_explicit(&head->references, 1, memory_order_acq_rel);
    MC_ASSERT(before > 0);
    if (before > 1)
        return;
    mc_pixels_unref(((footprint *)head)->whole);
    free(head);
}
