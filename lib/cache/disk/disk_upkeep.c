/*
 * Looking after caches of type disk: files are told by their paths, as disk.c makes them. Whatever is no tile and no
 * leftover of ours is left alone, and not counted. The root may be a link; links below it are tiles, or not looked at.
 */
#include <apr_hash.h>
#include <apr_strings.h>
#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cache/disk/disk_base.h"
#include "mapcache/upkeep.h"
#include "text/text.h"

enum {
    PARTS_MAX = 64,       /* of a path below the root */
    LEFTOVER_AGE = 3600,  /* seconds after which nobody is writing a file any more */
    SHOW_EVERY = 1 << 14, /* files */
    LOOK_EVERY = 1 << 10, /* files between two looks at the deadline */
};

typedef struct disk_upkeep_walk {
    const disk_cache *cache;
    const mc_upkeep *task; /* NULL: of one series only */
    const char *root;
    apr_pool_t *pool;
    mc_store store;
    apr_hash_t *groups;          /* of mc_store_group by what names it */
    apr_array_header_t *orphans; /* of mc_store_group */
    bool removing;
    int64_t seen;
    time_t now;
} disk_upkeep_walk;

/* A number of the layout: `digits` of them, no other bytes. */
static bool
is_number(const char *text, const char *digits, size_t least)
{
    size_t size = strspn(text, digits);
    return size >= least && text[size] == '\0';
}

/* The parts from `first` on, joined as the values of dimensions are. */
static const char *
join_dimension_parts(char *const *parts, int first, int end, apr_pool_t *pool)
{
    const char *joined = "";
    for (int i = first; i < end; i++)
        joined = apr_pstrcat(pool, joined, i > first ? "#" : "", parts[i], NULL);
    return joined;
}

/* tileset/grid/values.../ZZ/XXX/XXX/XXX/YYY/YYY/YYY.ext, or .../LZZ/RXXXXXXXX/CXXXXXXXX.ext. */
static bool
parse_cache_tile_path(mc_store_group *group, char *const *parts, int count, layout layout, apr_pool_t *pool)
{
    int behind = layout == ARCGIS ? 3 : 7;
    if (count < 2 + behind)
        return false;
    char *const *place = parts + count - behind;
    const char *name = apr_pstrmemdup(pool, place[behind - 1], strcspn(place[behind - 1], "."));
    const char *level = place[0];
    if (layout == ARCGIS) {
        if (*level++ != 'L' || place[1][0] != 'R' || !is_number(place[1] + 1, "0123456789abcdef", 8) ||
            name[0] != 'C' || !is_number(name + 1, "0123456789abcdef", 8))
            return false;
    } else {
        for (int i = 1; i < behind; i++)
            if (!is_number(i == behind - 1 ? name : place[i], "0123456789", 3))
                return false;
    }
    group->tileset = parts[0];
    group->grid = parts[1];
    group->dim = join_dimension_parts(parts, 2, count - behind, pool);
    return is_number(level, "0123456789", 2) && mc_parse_int(&group->z, level, 0, 1000);
}

/* Z/YYYY/YYYY_XXXX.ext: the path names no tileset. */
static bool
parse_world_wind(mc_store_group *group, char *const *parts, int count)
{
    *group = (mc_store_group){ NULL, NULL, NULL, 0, 0, 0, 0 };
    return count == 3 && is_number(parts[1], "0123456789", 4) &&
           strspn(parts[2], "0123456789_") == strcspn(parts[2], ".") && strchr(parts[2], '_') != NULL &&
           mc_parse_int(&group->z, parts[0], 0, 1000);
}

static bool
parse_disk_path(mc_store_group *group, const disk_upkeep_walk *walk, const char *path, apr_pool_t *pool)
{
    char *parts[PARTS_MAX], *rest, *copy = apr_pstrdup(pool, path + strlen(walk->root));
    int count = 0;
    *group = (mc_store_group){ 0 };
    for (char *part = apr_strtok(copy, "/", &rest); part != NULL; part = apr_strtok(NULL, "/", &rest)) {
        if (count == PARTS_MAX)
            return false;
        parts[count++] = part;
    }
    return walk->cache->layout == WORLDWIND ? parse_world_wind(group, parts, count)
                                            : parse_cache_tile_path(group, parts, count, walk->cache->layout, pool);
}

/* Whether "." and digits end where *end points to, which is then moved in front of them. */
static bool
skip_number_before(const char *name, const char **end)
{
    const char *at = *end;
    while (at > name && at[-1] >= '0' && at[-1] <= '9')
        at--;
    if (at == *end || at == name || at[-1] != '.')
        return false;
    *end = at - 1;
    return true;
}

/* NAME.PID.NUMBER.tmp, as disk.c calls what it has not renamed yet. */
static bool
is_unfinished(const char *name)
{
    size_t size = strlen(name);
    const char *end = name + size - 4;
    return size > 4 && strcmp(end, ".tmp") == 0 && skip_number_before(name, &end) && skip_number_before(name, &end) &&
           end > name;
}

