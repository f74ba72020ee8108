/* The first picture of a GIF by giflib, in a module of its own (mapcache-gif.so). */
#include <apr_strings.h>
#include <gif_lib.h>
#include <string.h>

#include "draw/symbol/picture_private.h"

/* What is left of the bytes. */
typedef struct input {
    const char *at;
    size_t left;
} input;

static int
read_gif_bytes(GifFileType *gif, GifByteType *to, int count)
{
    input *from = gif->UserData;
    size_t size = count < 0 ? 0 : (size_t)count < from->left ? (size_t)count : from->left;
    memcpy(to, from->at, size);
    from->at += size;
    from->left -= size;
    return (int)size;
}

/* Passes over an extension; which colour is transparent is one (GIF89a, 23). False where it is broken. */
static bool
read_extension(int *transparent, GifFileType *gif)
{
    GraphicsControlBlock control;
    GifByteType *block;
    int code;
    if (DGifGetExtension(gif, &code, &block) == GIF_ERROR)
        return false;
    while (block != NULL) {
        if (code == GRAPHICS_EXT_FUNC_CODE && DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
            *transparent = control.TransparentColor;
        if (DGifGetExtensionNext(gif, &block) == GIF_ERROR)
            return false;
    }
    return true;
}

/* Up to the first picture; false where there is none. */
static bool
find_gif_image(int *transparent, GifFileType *gif)
{
    GifRecordType record;
    *transparent = NO_TRANSPARENT_COLOR;
    while (DGifGetRecordType(gif, &record) != GIF_ERROR) {
        if (record == IMAGE_DESC_RECORD_TYPE)
            return DGifGetImageDesc(gif) != GIF_ERROR;
        if (record != EXTENSION_RECORD_TYPE || !read_extension(transparent, gif))
            return false;
    }
    return false;
}

/* Puts a row of it onto the pixels; what reaches over them is left out. */
static void
put_gif_row(mc_pixels *pixels, const GifFileType *gif, const ColorMapObject *colors, int row, const GifPixelType *line,
            int transparent)
{
    int y = gif->Image.Top + row;
    for (int i = 0; i < gif->Image.Width && y < pixels->height; i++) {
        int x = gif->Image.Left + i;
        if (x >= pixels->width || line[i] == transparent || line[i] >= colors->ColorCount)
            continue;
        const GifColorType *color = &colors->Colors[line[i]];
        const uint8_t bgra[4] = { color->Blue, color->Green, color->Red, 255 };
        memcpy(pixels->data + (size_t)y * pixels->stride + (size_t)x * 4, bgra, 4);
    }
}

/* Rows come in order, or in four passes (GIF89a, appendix E). */
static bool
read_gif_rows(mc_pixels *pixels, GifFileType *gif, int transparent, apr_pool_t *pool)
{
    static const int first[] = { 0, 4, 2, 1 }, step[] = { 8, 8, 4, 2 };
    const ColorMapObject *colors = gif->Image.ColorMap != NULL ? gif->Image.ColorMap : gif->SColorMap;
    bool woven = gif->Image.Interlace;
    if (colors == NULL)
        return false;
    GifPixelType *line = apr_palloc(pool, (size_t)gif->Image.Width);
    for (int pass = 0; pass < (woven ? 4 : 1); pass++)
        for (int row = woven ? first[pass] : 0; row < gif->Image.Height; row += woven ? step[pass] : 1) {
            if (DGifGetLine(gif, line, gif->Image.Width) == GIF_ERROR)
                return false;
            put_gif_row(pixels, gif, colors, row, line, transparent);
        }
    return true;
}

static mc_error *
decode_opened(mc_pixels **pixels, GifFileType *gif, apr_pool_t *pool)
{
    int transparent;
    mc_pixels *made;
    if (gif->SWidth < 1 || gif->SHeight < 1 || gif->SWidth > MC_PICTURE_NATIVE_MAX ||
        gif->SHeight > MC_PICTURE_NATIVE_MAX)
        return mc_error_create(pool, MC_ERR_LIMIT, "a GIF of %dx%d pixels", gif->SWidth, gif->SHeight);
    if (!find_gif_image(&transparent, gif))
        return mc_error_create(pool, MC_ERR_CORRUPT, "a GIF without a picture");
    const GifImageDesc *image = &gif->Image;
    if (image->Width < 1 || image->Height < 1 || image->Width > MC_PICTURE_NATIVE_MAX ||
        image->Height > MC_PICTURE_NATIVE_MAX)
        return mc_error_create(pool, MC_ERR_LIMIT, "a GIF with a picture of %dx%d pixels", image->Width, image->Height);
    MC_TRY(mc_pixels_create(&made, gif->SWidth, gif->SHeight, true, pool));
    if (!read_gif_rows(made, gif, transparent, pool)) {
        mc_pixels_unref(made);
        return mc_error_create(pool, MC_ERR_CORRUPT, "a GIF that is cut short or broken");
    }
    made->opacity = MC_OPACITY_UNKNOWN;
    *pixels = made;
    return MC_OK;
}

static mc_error *
decode_gif(mc_pixels **pixels, const char *bytes, size_t size, apr_pool_t *pool)
{
    input from = { bytes, size };
    int why = 0;
    GifFileType *gif = DGifOpen(&from, read_gif_bytes, &why);
    if (gif == NULL)
        return mc_error_create(pool, MC_ERR_CORRUPT, "a GIF that cannot be read: error %d of giflib", why);
    mc_error *error = decode_opened(pixels, gif, pool);
    (void)DGifCloseFile(gif, &why); /* its complaint is that not all of the file has been read */
    return error;
}

const mc_gif_ops mc_gif_giflib_ops = { decode_gif };
