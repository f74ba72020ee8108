/* The cache "disk": a file for each tile (docs/reference/configuration.md 5.5). Written beside its place and renamed,
 * so that nobody ever reads half a tile. */
#include <apr_hash.h>
#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "cache/disk/disk_base.h"
#include "mapcache/trace.h"

#define FIELD(field) offsetof(disk_cache, field)
static const mc_key disk_keys[] = {
    MC_CACHE_KEYS(disk_cache),
    MC_KEY_TEXT(
        "@layout", FIELD(layout_name),
        "tilecache, arcgis, worldwind or template; or a layout of other programs, in which <base> is the folder "
        "of one tileset and grid, and may have {tileset}, {grid} and {dim}: mapproxy-tc, mapproxy-mp, "
        "mapproxy-arcgis, quadkey, or geowebcache, where <base> is the layer's folder and the begin of the "
        "names of its levels (base/topp_states/EPSG_900913)."),
    MC_KEY_TEXT("base", FIELD(root), "Root folder of all layouts but template.", .flags = MC_KEY_WORKDIR),
    MC_KEY_TEXT("template", FIELD(template_text), "Path of layout template.", .flags = MC_KEY_WORKDIR),
    MC_KEY_TEXT("extension", FIELD(extension),
                "Ending of the files' names (jpeg), where it is not that of the tileset's format (jpg).",
                .flags = MC_KEY_OURS),
    MC_KEY_FLAG("symlink_blank", FIELD(symlink_blank), "Tiles of one colour become links to one file."),
    MC_KEY_PRESENT("detect_blank", FIELD(detect_blank), "Fully transparent tiles are not written."),
    MC_KEY_INT("creation_retry", FIELD(creation_retry), "How often the creation of a file is repeated.", .max = 1000,
               .fallback = "0"),
    MC_QUOTA_KEY(disk_cache),
    MC_KEY_END,
};

/* The layout of that name; LAYOUT_COUNT after a complaint. */
static layout
find_layout(const char *name, const mc_node *node, mc_build *build)
{
    if (name == NULL || *name == '\0')
        return TILECACHE;
    const char *list = mc_disk_layout_name(TILECACHE);
    for (layout at = TILECACHE; at < LAYOUT_COUNT; at++) {
        if (strcmp(mc_disk_layout_name(at), name) == 0)
            return at;
        if (at > TILECACHE)
            list =
                apr_pstrcat(build->pool, list, at == LAYOUT_COUNT - 1 ? " or " : ", ", mc_disk_layout_name(at), NULL);
    }
    mc_complain(build->diagnostics, MC_REFUSED, node, "no layout is named %s: it is %s",
                mc_config_quote(name, build->pool), list);
    return LAYOUT_COUNT;
}

static bool
check_disk_keys(const disk_cache *cache, const mc_node *node, mc_build *build)
{
    if (cache->layout == TEMPLATE ? cache->template_text == NULL : cache->root == NULL)
        mc_complain(build->diagnostics, MC_REFUSED, node, "a disk cache of this layout needs <%s>",
                    cache->layout == TEMPLATE ? "template" : "base");
    else if (cache->extension != NULL && (*cache->extension == '\0' || strchr(cache->extension, '/') != NULL))
        mc_complain(build->diagnostics, MC_REFUSED, node, "<extension> cannot be %s: it is the end of a file's name",
                    mc_config_quote(cache->extension, build->pool));
    else
        return true;
    return false;
}

static mc_cache *
disk_from_config(const mc_node *node, mc_build *build)
{
    disk_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    if (!mc_cache_read(&cache->base, &mc_cache_disk, true, node, build))
        return NULL;
    cache->layout = find_layout(cache->layout_name, node, build);
    if (cache->layout == LAYOUT_COUNT || !check_disk_keys(cache, node, build))
        return NULL;
    cache->places = apr_hash_make(build->pool);
    if (cache->layout >= TEMPLATE) {
        mc_template_rules rules = { .sqlite = cache->layout > TEMPLATE, .columns = -1, .rows = -1, .top = -1 };
        cache->template =
            mc_template_compile(cache->layout == TEMPLATE ? cache->template_text : cache->root, &rules, build->pool);
    }
    if (!mc_quota_from_config(&cache->base.cache, &mc_disk_quota, MC_QUOTA_SHIFT, node, build))
        return NULL;
    return &cache->base.cache;
}

static mc_error *
disk_io_error(const char *path, const char *what, int code, apr_pool_t *pool)
{
    char text[128];
    mc_error *cause = mc_error_create(pool, MC_ERR_IO, "%s: %s", path, strerror_r(code, text, sizeof(text)));
    return mc_error_wrap(pool, cause, MC_ERR_IO, "%s", what);
}

