/* A footprint: made from a decoded tile, shared by reference. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/references.h"
#include "cache/memory.h"
#include "footprint/footprint_private.h"
#include "image/box.h"
#include "memory/scratch.h"

typedef struct footprint {
    mc_footprint head;
    void *large; /* where the pixels are, from the free list of images, or NULL: in `own` */
    uint8_t own[];
} footprint;

/* A footprint of that box, with undefined pixels. NULL without memory. */
static footprint *
create_footprint(const mc_box_image *image, void *(*acquire)(size_t size))
{
    const mc_box *box = &image->box;
    size_t row = (size_t)box->width * 4, bytes = row * (size_t)box->height;
    bool large = bytes >= MC_LARGE_FOOTPRINT;
    footprint *made = malloc(sizeof(*made) + (large ? 0 : bytes));
    if (made == NULL)
        return NULL;
    *made = (footprint){ .head = { .tile_width = image->width,
                                   .tile_height = image->height,
                                   .left = box->left,
                                   .top = box->top,
                                   .width = box->width,
                                   .height = box->height,
                                   .opacity = box->opacity,
                                   .stride = row } };
    atomic_init(&made->head.references, 1);
    made->large = large ? acquire(bytes) : NULL;
    made->head.pixels = large ? made->large : made->own;
    if (made->head.pixels != NULL)
        return made;
    free(made);
    return NULL;
}

/* Where its pixels are written while it is made. */
static uint8_t *
pixels_of(footprint *made)
{
    return made->large != NULL ? made->large : made->own;
}

mc_footprint *
mc_footprint_create(const mc_pixels *pixels, mc_tile *tile)
{
    mc_box_image image = { pixels->width, pixels->height, mc_pixels_box(pixels) };
    const mc_box *box = &image.box;
    footprint *made = create_footprint(&image, mc_scratch_require);
    MC_ASSERT(made != NULL);
    for (int y = 0; y < box->height; y++)
        memcpy(pixels_of(made) + made->head.stride * (size_t)y,
               pixels->data + (size_t)(box->top + y) * pixels->stride + (size_t)box->left * 4, made->head.stride);
    made->head.tag = mc_tile_tag(tile);
    made->head.mtime = tile->mtime;
    return &made->head;
}

static uint8_t *
give_room(void *baton, const mc_box_image *image)
{
    footprint **made = baton;
    *made = create_footprint(image, mc_scratch_acquire);
    return *made == NULL ? NULL : pixels_of(*made);
}

mc_error *
mc_footprint_decode(mc_footprint **result, mc_tile *tile, const mc_grid *grid, mc_ctx *ctx, apr_pool_t *pool)
{
    footprint *made = NULL;
    mc_box_image image;
    MC_TRY(mc_tile_check(tile, grid, ctx, pool));
    mc_error *error = mc_image_decode_box(&image, give_room, &made, tile->data->data, tile->data->size, ctx, pool);
    if (error != MC_OK) {
        if (made != NULL)
            mc_footprint_unref(&made->head);
        return error;
    }
    if (made == NULL) /* nothing shows */
        made = create_footprint(&image, mc_scratch_require);
    MC_ASSERT(made != NULL);
    made->head.tag = mc_tile_tag(tile);
    made->head.mtime = tile->mtime;
    *result = &made->head;
    return MC_OK;
}

size_t
mc_footprint_bytes(const mc_footprint *head)
{
    const footprint *made = (const footprint *)head;
    return sizeof(*made) + made->head.stride * (size_t)made->head.height;
}

mc_footprint *
mc_footprint_ref(mc_footprint *footprint)
{
    mc_references_take(&footprint->references);
    return footprint;
}

void
mc_footprint_unref(mc_footprint *head)
{
    if (head == NULL || !mc_references_drop(&head->references))
        return;
    mc_scratch_release(((footprint *)head)->large);
    free(head);
}
