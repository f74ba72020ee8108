/* See marks.h: marking, with the lock, and forgetting. */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "changes/marks_private.h"
#include "mapcache/error.h"

enum {
    SINGLE_MARKS = 64, /* metatiles of a range that are marked one by one */
    GROUP = 128,       /* marks that are looked up in one go */
};

static void
begin_rebuilding(mc_marks *marks)
{
    atomic_store_explicit(&marks->sequence, atomic_load_explicit(&marks->sequence, memory_order_relaxed) + 1,
                          memory_order_release);
}

static void
end_rebuilding(mc_marks *marks)
{
    atomic_store_explicit(&marks->sequence, atomic_load_explicit(&marks->sequence, memory_order_relaxed) + 1,
                          memory_order_release);
}

/* A plain copy of an entry, while the table is rebuilt. */
typedef struct mark_copy {
    uint32_t place;
    int x, y;
    apr_time_t time;
} mark_copy;

static mc_mark_level *
level_of_place(const mc_marks *marks, uint32_t place)
{
    return &marks->sets[place / MC_MARK_LEVELS_MAX - 1]->levels[place % MC_MARK_LEVELS_MAX];
}

/* Into the table, where there is room: x and y in units of the level; `slot`: where mc_mark_slot has the mark. */
static void
put_entry(mc_marks *marks, const mark_copy *mark, unsigned slot)
{
    for (;; slot = (slot + 1) & (unsigned)(marks->capacity - 1)) {
        mc_mark_entry *entry = &marks->table[slot];
        uint32_t found = atomic_load_explicit(&entry->place, memory_order_relaxed);
        if (found == 0) {
            atomic_store_explicit(&entry->x, mark->x, memory_order_release);
            atomic_store_explicit(&entry->y, mark->y, memory_order_release);
            atomic_store_explicit(&entry->time, mark->time, memory_order_release);
            atomic_store_explicit(&entry->place, mark->place, memory_order_release);
            marks->used++;
            level_of_place(marks, mark->place)->entries++;
            return;
        }
        if (found == mark->place && atomic_load_explicit(&entry->x, memory_order_relaxed) == mark->x &&
            atomic_load_explicit(&entry->y, memory_order_relaxed) == mark->y) {
            if (atomic_load_explicit(&entry->time, memory_order_relaxed) < mark->time)
                atomic_store_explicit(&entry->time, mark->time, memory_order_release);
            return;
        }
    }
}

static void
put_back(mc_marks *marks, const mark_copy *mark)
{
    put_entry(marks, mark, mc_mark_slot(marks, mark->place, mark->x, mark->y));
}

/* Takes all entries out of the table that are later than `after`. */
static int
take_entries(mark_copy **copies, mc_marks *marks, apr_time_t after)
{
    int count = 0;
    *copies = malloc(sizeof(**copies) * (size_t)(marks->used + 1));
    MC_ASSERT(*copies != NULL);
    for (int i = 0; i < marks->capacity; i++) {
        mc_mark_entry *entry = &marks->table[i];
        const mark_copy copy = { atomic_load_explicit(&entry->place, memory_order_relaxed),
                                 atomic_load_explicit(&entry->x, memory_order_relaxed),
                                 atomic_load_explicit(&entry->y, memory_order_relaxed),
                                 atomic_load_explicit(&entry->time, memory_order_relaxed) };
        if (copy.place != 0 && copy.time > after)
            (*copies)[count++] = copy;
        if (copy.place != 0)
            level_of_place(marks, copy.place)->entries--;
        atomic_store_explicit(&entry->place, 0, memory_order_release);
    }
    marks->used = 0;
    return count;
}

/* The level that has the most entries. */
static uint32_t
find_fullest_level(const mc_marks *marks)
{
    uint32_t fullest = 0;
    int most = -1;
    for (int i = 0; i < marks->set_count; i++)
        for (int z = 0; z < marks->sets[i]->level_count; z++)
            if (marks->sets[i]->levels[z].entries > most) {
                most = marks->sets[i]->levels[z].entries;
                fullest = mc_mark_level_place(marks->sets[i], z);
            }
    return fullest;
}

/* Four neighbours of the fullest level become one. */
static void
coarsen_level(mc_marks *marks, uint32_t fullest)
{
    mark_copy *copies;
    begin_rebuilding(marks);
    int count = take_entries(&copies, marks, 0);
    atomic_fetch_add_explicit(&level_of_place(marks, fullest)->shift, 1, memory_order_release);
    for (int i = 0; i < count; i++) {
        copies[i].x >>= copies[i].place == fullest;
        copies[i].y >>= copies[i].place == fullest;
        put_back(marks, &copies[i]);
    }
    end_rebuilding(marks);
    free(copies);
    marks->coarsened++;
}

/* False: each level has one mark at most, and the table is full nevertheless. */
static bool
make_room_for_mark(mc_marks *marks)
{
    while (marks->used >= marks->capacity / 2) {
        uint32_t fullest = find_fullest_level(marks);
        if (level_of_place(marks, fullest)->entries <= 1)
            return false;
        coarsen_level(marks, fullest);
    }
    return true;
}

