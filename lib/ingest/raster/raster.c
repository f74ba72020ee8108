/* Opening a georeferenced image: which format, where it lies, and reading it row by row. */
#include "ingest/raster/raster.h"

#include <apr_strings.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/module.h"

enum { SIDE_FILE_MAX = 1 << 16 };

/* Of the file that `error` is about. */
static mc_error *
of_file(const char *path, const mc_error *error, apr_pool_t *pool)
{
    if (error == MC_OK)
        return MC_OK;
    return mc_error_create(pool, error->kind, "%s: %s", path, mc_error_chain(error, pool));
}

/* --- position ---------------------------------------------------------------------------------------------------- */

/* A small file beside the image; *text is NULL where there is none. */
static mc_error *
read_side_file(char **text, size_t *size, const char *path, apr_pool_t *pool)
{
    *text = NULL;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG
                   ? MC_OK
                   : mc_error_create(pool, MC_ERR_IO, "%s", strerror(errno));
    char *read = apr_palloc(pool, SIDE_FILE_MAX + 1);
    *size = fread(read, 1, SIDE_FILE_MAX + 1, file);
    bool failed = ferror(file) != 0;
    fclose(file);
    if (failed)
        return mc_error_create(pool, MC_ERR_IO, "it cannot be read");
    if (*size > SIDE_FILE_MAX)
        return mc_raster_broken(pool, "it is longer than any file of its kind");
    read[*size] = '\0';
    *text = read;
    return MC_OK;
}

/* The name with another extension, "" for none; upper: in capitals. */
static const char *
with_extension(const char *path, const char *extension, bool upper, apr_pool_t *pool)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    size_t length = dot != NULL && dot > slash ? (size_t)(dot - path) : strlen(path);
    char *made = apr_psprintf(pool, "%.*s.%s", (int)length, path, extension);
    for (char *c = made + length; upper && *c != '\0'; c++)
        *c = (char)toupper((unsigned char)*c);
    return made;
}

/* What a world file of this image may be called: first and last letter of the extension and w, all of it and w, wld. */
static int
world_file_names(const char *names[6], const char *path, apr_pool_t *pool)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    const char *extension = dot != NULL && dot > slash ? dot + 1 : "";
    size_t length = strlen(extension);
    const char *endings[3] = { "wld", NULL, NULL };
    int count = 1, made = 0;
    if (length >= 2) {
        endings[count++] = apr_psprintf(pool, "%c%cw", extension[0], extension[length - 1]);
        endings[count++] = apr_psprintf(pool, "%sw", extension);
    }
    for (int i = count - 1; i >= 0; i--) {
        names[made++] = with_extension(path, endings[i], false, pool);
        names[made++] = with_extension(path, endings[i], true, pool);
    }
    return made;
}

static mc_error *
read_world_file(mc_raster *raster, apr_pool_t *pool)
{
    const char *names[6];
    int count = world_file_names(names, raster->info.path, pool);
    for (int i = 0; i < count; i++) {
        char *text;
        size_t size = 0;
        mc_error *error = read_side_file(&text, &size, names[i], pool);
        if (error == MC_OK && text != NULL)
            error = mc_world_file_parse(raster->info.affine, text, size, pool);
        if (error != MC_OK)
            return mc_error_create(pool, error->kind, "its world file %s: %s", names[i], mc_error_chain(error, pool));
        if (text == NULL)
            continue;
        raster->info.georeferenced = true;
        raster->info.origin = apr_pstrdup(raster->pool, names[i]);
        return MC_OK;
    }
    return MC_OK;
}

static mc_error *
read_prj_file(mc_raster *raster, apr_pool_t *pool)
{
    for (int upper = 0; upper < 2; upper++) {
        const char *name = with_extension(raster->info.path, "prj", upper == 1, pool);
        char *text;
        size_t size = 0;
        mc_error *error = read_side_file(&text, &size, name, pool);
        if (error != MC_OK)
            return mc_error_create(pool, error->kind, "its file %s: %s", name, mc_error_chain(error, pool));
        if (text == NULL || strlen(text) != size)
            continue;
        const char *from = text + strspn(text, " \t\r\n");
        for (size_t end = strlen(from); end > 0 && isspace((unsigned char)from[end - 1]);)
            text[(size_t)(from - text) + --end] = '\0';
        if (from[0] != '\0') {
            raster->info.srs = apr_pstrdup(raster->pool, from);
            return MC_OK;
        }
    }
    return MC_OK;
}

