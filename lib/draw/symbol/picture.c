/* Pictures: found, read, scaled and remembered. See picture.h. */
#include "draw/symbol/picture.h"

#include <apr_strings.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/module.h"
#include "base/stamp.h"
#include "draw/style/expression.h"
#include "draw/symbol/picture_private.h"
#include "memory/clock_cache.h"

enum { REMEMBERED_BYTES = 32 << 20, NAME_SIZE_MAX = 255 };

static mc_clock_cache *remembered;

static void
create_remembered(void)
{
    remembered = mc_clock_cache_create(REMEMBERED_BYTES);
}

static mc_clock_cache *
get_picture_table(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, create_remembered);
    return remembered;
}

static void
free_pixels(void *pixels)
{
    mc_pixels_unref(pixels);
}

const char *
mc_picture_inside(const char *folder, const char *name, apr_pool_t *pool)
{
    char real[PATH_MAX];
    size_t size = strlen(folder);
    if (*name == '\0' || realpath(apr_pstrcat(pool, folder, "/", name, NULL), real) == NULL)
        return NULL;
    bool inside = strncmp(real, folder, size) == 0 && (real[size] == '/' || size == 1);
    return inside ? apr_pstrdup(pool, real) : NULL;
}

bool
mc_picture_is_svg(const char *bytes, size_t size)
{
    size_t begin = size < 4096 ? size : 4096;
    for (size_t i = 0; i + 4 < begin; i++)
        if (memcmp(bytes + i, "<svg", 4) == 0)
            return true;
    return false;
}

static bool
is_gif(const char *bytes, size_t size)
{
    return size >= 10 && (memcmp(bytes, "GIF87a", 6) == 0 || memcmp(bytes, "GIF89a", 6) == 0);
}

mc_error *
mc_picture_size(int *width, int *height, const char *bytes, size_t size, apr_pool_t *pool)
{
    const uint8_t *head = (const uint8_t *)bytes;
    if (!is_gif(bytes, size))
        return mc_image_size(width, height, bytes, size, pool);
    *width = head[6] | head[7] << 8; /* GIF89a, 18 */
    *height = head[8] | head[9] << 8;
    return *width > 0 && *height > 0 ? MC_OK : mc_error_create(pool, MC_ERR_CORRUPT, "a GIF of no size");
}

mc_error *
mc_picture_decode(mc_pixels **pixels, const char *bytes, size_t size, mc_ctx *ctx, apr_pool_t *pool)
{
    void *symbol;
    if (!is_gif(bytes, size))
        return mc_image_decode(pixels, bytes, size, ctx, pool);
    MC_TRY(mc_module_symbol(&symbol, "gif", MC_GIF_SYMBOL, pool));
    return ((const mc_gif_ops *)symbol)->decode(pixels, bytes, size, pool);
}

bool
mc_picture_is_known(const char *bytes, size_t size)
{
    mc_coding coding = mc_image_sniff(bytes, size);
    return coding == MC_CODING_PNG || coding == MC_CODING_JPEG || is_gif(bytes, size) || mc_picture_is_svg(bytes, size);
}

mc_error *
mc_picture_read(char **bytes, size_t *size, const char *path, apr_pool_t *pool)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return mc_error_create(pool, MC_ERR_IO, "the graphic %s cannot be opened", path);
    char *read = malloc(MC_PICTURE_BYTES_MAX + 1);
    MC_ASSERT(read != NULL);
    *size = fread(read, 1, MC_PICTURE_BYTES_MAX + 1, file);
    bool failed = ferror(file) != 0, large = *size > MC_PICTURE_BYTES_MAX;
    fclose(file);
    *bytes = large || failed ? NULL : apr_palloc(pool, *size + 1);
    if (*bytes != NULL) {
        memcpy(*bytes, read, *size);
        (*bytes)[*size] = '\0';
    }
    free(read);
    if (large)
        return mc_error_create(pool, MC_ERR_LIMIT, "the graphic %s has more than %d bytes", path, MC_PICTURE_BYTES_MAX);
    return failed ? mc_error_create(pool, MC_ERR_IO, "the graphic %s cannot be read", path) : MC_OK;
}

/* What data may name: a file of the folder or of one below, never upwards, nothing hidden. */
static bool
is_plain_name(const char *name)
{
    if (name == NULL || *name == '/' || strlen(name) > NAME_SIZE_MAX || strchr(name, '\\') != NULL)
        return false;
    for (const char *part = name; part != NULL; part = strchr(part, '/') == NULL ? NULL : strchr(part, '/') + 1)
        if (*part == '.' || *part == '/' || *part == '\0')
            return false;
    return true;
}

static const char *
path_for(const mc_picture *picture, const mc_feature *feature, apr_pool_t *pool)
{
    if (picture->name == NULL)
        return picture->path;
    const char *name = mc_expression_text(picture->name, feature, pool);
    return is_plain_name(name) ? mc_picture_inside(picture->folder, name, pool) : NULL;
}

