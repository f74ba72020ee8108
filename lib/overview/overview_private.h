/* What the files of this room share: a job, which builds the levels of one source into one store. */
#ifndef MC_OVERVIEW_OVERVIEW_PRIVATE_H
#define MC_OVERVIEW_OVERVIEW_PRIVATE_H

#include <apr_tables.h>

#include "overview/overview.h"
#include "source/vector/vector.h"

/* A level, while it is made. */
typedef struct mc_overview_level {
    double resolution;
    double until;   /* it serves maps from its resolution to below this one */
    int digits;     /* of its geometry, behind the decimal point */
    int cell;       /* pixels of the side of the smallest cells of its blocks; larger features have cells twice as wide,
                       and so on */
    int64_t window; /* ordinals of the source that a window of blocks has, at most MC_LEVEL_PLACES */
    bool given_up;  /* no more features are added */
    int64_t kept;   /* features */
    int64_t bytes;  /* of its blocks */
    int64_t painted, off; /* pixels of the maps that were compared, and those of them that are off */
    void *target;         /* the store's own: where the blocks go */
} mc_overview_level;

/* A row of a source, as long as the pool that it was read into. */
typedef struct mc_overview_row {
    const void *geometry; /* WKB */
    size_t size;
    const char **values; /* of the job's attributes, and the feature's number where the job wants that; NULL: null */
    int64_t ordinal;     /* which row of the source it is, in drawing order; the same as long as the row is */
} mc_overview_row;

/* A block that is written to a level (vector/levels/level_blocks.h). */
typedef struct mc_overview_block {
    int part;      /* the window; blocks are drawn in the order of their parts */
    mc_extent box; /* in units of the source's CRS */
    int count;     /* of the features */
    const void *bytes;
    size_t size;
} mc_overview_block;

typedef struct mc_overview_job mc_overview_job;
struct mc_overview_tiles;

/* Where the rows come from. */
typedef struct mc_overview_source_ops {
    /* The rows with geometry in the source's pieces from `from` to below `to`, in drawing order: mc_overview_row. */
    mc_error *(*read)(apr_array_header_t **rows, const mc_overview_job *job, int64_t from, int64_t to,
                      apr_pool_t *pool);
    /* Visits the features of a map, as mc_feature_ops. */
    mc_error *(*draw)(const mc_overview_job *job, const mc_feature_query *query, mc_feature_visitor *visit, void *baton,
                      int64_t *skipped, apr_pool_t *pool);
} mc_overview_source_ops;

/* Where the blocks of the levels go. What is neither finished nor dropped is gone when the job has failed. */
typedef struct mc_overview_store_ops {
    /* Sets level->target. */
    mc_error *(*create)(const mc_overview_job *job, mc_overview_level *level);
    /* The blocks of one window come between these two. */
    mc_error *(*begin)(const mc_overview_job *job, mc_overview_level *level);
    mc_error *(*write)(const mc_overview_job *job, mc_overview_level *level, const mc_overview_block *block);
    mc_error *(*end)(const mc_overview_job *job, mc_overview_level *level);
    /* Visits the features that a level, all of whose blocks are written, has of a map, as mc_feature_ops. */
    mc_error *(*draw)(const mc_overview_job *job, const mc_overview_level *level, const mc_feature_query *query,
                      mc_feature_visitor *visit, void *baton, int64_t *skipped, apr_pool_t *pool);
    /* The level is kept. *bytes: all that it takes. */
    mc_error *(*finish)(double *bytes, const mc_overview_job *job, mc_overview_level *level);
    mc_error *(*drop)(const mc_overview_job *job, mc_overview_level *level);
} mc_overview_store_ops;

/* First member of each kind's own struct. */
struct mc_overview_job {
    const mc_overview_source_ops *source;
    const mc_overview_store_ops *store;
    const mc_vector_layer *layer;
    const mc_overview_options *options;
    const char *kind, *name; /* of the source, for people: "table", "public.roads" */
    /* What the levels are for, set by mc_overview_set_rules once the CRS is known. */
    const mc_grid *grid;                   /* of the tileset, in the CRS of the source */
    const struct mc_overview_tiles *tiles; /* vector tiles; NULL: maps in the layer's style */
    const char *const *attributes;         /* that a feature of a level has */
    int attribute_count;
    bool ids;        /* and its number behind these */
    uint64_t digest; /* of the style, or of the rules of vector tiles; 0: none */
    /* Facts of the source, set before the levels are built. */
    int srid;
    bool points;                   /* it has nothing but points */
    bool reads_fast;               /* its features are read as fast as those of a level */
    mc_extent extent;              /* of all geometry */
    mc_extent bounds;              /* of it without a few rows that are far away, if there are such */
    double rows, bytes, all_bytes; /* all_bytes: with its indexes */
    int64_t pieces;                /* that can be read by themselves: pages, records */
    int64_t piece_ordinals;        /* ordinals that a piece has */
    double crowded;                /* maps of this resolution, and further away, have many features in a pixel */
    int levels;                    /* that were built */
    mc_ctx *ctx;
    apr_pool_t *pool;
};

void mc_overview_tell(const mc_overview_job *job, bool passing, const char *format, ...) MC_PRINTF(3, 4);

/* Of a level, whose resolution the text need not say. `bytes`: all that it takes; 0: there is no level. */
void mc_overview_tell_level(const mc_overview_job *job, const mc_overview_level *level, int64_t bytes,
                            const char *format, ...) MC_PRINTF(4, 5);

/* MC_ERR_CONFIG: the source cannot have overviews, and why. */
mc_error *mc_overview_refuse(const mc_overview_job *job, const char *reason) MC_CHECKED;

/* Sets what the levels are for: maps of the tileset in the style of the layer, or its vector tiles. MC_ERR_CONFIG: it
 * has no grid in the CRS of the source (job->srid). */
mc_error *mc_overview_set_rules(mc_overview_job *job, const mc_tileset *tileset) MC_CHECKED;

/* Builds the levels that maps need, from the source into the store, and keeps those that are worth their room. */
mc_error *mc_overview_build_levels(mc_overview_job *job) MC_CHECKED;

/* The level is kept. */
mc_error *mc_overview_finish_level(mc_overview_job *job, mc_overview_level *level) MC_CHECKED;

/* Draws some maps of the levels that are chosen, whose resolutions rise, and of the source, and counts the pixels that
 * differ: level->painted, level->off. */
mc_error *mc_overview_compare(mc_overview_level *levels, const bool *chosen, int count,
                              const mc_overview_job *job) MC_CHECKED;

/* Whether few enough of these differ, or none were compared. */
bool mc_overview_looks_good(const mc_overview_level *level);

/* Ordinals of a window: those of whole pieces. */
int64_t mc_overview_find_window(const mc_overview_job *job);

/* How a level for maps is packed: digits, cell, window. */
void mc_overview_prepare(mc_overview_level *level, const mc_overview_job *job);

/* Reads the source from its end, and writes the features that each of the levels keeps. A level
 * that gets more than `worth` bytes is given up. */
mc_error *mc_overview_sift(mc_overview_level *levels, int count, double worth, const mc_overview_job *job) MC_CHECKED;

#endif