static apr_time_t
change_time(const struct stat *info)
{
    return (apr_time_t)info->st_mtim.tv_sec * APR_USEC_PER_SEC + info->st_mtim.tv_nsec / 1000;
}

/* All bytes of an open file. One that is shorter than it was a moment ago is being written over by another program. */
static mc_error *
read_disk_bytes(mc_buf *buf, int file, size_t size, const char *path, apr_pool_t *pool)
{
    MC_TRY(mc_buf_reserve(buf, size, pool));
    while (buf->size < size) {
        ssize_t count = read(file, buf->data + buf->size, size - buf->size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return disk_io_error(path, "a stored tile cannot be read", errno, pool);
        if (count == 0)
            return mc_error_create(pool, MC_ERR_UNAVAILABLE, "a stored tile is being written to");
        buf->size += (size_t)count;
    }
    return MC_OK;
}

/* The whole file in one buffer; *data is NULL where there is none. */
static mc_error *
read_disk_file(mc_buf **data, apr_time_t *mtime, const char *path, apr_pool_t *pool)
{
    *data = NULL;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hold the request up */
    if (file < 0)
        return mc_stamp_absent(errno) ? MC_OK : disk_io_error(path, "a stored tile cannot be read", errno, pool);
    struct stat info;
    mc_error *error = MC_OK;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > MC_TILE_BYTES_MAX) {
        error = disk_io_error(path, "a stored tile cannot be read", EINVAL, pool);
    } else {
        size_t size = (size_t)info.st_size;
        *data = mc_buf_attach(mc_buf_create(size > 0 ? size : 1, size > 0 ? size : 1), pool);
        *mtime = change_time(&info);
        error = read_disk_bytes(*data, file, size, path, pool);
    }
    close(file);
    return error;
}

static mc_error *
disk_read(mc_tile **tile, disk_cache *cache, const char *path, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_stamp stamp;
    mc_memory_key memory_key;
    bool remember = cache->base.cache.remember && ctx->process != NULL && ctx->process->memory != NULL;
    apr_time_t now = 0;
    if (remember) {
        now = apr_time_now();
        remember = mc_stamp_take_plain(&stamp, path);
        if (!remember && (errno == ENOENT || errno == ENOTDIR))
            return MC_OK;
        if (remember) { /* else reading says what is wrong */
            mc_memory_key_build(&memory_key, 2, path, key);
            if (mc_memory_get(tile, &memory_key, &stamp, ctx, pool))
                return MC_OK;
        }
    }
    mc_buf *data;
    apr_time_t mtime = 0;
    MC_TRY(read_disk_file(&data, &mtime, path, pool));
    if (data == NULL)
        return MC_OK;
    if (data->size == 0) {
        mc_log_write(ctx, MC_LOG_WARN, "cache \"%s\": the empty file %s counts as a missing tile",
                     cache->base.cache.name, path);
        return MC_OK;
    }
    *tile = mc_tile_create(data, mtime, pool);
    if (remember)
        mc_memory_put(&memory_key, &stamp, now, *tile, ctx);
    return MC_OK;
}

static mc_error *
disk_get(mc_tile **tile, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_AS(span, ctx, "_mapcache_cache_disk_get");
    disk_cache *cache = (disk_cache *)base;
    char path[MC_PATH_MAX];
    *tile = NULL;
    mc_error *error = mc_disk_tile_path(path, cache, key, pool);
    if (error == MC_OK)
        error = disk_read(tile, cache, path, key, ctx, pool);
    mc_cache_note_get(&span, error, *tile);
    return error;
}

static mc_error *
disk_exists(bool *exists, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    char path[MC_PATH_MAX];
    MC_TRY(mc_disk_tile_path(path, (disk_cache *)base, key, ctx->pool));
    struct stat info;
    const bool there = stat(path, &info) == 0;
    *exists = there && info.st_size > 0;
    return there || mc_stamp_absent(errno) ? MC_OK
                                           : disk_io_error(path, "a stored tile cannot be read", errno, ctx->pool);
}

/* A name beside `path` that no other thread or process uses. */
static const char *
temporary_name(const char *path, apr_pool_t *pool)
{
    static _Atomic unsigned counter;
    return apr_psprintf(pool, "%s.%d.%u.tmp", path, (int)mc_files_own_process(), atomic_fetch_add(&counter, 1));
}

