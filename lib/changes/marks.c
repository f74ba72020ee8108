/* See marks.h. A hash table of fixed size with open addressing, and some areas for each level of each set. */
#include "changes/marks.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "changes/mark_areas.h"
#include "mapcache/error.h"

enum {
    LEVELS_MAX = 64,
    SINGLE_MARKS = 64, /* metatiles of a range that are marked one by one */
    GROUP = 128,       /* marks that are looked up in one go */
    DRAWN_SLOTS = 1 << 13,
};

/* Microseconds by which marks are in the future before the clock counts as set back: it is measured with errors. */
#define AHEAD APR_USEC_PER_SEC

/* A mark of a square of 2^shift metatiles a side. */
typedef struct mark_entry {
    _Atomic uint32_t place; /* (set + 1) * LEVELS_MAX + level; 0: the entry is free */
    _Atomic int x, y;
    _Atomic apr_time_t time;
} mark_entry;

typedef struct mark_level {
    _Atomic int shift;
    int entries; /* with the lock */
    mc_mark_areas areas;
} mark_level;

struct mc_mark_set {
    mc_marks *marks;
    mc_mark_set *kept_in; /* whose marks count for this one: its own, or those of another set */
    uint32_t number;
    char *tileset, *grid;
    int columns, rows, level_count;
    uint64_t definition;       /* of the grid */
    _Atomic apr_time_t newest; /* of all marks that the set ever had */
    _Atomic bool any;
    mark_level *levels;
};

typedef struct drawn_slot {
    _Atomic uint64_t check; /* hash of the metatile, XOR time: who reads a slot while it is written sees that */
    _Atomic apr_time_t time;
} drawn_slot;

struct mc_marks {
    pthread_mutex_t lock; /* of who marks: guards all that is not atomic */
    /* Odd while the table is rebuilt or rectangles change: who has looked meanwhile looks again. All that is looked at
     * is stored with release and loaded with acquire, so that nothing of it is seen outside of the two counts. */
    _Atomic unsigned sequence;
    int capacity; /* of the table: a power of two */
    int used, coarsened;
    mark_entry *table;
    mc_mark_set **sets;
    int set_count, sets_most;
    mc_mark_set *rest; /* for all that have no set of their own: without levels, old or not as a whole */
    drawn_slot *drawn;
    _Atomic apr_interval_time_t clock; /* mc_marks_set_clock */
};

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

static uint32_t
place_of(const mc_mark_set *set, int z)
{
    return (set->number + 1) * LEVELS_MAX + (uint32_t)z;
}

static unsigned
slot_of(const mc_marks *marks, uint32_t place, int x, int y)
{
    uint64_t key = ((uint64_t)place << 32 | (uint32_t)x) * UINT64_C(0x9E3779B97F4A7C15) ^
                   (uint64_t)(uint32_t)y * UINT64_C(0xC2B2AE3D27D4EB4F);
    key ^= key >> 29;
    key *= UINT64_C(0xBF58476D1CE4E5B9);
    return (unsigned)(key >> 32) & (unsigned)(marks->capacity - 1);
}

static apr_time_t
look_up(const mc_mark_set *set, int z, int x, int y)
{
    const mc_marks *marks = set->marks;
    const mark_level *level = &set->levels[z];
    int shift = atomic_load_explicit(&level->shift, memory_order_acquire);
    uint32_t place = place_of(set, z), found;
    apr_time_t newest = 0;
    int left = marks->capacity;
    for (unsigned slot = slot_of(marks, place, x >> shift, y >> shift); left > 0;
         slot = (slot + 1) & (unsigned)(marks->capacity - 1), left--) {
        const mark_entry *entry = &marks->table[slot];
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
    const int parts[4] = { (int)place_of(set, z), x / set->columns, y / set->rows, 1 };
    return mc_hash64(parts, sizeof(parts), 0);
}

void
mc_marks_note_drawn(mc_mark_set *set, int z, int x, int y, apr_time_t time)
{
    if (mc_marks_is_rest(set)) /* it does not tell tilesets apart */
        return;
    uint64_t key = drawn_key(set, z, x, y);
    drawn_slot *slot = &set->marks->drawn[key % DRAWN_SLOTS];
    atomic_store_explicit(&slot->time, time, memory_order_relaxed);
    atomic_store_explicit(&slot->check, key ^ (uint64_t)time, memory_order_relaxed);
}

apr_time_t
mc_marks_drawn(const mc_mark_set *set, int z, int x, int y)
{
    if (mc_marks_is_rest(set))
        return 0;
    uint64_t key = drawn_key(set, z, x, y);
    const drawn_slot *slot = &set->marks->drawn[key % DRAWN_SLOTS];
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

/* ---- marking, with the lock */

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

static mark_level *
level_of_place(const mc_marks *marks, uint32_t place)
{
    return &marks->sets[place / LEVELS_MAX - 1]->levels[place % LEVELS_MAX];
}

/* Into the table, where there is room: x and y in units of the level; `slot`: where slot_of has the mark. */
static void
put_entry(mc_marks *marks, const mark_copy *mark, unsigned slot)
{
    for (;; slot = (slot + 1) & (unsigned)(marks->capacity - 1)) {
        mark_entry *entry = &marks->table[slot];
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
    put_entry(marks, mark, slot_of(marks, mark->place, mark->x, mark->y));
}

/* Takes all entries out of the table that are later than `after`. */
static int
take_entries(mark_copy **copies, mc_marks *marks, apr_time_t after)
{
    int count = 0;
    *copies = malloc(sizeof(**copies) * (size_t)(marks->used + 1));
    MC_ASSERT(*copies != NULL);
    for (int i = 0; i < marks->capacity; i++) {
        mark_entry *entry = &marks->table[i];
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
                fullest = place_of(marks->sets[i], z);
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
    const mark_copy mark = { place_of(group->set, group->z), x >> coarser, y >> coarser, group->time };
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
            unsigned slot = slot_of(marks, place_of(set, group->z), x, y);
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
    bool rest = mc_marks_is_rest(set);
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
            mark_level *level = &set->levels[z];
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

/* ---- sets */

static mc_mark_set *
create_mark_set(mc_marks *marks, const char *tileset, const mc_grid *grid, int columns, int rows, mc_mark_set *kept_in)
{
    mc_mark_set *set = calloc(1, sizeof(*set));
    MC_ASSERT(set != NULL);
    *set = (mc_mark_set){ .marks = marks,
                          .kept_in = kept_in == NULL ? set : kept_in,
                          .number = (uint32_t)marks->set_count,
                          .tileset = strdup(tileset),
                          .grid = strdup(grid->name),
                          .columns = columns,
                          .rows = rows,
                          .definition = grid->definition,
                          .level_count = grid->level_count < LEVELS_MAX ? grid->level_count : LEVELS_MAX };
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
    bool made = found == NULL && marks->set_count < marks->sets_most && grid->level_count <= LEVELS_MAX;
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