/* Only what is not known yet takes memory of the walk: there may be more tiles than fit into any. */
static mc_store_group *
group_of(disk_upkeep_walk *walk, const mc_store_group *found, apr_pool_t *scratch)
{
    const char *name =
        apr_psprintf(scratch, "%s/%s/%s/%d", found->tileset == NULL ? "" : found->tileset,
                     found->grid == NULL ? "" : found->grid, found->dim == NULL ? "" : found->dim, found->z);
    mc_store_group *group = apr_hash_get(walk->groups, name, APR_HASH_KEY_STRING);
    if (group != NULL)
        return group;
    group = apr_palloc(walk->pool, sizeof(*group));
    *group = (mc_store_group){ found->tileset == NULL ? NULL : apr_pstrdup(walk->pool, found->tileset),
                               found->grid == NULL ? NULL : apr_pstrdup(walk->pool, found->grid),
                               found->dim == NULL ? NULL : apr_pstrdup(walk->pool, found->dim),
                               found->z,
                               0,
                               0,
                               0 };
    apr_hash_set(walk->groups, apr_pstrdup(walk->pool, name), APR_HASH_KEY_STRING, group);
    return group;
}

bool
mc_disk_tells_groups(const mc_cache *cache)
{
    return ((const disk_cache *)cache)->layout < TEMPLATE;
}

static void
account_disk_file(disk_upkeep_walk *walk, const FTSENT *entry, apr_pool_t *scratch)
{
    mc_store_group found;
    mc_store *store = &walk->store;
    const mc_upkeep *task = walk->task;
    int64_t bytes = (int64_t)entry->fts_statp->st_blocks * 512;
    bool unfinished = is_unfinished(entry->fts_name);
    bool leftover = unfinished && walk->now - entry->fts_statp->st_mtime > LEFTOVER_AGE;
    bool tile = !unfinished && mc_disk_tells_groups(&walk->cache->base.cache) &&
                parse_disk_path(&found, walk, entry->fts_path, scratch);
    store->bytes += bytes;
    if (leftover) {
        store->leftovers++;
        store->leftover_bytes += bytes;
        if (walk->removing)
            (void)unlink(entry->fts_path);
    }
    if (!tile)
        return;
    mc_store_group *group = group_of(walk, &found, scratch);
    group->tiles++;
    group->bytes += bytes;
    group->blanks += entry->fts_info == FTS_SL || entry->fts_info == FTS_SLNONE;
    if (walk->removing && !task->known(task->baton, group))
        (void)unlink(entry->fts_path);
    if (++walk->seen % SHOW_EVERY == 0 && task != NULL && task->progress != NULL)
        task->progress(task->baton, store, walk->removing ? "removing" : "counting", 0);
}

mc_error *
mc_disk_find_folder(bool *there, const char *folder, apr_pool_t *pool)
{
    *there = access(folder, F_OK) == 0;
    return *there || mc_stamp_absent(errno) ? MC_OK : mc_error_create(pool, MC_ERR_IO, "%s cannot be read", folder);
}

/* A folder below that of the store that cannot be read is told, and passed over: the others go on being kept. */
static mc_error *
check_disk_entry(const FTSENT *entry, mc_ctx *ctx)
{
    const bool unread = entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS;
    if (!unread || (entry->fts_level > 0 && mc_stamp_absent(entry->fts_errno))) /* removed meanwhile */
        return MC_OK;
    if (entry->fts_level == 0)
        return mc_error_create(ctx->pool, MC_ERR_IO, "%s cannot be read", entry->fts_path);
    mc_log_write(ctx, MC_LOG_WARN, "%s cannot be read: what is in it is not counted", entry->fts_path);
    return MC_OK;
}

FTSENT *
mc_disk_next_entry(mc_error **error, FTS *files, const char *folder, mc_ctx *ctx)
{
    errno = 0;
    FTSENT *entry = fts_read(files);
    if (entry != NULL)
        *error = check_disk_entry(entry, ctx);
    else if (errno != 0)
        *error = mc_error_create(ctx->pool, MC_ERR_IO, "%s cannot be read to its end", folder);
    return entry;
}