static void
find_extent(mc_raster_info *info)
{
    const double *a = info->affine;
    double w = info->width, h = info->height;
    double xs[4] = { a[0], a[0] + w * a[1], a[0] + h * a[2], a[0] + w * a[1] + h * a[2] };
    double ys[4] = { a[3], a[3] + w * a[4], a[3] + h * a[5], a[3] + w * a[4] + h * a[5] };
    info->extent = (mc_extent){ xs[0], ys[0], xs[0], ys[0] };
    for (int i = 1; i < 4; i++) {
        info->extent.minx = fmin(info->extent.minx, xs[i]);
        info->extent.maxx = fmax(info->extent.maxx, xs[i]);
        info->extent.miny = fmin(info->extent.miny, ys[i]);
        info->extent.maxy = fmax(info->extent.maxy, ys[i]);
    }
    info->upright = a[2] == 0 && a[4] == 0 && a[1] > 0 && a[5] < 0;
}

static mc_error *
find_raster_place(mc_raster *raster, apr_pool_t *pool)
{
    mc_raster_info *info = &raster->info;
    if (!info->georeferenced)
        MC_TRY(read_world_file(raster, pool));
    if (info->srs == NULL)
        MC_TRY(read_prj_file(raster, pool));
    if (info->srs == NULL && raster->options.srs != NULL) {
        info->srs = apr_pstrdup(raster->pool, raster->options.srs);
        info->srs_told = true;
    }
    if (!info->georeferenced) {
        static const double pixels[6] = { 0, 1, 0, 0, 0, -1 };
        memcpy(info->affine, pixels, sizeof(pixels));
    }
    find_extent(info);
    return MC_OK;
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

static mc_error *
ops_of(const mc_raster_ops **ops, const unsigned char *magic, size_t size, apr_pool_t *pool)
{
    static const unsigned char png[] = { 137, 'P', 'N', 'G' };
    void *symbol;
    *ops = NULL;
    if (size >= 4 && memcmp(magic, png, 4) == 0)
        *ops = &mc_raster_png;
    else if (size >= 3 && magic[0] == 0xff && magic[1] == 0xd8 && magic[2] == 0xff)
        *ops = &mc_raster_jpeg;
    if (*ops != NULL)
        return MC_OK;
    bool tiff = size >= 4 && ((magic[0] == 'I' && magic[1] == 'I' && (magic[2] == 42 || magic[2] == 43)) ||
                              (magic[0] == 'M' && magic[1] == 'M' && (magic[3] == 42 || magic[3] == 43)));
    if (!tiff)
        return mc_raster_broken(pool, "it is no PNG, JPEG or TIFF image");
    MC_TRY(mc_module_symbol(&symbol, "tiff", "mc_raster_tiff", pool));
    *ops = symbol;
    return MC_OK;
}

static mc_error *
open_raster_file(mc_raster *raster, apr_pool_t *pool)
{
    struct stat status;
    unsigned char magic[4];
    int descriptor =
        open(raster->info.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would have to be waited for */
    raster->file = descriptor < 0 ? NULL : fdopen(descriptor, "rb");
    if (raster->file == NULL)
        return mc_error_create(pool, errno == ENOENT || errno == ENOTDIR ? MC_ERR_NOT_FOUND : MC_ERR_IO, "%s",
                               strerror(errno));
    if (fstat(fileno(raster->file), &status) != 0 || !S_ISREG(status.st_mode))
        return mc_error_create(pool, MC_ERR_IO, "it is no file");
    raster->file_size = status.st_size;
    size_t read = fread(magic, 1, sizeof(magic), raster->file);
    MC_TRY(ops_of(&raster->ops, magic, read, pool));
    rewind(raster->file);
    raster->info.format = raster->ops->format;
    raster->open = true;
    MC_TRY(raster->ops->open(raster, pool));
    return find_raster_place(raster, pool);
}

static apr_status_t
close_raster(void *data)
{
    mc_raster *raster = data;
    if (raster->open)
        raster->ops->close(raster);
    raster->open = false;
    if (raster->file != NULL)
        fclose(raster->file);
    raster->file = NULL;
    return APR_SUCCESS;
}

void
mc_raster_close(mc_raster *raster)
{
    apr_pool_cleanup_run(raster->pool, raster, close_raster);
}

mc_error *
mc_raster_open(mc_raster **raster, const char *path, const mc_raster_options *options, apr_pool_t *pool)
{
    mc_raster *made = apr_pcalloc(pool, sizeof(*made));
    made->pool = pool;
    made->info.path = apr_pstrdup(pool, path);
    if (options != NULL)
        made->options = *options;
    apr_pool_cleanup_register(pool, made, close_raster, apr_pool_cleanup_null);
    mc_error *error = open_raster_file(made, pool);
    if (error != MC_OK) {
        mc_raster_close(made);
        return of_file(path, error, pool);
    }
    *raster = made;
    return MC_OK;
}

const mc_raster_info *
mc_raster_about(const mc_raster *raster)
{
    return &raster->info;
}

int
mc_raster_row(const mc_raster *raster)
{
    return raster->row;
}

/* --- pixels ------------------------------------------------------------------------------------------------------ */

/* Makes pixels of the colour that means nothing transparent. */
static void
clear_no_data(const mc_raster *raster, uint8_t *bgra, size_t stride, int count)
{
    const uint8_t *rgb = raster->options.no_data;
    const uint8_t color[4] = { rgb[2], rgb[1], rgb[0], 255 };
    uint32_t wanted;
    memcpy(&wanted, color, 4);
    for (int y = 0; y < count; y++) {
        uint8_t *row = bgra + (size_t)y * stride;
        for (int x = 0; x < raster->info.width; x++) {
            uint32_t pixel;
            memcpy(&pixel, row + (size_t)x * 4, 4);
            pixel = pixel == wanted ? 0 : pixel;
            memcpy(row + (size_t)x * 4, &pixel, 4);
        }
    }
}

mc_error *
mc_raster_rows(mc_raster *raster, uint8_t *bgra, size_t stride, int count, apr_pool_t *pool)
{
    MC_ASSERT(raster->open && count >= 0 && count <= raster->info.height - raster->row);
    mc_error *error = raster->ops->rows(raster, bgra, stride, count, pool);
    if (error != MC_OK)
        return of_file(raster->info.path, error, pool);
    raster->row += count;
    if (raster->options.has_no_data)
        clear_no_data(raster, bgra, stride, count);
    return MC_OK;
}

mc_error *
mc_raster_read(mc_pixels **pixels, mc_raster *raster, apr_pool_t *pool)
{
    mc_pixels *made = NULL;
    mc_error *error = MC_OK;
    MC_ASSERT(raster->open && raster->row == 0);
    if (raster->ops->whole != NULL)
        error = raster->ops->whole(&made, raster, pool);
    if (error == MC_OK && made != NULL) {
        raster->row = raster->info.height;
        if (raster->options.has_no_data)
            clear_no_data(raster, made->data, made->stride, made->height);
    } else if (error == MC_OK) {
        error = mc_pixels_create(&made, raster->info.width, raster->info.height, false, pool);
        if (error != MC_OK)
            return of_file(raster->info.path, error, pool);
        error = mc_raster_rows(raster, made->data, made->stride, made->height, pool);
        if (error != MC_OK) {
            mc_pixels_unref(made);
            return error;
        }
    }
    if (error != MC_OK)
        return of_file(raster->info.path, error, pool);
    made->opacity = raster->info.opaque ? MC_OPAQUE : MC_OPACITY_UNKNOWN;
    *pixels = made;
    return MC_OK;
}