static void
mark_rectangle_of_level(mc_mark_set *set, int z, const mc_tile_range *range, apr_time_t time)
{
    begin_rebuilding(set->marks);
    mc_mark_areas_add(&set->levels[z].areas, range, time);
    end_rebuilding(set->marks);
}

/* Marks of one level that are about to be put. Their places in the table lie anywhere in some megabytes: all are asked
 * of memory before the first one is needed. */
typedef struct mark_group {
    mc_mark_set *set;
    int z, count, shift; /* x and y are in units of that shift */
    apr_time_t time;
    struct {
        int x, y;
        unsigned slot;
    } marks[GROUP];
} mark_group;

static int
end_of_unit(int index, int shift)
{
    int64_t end = ((int64_t)index + 1) << shift;
    return end < INT_MAX ? (int)end : INT_MAX;
}

static void
put_of_group(mark_group *group, int i)
{
    mc_marks *marks = group->set->marks;
    const int x = group->marks[i].x, y = group->marks[i].y, shift = group->shift;
    if (!make_room_for_mark(marks)) {
        const mc_tile_range square = { x << shift, y << shift, end_of_unit(x, shift), end_of_unit(y, shift) };
        mark_rectangle_of_level(group->set, group->z, &square, group->time);
        return;
    }
    int coarser = atomic_load_explicit(&group->set->levels[group->z].shift, memory_order_relaxed) - shift;
    const mark_copy mark = { mc_mark_level_place(group->set, group->z), x >> coarser, y >> coarser, group->time };
    if (coarser > 0) /* since the slot was looked up */
        put_back(marks, &mark);
    else
        put_entry(marks, &mark, group->marks[i].slot);
}

static void
put_group(mark_group *group)
{
    for (int i = 0; i < group->count; i++)
        put_of_group(group, i);
    group->count = 0;
}

static void
collect_marks(mark_group *group, const mc_tile_range *units)
{
    mc_mark_set *set = group->set;
    const mc_marks *marks = set->marks;
    int shift = atomic_load_explicit(&set->levels[group->z].shift, memory_order_relaxed);
    for (int y = units->miny >> shift; y <= (units->maxy - 1) >> shift; y++)
        for (int x = units->minx >> shift; x <= (units->maxx - 1) >> shift; x++) {
            unsigned slot = mc_mark_slot(marks, mc_mark_level_place(set, group->z), x, y);
            __builtin_prefetch(&marks->table[slot], 1);
            group->shift = shift;
            group->marks[group->count].x = x;
            group->marks[group->count].y = y;
            group->marks[group->count++].slot = slot;
        }
}

/* With the lock. */
static void
add_range(mark_group *group, const mc_tile_range *range)
{
    const mc_mark_set *set = group->set;
    if (range->minx >= range->maxx || range->miny >= range->maxy)
        return;
    const mc_tile_range units = { range->minx / set->columns, range->miny / set->rows,
                                  (range->maxx - 1) / set->columns + 1, (range->maxy - 1) / set->rows + 1 };
    if (((double)units.maxx - units.minx) * ((double)units.maxy - units.miny) > SINGLE_MARKS) {
        mark_rectangle_of_level(group->set, group->z, &units, group->time);
        return;
    }
    if (group->count + SINGLE_MARKS > GROUP)
        put_group(group);
    collect_marks(group, &units);
}

void
mc_marks_add(mc_mark_set *set, int z, const mc_tile_range *ranges, int count, apr_time_t time)
{
    mc_marks *marks = set->marks;
    mark_group group = { .set = set, .z = z, .time = time };
    bool rest = set == marks->rest;
    if (count <= 0 || z < 0 || (z >= set->level_count && !rest))
        return;
    pthread_mutex_lock(&marks->lock);
    for (int i = 0; i < count && !rest; i++)
        add_range(&group, &ranges[i]);
    put_group(&group);
    if (atomic_load_explicit(&set->newest, memory_order_relaxed) < time)
        atomic_store_explicit(&set->newest, time, memory_order_release);
    atomic_store_explicit(&set->any, true, memory_order_release);
    pthread_mutex_unlock(&marks->lock);
}

void
mc_marks_forget(mc_marks *marks, apr_time_t time)
{
    mark_copy *copies;
    pthread_mutex_lock(&marks->lock);
    begin_rebuilding(marks);
    int count = take_entries(&copies, marks, time);
    for (int i = 0; i < count; i++)
        put_back(marks, &copies[i]);
    for (int i = 0; i < marks->set_count; i++) {
        mc_mark_set *set = marks->sets[i];
        bool any = false;
        for (int z = 0; z < set->level_count; z++) {
            mc_mark_level *level = &set->levels[z];
            any = mc_mark_areas_keep(&level->areas, time) > 0 || any || level->entries > 0;
            if (level->entries == 0) /* what comes next may be fine again */
                atomic_store_explicit(&level->shift, 0, memory_order_release);
        }
        atomic_store_explicit(&set->any, any, memory_order_release);
    }
    if (atomic_load_explicit(&marks->rest->newest, memory_order_relaxed) <= time)
        atomic_store_explicit(&marks->rest->any, false, memory_order_release);
    end_rebuilding(marks);
    pthread_mutex_unlock(&marks->lock);
    free(copies);
}
