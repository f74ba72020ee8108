/* The blocks of a level that is patched. */
#ifndef MC_OVERVIEW_OVERVIEW_PATCH_BLOCKS_H
#define MC_OVERVIEW_OVERVIEW_PATCH_BLOCKS_H

#include "changes/box_set.h"
#include "overview/overview_blocks.h"
#include "overview/overview_table.h"
#include "overview/reveal/overview_ordinals.h"
#include "vector/geometry/geometry.h"

/* A feature of the level. */
typedef struct mc_patch_entry {
    mc_overview_feature feature;
    int block;    /* below 0: none, it is new */
    bool bounded; /* the bounds of the feature are set */
    bool gone;
} mc_patch_entry;

/* A block that was read. */
typedef struct mc_patch_block {
    const char *ctid;
    int part;
    mc_extent box;              /* in units of the CRS */
    int first, count;           /* its entries, in drawing order */
    mc_overview_feature sample; /* one of these */
    bool changed;
} mc_patch_block;

typedef struct mc_patch_blocks {
    const mc_overview_table *table;
    mc_overview_level *level;
    const char *name;                    /* of the level's table */
    mc_pixel_grid grid;                  /* pixels of the level, on the lattice of the tileset's grid */
    apr_array_header_t *blocks;          /* mc_patch_block: those that were read */
    apr_array_header_t *entries, *added; /* mc_patch_entry */
    int others;                          /* features of other levels that are in memory */
    mc_overview_ordinals *known;         /* of the entries and of what was added */
    bool far;                            /* a feature reaches too far to be told where */
    mc_geometry geometry;
    apr_pool_t *pool;
    apr_pool_t *scratch; /* a root pool: bounds of features are found on a thread for each level */
} mc_patch_blocks;

/* For a level with that table; `centre`: where changes lie. The sets of ordinals are as large as `like`. Lives as long
 * as `pool`. */
mc_patch_blocks *mc_patch_blocks_create(mc_overview_level *level, const char *name, const mc_extent *centre,
                                        const mc_overview_ordinals *like, const mc_overview_table *table,
                                        apr_pool_t *pool);

/* Reads the blocks near boxes; all of them: NULL. *fits false: they are too many. */
mc_error *mc_patch_blocks_read(bool *fits, mc_patch_blocks *blocks, const mc_box_set *boxes) MC_CHECKED;

/* Sets the bounds of a feature, in pixels of the level. False: it has none. */
bool mc_patch_bound(mc_patch_blocks *blocks, mc_overview_feature *feature);

/* The feature is gone. */
void mc_patch_remove(mc_patch_blocks *blocks, mc_patch_entry *entry);

/* Adds a feature, of which a copy is made. */
void mc_patch_add(mc_patch_blocks *blocks, const mc_overview_feature *feature);

/* Deletes the blocks that are others now, and those that new features go into: mc_overview_splice writes them. */
mc_error *mc_patch_delete_changed(mc_patch_blocks *blocks) MC_CHECKED;

#endif
