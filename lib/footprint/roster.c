/* Rosters: which products may have tiles where. */
#include "footprint/roster.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/workers.h"
#include "cache/memory.h"
#include "footprint/coverage_index.h"
#include "footprint/folder_watch.h"
#include "footprint/footprint_counters.h"

enum {
    FOLDERS_OF_A_ROSTER = 4,
    CHANGES_AT_ONCE = 64, /* more changes than these make a new roster */
    LEAST_SHARE = 4,      /* at most one product of so many is open */
    LOOKS_OF_A_JOB = 500, /* half a millisecond */
    LEVELS_ASSUMED = 16,  /* with tiles, for the size in memory */
};

/* Each file is looked at this often at least: what no watch reports is seen then. */
#define LOOKED_AT_EVERY APR_USEC_PER_SEC

enum roster_state {
    ROSTER_OPEN,   /* its file has to be looked at */
    ROSTER_KNOWN,  /* it has tiles in its boxes alone */
    ROSTER_ABSENT, /* there is no file */
};

typedef struct roster_entry {
    enum roster_state state;
    uint64_t opened; /* change since which it is open: who has looked before does not know it */
    const char *path;
    mc_stamp stamp;
} roster_entry;

typedef struct roster_folder {
    char *path;
    int watch;
    uint64_t device;
} roster_folder;

struct mc_roster {
    pthread_mutex_t lock;
    int count, open;
    roster_folder folders[FOLDERS_OF_A_ROSTER];
    int folder_count;
    uint64_t taken;      /* changes up to this one are in the states */
    apr_time_t verified; /* by mc_clock_now(): when the look at each file in turn has come to `next` */
    int next;
    roster_entry *entries;
    uint64_t *changes;                        /* by entry, as mc_folder_change_of; 0: in no watched folder */
    char *paths;                              /* of all entries */
    mc_tile_range *boxes[MC_COVERAGE_LEVELS]; /* by level and entry; NULL: no entry has tiles there */
};

static void
free_roster(void *value)
{
    mc_roster *roster = value;
    for (int i = 0; i < roster->folder_count; i++)
        free(roster->folders[i].path);
    for (int z = 0; z < MC_COVERAGE_LEVELS; z++)
        free(roster->boxes[z]);
    free(roster->entries);
    free(roster->changes);
    free(roster->paths);
    pthread_mutex_destroy(&roster->lock);
    free(roster);
}

static struct mc_folder_watches *
watches_of(const mc_ctx *ctx)
{
    return ctx->process == NULL || ctx->process->memory == NULL ? NULL : ctx->process->watches;
}

/* --- what has changed ------------------------------------------------------------------------------------------- */

/* With the lock held, here and below. */
static void
open_roster_entry(mc_roster *roster, int index)
{
    roster_entry *entry = &roster->entries[index];
    roster->open += entry->state != ROSTER_OPEN;
    entry->state = ROSTER_OPEN;
    entry->opened = roster->taken;
}

static bool
folders_are_the_same(const mc_roster *roster, struct mc_folder_watches *watches)
{
    for (int i = 0; i < roster->folder_count; i++) {
        const roster_folder *folder = &roster->folders[i];
        uint64_t device;
        if (!mc_folder_is_watched(watches, folder->watch, folder->path, &device))
            return false;
    }
    return true;
}

/* False: too much has changed, or nobody knows what. */
static bool
open_changed_entries(mc_roster *roster, struct mc_folder_watches *watches)
{
    uint64_t changes[CHANGES_AT_ONCE], taken = mc_folder_watches_take(watches);
    if (taken == 0 || !folders_are_the_same(roster, watches))
        return false;
    int count = mc_folder_changes(watches, changes, CHANGES_AT_ONCE, roster->taken, taken);
    roster->taken = taken;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < roster->count; j++)
            if (roster->changes[j] == changes[i])
                open_roster_entry(roster, j);
    return count >= 0;
}

static bool
is_as_it_was(const roster_entry *entry, mc_folder_cursor *cursor)
{
    mc_stamp now;
    bool sole, there = mc_folder_cursor_look(&now, &sole, cursor, entry->path);
    if (entry->state == ROSTER_ABSENT)
        return !there && sole;
    return there && sole && mc_stamp_equal(&now, &entry->stamp);
}

