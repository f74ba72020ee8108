#include "images.h"

#include "unit.h"

mc_pixels *
clear_image(int width, int height)
{
    mc_pixels *pixels;
    ck_ok(mc_pixels_create(&pixels, width, height, true, pool));
    return mc_pixels_attach(pixels, pool);
}

mc_pixels *
decoded_image(const mc_buf *bytes)
{
    mc_pixels *pixels;
    ck_ok(mc_image_decode(&pixels, bytes->data, bytes->size, &ctx, pool));
    return mc_pixels_attach(pixels, pool);
}