bool
mc_picture_is_constant(const mc_picture *picture)
{
    for (int i = 0; i < picture->parameter_count; i++)
        if (picture->values[i]->kind != MC_LITERAL)
            return false;
    if (picture->tint != NULL && (picture->tint->kind != MC_LITERAL || picture->tint_opacity->kind != MC_LITERAL))
        return false;
    return picture->name == NULL;
}

static bool
paint_is_constant(const mc_paint *paint)
{
    return paint->color_value == NULL && paint->opacity == NULL && paint->pattern == NULL;
}

static bool
pair_is_constant(const mc_pair *pair)
{
    return pair->x_value == NULL && pair->y_value == NULL;
}

bool
mc_graphic_is_constant(const mc_graphic *graphic)
{
    return graphic->size_value == NULL && graphic->rotation == NULL && graphic->opacity_value == NULL &&
           paint_is_constant(&graphic->fill) && paint_is_constant(&graphic->stroke.paint) &&
           graphic->stroke.width_value == NULL && pair_is_constant(&graphic->anchor) &&
           pair_is_constant(&graphic->displacement) &&
           (graphic->picture == NULL || mc_picture_is_constant(graphic->picture));
}

/* Width and height as drawn; the larger side is cut to what may be. */
static void
fit_picture_size(int *width, int *height, double own_width, double own_height, double wanted)
{
    double high = wanted > 0 ? wanted : own_height, wide = high * own_width / fmax(own_height, 1e-6);
    double most = fmax(high, wide), shrink = most > MC_PICTURE_SIDE_MAX ? MC_PICTURE_SIDE_MAX / most : 1;
    *width = (int)fmax(1, rint(wide * shrink));
    *height = (int)fmax(1, rint(high * shrink));
}

/* Makes an image smaller: each pixel is the mean of those that it covers. */
static void
shrink_picture(mc_pixels *to, const mc_pixels *from)
{
    double step_x = (double)from->width / to->width, step_y = (double)from->height / to->height;
    for (int y = 0; y < to->height; y++)
        for (int x = 0; x < to->width; x++) {
            double left = x * step_x, right = fmin(left + step_x, from->width), top = y * step_y;
            double bottom = fmin(top + step_y, from->height), sum[4] = { 0 };
            for (int j = (int)top; j < bottom; j++)
                for (int i = (int)left; i < right; i++) {
                    double share = (fmin(i + 1, right) - fmax(i, left)) * (fmin(j + 1, bottom) - fmax(j, top));
                    const uint8_t *p = from->data + (size_t)j * from->stride + (size_t)i * 4;
                    for (int c = 0; c < 4; c++)
                        sum[c] += share * p[c];
                }
            uint8_t *p = to->data + (size_t)y * to->stride + (size_t)x * 4;
            for (int c = 0; c < 4; c++)
                p[c] = (uint8_t)lrint(fmin(255, sum[c] / (step_x * step_y)));
        }
}

mc_error *
mc_picture_scale(mc_pixels **scaled, const mc_pixels *own, int width, int height, apr_pool_t *pool)
{
    MC_TRY(mc_pixels_create(scaled, width, height, true, pool));
    if (width <= own->width && height <= own->height)
        shrink_picture(*scaled, own);
    else
        mc_pixels_resample(*scaled, own, 0, 0, (double)own->width / width, (double)own->height / height, MC_BILINEAR);
    return MC_OK;
}

static mc_error *
make_from_image(mc_pixels **pixels, const char *bytes, size_t size, double height, mc_ctx *ctx, apr_pool_t *pool)
{
    int own_width, own_height, wide, high;
    mc_pixels *own;
    MC_TRY(mc_picture_size(&own_width, &own_height, bytes, size, pool));
    if (own_width > MC_PICTURE_NATIVE_MAX || own_height > MC_PICTURE_NATIVE_MAX)
        return mc_error_create(pool, MC_ERR_LIMIT, "a graphic of %dx%d pixels is too large", own_width, own_height);
    MC_TRY(mc_picture_decode(&own, bytes, size, ctx, pool));
    fit_picture_size(&wide, &high, own_width, own_height, height);
    *pixels = own;
    if (wide == own_width && high == own_height)
        return MC_OK;
    mc_pixels_attach(own, pool);
    return mc_picture_scale(pixels, own, wide, high, pool);
}

