/* What the parts of `mapcache copy` share. */
#ifndef MC_CLI_COPY_H
#define MC_CLI_COPY_H

#include "cli/seed/seed_options.h"
#include "mapcache/server.h"

typedef struct mc_copy_options {
    mc_seed_options seed; /* configuration, tileset, grid, area, levels, dimensions, workers */
    const char *from, *to;
    const char *warp; /* name of the grid that the tiles are drawn on; NULL: they are copied as they are */
    bool verify;
} mc_copy_options;

/* What --from or --to names. */
typedef struct mc_copy_side {
    const char *name;
    const mc_config *config;      /* that it belongs to; of a file its own */
    apr_array_header_t *tilesets; /* of mc_tileset *: of --from those whose tiles are meant; of --to at most one */
    mc_cache *cache;              /* of a cache or a file; NULL: that of each tileset */
    bool file;
    const mc_config *far; /* of --to s3://BUCKET/KEY.pmtiles: has its cache; NULL: the target is no such address */
    const char *folder;   /* of the archive that is made for it, until it is sent; NULL: none was made yet */
    const char *archive;
} mc_copy_side;

/*
 * Finds out what a name means: a tileset or a cache of the configuration ("tileset:NAME", "cache:NAME" where both have
 * the name), or a file of tiles. `config` may be NULL: files only. As `--to`, a file need not be there yet.
 */
mc_error *mc_copy_find_source(mc_copy_side *side, const char *name, const mc_config *config,
                              apr_pool_t *pool) MC_CHECKED;
mc_error *mc_copy_find_target(mc_copy_side *side, const char *name, const mc_config *config,
                              apr_pool_t *pool) MC_CHECKED;

/* A target of s3://: side->archive in a folder of its own (TMPDIR), which the tiles go into first; sent to the store at
 * the end. The folder goes with mc_copy_forget_archive, whatever has happened; that may be called for any target. */
mc_error *mc_copy_open_store(mc_copy_side *side, const char *name, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_copy_send_archive(const mc_copy_side *side, const mc_log *log, apr_pool_t *pool) MC_CHECKED;
void mc_copy_forget_archive(const mc_copy_side *side, apr_pool_t *pool);

/* One run of the seeder: one tileset and grid, and one set of values of its dimensions. */
typedef struct mc_copy_part {
    mc_seed_pair pair;
    apr_table_t *values;
} mc_copy_part;

/* One call of the command. */
typedef struct mc_copy {
    const mc_copy_options *options;
    const mc_log *log;
    mc_copy_side from, to;
    apr_array_header_t *parts; /* of mc_copy_part */
    apr_pool_t *pool;
} mc_copy;

/* Makes copy->parts of both sides. NULL, or what is wrong. */
const char *mc_copy_plan(mc_copy *copy);

/* The sets of values (apr_table_t *) of the dimensions of a tileset that are meant: what is given, or else all that its
 * store has. NULL, or what is wrong. */
const char *mc_copy_list_values(apr_array_header_t **list, const mc_copy *copy, const mc_tileset *tileset,
                                const mc_grid *grid);

/* A copy of a tileset, for a store: its keys have values of dimensions as they are stored, and its metatiles are the
 * blocks that are copied at once. */
mc_tileset *mc_copy_stored_tileset(const mc_tileset *tileset, mc_cache *cache, apr_pool_t *pool);

#endif
