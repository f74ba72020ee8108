/* <deduplicate>: SQLite files in which each content stands once, however many tiles have it. */
#ifndef MC_CACHE_SQLITE_DEDUPLICATE_H
#define MC_CACHE_SQLITE_DEDUPLICATE_H

#include "cache/sqlite/sqlite_base.h"

/*
 * Of the cache "sqlite3": tables `images` and `places`, and a view `tiles` on both with the columns of MapCache's
 * table. Triggers on the view take what is written to it in MapCache's way.
 */
extern const char mc_dedup_create[];

/* Statements about such a file (mc_sqlite_counts): removing some places of a group; images that no place has: their
 * bytes, and removing them. */
extern const char mc_dedup_remove[], mc_dedup_unused[], mc_dedup_tidy_up[];

/* The same for one content (mc_sqlite_counts): at a place, removing it, the index that this needs. */
extern const char mc_dedup_content[], mc_dedup_remove_content[], mc_dedup_index[];

/* Stores bytes at a place, with their time: those of another place, where they are the same. The transaction is the
 * caller's. */
struct sqlite_binds;
mc_error *mc_dedup_put(mc_handle *handle, const mc_tile_key *key, const struct sqlite_binds *tile,
                       apr_pool_t *pool) MC_CHECKED;

/*
 * Of MBTiles files: stores a picture under the name of its content, or finds it there. *id: that name; NULL where
 * another content has it already, so that the picture has to be stored under its place's.
 */
mc_error *mc_dedup_put_picture(const char **id, mc_handle *handle, const void *data, size_t size,
                               apr_pool_t *pool) MC_CHECKED;

#endif
