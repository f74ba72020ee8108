/*
 * What <max_size> has to know of caches of type disk: how large the files of tiles are, and which there are. A link to
 * a tile of one colour counts as what it takes up itself; the files of colours in the folders "blanks" are few, and not
 * counted.
 */
#include <apr_lib.h>
#include <apr_strings.h>
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/disk/disk_base.h"
#include "text/text.h"

/* --- names of series: parts of paths where the layout has folders for them --------------------------------------- */

/* The values as the folders are named, from the outer one to the inner one. */
static const char *
name_dimension_folders(const mc_tile_key *key, apr_pool_t *pool)
{
    char text[MC_PATH_MAX];
    mc_text_out out = { .out = text };
    text[0] = '\0';
    for (int i = key->dimension_count - 1; i >= 0; i--) {
        mc_text_put_dimension(&out, key->dimensions[i].value, false);
        mc_text_put(&out, "/", i > 0 ? 1 : 0);
    }
    return apr_pstrdup(pool, text);
}

static mc_quota_name
name_disk_series(const mc_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    const disk_cache *cache = (const disk_cache *)base;
    char tileset[MC_PATH_MAX];
    mc_text_out out = { .out = tileset };
    const char *extension = cache->extension != NULL ? cache->extension : key->extension; /* as files are named */
    tileset[0] = '\0';
    if (cache->layout == WORLDWIND)
        return (mc_quota_name){ "", "", "", extension, false };
    if (cache->layout >= TEMPLATE)
        return (mc_quota_name){ key->tileset, key->grid->name, mc_quota_pack_dimensions(key, pool), extension,
                                key->client_named };
    mc_text_put_tileset(&out, key);
    return (mc_quota_name){ apr_pstrdup(pool, tileset), key->grid->name, name_dimension_folders(key, pool), extension,
                            false };
}

static void
restore_disk_key(mc_tile_key *key, const mc_cache *base, const mc_quota_name *name, apr_pool_t *pool)
{
    key->tileset = name->tileset;
    if (((const disk_cache *)base)->layout >= TEMPLATE) {
        mc_quota_unpack_dimensions(key, name->dim, pool);
        return;
    }
    apr_array_header_t *folders = apr_array_make(pool, 2, sizeof(char *));
    char *rest, *copy = apr_pstrdup(pool, name->dim);
    for (char *one = apr_strtok(copy, "/", &rest); one != NULL; one = apr_strtok(NULL, "/", &rest))
        APR_ARRAY_PUSH(folders, char *) = one;
    mc_dimension_value *values = apr_pcalloc(pool, sizeof(*values) * (size_t)(folders->nelts + 1));
    for (int i = 0; i < folders->nelts; i++)
        values[folders->nelts - 1 - i] = (mc_dimension_value){ "", APR_ARRAY_IDX(folders, i, char *), false };
    key->dimensions = values;
    key->dimension_count = folders->nelts;
}

static bool
disk_needs_grid(const mc_cache *cache)
{
    return ((const disk_cache *)cache)->layout >= TEMPLATE;
}

/* --- measuring and removing --------------------------------------------------------------------------------------- */

/* What the file system has for it, or at least its bytes, where it does not say so at once. */
static int64_t
bytes_of_file(const struct stat *info)
{
    const int64_t blocks = (int64_t)info->st_blocks * 512;
    return blocks > info->st_size ? blocks : info->st_size;
}

/* Bytes of a tile that can be removed; false: there is none. A tile that cannot be looked at, or whose name no file can
 * have, is none: else it would keep all others from being measured and removed, round after round. */
static bool
look_at_disk_tile(char *path, int64_t *bytes, const disk_cache *cache, const mc_tile_key *key, apr_pool_t *pool)
{
    struct stat info;
    mc_error *error = mc_disk_tile_path(path, cache, key, pool);
    mc_error_ignore(error);
    const bool present = error == MC_OK && lstat(path, &info) == 0 && !S_ISDIR(info.st_mode);
    *bytes = present ? bytes_of_file(&info) : 0;
    return present;
}

static mc_error *
measure_disk_tiles(mc_quota_amount *found, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    for (int i = 0; i < count; i++) {
        char path[MC_PATH_MAX];
        int64_t bytes;
        found->tiles += look_at_disk_tile(path, &bytes, (disk_cache *)cache, &keys[i], ctx->pool);
        found->bytes += bytes;
    }
    return MC_OK;
}

