/* See libpng.h. */
#include "image/png/libpng.h"

#include <string.h>

static _Noreturn void
jump_on_libpng_error(png_structp png, png_const_charp message)
{
    mc_libpng *reader = png_get_error_ptr(png);
    strncpy(reader->message, message, sizeof(reader->message) - 1);
    png_longjmp(png, 1);
}

static void
ignore_libpng_warning(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

bool
mc_libpng_create(mc_libpng *reader)
{
    *reader = (mc_libpng){ .png = NULL };
    reader->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, reader, jump_on_libpng_error, ignore_libpng_warning);
    reader->info = reader->png == NULL ? NULL : png_create_info_struct(reader->png);
    return reader->info != NULL;
}

void
mc_libpng_destroy(mc_libpng *reader)
{
    png_destroy_read_struct(&reader->png, &reader->info, NULL);
}

const char *
mc_libpng_reason(const mc_libpng *reader)
{
    return reader->message[0] == '\0' ? "libpng could not start" : reader->message;
}

void
mc_libpng_read_head(mc_libpng *reader, png_uint_32 side_max)
{
    png_set_user_limits(reader->png, side_max, side_max);
    png_set_chunk_malloc_max(reader->png, 1 << 20);
    png_set_keep_unknown_chunks(reader->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_benign_errors(reader->png, 0);
    png_set_check_for_invalid_index(reader->png, -1);
    png_read_info(reader->png, reader->info);
}

void
mc_libpng_expand(mc_libpng *reader, size_t row_size)
{
    png_byte color = png_get_color_type(reader->png, reader->info);
    png_set_expand(reader->png);
    if (png_get_bit_depth(reader->png, reader->info) == 16)
        png_set_scale_16(reader->png);
    if (color == PNG_COLOR_TYPE_GRAY || color == PNG_COLOR_TYPE_GRAY_ALPHA)
        png_set_gray_to_rgb(reader->png);
    png_set_add_alpha(reader->png, 255, PNG_FILLER_AFTER);
    png_set_interlace_handling(reader->png);
    png_read_update_info(reader->png, reader->info);
    if (png_get_rowbytes(reader->png, reader->info) != row_size)
        png_error(reader->png, "an unexpected form");
}