/* Files whose turn it is, from roster->next on. */
typedef struct roster_turn {
    const mc_roster *roster;
    int count;
    bool *differs; /* by file */
} roster_turn;

static mc_error *
look_at_some(void *baton, int index, mc_ctx *ctx)
{
    (void)ctx;
    const roster_turn *turn = baton;
    mc_folder_cursor cursor = { NULL, 0, -1 };
    int first = index * LOOKS_OF_A_JOB, end = first + LOOKS_OF_A_JOB;
    for (int i = first; i < end && i < turn->count; i++) {
        const roster_entry *entry = &turn->roster->entries[(turn->roster->next + i) % turn->roster->count];
        turn->differs[i] = entry->state != ROSTER_OPEN && !is_as_it_was(entry, &cursor);
    }
    mc_folder_cursor_close(&cursor);
    return MC_OK;
}

/* Looks at as many files as is their turn: after a pause these are all, which idle workers share. */
static void
verify_some(mc_roster *roster, mc_ctx *ctx)
{
    struct mc_workers *workers = ctx->process->workers;
    apr_time_t now = mc_clock_now();
    int64_t due = (now - roster->verified) * roster->count / LOOKED_AT_EVERY;
    if (due <= 0)
        return;
    roster_turn turn = { roster, (int)(due < roster->count ? due : roster->count), NULL };
    turn.differs = apr_pcalloc(ctx->pool, sizeof(bool) * (size_t)turn.count);
    int jobs = (turn.count + LOOKS_OF_A_JOB - 1) / LOOKS_OF_A_JOB;
    if (jobs == 1)
        mc_error_ignore(look_at_some(&turn, 0, ctx));
    else
        mc_error_ignore(mc_workers_run(workers, look_at_some, &turn, jobs, mc_workers_spare(workers), ctx, ctx->pool));
    for (int i = 0; i < turn.count; i++)
        if (turn.differs[i])
            open_roster_entry(roster, (roster->next + i) % roster->count);
    roster->next = (roster->next + turn.count) % roster->count;
    roster->verified = now;
}

/* --- which are candidates --------------------------------------------------------------------------------------- */

static bool
ranges_meet(const mc_tile_range *a, const mc_tile_range *b)
{
    return a->minx < b->maxx && b->minx < a->maxx && a->miny < b->maxy && b->miny < a->maxy;
}

static void
list_candidates(mc_roster_use *use, const mc_roster *roster, int z, const mc_tile_range *range)
{
    const mc_tile_range *boxes = z < MC_COVERAGE_LEVELS ? roster->boxes[z] : NULL;
    for (int i = roster->count - 1; i >= 0; i--) {
        enum roster_state state = roster->entries[i].state;
        if (state == ROSTER_OPEN || (state == ROSTER_KNOWN && boxes != NULL && ranges_meet(&boxes[i], range)))
            use->combinations[use->count++] = i;
        else
            use->left_out += state == ROSTER_KNOWN;
    }
}

static bool
consult_roster(mc_roster_use *use, mc_roster *roster, int z, const mc_tile_range *range, mc_ctx *ctx)
{
    pthread_mutex_lock(&roster->lock);
    bool usable = open_changed_entries(roster, watches_of(ctx));
    if (usable)
        verify_some(roster, ctx);
    usable = usable && roster->open <= roster->count / LEAST_SHARE;
    if (usable) {
        use->taken = roster->taken;
        list_candidates(use, roster, z, range);
    }
    pthread_mutex_unlock(&roster->lock);
    return usable;
}

/* Rosters stand in the memory of the process; NULL: there is none. */
static mc_roster *
find_roster(mc_roster_use *use, mc_ctx *ctx)
{
    return mc_memory_find(ctx->process->memory, MC_SHARE_SMALL, &use->entry, &use->identity, sizeof(use->identity));
}

static void
drop_roster(mc_roster_use *use, mc_ctx *ctx)
{
    mc_memory_drop(ctx->process->memory, MC_SHARE_SMALL, &use->identity, sizeof(use->identity));
    mc_clock_cache_release(use->entry);
    use->entry = NULL;
    use->roster = NULL;
}

