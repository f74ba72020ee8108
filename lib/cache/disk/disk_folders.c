/* The tiles of an area as their folders have them, in the layout of TileCache: /zz/xxx/xxx/xxx/yyy/yyy/yyy.ext, three
 * digits of a number in each name. Folders that have nothing of the area are not opened. */
#include <apr_strings.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache/disk/disk_base.h"

enum { DEPTH = 6 /* folders and files below that of a level */ };

typedef struct folder_walk {
    const mc_tile_range *area;
    mc_tile_visit *visit;
    void *baton;
    mc_ctx *ctx;
    char path[MC_PATH_MAX];
    bool on; /* the visitor wants more */
} folder_walk;

/* The number that a name begins with; -1: it is no name of three digits or more. *rest: what follows. */
static int
parse_folder_number(const char **rest, const char *name)
{
    char *end;
    long number = strtol(name, &end, 10);
    *rest = end;
    return end - name < 3 || number < 0 || number > 999999 ? -1 : (int)number;
}

/* Whether numbers from `first` on, so many, have one of [min, max). */
static bool
meets_numbers(int64_t first, int64_t count, int min, int max)
{
    return first < max && first + count > min;
}

static mc_error *walk_folder(folder_walk *walk, size_t length, int depth, int64_t x, int64_t y);

/* An entry of a folder at this depth: x and y are what the names above it say. */
static mc_error *
walk_entry(folder_walk *walk, size_t length, const char *name, int depth, int64_t x, int64_t y)
{
    static const int64_t steps[DEPTH] = { 1000000, 1000, 1, 1000000, 1000, 1 };
    const char *rest;
    const mc_tile_range *area = walk->area;
    int number = parse_folder_number(&rest, name);
    int64_t *at = depth < DEPTH / 2 ? &x : &y;
    if (number < 0 || (*rest == '\0') != (depth < DEPTH - 1) || strchr(rest, '.') != strrchr(rest, '.'))
        return MC_OK; /* of something else, or not renamed yet */
    *at += number * steps[depth];
    if (!meets_numbers(x, depth < DEPTH / 2 ? steps[depth] : 1, area->minx, area->maxx) ||
        (depth >= DEPTH / 2 && !meets_numbers(y, steps[depth], area->miny, area->maxy)))
        return MC_OK;
    if (depth == DEPTH - 1) {
        walk->on = walk->visit(walk->baton, (int)x, (int)y);
        return MC_OK;
    }
    size_t size = strlen(name);
    if (length + 1 + size + 1 > sizeof(walk->path))
        return MC_OK;
    walk->path[length] = '/';
    memcpy(walk->path + length + 1, name, size + 1);
    return walk_folder(walk, length + 1 + size, depth + 1, x, y);
}

/* The folder at walk->path, of so many bytes. */
static mc_error *
walk_folder(folder_walk *walk, size_t length, int depth, int64_t x, int64_t y)
{
    mc_error *error = mc_ctx_check(walk->ctx, walk->ctx->pool);
    walk->path[length] = '\0';
    DIR *folder = error == MC_OK ? opendir(walk->path) : NULL;
    if (folder == NULL && error == MC_OK && errno != ENOENT && errno != ENOTDIR)
        error = mc_error_create(walk->ctx->pool, MC_ERR_IO, "a folder of tiles cannot be read");
    for (const struct dirent *entry; folder != NULL && error == MC_OK && walk->on && (entry = readdir(folder)) != NULL;)
        error = walk_entry(walk, length, entry->d_name, depth, x, y);
    if (folder != NULL)
        (void)closedir(folder);
    return error;
}

bool
mc_disk_lists_folders(const mc_cache *base)
{
    return ((const disk_cache *)base)->layout == TILECACHE;
}

mc_error *
mc_disk_list_folders(mc_cache *base, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit,
                     void *baton, mc_ctx *ctx)
{
    folder_walk *walk = apr_pcalloc(ctx->pool, sizeof(*walk));
    *walk = (folder_walk){ .area = area, .visit = visit, .baton = baton, .ctx = ctx, .on = true };
    mc_tile_key first = *key;
    first.x = first.y = 0;
    MC_TRY(mc_disk_tile_path(walk->path, (const disk_cache *)base, &first, ctx->pool));
    for (int i = 0; i < DEPTH; i++) { /* up to the folder of the level */
        char *slash = strrchr(walk->path, '/');
        MC_ASSERT(slash != NULL);
        *slash = '\0';
    }
    return walk_folder(walk, strlen(walk->path), 0, 0, 0);
}
