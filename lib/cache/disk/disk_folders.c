/* The tiles of an area as their folders have them, in layouts whose names are parts of one number each. Folders that
 * have nothing of the area are not opened. */
#include <apr_strings.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache/disk/disk_base.h"

enum { DEPTH_MAX = 6, NUMBER_MAX = 1 << 30 };

/* Folders and files below that of a level: of which number, x or y, each name has how many tiles a step. */
typedef struct folder_layout {
    int depth, base, digits; /* digits: of a name at least */
    struct folder_step {
        char axis, before; /* before: the byte before the digits; 0: none */
        int64_t step;
    } steps[DEPTH_MAX];
} folder_layout;

static const folder_layout tilecache_folders = {
    6,
    10,
    3,
    { { 'x', 0, 1000000 }, { 'x', 0, 1000 }, { 'x', 0, 1 }, { 'y', 0, 1000000 }, { 'y', 0, 1000 }, { 'y', 0, 1 } }
};
static const folder_layout mapproxy_folders = {
    4, 10, 4, { { 'x', 0, 10000 }, { 'x', 0, 1 }, { 'y', 0, 10000 }, { 'y', 0, 1 } }
};
static const folder_layout arcgis_folders = { 2, 16, 8, { { 'y', 'R', 1 }, { 'x', 'C', 1 } } };

static const folder_layout *const folder_layouts[LAYOUT_COUNT] = {
    [TILECACHE] = &tilecache_folders,    [MAPPROXY_TC] = &tilecache_folders, [MAPPROXY_MP] = &mapproxy_folders,
    [MAPPROXY_ARCGIS] = &arcgis_folders, [ARCGIS] = &arcgis_folders,
};

/* The numbers of tiles that names above have told: from x and y on, so many. */
typedef struct folder_area {
    int64_t x, y, columns, rows;
} folder_area;

typedef struct folder_walk {
    const folder_layout *layout;
    const mc_tile_range *area;
    mc_tile_visit *visit;
    void *baton;
    mc_ctx *ctx;
    char path[MC_PATH_MAX];
    bool on; /* the visitor wants more */
} folder_walk;

/* The number that a name begins with; -1: it is no name of the layout. *rest: what follows. */
static int64_t
parse_folder_number(const char **rest, const char *name, const folder_layout *layout, const struct folder_step *step)
{
    int64_t number = 0;
    int digits = 0;
    *rest = name;
    if (step->before != 0 && *(*rest)++ != step->before)
        return -1;
    for (;; (*rest)++, digits++) {
        char byte = **rest;
        int digit = byte >= '0' && byte <= '9' ? byte - '0' : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : 16;
        if (digit >= layout->base)
            return digits < layout->digits ? -1 : number;
        number = number * layout->base + digit;
        if (number > NUMBER_MAX)
            return -1;
    }
}

/* Whether numbers from `first` on, so many, have one of [min, max). */
static bool
meets_numbers(int64_t first, int64_t count, int min, int max)
{
    return first < max && first + count > min;
}

static mc_error *walk_folder(folder_walk *walk, size_t length, int depth, const folder_area *above);

/* An entry of a folder at this depth. */
static mc_error *
walk_entry(folder_walk *walk, size_t length, const char *name, int depth, const folder_area *above)
{
    const char *rest;
    const mc_tile_range *area = walk->area;
    const struct folder_step *step = &walk->layout->steps[depth];
    bool file = depth == walk->layout->depth - 1;
    int64_t number = parse_folder_number(&rest, name, walk->layout, step);
    folder_area at = *above;
    if (number < 0 || (*rest == '\0') != !file || strchr(rest, '.') != strrchr(rest, '.'))
        return MC_OK; /* of something else, or not renamed yet */
    *(step->axis == 'x' ? &at.x : &at.y) += number * step->step;
    *(step->axis == 'x' ? &at.columns : &at.rows) = step->step;
    if (!meets_numbers(at.x, at.columns, area->minx, area->maxx) ||
        !meets_numbers(at.y, at.rows, area->miny, area->maxy))
        return MC_OK;
    if (file) {
        walk->on = walk->visit(walk->baton, (int)at.x, (int)at.y);
        return MC_OK;
    }
    size_t size = strlen(name);
    if (length + 1 + size + 1 > sizeof(walk->path))
        return MC_OK;
    walk->path[length] = '/';
    memcpy(walk->path + length + 1, name, size + 1);
    return walk_folder(walk, length + 1 + size, depth + 1, &at);
}

/* The next entry; NULL at the end, or with *error. */
static const struct dirent *
read_entry(mc_error **error, DIR *folder, apr_pool_t *pool)
{
    errno = 0;
    const struct dirent *entry = readdir(folder);
    if (entry == NULL && errno != 0)
        *error = mc_error_create(pool, MC_ERR_IO, "a folder of tiles cannot be read to its end");
    return entry;
}

/* The folder at walk->path, of so many bytes. */
static mc_error *
walk_folder(folder_walk *walk, size_t length, int depth, const folder_area *above)
{
    mc_error *error = mc_ctx_check(walk->ctx, walk->ctx->pool);
    walk->path[length] = '\0';
    DIR *folder = error == MC_OK ? opendir(walk->path) : NULL;
    if (folder == NULL && error == MC_OK && errno != ENOENT && errno != ENOTDIR)
        error = mc_error_create(walk->ctx->pool, MC_ERR_IO, "a folder of tiles cannot be read");
    for (const struct dirent *entry;
         folder != NULL && error == MC_OK && walk->on && (entry = read_entry(&error, folder, walk->ctx->pool)) != NULL;)
        error = walk_entry(walk, length, entry->d_name, depth, above);
    if (folder != NULL)
        (void)closedir(folder);
    return error;
}

bool
mc_disk_lists_folders(const mc_cache *base)
{
    return folder_layouts[((const disk_cache *)base)->layout] != NULL;
}

mc_error *
mc_disk_list_folders(mc_cache *base, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit,
                     void *baton, mc_ctx *ctx)
{
    folder_walk *walk = apr_pcalloc(ctx->pool, sizeof(*walk));
    *walk = (folder_walk){ .layout = folder_layouts[((const disk_cache *)base)->layout],
                           .area = area,
                           .visit = visit,
                           .baton = baton,
                           .ctx = ctx,
                           .on = true };
    mc_tile_key first = *key;
    first.x = first.y = 0;
    MC_TRY(mc_disk_tile_path(walk->path, (const disk_cache *)base, &first, ctx->pool));
    for (int i = 0; i < walk->layout->depth; i++) { /* up to the folder of the level */
        char *slash = strrchr(walk->path, '/');
        MC_ASSERT(slash != NULL);
        *slash = '\0';
    }
    const folder_area all = { 0, 0, (int64_t)2 * NUMBER_MAX, (int64_t)2 * NUMBER_MAX };
    return walk_folder(walk, strlen(walk->path), 0, &all);
}
