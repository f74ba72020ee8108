/* Tasks of MapProxy's seeder (its documentation, "seed"): each becomes a command of `mapcache seed`. */
#include <apr_strings.h>
#include <string.h>

#include "adopt/mapproxy.h"
#include "text/text.h"
#include "vector/crs/projection.h"

static const mc_draft_advice seed_advice[] = {
    { "coverages", "name one bbox or data source for each task; --area takes GeoJSON and WKT" },
    { "skip_geoms_for_last_levels", "the seeder looks at every metatile" },
    { NULL, NULL },
};

static const char *
shell_word(const char *word, apr_pool_t *pool)
{
    return mc_shell_word(mc_message_text(word, 1000, pool), pool);
}

/* " -z FIRST,LAST" of a list, or of {from, to}. */
static const char *
level_option(mc_branch *task, const mc_mapproxy_grid *grid, apr_pool_t *pool)
{
    double numbers[MC_MAPPROXY_LEVELS];
    mc_branch *levels = mc_branch_get(task, "levels");
    if (levels == NULL)
        return apr_psprintf(pool, " -z 0,%d", grid->levels - 1);
    int last = grid->levels - 1, first = 0, count;
    if (levels->kind == MC_BRANCH_MAP) {
        (void)mc_parse_int(&first, mc_branch_text(levels, "from", "0"), 0, last);
        (void)mc_parse_int(&last, mc_branch_text(levels, "to", ""), first, last);
    } else if ((count = mc_branch_numbers(numbers, MC_MAPPROXY_LEVELS, levels)) > 0) {
        double least = numbers[0], most = numbers[0];
        for (int i = 1; i < count; i++) {
            least = numbers[i] < least ? numbers[i] : least;
            most = numbers[i] > most ? numbers[i] : most;
        }
        first = least >= 0 && least <= last ? (int)least : 0;
        last = most >= first && most <= last ? (int)most : last;
    }
    return apr_psprintf(pool, " -z %d,%d", first, last);
}

/* " -e MINX,..." in units of the grid, or " --area FILE"; "" where there is none; NULL: it cannot be said. */
static const char *
area_option(mc_mapproxy *proxy, mc_branch *coverage, const mc_mapproxy_grid *grid)
{
    double edges[4];
    mc_projection *projection;
    mc_branch *source = mc_branch_get(coverage, "datasource"), *box = mc_branch_get(coverage, "bbox");
    const char *srs = mc_branch_text(coverage, "srs", mc_branch_text(coverage, "bbox_srs", grid->srs));
    if (box == NULL && source != NULL &&
        (source->kind == MC_BRANCH_LIST || strchr(source->text == NULL ? "" : source->text, ',') != NULL))
        box = source;
    if (box != NULL && mc_branch_numbers(edges, 4, box) == 4) {
        mc_extent extent = { edges[0], edges[1], edges[2], edges[3] };
        mc_error *error = mc_projection_open(&projection, srs, grid->srs, proxy->pool);
        if (error != MC_OK || !mc_extent_valid(&extent) ||
            (projection != NULL && !mc_projection_box(&extent, projection, false)))
            return NULL;
        return apr_psprintf(proxy->pool, " -e %s,%s,%s,%s", mc_double_text('g', 10, extent.minx, proxy->pool),
                            mc_double_text('g', 10, extent.miny, proxy->pool),
                            mc_double_text('g', 10, extent.maxx, proxy->pool),
                            mc_double_text('g', 10, extent.maxy, proxy->pool));
    }
    if (source == NULL || source->text == NULL || mc_branch_get(coverage, "where") != NULL)
        return NULL;
    const char *file = strstr(source->text, "://") != NULL || strncmp(source->text, "PG:", 3) == 0
                           ? source->text
                           : mc_draft_path(mc_draft_folder(source->file, proxy->pool), source->text, proxy->pool);
    return apr_psprintf(proxy->pool, " -d %s", shell_word(file, proxy->pool));
}

static const char *
age_option(mc_mapproxy *proxy, mc_branch *task, const char *key)
{
    mc_branch *age = mc_branch_get(task, key);
    double seconds = mc_mapproxy_seconds(proxy, age);
    if (seconds > 0)
        return apr_psprintf(proxy->pool, " -o %.0fs", seconds);
    if (mc_branch_get(age, "time") != NULL || mc_branch_get(age, "mtime") != NULL)
        mc_draft_note_at(proxy->adopt, age, "%s is not taken over: write the moment behind -o, as \"YYYY/MM/DD hh:mm\"",
                         key);
    return "";
}

/* The first coverage that a task names, of all by their names; NULL: none. */
static mc_branch *
find_coverage(mc_mapproxy *proxy, apr_hash_t *coverages, mc_branch *task)
{
    mc_branch *names = mc_branch_get(task, "coverages");
    if (names != NULL && names->kind == MC_BRANCH_MAP)
        mc_draft_note_at(proxy->adopt, names, "coverages are not taken over: they are no list of names");
    if (mc_branch_count(names) == 0)
        return NULL;
    const mc_branch *first = mc_branch_item(names, 0);
    mc_branch *found = first->text == NULL ? NULL : apr_hash_get(coverages, first->text, APR_HASH_KEY_STRING);
    if (found != NULL)
        found->taken = true;
    if (mc_branch_count(names) > 1 || found == NULL)
        mc_draft_note_at(proxy->adopt, names,
                         "coverages are not taken over but for one that is configured: give each its own command");
    return found;
}

