/*
 * Writes to a Berkeley DB that happen as a whole or not at all, also when their process is killed: before a page of the
 * database's file is replaced, its old bytes go to the file mapcache.undo of the folder. Part of mapcache-bdb.so.
 *
 * The file: the eight bytes of MC_BDB_UNDO_MAGIC, the size of the database before (-1: there was none), the length of
 * the database's name (uint32), the name; then for each page its offset (uint64), its length (uint32) and its bytes.
 * All numbers little-endian. A part that is cut off was not needed yet.
 */
#ifndef MC_CACHE_EMBEDDED_BDB_UNDO_H
#define MC_CACHE_EMBEDDED_BDB_UNDO_H

#include "cache/embedded/embedded.h"

#define MC_BDB_UNDO "mapcache.undo"
#define MC_BDB_UNDO_MAGIC "mcundo\0\1"

/* From now on this thread's writes to `name`, a file of the folder, can be undone. Alone at the environment
 * (bdb_turn.h). 0 or errno. Before any database is made or opened. */
int mc_bdb_begin_undo(const mc_embedded_place *place, const char *name, apr_pool_t *pool);

/* The write is complete (and synced): it stays. 0, or errno: then it is still to be undone. Without a begin: nothing.
 */
int mc_bdb_forget_undo(const mc_embedded_place *place, apr_pool_t *pool);

/* The write has failed: what is kept of it stays for mc_bdb_undo_rest. */
void mc_bdb_leave_undo(void);

/* Undoes a write that was not finished, if there is one. 0 or errno. */
int mc_bdb_undo_rest(bool *undone, const mc_embedded_place *place, apr_pool_t *pool);

#endif
