/* See marks.h: sets of marks, and looking into them, without a lock. What marks is in marks_add.c. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "changes/marks_private.h"
#include "mapcache/error.h"

enum { DRAWN_SLOTS = 1 << 13 };

/* Microseconds by which marks are in the future before the clock counts as set back: it is measured with errors. */
#define AHEAD APR_USEC_PER_SEC

mc_marks *
mc_marks_create(int capacity, int sets)
{
    mc_marks *marks = calloc(1, sizeof(*marks));
    MC_ASSERT(marks != NULL && capacity >= 16 && (capacity & (capacity - 1)) == 0);
    pthread_mutex_init(&marks->lock, NULL);
    marks->capacity = 2 * capacity;
    marks->table = calloc((size_t)marks->capacity, sizeof(*marks->table));
    marks->sets = calloc((size_t)sets, sizeof(mc_mark_set *));
    marks->sets_most = sets;
    marks->drawn = calloc(DRAWN_SLOTS, sizeof(*marks->drawn));
    marks->rest = calloc(1, sizeof(*marks->rest));
    MC_ASSERT(marks->table != NULL && marks->sets != NULL && marks->drawn != NULL && marks->rest != NULL);
    *marks->rest = (mc_mark_set){ .marks = marks, .kept_in = marks->rest, .columns = 1, .rows = 1 };
    return marks;
}

void
mc_marks_destroy(mc_marks *marks)
{
    if (marks == NULL)
        return;
    for (int i = 0; i < marks->set_count; i++) {
        free(marks->sets[i]->levels);
        free(marks->sets[i]->tileset);
        free(marks->sets[i]->grid);
        free(marks->sets[i]);
    }
    free(marks->rest);
    free(marks->drawn);
    free(marks->sets);
    free(marks->table);
    pthread_mutex_destroy(&marks->lock);
    free(marks);
}

bool
mc_marks_is_rest(const mc_mark_set *set)
{
    return set == set->marks->rest;
}

/* ---- looking */

static apr_time_t
look_up(const mc_mark_set *set, int z, int x, int y)
{
    const mc_marks *marks = set->marks;
    const mc_mark_level *level = &set->levels[z];
    int shift = atomic_load_explicit(&level->shift, memory_order_acquire);
    uint32_t place = mc_mark_level_place(set, z), found;
    apr_time_t newest = 0;
    int left = marks->capacity;
    for (unsigned slot = mc_mark_slot(marks, place, x >> shift, y >> shift); left > 0;
         slot = (slot + 1) & (unsigned)(marks->capacity - 1), left--) {
        const mc_mark_entry *entry = &marks->table[slot];
        found = atomic_load_explicit(&entry->place, memory_order_acquire);
        if (found == 0)
            break;
        if (found != place || atomic_load_explicit(&entry->x, memory_order_acquire) != x >> shift ||
            atomic_load_explicit(&entry->y, memory_order_acquire) != y >> shift)
            continue;
        newest = atomic_load_explicit(&entry->time, memory_order_acquire);
        break;
    }
    apr_time_t whole = mc_mark_areas_find(&level->areas, x, y);
    return whole > newest ? whole : newest;
}

apr_time_t
mc_marks_find(const mc_mark_set *asked, int z, int x, int y)
{
    const mc_mark_set *set = asked->kept_in;
    if (mc_marks_is_rest(set))
        return atomic_load_explicit(&set->any, memory_order_acquire)
                   ? atomic_load_explicit(&set->newest, memory_order_acquire)
                   : 0;
    if (!atomic_load_explicit(&set->any, memory_order_acquire) || z < 0 || z >= set->level_count)
        return 0;
    for (;;) {
        unsigned before = atomic_load_explicit(&set->marks->sequence, memory_order_acquire);
        apr_time_t newest = look_up(set, z, x / set->columns, y / set->rows);
        if (before % 2 == 0 && atomic_load_explicit(&set->marks->sequence, memory_order_relaxed) == before)
            return newest;
        (void)sched_yield();
    }
}

static uint64_t
drawn_key(const mc_mark_set *set, int z, int x, int y)
{
    const int parts[4] = { (int)mc_mark_level_place(set, z), x / set->columns, y / set->rows, 1 };
    return mc_hash64(parts, sizeof(parts), 0);
}

void
mc_marks_note_drawn(mc_mark_set *set, int z, int x, int y, apr_time_t time)
{
    if (mc_marks_is_rest(set)) /* it does not tell tilesets apart */
        return;
    uint64_t key = drawn_key(set, z, x, y);
    mc_drawn_slot *slot = &set->marks->drawn[key % DRAWN_SLOTS];
    atomic_store_explicit(&slot->time, time, memory_order_relaxed);
    atomic_store_explicit(&slot->check, key ^ (uint64_t)time, memory_order_relaxed);
}

