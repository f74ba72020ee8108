/*
 * What the first maps would have to find out about catalogues, found out when a process begins or takes another
 * configuration: which products there are, and where each of them has tiles. A help only: what fails or takes too long
 * is found out by the maps.
 */
#ifndef MC_MAP_AHEAD_H
#define MC_MAP_AHEAD_H

#include "mapcache/tileset.h"

typedef struct mc_ahead mc_ahead;

/* `process` and `log` live longer. The thread begins with the first catalogue, and ends when all is known. */
mc_ahead *mc_ahead_create(mc_process *process, const mc_log *log);

/* Ends the thread. NULL is ignored, here and below. */
void mc_ahead_destroy(mc_ahead *ahead);

/* Looks at those of the tilesets (mc_tileset *) that are catalogues, in a process that lasts; `owner` keeps their
 * configuration.
 */
void mc_ahead_begin(mc_ahead *ahead, const apr_array_header_t *tilesets, const mc_owner *owner);

/* Waits until all is known; for a few hundredths of a second at most from the first mc_ahead_begin on, so that no start
 * takes noticeably longer. */
void mc_ahead_wait(mc_ahead *ahead);

#endif