/* Folders above a file that has gone, as far as they are empty: who stores there makes them again. */
static void
remove_empty_folders(char *path, const disk_cache *cache, apr_pool_t *pool)
{
    bool file;
    const char *root = mc_disk_place(&file, &cache->base.cache, pool);
    const size_t least = strlen(root);
    for (char *slash = strrchr(path, '/'); slash != NULL && (size_t)(slash - path) > least;
         slash = strrchr(path, '/')) {
        *slash = '\0';
        if (rmdir(path) != 0)
            return;
    }
}

static mc_error *
evict_disk_tiles(mc_quota_removal *removal, mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    const disk_cache *cache = (const disk_cache *)base;
    for (int i = 0; i < count; i++) {
        char path[MC_PATH_MAX];
        int64_t bytes;
        if (!look_at_disk_tile(path, &bytes, cache, &keys[i], ctx->pool))
            continue;
        if (!mc_quota_removes(removal, bytes))
            return measure_disk_tiles(&removal->left, base, keys + i, count - i, ctx);
        MC_TRY(base->ops->remove(base, &keys[i], ctx));
        removal->gone.tiles++;
        removal->gone.bytes += bytes;
        remove_empty_folders(path, cache, ctx->pool);
    }
    return MC_OK;
}

/* --- what there is ------------------------------------------------------------------------------------------------ */

enum { PARTS_MAX = 64, /* of a path below the root */ LOOK_EVERY = 256 /* files */ };

/* A path below the root, in its parts. */
typedef struct disk_parts {
    char *parts[PARTS_MAX];
    int count;
} disk_parts;

static bool
split_disk_path(disk_parts *split, char *below)
{
    char *rest;
    split->count = 0;
    for (char *part = apr_strtok(below, "/", &rest); part != NULL; part = apr_strtok(NULL, "/", &rest)) {
        if (split->count == PARTS_MAX)
            return false;
        split->parts[split->count++] = part;
    }
    return split->count > 0;
}

/* Digits behind a prefix; what follows them shows when the path is made anew. */
static bool
scan_disk_number(int *number, const char *text, const char *prefix, int base)
{
    const size_t size = strlen(prefix);
    char *end;
    if (strncmp(text, prefix, size) != 0 || !apr_isxdigit(text[size]))
        return false;
    const unsigned long value = strtoul(text + size, &end, base);
    *number = (int)value;
    return end > text + size && value <= INT_MAX;
}

/* Three folders of three digits. */
static bool
scan_thousands(int *number, char *const *parts)
{
    int n[3];
    for (int i = 0; i < 3; i++)
        if (!scan_disk_number(&n[i], parts[i], "", 10) || n[i] > 999)
            return false;
    *number = n[0] * 1000000 + n[1] * 1000 + n[2];
    return true;
}

/* Level, column and row by the last parts; returns which part is the first of these, -1: it is no tile. Whether the
 * path is that of a tile shows when it is made anew. */
static int
parse_disk_place(mc_tile_key *tile, const disk_parts *split, layout layout)
{
    static const int behind[] = { [TILECACHE] = 7, [ARCGIS] = 3, [WORLDWIND] = 3 };
    const int first = split->count - behind[layout];
    char *const *place = split->parts + first;
    if (first < (layout == WORLDWIND ? 0 : 2))
        return -1;
    bool found;
    if (layout == ARCGIS) {
        found = scan_disk_number(&tile->z, place[0], "L", 10) && scan_disk_number(&tile->y, place[1], "R", 16) &&
                scan_disk_number(&tile->x, place[2], "C", 16);
    } else if (layout == WORLDWIND) {
        const char *behind_row = strchr(place[2], '_');
        found = behind_row != NULL && scan_disk_number(&tile->z, place[0], "", 10) &&
                scan_disk_number(&tile->y, place[1], "", 10) && scan_disk_number(&tile->x, behind_row, "_", 10);
    } else {
        found = scan_disk_number(&tile->z, place[0], "", 10) && scan_thousands(&tile->x, place + 1) &&
                scan_thousands(&tile->y, place + 4);
    }
    return found ? first : -1;
}

static const char *
skip_slashes(const char *path)
{
    return path + strspn(path, "/");
}