/* A root that was there when the seeder began is away, and not to be made anew where nobody finds it again. */
static mc_error *
check_disk_root(disk_cache *cache, mc_ctx *ctx)
{
    if (!ctx->bulk)
        return MC_OK;
    if (cache->root == NULL || access(cache->root, F_OK) == 0) {
        atomic_store_explicit(&cache->seen, true, memory_order_relaxed);
        return MC_OK;
    }
    if (!atomic_load_explicit(&cache->seen, memory_order_relaxed))
        return MC_OK; /* the first tile makes it */
    return mc_error_create(ctx->pool, MC_ERR_UNAVAILABLE, "the folder of cache \"%s\" has gone: is it mounted?",
                           cache->base.cache.name);
}

/* Whether the file is written, with tile->made as the time of its change (0: now), and *read_as is that time. */
static bool
write_tile_file(apr_time_t *read_as, int file, const mc_tile_write *tile)
{
    const struct timespec since = { (time_t)apr_time_sec(tile->made), (long)apr_time_usec(tile->made) * 1000 };
    const struct timespec times[2] = { since, since };
    struct stat info;
    if (!mc_files_write(file, tile->data->data, tile->data->size) || (tile->made != 0 && futimens(file, times) != 0))
        return false;
    if (tile->read_as != NULL && fstat(file, &info) == 0)
        *read_as = change_time(&info);
    return true;
}

/* Creates `path` at once with all bytes of a tile, or as a link where `link` is not NULL. */
static mc_error *
create_file(disk_cache *cache, char *path, const mc_tile_write *tile, const char *link, mc_ctx *ctx)
{
    enum { FOLDERS_AGAIN = 10 }; /* <max_size> removes folders that are empty */
    const char *temporary = temporary_name(path, ctx->pool);
    const int retries = cache->creation_retry, missing = cache->base.cache.quota == NULL ? 0 : FOLDERS_AGAIN;
    for (int attempt = 0;; attempt++) {
        bool begun, made;
        apr_time_t read_as = 0;
        if (link != NULL) {
            begun = made = symlink(link, temporary) == 0;
        } else {
            int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
            begun = file >= 0;
            made = begun && write_tile_file(&read_as, file, tile);
            int code = errno;
            if (begun && close(file) != 0)
                made = false;
            else
                errno = code;
        }
        if (made && rename(temporary, path) == 0) {
            if (read_as > 0)
                *tile->read_as = read_as;
            return MC_OK;
        }
        int code = errno;
        if (begun)
            (void)unlink(temporary);
        if (code == ENOENT)
            MC_TRY(check_disk_root(cache, ctx));
        int reason = code == ENOENT || code == ENOTDIR ? mc_files_make_folders(path) : 0;
        /* The first time, the folders are simply not there yet. */
        if (attempt > retries + (reason == 0 ? missing : 0) || (code != ENOENT && attempt >= retries))
            return disk_io_error(path, "a tile cannot be stored", reason != 0 ? reason : code, ctx->pool);
    }
}

/* From the folder of `path` to `target`, as MapCache writes it: relative where they part at a '/', else absolute. */
static const char *
link_text(const char *path, const char *target, apr_pool_t *pool)
{
    size_t common = 0;
    while (path[common] != '\0' && path[common] == target[common])
        common++;
    if (common == 0 || path[common - 1] != '/')
        return target;
    const char *up = "";
    for (const char *slash = strchr(path + common, '/'); slash != NULL; slash = strchr(slash + 1, '/'))
        up = apr_pstrcat(pool, up, "../", NULL);
    return apr_pstrcat(pool, up, target + common, NULL);
}

static mc_error *
put_link(disk_cache *cache, char *path, const mc_tile_write *tile, const uint8_t bgra[4], mc_ctx *ctx)
{
    char blank[MC_PATH_MAX];
    char name[32];
    mc_text_out out = { .out = blank };
    mc_disk_put_folder(&out, cache, &tile->key);
    snprintf(name, sizeof(name), "/blanks/%02X%02X%02X%02X.", bgra[0], bgra[1], bgra[2], bgra[3]);
    mc_text_put_string(&out, name);
    mc_text_put_string(&out, tile->key.extension);
    MC_TRY(mc_text_check(&out, &tile->key, ctx->pool));
    struct stat info;
    if (stat(blank, &info) != 0 || info.st_size == 0)
        MC_TRY(create_file(cache, blank, &(mc_tile_write){ .data = tile->data }, NULL, ctx));
    return create_file(cache, path, NULL, link_text(path, blank, ctx->pool), ctx);
}

static mc_error *
unlink_tile(const char *path, apr_pool_t *pool)
{
    if (unlink(path) != 0 && errno != ENOENT && errno != ENOTDIR)
        return disk_io_error(path, "a stored tile cannot be deleted", errno, pool);
    return MC_OK;
}