void
mc_roster_consult(mc_roster_use *use, int *candidates, const mc_batch_series *series,
                  const mc_dimension_value *const *dimensions, int count, const mc_tile_range *range, mc_ctx *ctx)
{
    *use = (mc_roster_use){ .combinations = candidates };
    bool possible = watches_of(ctx) != NULL && series->file >= 0 && series->coverage != NULL &&
                    series->cache->remember && !series->by_tile && !series->key->renderable;
    if (possible) {
        use->identity = mc_roster_identity(series, dimensions, count);
        use->roster = find_roster(use, ctx);
    }
    if (use->roster != NULL && consult_roster(use, use->roster, series->key->z, range, ctx)) {
        mc_count(ctx->process->metrics, MC_COUNT_watched_files_total, (uint64_t)(count - use->count));
        return;
    }
    if (use->roster != NULL)
        drop_roster(use, ctx);
    for (int i = count - 1; i >= 0; i--)
        candidates[use->count++] = i;
}

/* --- what a look has found -------------------------------------------------------------------------------------- */

static void
set_roster_box(mc_roster *roster, int index, int z, const mc_tile_range *box)
{
    if (roster->boxes[z] == NULL) {
        roster->boxes[z] = calloc((size_t)roster->count, sizeof(*box));
        MC_ASSERT(roster->boxes[z] != NULL);
    }
    roster->boxes[z][index] = *box;
}

/* The folder that the path is in; -1: of none that is watched. */
static int
folder_of_path(const mc_roster *roster, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t size = slash == NULL ? 0 : (size_t)(slash - path);
    for (int i = 0; i < roster->folder_count; i++)
        if (strncmp(roster->folders[i].path, path, size) == 0 && roster->folders[i].path[size] == '\0')
            return i;
    return -1;
}

/* What is found of a product becomes valid until a change, where every change is reported. */
static void
settle_roster_entry(mc_roster *roster, int index, const mc_footprints *batch, const mc_batch_series *series)
{
    roster_entry *entry = &roster->entries[index];
    const mc_batch_file *file = &batch->files[series->file];
    const mc_file_facts *facts = series->first;
    int folder = folder_of_path(roster, file->path);
    if (folder < 0)
        return;
    if (file->missing != 0) {
        if (!file->sole || series->needed)
            return;
        entry->state = ROSTER_ABSENT;
        roster->open--;
        return;
    }
    if (!file->sole || file->stamp.device != roster->folders[folder].device || !mc_identity_valid(&series->identity) ||
        facts == NULL || !facts->rollback || facts->coverage == NULL || file->stamp.wal_size >= 0)
        return;
    for (int z = 0; z < MC_COVERAGE_LEVELS; z++) {
        mc_tile_range box;
        if (mc_coverage_box(&box, facts->coverage, z) || roster->boxes[z] != NULL)
            set_roster_box(roster, index, z, &box);
    }
    entry->stamp = file->stamp;
    entry->state = ROSTER_KNOWN;
    roster->open--;
}

static void
update_roster(const mc_roster_use *use, const mc_footprints *batch)
{
    mc_roster *roster = use->roster;
    pthread_mutex_lock(&roster->lock);
    for (int i = 0; i < use->count; i++) {
        int index = use->combinations[i];
        const mc_batch_series *series = &batch->series[batch->combinations[i]];
        if (roster->entries[index].state == ROSTER_OPEN && roster->entries[index].opened <= use->taken &&
            series->file >= 0)
            settle_roster_entry(roster, index, batch, series);
    }
    pthread_mutex_unlock(&roster->lock);
}

/* --- new ones --------------------------------------------------------------------------------------------------- */

/* False: there are too many folders, or this one cannot be watched. */
static bool
watch_roster_folder(mc_roster *roster, const char *path, struct mc_folder_watches *watches, mc_ctx *ctx)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return false;
    if (folder_of_path(roster, path) >= 0)
        return true;
    if (roster->folder_count == FOLDERS_OF_A_ROSTER)
        return false;
    roster_folder *folder = &roster->folders[roster->folder_count];
    folder->path = strndup(path, (size_t)(slash - path));
    MC_ASSERT(folder->path != NULL);
    roster->folder_count++;
    folder->watch = mc_folder_watch(watches, folder->path, ctx);
    return folder->watch != 0;
}

