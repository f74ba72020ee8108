/* Shared by the files of this room: making footprints, facts about files, and the inside of a batch. */
#ifndef MC_FOOTPRINT_FOOTPRINT_PRIVATE_H
#define MC_FOOTPRINT_FOOTPRINT_PRIVATE_H

#include <stdatomic.h>

#include "cache/cache_base.h"
#include "cache/sqlite/coverage.h"
#include "footprint/footprint.h"
#include "memory/clock_cache.h"

/* The footprint of a stored tile, decoded right into its box; one reference, the caller's. */
mc_error *mc_footprint_decode(mc_footprint **footprint, mc_tile *tile, const mc_grid *grid, mc_ctx *ctx,
                              apr_pool_t *pool) MC_CHECKED;

/* What a footprint holds in memory, in bytes. */
size_t mc_footprint_bytes(const mc_footprint *footprint);

/*
 * What names a thing that is remembered: 128 bits of hash, with the process's seed, of everything that it depends on:
 * how it is read, path, tileset, grid, dimensions, the stamp and our own writes. Who looks with another stamp looks
 * for another thing. {0, 0}: nothing may be remembered.
 */
typedef struct mc_identity {
    uint64_t a, b;
} mc_identity;

mc_identity mc_identity_first(void); /* of nothing yet */
mc_identity mc_identity_of(const mc_identity *base, const void *bytes, size_t size);
static inline bool
mc_identity_valid(const mc_identity *identity)
{
    return (identity->a | identity->b) != 0;
}

/* Facts about a file under a stamp. Reference-counted; read-only once it is shared. */
typedef struct mc_file_facts {
    _Atomic unsigned references;
    bool rollback;         /* no -wal can come without a change of the file itself */
    bool asked;            /* for its coverage */
    mc_coverage *coverage; /* NULL: not known */
} mc_file_facts;

mc_file_facts *mc_file_facts_find(const mc_identity *identity, mc_ctx *ctx); /* a reference, the caller's; or NULL */
void mc_file_facts_keep(const mc_identity *identity, mc_file_facts *facts, mc_ctx *ctx);
mc_file_facts *mc_file_facts_create(bool rollback, bool asked, mc_coverage *coverage); /* one reference */
void mc_file_facts_unref(mc_file_facts *facts);

/* That a file has too many tiles for coverage, whatever its stamp: so that a file that grows is not asked again each
 * time. `identity` is without a stamp. */
bool mc_coverage_is_hopeless(const mc_identity *identity, mc_ctx *ctx);
void mc_coverage_give_up(const mc_identity *identity, mc_ctx *ctx);

/* True if something is known of that tile; *footprint is NULL then where it is absent, else a reference. */
bool mc_footprint_find(mc_footprint **footprint, const mc_identity *identity, const mc_tile_key *key, mc_ctx *ctx);

/* Remembers a footprint, or with NULL an absence. */
void mc_footprint_keep(const mc_identity *identity, const mc_tile_key *key, mc_footprint *footprint, mc_ctx *ctx);

/* A SQLite file of a batch. */
typedef struct mc_batch_file {
    const char *path; /* NULL: a store without files */
    int missing;      /* errno of the look, 0: it is there */
    bool rollback;    /* known to have no -wal: it was not looked for */
    bool wal_looked;
    bool sole; /* it is written to under this name only (mc_stamp_take_sole) */
    mc_stamp stamp;
} mc_batch_file;

/* Wants of the same tileset, grid and dimensions in the same file. */
typedef struct mc_batch_series {
    const mc_tile_key *key; /* of one of them */
    int group, file;
    int unknown;          /* wants that have to be fetched */
    mc_cache *cache;      /* that has the file */
    const char *coverage; /* its statement, or NULL */
    uint64_t how;         /* identity of the way it is read */
    uint64_t paths;       /* identity of the way its path is made */
    bool needed;
    bool by_tile; /* other tiles of these dimensions may stand in other files */
    mc_identity stampless, identity;
    mc_file_facts *first;           /* a reference: what the look has found, or NULL */
    _Atomic(mc_file_facts *) facts; /* the newest that the batch holds, or NULL */
} mc_batch_series;

/* A reference to facts that a batch holds until its end. */
typedef struct mc_batch_held {
    mc_file_facts *facts;
    struct mc_batch_held *next;
} mc_batch_held;

struct mc_footprints {
    mc_cache *cache;
    mc_footprint_want *wants;
    int count;
    mc_footprint **held; /* the references of the batch, by want */
    int *series_of;      /* by want */
    int *combinations;   /* series of those that are left, between mc_footprints_begin and _complete */
    int skips;           /* tiles that coverage has ruled out before they were wanted */
    mc_batch_series *series;
    int series_count;
    mc_batch_file *files;
    int file_count;
    apr_time_t taken; /* before the first look at a file */
    _Atomic(mc_batch_held *) facts;
};

/* The folder that the last file was in, so that those beside it are looked at without walking the whole path again.
 * Begins as { NULL, 0, -1 }. */
typedef struct mc_folder_cursor {
    const char *path; /* up to and without the last '/', of `size` bytes */
    size_t size;
    int descriptor; /* -1: not open */
} mc_folder_cursor;

/* As mc_stamp_take_sole, of a path that lives until the next look. */
bool mc_folder_cursor_look(mc_stamp *stamp, bool *sole, mc_folder_cursor *cursor, const char *path);
void mc_folder_cursor_close(mc_folder_cursor *cursor);

/* Everything that is remembered of a series depends on, but the stamp of its file. base: mc_identity_first(), or what a
 * file of identities begins with. generation: of our own writes. */
mc_identity mc_series_identity(mc_identity base, const mc_batch_series *series, const char *path, unsigned generation);

/* Of the products of a catalogue: the files of all these combinations of the key, which are read as `series` is, whose
 * key has dimensions of its own. */
mc_identity mc_roster_identity(const mc_batch_series *series, const mc_dimension_value *const *dimensions, int count);

/* The steps of a look: an empty batch; wants, about which nothing is known yet; their series and files; what memory
 * knows of the wants. */
mc_footprints *mc_batch_create(mc_cache *cache, apr_pool_t *pool);
void mc_batch_take(mc_footprints *batch, mc_footprint_want *wants, int count, apr_pool_t *pool);
void mc_batch_look(mc_footprints *batch, mc_ctx *ctx);
void mc_batch_recall(mc_footprints *batch, mc_ctx *ctx);

/* Sorts the wants into series and files. What fails for a want makes it one of a store without files: its fetch says
 * what is wrong. */
void mc_footprints_sort(mc_footprints *batch, apr_pool_t *pool);

/* Between mc_batch_look and the first fetch: learns what the file of a series has, unless that is known. What fails is
 * left to those who want a tile. Within mc_cache_reads_begin and _end the file is opened once. */
void mc_batch_learn_coverage(mc_footprints *batch, mc_batch_series *series, mc_ctx *ctx);

/* From now on `facts`, a reference that goes to the batch, is what the series knows. Any thread. */
void mc_batch_learn(mc_footprints *batch, mc_batch_series *series, mc_file_facts *facts);

#endif