static mc_error *
put_disk_tile(disk_cache *cache, char *path, const mc_tile_write *tile, mc_ctx *ctx)
{
    mc_memory_key memory_key;
    mc_memory_key_build(&memory_key, 2, path, &tile->key);
    mc_memory_forget(&memory_key, ctx);
    if (tile->uniform && cache->detect_blank && tile->bgra[3] == 0)
        return unlink_tile(path, ctx->pool); /* what was there before would go on showing */
    if (tile->uniform && cache->symlink_blank && cache->layout < TEMPLATE)
        return put_link(cache, path, tile, tile->bgra, ctx);
    return create_file(cache, path, tile, NULL, ctx);
}

/*
 * The last one first: whether a metatile is there is told by its first tile, which must not be there before the others,
 * wherever the disk is full or the process killed. Of a tile that comes twice the last one counts.
 */
static mc_error *
disk_put(mc_cache *base, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    disk_cache *cache = (disk_cache *)base;
    apr_hash_t *stored = apr_hash_make(ctx->pool);
    MC_TRY(check_disk_root(cache, ctx));
    for (int i = count - 1; i >= 0; i--) {
        char path[MC_PATH_MAX];
        MC_TRY(mc_disk_tile_path(path, cache, &tiles[i].key, ctx->pool));
        if (apr_hash_get(stored, path, APR_HASH_KEY_STRING) != NULL)
            continue;
        MC_TRY(put_disk_tile(cache, path, &tiles[i], ctx));
        apr_hash_set(stored, apr_pstrdup(ctx->pool, path), APR_HASH_KEY_STRING, "");
    }
    return MC_OK;
}

static mc_error *
disk_remove(mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    char path[MC_PATH_MAX];
    MC_TRY(mc_disk_tile_path(path, (disk_cache *)base, key, ctx->pool));
    MC_TRY(unlink_tile(path, ctx->pool));
    mc_memory_key memory_key;
    mc_memory_key_build(&memory_key, 2, path, key);
    mc_memory_forget(&memory_key, ctx);
    return MC_OK;
}

static bool
disk_tells_grids(const mc_cache *base)
{
    const disk_cache *cache = (const disk_cache *)base;
    return cache->layout >= TEMPLATE ? mc_template_by_grid(cache->template) : cache->layout != WORLDWIND;
}

static void
disk_used_by(mc_cache *base, const mc_cache_use *use, const mc_node *node, mc_build *build)
{
    disk_cache *cache = (disk_cache *)base;
    const mc_tile_key key = { .tileset = use->tileset, .grid = use->grid, .extension = use->extension };
    char path[MC_PATH_MAX];
    if (mc_disk_tile_path(path, cache, &key, build->pool) != MC_OK)
        return; /* said with the first request */
    mc_cache_note_place(base, cache->places, path,
                        cache->layout == TEMPLATE  ? "put {tileset} and {grid} into <template>"
                        : cache->layout > TEMPLATE ? "put {tileset} and {grid} into <base>"
                                                   : "another layout keeps them apart",
                        use, node, build);
    if (use->dimensions &&
        (cache->layout == WORLDWIND || (cache->layout >= TEMPLATE && !mc_template_by_dimension(cache->template))))
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "tileset \"%s\" has dimensions, and the files of cache \"%s\" cannot tell the tiles of their values"
                    " apart: %s",
                    use->tileset, base->name,
                    cache->layout == TEMPLATE  ? "put {dim} into the <template>"
                    : cache->layout > TEMPLATE ? "put {dim} into the <base>"
                                               : "another layout does");
}

/* Links to the files of uniform tiles have the times of these. */
static bool
disk_keeps_time(const mc_cache *cache)
{
    return !((const disk_cache *)cache)->symlink_blank;
}

const mc_cache_ops mc_cache_disk = {
    MC_KIND("disk", disk_keys, disk_from_config, "A file for each tile."),
    .sample = "<base>{folder}/sample</base>",
    .get = disk_get,
    .exists = disk_exists,
    .put = disk_put,
    .remove = disk_remove,
    .tells_grids = disk_tells_grids,
    .used_by = disk_used_by,
    .upkeep = mc_disk_upkeep,
    .tells_groups = mc_disk_tells_groups,
    .keeps_time = disk_keeps_time,
    .tells_time = true,
    .lists_folders = mc_disk_lists_folders,
    .list_folders = mc_disk_list_folders,
    .measure = mc_disk_measure,
    .place = mc_disk_place,
};
