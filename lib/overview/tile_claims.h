/*
 * Which features of a level the tiles' budget of features can reach (docs/vector-tiles.md#budgets): in each tile the
 * largest ones, of equal ones those that come first. Features are counted first, all of them; then they are looked at
 * once more, from the last one on.
 */
#ifndef MC_OVERVIEW_TILE_CLAIMS_H
#define MC_OVERVIEW_TILE_CLAIMS_H

#include <apr_pools.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct mc_tile_claims mc_tile_claims;

/* `most`: features of a tile. */
mc_tile_claims *mc_tile_claims_create(int most, apr_pool_t *pool);

/* A tile shows a feature whose longer side is `size` units. */
void mc_tile_claims_count(mc_tile_claims *claims, int64_t column, int64_t row, uint32_t size);

/* All features are counted. False: no tile has too many, or too many tiles have features to tell; then all are kept. */
bool mc_tile_claims_settle(mc_tile_claims *claims);

/* Whether the tile may show the feature. To be asked once for each feature that was counted, from the last one on. */
bool mc_tile_claims_hold(mc_tile_claims *claims, int64_t column, int64_t row, uint32_t size);

#endif