/* The next one of a list, or of one text. */
static mc_branch *
next_named(const mc_branch *list, mc_branch *item)
{
    mc_branch *next = list->kind == MC_BRANCH_LIST ? item->next : NULL;
    if (next != NULL)
        next->taken = true;
    return next;
}

/* The names of a list; NULL: there is no list. */
static apr_hash_t *
hash_names(mc_branch *list, apr_pool_t *pool)
{
    apr_hash_t *names = list == NULL ? NULL : apr_hash_make(pool);
    for (mc_branch *item = mc_branch_item(list, 0); item != NULL; item = next_named(list, item))
        if (item->text != NULL)
            apr_hash_set(names, item->text, APR_HASH_KEY_STRING, item);
    return names;
}

/* What the commands of a task have in common. */
typedef struct seed_task {
    mc_branch *task, *coverage; /* coverage: NULL: none */
    apr_hash_t *grids;          /* the only ones; NULL: all */
    const char *age;
    bool cleanup;
} seed_task;

/* The commands of one cache, one for each of its grids. */
static void
write_cache_commands(mc_mapproxy *proxy, const seed_task *seed, const mc_mapproxy_cache *cache)
{
    apr_pool_t *pool = proxy->pool;
    for (int at = 0; at < cache->grids->nelts; at++) {
        const mc_mapproxy_grid *grid = APR_ARRAY_IDX(cache->grids, at, const mc_mapproxy_grid *);
        if (seed->grids != NULL && apr_hash_get(seed->grids, grid->own, APR_HASH_KEY_STRING) == NULL)
            continue;
        const char *area = seed->coverage == NULL ? "" : area_option(proxy, seed->coverage, grid);
        if (area == NULL) {
            mc_draft_note_at(
                proxy->adopt, seed->coverage,
                "coverage %s is not taken over: write the area as GeoJSON, and --area FILE behind the command",
                seed->coverage->key);
            area = "";
            if (seed->cleanup)
                continue; /* without its area a command would delete too much */
        }
        mc_draft_put(proxy->adopt, MC_DRAFT_SEEDS, "mapcache seed -c mapcache.xml -t %s -g %s%s%s%s%s",
                     shell_word(cache->tileset, pool), shell_word(grid->name, pool),
                     level_option(seed->task, grid, pool), area, seed->age, seed->cleanup ? " -m delete" : "");
        proxy->adopt->counts.seeds++;
    }
}

static void
write_seed_commands(mc_mapproxy *proxy, apr_hash_t *coverages, mc_branch *task, bool cleanup)
{
    mc_branch *caches = mc_branch_get(task, "caches");
    const seed_task seed = { .task = task,
                             .coverage = find_coverage(proxy, coverages, task),
                             .grids = hash_names(mc_branch_get(task, "grids"), proxy->pool),
                             .age = age_option(proxy, task, cleanup ? "remove_before" : "refresh_before"),
                             .cleanup = cleanup };
    const mc_branch *areas = mc_branch_get(task, "coverages");
    bool unsure =
        mc_branch_count(areas) > (seed.coverage != NULL ? 1 : 0) || (areas != NULL && areas->kind == MC_BRANCH_MAP);
    bool all = mc_branch_is_true(task, "remove_all", false);
    if (cleanup && (unsure || (*seed.age == '\0' && !all))) { /* a command without them would delete too much */
        mc_draft_note_at(proxy->adopt, task,
                         "%s is not taken over: %s. `mapcache purge` deletes tiles by age (--older) and area (--area)",
                         task->key, unsure ? "its area cannot be said" : "it says no remove_before");
        mc_branch_pass(task);
        return;
    }
    for (mc_branch *name = mc_branch_item(caches, 0); name != NULL; name = next_named(caches, name)) {
        const mc_mapproxy_cache *cache =
            name->text == NULL ? NULL : apr_hash_get(proxy->caches, name->text, APR_HASH_KEY_STRING);
        if (cache != NULL && cache->tileset != NULL)
            write_cache_commands(proxy, &seed, cache);
        else
            mc_draft_note_at(proxy->adopt, name, "cache %s is not filled: no layer that is taken over shows it",
                             name->text == NULL ? "" : name->text);
    }
}

mc_error *
mc_adopt_mapproxy_seeds(mc_adopt *adopt, const char *file)
{
    mc_branch *root;
    int room = MC_BRANCHES_MAX;
    MC_TRY(mc_mapproxy_parse(&root, file, &room, adopt));
    if (adopt->mapproxy == NULL)
        return mc_error_create(adopt->pool, MC_ERR_CONFIG,
                               "%s:1: this is a seed.yaml of MapProxy; name the mapproxy.yaml that it belongs to, too",
                               file);
    static const char *const groups[] = { "seeds", "cleanups" };
    apr_hash_t *coverages = apr_hash_make(adopt->pool);
    const mc_branch *areas = mc_branch_get(root, "coverages");
    for (mc_branch *area = areas == NULL || areas->kind != MC_BRANCH_MAP ? NULL : areas->children; area != NULL;
         area = area->next)
        apr_hash_set(coverages, area->key, APR_HASH_KEY_STRING, area);
    for (int group = 0; group < 2; group++) {
        mc_branch *tasks = mc_branch_get(root, groups[group]);
        for (mc_branch *task = tasks == NULL || tasks->kind != MC_BRANCH_MAP ? NULL : tasks->children; task != NULL;
             task = task->next) {
            task->taken = true;
            write_seed_commands(adopt->mapproxy, coverages, task, group == 1);
        }
    }
    mc_draft_note_untaken(adopt, root, seed_advice);
    return MC_OK;
}
