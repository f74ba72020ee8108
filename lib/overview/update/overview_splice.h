/* Writing the blocks of a level that is patched: what stays is copied as it is packed. */
#ifndef MC_OVERVIEW_OVERVIEW_SPLICE_H
#define MC_OVERVIEW_OVERVIEW_SPLICE_H

#include "overview/update/overview_patch_blocks.h"

/* Writes the features of changed blocks that have not gone, and the new ones, a block for each window and cell. Keeps
 * count of the features of the level. */
mc_error *mc_overview_splice(mc_patch_blocks *blocks) MC_CHECKED;

#endif