static mc_error *
go_through(disk_upkeep_walk *walk, const char *folder, mc_ctx *ctx)
{
    int files_met = 0;
    mc_error *error = MC_OK;
    apr_pool_t *scratch;
    char *const roots[] = { apr_pstrdup(walk->pool, folder), NULL };
    FTS *files = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
    if (files == NULL)
        return mc_error_create(walk->pool, MC_ERR_IO, "%s cannot be read", folder);
    apr_pool_create(&scratch, walk->pool);
    for (const FTSENT *entry; (entry = mc_disk_next_entry(&error, files, folder, ctx)) != NULL;) {
        if (error != MC_OK || (walk->task != NULL && walk->task->stop != NULL && *walk->task->stop != 0))
            break;
        if (++files_met % LOOK_EVERY == 0 && (error = mc_ctx_check(ctx, ctx->pool)) != MC_OK)
            break;
        apr_pool_clear(scratch);
        if (entry->fts_info == FTS_F || entry->fts_info == FTS_SL || entry->fts_info == FTS_SLNONE)
            account_disk_file(walk, entry, scratch);
        else if (entry->fts_info == FTS_DP && walk->removing && entry->fts_level > 0 && walk->cache->root != NULL)
            (void)rmdir(entry->fts_path); /* where nothing is left in it */
    }
    apr_pool_destroy(scratch);
    fts_close(files);
    return error;
}

/* Counts, and with `removing` removes what is not wanted. */
static mc_error *
count_disk_store(disk_upkeep_walk *walk, bool removing, mc_ctx *ctx)
{
    mc_store *store = &walk->store;
    const mc_upkeep *task = walk->task;
    *store = (mc_store){ "disk", walk->cache->base.cache.name, walk->root, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    walk->groups = apr_hash_make(walk->pool);
    walk->orphans = apr_array_make(walk->pool, 4, sizeof(mc_store_group));
    walk->removing = removing;
    MC_TRY(go_through(walk, walk->root, ctx));
    if (!mc_disk_tells_groups(&walk->cache->base.cache)) {
        store->bytes = store->leftover_bytes;
        store->tiles = store->blanks = store->tile_bytes = store->orphans = store->orphan_bytes = -1;
    }
    for (apr_hash_index_t *at = apr_hash_first(walk->pool, walk->groups); at != NULL; at = apr_hash_next(at)) {
        const mc_store_group *group = apr_hash_this_val(at);
        mc_store_add(store, group, task, walk->orphans);
    }
    return MC_OK;
}

/* The folder of all files of a cache; NULL: there is none. Of a template the folder before its first placeholder. What
 * lies there may be anybody's, so that only leftovers are told, by their names; in the root of the system not even
 * they. */
const char *
mc_disk_place(bool *file, const mc_cache *base, apr_pool_t *pool)
{
    const disk_cache *cache = (const disk_cache *)base;
    *file = false;
    if (cache->layout == TEMPLATE)
        return mc_template_folder(cache->template_text, pool);
    return cache->layout > TEMPLATE && strchr(cache->root, '{') != NULL ? mc_template_folder(cache->root, pool)
                                                                        : cache->root;
}

mc_error *
mc_disk_upkeep(mc_cache *base, const mc_upkeep *task, mc_ctx *ctx)
{
    const disk_cache *cache = (const disk_cache *)base;
    bool file, there = false;
    const char *root = mc_disk_place(&file, base, ctx->pool);
    if (root != NULL && task->count)
        MC_TRY(mc_disk_find_folder(&there, root, ctx->pool));
    if (!there)
        return MC_OK;
    disk_upkeep_walk walk = { .cache = cache, .task = task, .root = root, .now = time(NULL) };
    apr_pool_create(&walk.pool, ctx->pool);
    mc_error *error = count_disk_store(&walk, false, ctx);
    mc_store before = walk.store;
    bool changes = error == MC_OK && task->remove_orphans && (before.orphans > 0 || before.leftovers > 0);
    if (error == MC_OK)
        mc_store_tell_orphans(&before, task, walk.orphans);
    if (changes)
        error = count_disk_store(&walk, true, ctx);
    if (changes && error == MC_OK)
        error = count_disk_store(&walk, false, ctx);
    if (task->report != NULL && (error != MC_OK || before.leftovers > 0 || mc_disk_tells_groups(base)))
        task->report(task->baton, &before, changes ? &walk.store : NULL, error);
    apr_pool_destroy(walk.pool);
    return MC_OK;
}

mc_error *
mc_disk_measure(int64_t *bytes, int64_t *tiles, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx)
{
    const disk_cache *cache = (const disk_cache *)base;
    disk_upkeep_walk walk = { .cache = cache, .root = cache->root, .pool = ctx->pool, .now = time(NULL) };
    *bytes = *tiles = 0;
    if (cache->layout >= TEMPLATE) {
        *bytes = -1;
        return MC_OK;
    }
    walk.groups = apr_hash_make(ctx->pool);
    const char *folder = cache->layout == WORLDWIND
                             ? cache->root
                             : apr_pstrcat(ctx->pool, cache->root, "/", key->tileset, "/", key->grid->name, NULL);
    bool there;
    MC_TRY(mc_disk_find_folder(&there, folder, ctx->pool));
    if (!there)
        return MC_OK;
    MC_TRY(go_through(&walk, folder, ctx));
    *bytes = walk.store.bytes;
    *tiles = walk.seen;
    return MC_OK;
}