apr_time_t
mc_marks_drawn(const mc_mark_set *set, int z, int x, int y)
{
    if (mc_marks_is_rest(set))
        return 0;
    uint64_t key = drawn_key(set, z, x, y);
    const mc_drawn_slot *slot = &set->marks->drawn[key % DRAWN_SLOTS];
    apr_time_t time = atomic_load_explicit(&slot->time, memory_order_relaxed);
    return atomic_load_explicit(&slot->check, memory_order_relaxed) == (key ^ (uint64_t)time) ? time : 0;
}

void
mc_marks_set_clock(mc_marks *marks, apr_interval_time_t offset)
{
    atomic_store_explicit(&marks->clock, offset, memory_order_relaxed);
}

bool
mc_marks_hold(const mc_mark_set *set, int z, int x, int y, apr_time_t mark)
{
    apr_time_t now = apr_time_now() + atomic_load_explicit(&set->marks->clock, memory_order_relaxed);
    if (mark <= now + AHEAD)
        return false;
    apr_time_t drawn = mc_marks_drawn(set, z, x, y);
    return drawn <= now && now - drawn < MC_MARKS_HOLD * APR_USEC_PER_SEC;
}

/* ---- sets */

static mc_mark_set *
create_mark_set(mc_marks *marks, const char *tileset, const mc_grid *grid, int columns, int rows, mc_mark_set *kept_in)
{
    mc_mark_set *set = calloc(1, sizeof(*set));
    MC_ASSERT(set != NULL);
    *set =
        (mc_mark_set){ .marks = marks,
                       .kept_in = kept_in == NULL ? set : kept_in,
                       .number = (uint32_t)marks->set_count,
                       .tileset = strdup(tileset),
                       .grid = strdup(grid->name),
                       .columns = columns,
                       .rows = rows,
                       .definition = grid->definition,
                       .level_count = grid->level_count < MC_MARK_LEVELS_MAX ? grid->level_count : MC_MARK_LEVELS_MAX };
    set->levels = calloc((size_t)set->level_count + 1, sizeof(*set->levels));
    MC_ASSERT(set->tileset != NULL && set->grid != NULL && set->levels != NULL);
    marks->sets[marks->set_count++] = set;
    return set;
}

/* The set of such tiles; NULL: there is none. *newest: the newest mark of the same tileset and grid as they were
 * before. With the lock. */
static mc_mark_set *
find_mark_set(apr_time_t *newest, const mc_marks *marks, const char *tileset, const mc_grid *grid, int columns,
              int rows, const mc_mark_set *kept_in)
{
    for (int i = 0; i < marks->set_count; i++) {
        mc_mark_set *set = marks->sets[i];
        if (strcmp(set->tileset, tileset) != 0 || strcmp(set->grid, grid->name) != 0)
            continue;
        if (set->columns == columns && set->rows == rows && set->level_count == grid->level_count &&
            set->definition == grid->definition && set->kept_in == (kept_in == NULL ? set : kept_in))
            return set;
        apr_time_t mark = atomic_load_explicit(&set->kept_in->newest, memory_order_relaxed);
        *newest = mark > *newest ? mark : *newest;
    }
    return NULL;
}

mc_mark_set *
mc_marks_set(mc_marks *marks, const char *tileset, const mc_grid *grid, int columns, int rows, mc_mark_set *kept_in)
{
    apr_time_t newest = 0;
    pthread_mutex_lock(&marks->lock);
    mc_mark_set *found = find_mark_set(&newest, marks, tileset, grid, columns, rows, kept_in);
    bool made = found == NULL && marks->set_count < marks->sets_most && grid->level_count <= MC_MARK_LEVELS_MAX;
    if (made)
        found = create_mark_set(marks, tileset, grid, columns, rows, kept_in);
    else if (found == NULL)
        found = marks->rest;
    pthread_mutex_unlock(&marks->lock);
    bool rest = found == marks->rest;
    for (int z = 0; (made || rest) && newest > 0 && z < grid->level_count; z++)
        mc_marks_add(found->kept_in, z, &(mc_tile_range){ 0, 0, grid->levels[z].columns, grid->levels[z].rows }, 1,
                     newest);
    return found;
}

bool
mc_marks_kept_apart(const mc_mark_set *set)
{
    return set->kept_in == set;
}

mc_marks_statistics
mc_marks_stat(mc_marks *marks)
{
    pthread_mutex_lock(&marks->lock);
    mc_marks_statistics statistics = { .entries = marks->used, .coarsened = marks->coarsened };
    for (int i = 0; i < marks->set_count; i++)
        for (int z = 0; z < marks->sets[i]->level_count; z++)
            statistics.rectangles += atomic_load_explicit(&marks->sets[i]->levels[z].areas.count, memory_order_relaxed);
    pthread_mutex_unlock(&marks->lock);
    return statistics;
}