static mc_error *
make_from_svg(mc_pixels **pixels, const mc_picture *picture, const char *const *values, const char *bytes, size_t size,
              double height, apr_pool_t *pool)
{
    void *symbol;
    double own_width, own_height;
    int wide, high;
    const char *scaled[MC_PICTURE_PARAMETERS_MAX];
    MC_TRY(mc_module_symbol(&symbol, "svg", MC_SVG_SYMBOL, pool));
    const mc_svg_ops *ops = symbol;
    const char *text = mc_svg_fill_in(bytes, NULL, NULL, 0, pool);
    MC_TRY(ops->size(&own_width, &own_height, text, strlen(text), pool));
    if (!(own_width > 0) || !(own_height > 0))
        return mc_error_create(pool, MC_ERR_CORRUPT, "an SVG of no size");
    fit_picture_size(&wide, &high, own_width, own_height, height);
    for (int i = 0; i < picture->parameter_count; i++) {
        scaled[i] = values[i];
        if (strcmp(picture->names[i], "outline-width") == 0 && values[i] != NULL) /* QGIS: as wide as it is drawn */
            scaled[i] = mc_expression_format(strtod(values[i], NULL) * own_height / high, pool);
    }
    if (memchr(bytes, '\0', size) == NULL)
        text = mc_svg_fill_in(bytes, picture->names, scaled, picture->parameter_count, pool);
    mc_pixels *made;
    MC_TRY(mc_pixels_create(&made, wide, high, true, pool));
    mc_error *error = ops->render(made, text, strlen(text), pool);
    if (error != MC_OK)
        mc_pixels_unref(made);
    else
        *pixels = made;
    return error;
}

/* The colour that all of a picture takes for a feature. */
static mc_color
tint_for(const mc_picture *picture, const mc_feature *feature, apr_pool_t *scratch)
{
    mc_color color = { 0, 0, 0, 255 };
    mc_color_parse(&color, mc_expression_text(picture->tint, feature, scratch));
    double opacity = mc_expression_number(picture->tint_opacity, feature, 1, scratch);
    color.alpha = (uint8_t)lrint(255 * fmin(1, fmax(0, opacity)));
    return color;
}

static void
tint_pixels(mc_pixels *pixels, mc_color color)
{
    const unsigned parts[4] = { color.blue, color.green, color.red, 255 };
    for (int y = 0; y < pixels->height; y++)
        for (int x = 0; x < pixels->width; x++) {
            uint8_t *p = pixels->data + (size_t)y * pixels->stride + (size_t)x * 4;
            unsigned alpha = (p[3] * (unsigned)color.alpha + 127) / 255;
            for (int c = 0; c < 4; c++)
                p[c] = (uint8_t)((parts[c] * alpha + 127) / 255);
        }
    pixels->opacity = MC_OPACITY_UNKNOWN;
}

mc_error *
mc_picture_get(mc_pixels **pixels, const mc_picture *picture, const mc_feature *feature, double height, mc_ctx *ctx,
               apr_pool_t *scratch)
{
    const char *path = path_for(picture, feature, scratch), *values[MC_PICTURE_PARAMETERS_MAX];
    const char *key = apr_psprintf(scratch, "%d\n%s\n", (int)rint(height), path != NULL ? path : picture->identity);
    mc_stamp stamp = { 0 };
    mc_clock_cache_entry *entry;
    *pixels = NULL;
    if (path == NULL && picture->bytes == NULL)
        return MC_OK;
    if (path != NULL && !mc_stamp_take_plain(&stamp, path))
        return mc_error_create(scratch, MC_ERR_IO, "the graphic %s is not there", path);
    for (int i = 0; i < picture->parameter_count; i++) {
        values[i] = mc_expression_text(picture->values[i], feature, scratch);
        key = apr_pstrcat(scratch, key, picture->names[i], "=", values[i] == NULL ? "" : values[i], "\n", NULL);
    }
    const mc_color tint = picture->tint == NULL ? (mc_color){ 0 } : tint_for(picture, feature, scratch);
    if (picture->tint != NULL)
        key = apr_psprintf(scratch, "%s tint %d %d %d %d", key, tint.red, tint.green, tint.blue, tint.alpha);
    size_t text_size = strlen(key) + 1, key_size = text_size + sizeof(stamp);
    char *whole_key = apr_palloc(scratch, key_size);
    memcpy(whole_key, key, text_size);
    memcpy(whole_key + text_size, &stamp, sizeof(stamp));
    mc_pixels *known = mc_clock_cache_get(get_picture_table(), &entry, whole_key, key_size);
    if (known != NULL) {
        *pixels = mc_pixels_ref(known);
        mc_clock_cache_release(entry);
        return MC_OK;
    }
    char *read = (char *)picture->bytes;
    size_t size = picture->size;
    if (path != NULL)
        MC_TRY(mc_picture_read(&read, &size, path, scratch));
    MC_TRY(mc_picture_is_svg(read, size) ? make_from_svg(pixels, picture, values, read, size, rint(height), scratch)
                                         : make_from_image(pixels, read, size, rint(height), ctx, scratch));
    if (picture->tint != NULL)
        tint_pixels(*pixels, tint);
    if (path == NULL || mc_stamp_settled(&stamp, apr_time_now()))
        mc_clock_cache_put(get_picture_table(), whole_key, key_size, mc_pixels_ref(*pixels),
                           (*pixels)->stride * (size_t)(*pixels)->height, free_pixels);
    return MC_OK;
}
