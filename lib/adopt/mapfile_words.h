/* The blocks that the words of a map file of MapServer make. */
#ifndef MC_ADOPT_MAPFILE_WORDS_H
#define MC_ADOPT_MAPFILE_WORDS_H

#include "adopt/branch.h"
#include "source/mapserver/mapfile_tokens.h"

/*
 * The blocks of a map file as branches: a block is a map whose key is its keyword in capitals; a keyword with a value
 * is a text (of several values: with blanks between them, "255 0 0"); the pairs of METADATA are texts by their name in
 * lower case; PROJECTION, POINTS and PATTERN are lists. INCLUDE is a text.
 *
 * MC_ERR_CONFIG with "FILE:LINE: ...": it does not begin with MAP (`whole`) or LAYER, blocks nest more deeply than
 * MC_BRANCH_DEPTH or do not end, there are more values than `*room`, which says how many there may be yet.
 */
mc_error *mc_mapfile_parse(mc_branch **root, const char *file, const char *text, int *room,
                           apr_pool_t *pool) MC_CHECKED;

#endif
