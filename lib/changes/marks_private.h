/*
 * What the files of mc_marks share: a hash table of fixed size with open addressing, and some areas for each level of
 * each set. Many threads look without a lock, one marks at a time.
 */
#ifndef MC_CHANGES_MARKS_PRIVATE_H
#define MC_CHANGES_MARKS_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "changes/mark_areas.h"
#include "changes/marks.h"

enum { MC_MARK_LEVELS_MAX = 64 };

/* A mark of a square of 2^shift metatiles a side. */
typedef struct mc_mark_entry {
    _Atomic uint32_t place; /* (set + 1) * MC_MARK_LEVELS_MAX + level; 0: the entry is free */
    _Atomic int x, y;
    _Atomic apr_time_t time;
} mc_mark_entry;

typedef struct mc_mark_level {
    _Atomic int shift;
    int entries; /* with the lock */
    mc_mark_areas areas;
} mc_mark_level;

struct mc_mark_set {
    mc_marks *marks;
    mc_mark_set *kept_in; /* whose marks count for this one: its own, or those of another set */
    uint32_t number;
    char *tileset, *grid;
    int columns, rows, level_count;
    uint64_t definition;       /* of the grid */
    _Atomic apr_time_t newest; /* of all marks that the set ever had */
    _Atomic bool any;
    mc_mark_level *levels;
};

typedef struct mc_drawn_slot {
    _Atomic uint64_t check; /* hash of the metatile, XOR time: who reads a slot while it is written sees that */
    _Atomic apr_time_t time;
} mc_drawn_slot;

struct mc_marks {
    pthread_mutex_t lock; /* of who marks: guards all that is not atomic */
    /* Odd while the table is rebuilt or rectangles change: who has looked meanwhile looks again. All that is looked at
     * is stored with release and loaded with acquire, so that nothing of it is seen outside of the two counts. */
    _Atomic unsigned sequence;
    int capacity; /* of the table: a power of two */
    int used, coarsened;
    mc_mark_entry *table;
    mc_mark_set **sets;
    int set_count, sets_most;
    mc_mark_set *rest; /* for all that have no set of their own: without levels, old or not as a whole */
    mc_drawn_slot *drawn;
    _Atomic apr_interval_time_t clock; /* mc_marks_set_clock */
};

/* Of a level of a set, for mc_mark_entry.place. */
static inline uint32_t
mc_mark_level_place(const mc_mark_set *set, int z)
{
    return (set->number + 1) * MC_MARK_LEVELS_MAX + (uint32_t)z;
}

/* Where the table has a mark, or the first place to look for it: x and y in units of the level. */
static inline unsigned
mc_mark_slot(const mc_marks *marks, uint32_t place, int x, int y)
{
    uint64_t key = ((uint64_t)place << 32 | (uint32_t)x) * UINT64_C(0x9E3779B97F4A7C15) ^
                   (uint64_t)(uint32_t)y * UINT64_C(0xC2B2AE3D27D4EB4F);
    key ^= key >> 29;
    key *= UINT64_C(0xBF58476D1CE4E5B9);
    return (unsigned)(key >> 32) & (unsigned)(marks->capacity - 1);
}

#endif
