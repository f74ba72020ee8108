/*
 * The products of a catalogue whose folders are watched (folder_watch.h): where each has tiles, level by level, as long
 * as nothing is reported of its file. A map asks once for all products which of them may have tiles in its range; the
 * others are not looked at.
 */
#ifndef MC_FOOTPRINT_ROSTER_H
#define MC_FOOTPRINT_ROSTER_H

#include "footprint/footprint_private.h"

typedef struct mc_roster mc_roster;

/* One map's use of a roster. */
typedef struct mc_roster_use {
    mc_identity identity;
    mc_roster *roster;           /* NULL: none that may be used */
    mc_clock_cache_entry *entry; /* of it in memory; NULL: it is being made */
    uint64_t taken;              /* changes of folders that were known before the look at files; 0: nothing is known */
    int *combinations;           /* by candidate */
    int count;                   /* of the candidates */
    int left_out;                /* combinations that have tiles, but none in the range */
} mc_roster_use;

/*
 * The combinations, from the last one to the first, that may have a tile in that range of the key's level: those whose
 * files have to be looked at. All of them where no roster is there yet, or too much has changed. *candidates has room
 * for all `count`.
 */
void mc_roster_consult(mc_roster_use *use, int *candidates, const mc_batch_series *series,
                       const mc_dimension_value *const *dimensions, int count, const mc_tile_range *range, mc_ctx *ctx);

/* Before the look of a batch whose wants are the candidates: watches their folders where that is not done yet. */
void mc_roster_prepare(mc_roster_use *use, const mc_footprints *batch, mc_ctx *ctx);

/* After that look: what it has found is valid until a change is reported. Ends the use. */
void mc_roster_learn(mc_roster_use *use, const mc_footprints *batch, mc_ctx *ctx);

#endif