void
mc_roster_prepare(mc_roster_use *use, const mc_footprints *batch, mc_ctx *ctx)
{
    if (use->roster != NULL || !mc_identity_valid(&use->identity))
        return;
    struct mc_folder_watches *watches = watches_of(ctx);
    mc_roster *roster = calloc(1, sizeof(*roster));
    MC_ASSERT(roster != NULL);
    pthread_mutex_init(&roster->lock, NULL);
    roster->verified = mc_clock_now();
    bool possible = true;
    for (int i = 0; i < batch->file_count && possible; i++)
        possible = watch_roster_folder(roster, batch->files[i].path, watches, ctx);
    roster->taken = possible ? mc_folder_watches_take(watches) : 0;
    for (int i = 0; i < roster->folder_count && possible; i++) { /* after that, so that watches which ended are known */
        roster_folder *folder = &roster->folders[i];
        possible = mc_folder_is_watched(watches, folder->watch, folder->path, &folder->device);
    }
    if (possible && roster->taken != 0)
        use->roster = roster;
    else
        free_roster(roster);
    use->taken = roster == use->roster ? roster->taken : 0;
}

/* Everything open, as no look is known yet. */
static void
fill_roster(mc_roster *roster, const mc_roster_use *use, const mc_footprints *batch)
{
    size_t bytes = 0;
    for (int i = 0; i < batch->file_count; i++)
        bytes += strlen(batch->files[i].path) + 1;
    roster->count = roster->open = use->count;
    roster->entries = calloc((size_t)use->count, sizeof(*roster->entries));
    roster->changes = calloc((size_t)use->count, sizeof(*roster->changes));
    roster->paths = malloc(bytes);
    const char **paths = malloc(sizeof(*paths) * (size_t)batch->file_count);
    MC_ASSERT(roster->entries != NULL && roster->changes != NULL && roster->paths != NULL && paths != NULL);
    char *at = roster->paths;
    for (int i = 0; i < batch->file_count; i++) {
        size_t size = strlen(batch->files[i].path) + 1;
        paths[i] = memcpy(at, batch->files[i].path, size);
        at += size;
    }
    for (int i = 0; i < use->count; i++) {
        const mc_batch_series *series = &batch->series[batch->combinations[i]];
        if (series->file < 0)
            continue;
        int index = use->combinations[i];
        const char *path = paths[series->file];
        roster->entries[index].path = path;
        roster->changes[index] =
            mc_folder_change_of(roster->folders[folder_of_path(roster, path)].watch, strrchr(path, '/') + 1);
    }
    free(paths);
}

static size_t
roster_bytes(const mc_roster *roster)
{
    size_t each = sizeof(*roster->entries) + sizeof(*roster->changes) + LEVELS_ASSUMED * sizeof(**roster->boxes);
    const roster_entry *longest = NULL;
    for (int i = 0; i < roster->count; i++)
        if (roster->entries[i].path != NULL && (longest == NULL || roster->entries[i].path > longest->path))
            longest = &roster->entries[i];
    return sizeof(*roster) + each * (size_t)roster->count +
           (longest == NULL ? 0 : (size_t)(longest->path - roster->paths) + strlen(longest->path));
}

void
mc_roster_learn(mc_roster_use *use, const mc_footprints *batch, mc_ctx *ctx)
{
    if (use->roster == NULL)
        return;
    bool made = use->entry == NULL;
    if (made)
        fill_roster(use->roster, use, batch);
    update_roster(use, batch);
    if (!made) {
        mc_clock_cache_release(use->entry);
    } else if (use->roster->open <= use->roster->count / LEAST_SHARE) {
        mc_memory_keep(ctx, MC_SHARE_SMALL, &use->identity, sizeof(use->identity), use->roster,
                       roster_bytes(use->roster), free_roster);
        mc_coverage_index_keep(ctx->process->coverages, batch);
    } else {
        free_roster(use->roster);
    }
    use->roster = NULL;
}