/* The series and the tile of a file below the root; false: it is no tile. */
static bool
parse_disk_tile(mc_quota_name *name, mc_tile_key *tile, const disk_cache *cache, const char *path, size_t root,
                apr_pool_t *pool)
{
    disk_parts split;
    char again[MC_PATH_MAX];
    mc_grid *grid = apr_pcalloc(pool, sizeof(*grid));
    const char *dot = strrchr(path, '.');
    grid->name = "";
    *tile = (mc_tile_key){ .grid = grid };
    if (dot == NULL || !split_disk_path(&split, apr_pstrdup(pool, path + root)))
        return false;
    const int first = parse_disk_place(tile, &split, cache->layout);
    if (first < 0 || tile->x < 0 || tile->y < 0 || tile->z < 0)
        return false;
    *name = (mc_quota_name){ "", "", "", dot + 1, false };
    if (cache->layout != WORLDWIND) {
        name->tileset = split.parts[0];
        grid->name = name->grid = split.parts[1];
        for (int i = 2; i < first; i++)
            name->dim = apr_pstrcat(pool, name->dim, i > 2 ? "/" : "", split.parts[i], NULL);
    }
    tile->extension = name->extension;
    restore_disk_key(tile, &cache->base.cache, name, pool);
    return mc_disk_tile_path(again, cache, tile, pool) == MC_OK &&
           strcmp(skip_slashes(again + strlen(cache->root)), skip_slashes(path + root)) == 0;
}

static int
compare_disk_names(const FTSENT **one, const FTSENT **other)
{
    return strcmp((*one)->fts_name, (*other)->fts_name);
}

/* In the order in which folders are gone through: a '/' before all other bytes. */
static int
compare_disk_places(const char *one, const char *other)
{
    while (*one != '\0' && *one == *other) {
        one++;
        other++;
    }
    const int a = *one == '/' ? 1 : (unsigned char)*one, b = *other == '/' ? 1 : (unsigned char)*other;
    return a - b;
}

/* Whether a folder lies before the place where the survey goes on, and not on the way to it. */
static bool
is_folder_done(const char *folder, const char *from)
{
    const size_t size = strlen(folder);
    return strncmp(folder, from, size) != 0 && compare_disk_places(folder, from) < 0;
}

static bool
survey_disk_entry(const FTSENT *entry, const disk_cache *cache, const mc_quota_survey *survey, size_t root,
                  apr_pool_t *scratch)
{
    mc_quota_name name;
    mc_tile_key tile;
    const char *below = skip_slashes(entry->fts_path + root);
    if ((entry->fts_info != FTS_F && entry->fts_info != FTS_SL && entry->fts_info != FTS_SLNONE) ||
        compare_disk_places(below, survey->from) < 0 ||
        !parse_disk_tile(&name, &tile, cache, entry->fts_path, root, scratch))
        return true;
    return survey->visit(survey->baton, &name, &tile, (apr_int64_t)entry->fts_statp->st_mtime, below);
}

/* Layouts by a template, and those of other programs, are not told apart: what was there before counts from its next
 * use on. */
static mc_error *
survey_disk(mc_cache *base, const mc_quota_survey *survey, mc_ctx *ctx)
{
    const disk_cache *cache = (const disk_cache *)base;
    mc_error *error = MC_OK;
    int files_met = 0;
    apr_pool_t *scratch;
    bool there = false;
    if (cache->layout < TEMPLATE)
        MC_TRY(mc_disk_find_folder(&there, cache->root, ctx->pool));
    if (!there)
        return MC_OK;
    const size_t root = strlen(cache->root);
    char *const roots[] = { apr_pstrdup(ctx->pool, cache->root), NULL };
    FTS *files = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, compare_disk_names);
    if (files == NULL)
        return mc_error_create(ctx->pool, MC_ERR_IO, "%s cannot be read", cache->root);
    apr_pool_create(&scratch, ctx->pool);
    bool on = true;
    for (FTSENT *entry;
         on && error == MC_OK && (entry = mc_disk_next_entry(&error, files, cache->root, ctx)) != NULL;) {
        apr_pool_clear(scratch);
        if (entry->fts_info == FTS_D && entry->fts_level > 0 &&
            (is_folder_done(skip_slashes(entry->fts_path + root), survey->from) ||
             mc_quota_leaves_out(base, entry->fts_path, scratch)))
            (void)fts_set(files, entry, FTS_SKIP);
        on = survey_disk_entry(entry, cache, survey, root, scratch);
        if (error == MC_OK && ++files_met % LOOK_EVERY == 0)
            error = mc_ctx_check(ctx, ctx->pool);
    }
    apr_pool_destroy(scratch);
    fts_close(files);
    return error;
}

const mc_quota_store mc_disk_quota = {
    .name = name_disk_series,
    .restore = restore_disk_key,
    .needs_grid = disk_needs_grid,
    .measure = measure_disk_tiles,
    .evict = evict_disk_tiles,
    .survey = survey_disk,
};
