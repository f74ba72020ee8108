/* Product files with tiles that are a rectangle of one colour each. */
#ifndef MC_FOOTPRINT_FIXTURE_H
#define MC_FOOTPRINT_FIXTURE_H

#include "cache_fixture.h"

#include <sqlite3.h>

#include "base/metrics.h"
#include "cache/memory.h"
#include "footprint/footprint.h"

typedef struct patch {
    int left, top, width, height;
    uint8_t alpha;
} patch;

/* A file for each product; `inner`: more elements of the cache. */
mc_cache *product_cache(const char *inner);
mc_tile_key product_key(const char *product, int z, int x, int y);

/* Premultiplied: what is stored comes back. */
void patch_colour(uint8_t bgra[4], const patch *wanted);
mc_buf *patch_png(patch wanted);
void put_patch(mc_cache *cache, const char *product, int z, int x, int y, patch wanted);
void check_patch(const mc_footprint *footprint, patch wanted);

/* A batch of its own for one tile, as a request has it. */
typedef struct shown {
    bool known; /* without reading */
    mc_error *error;
    mc_footprint *footprint; /* lives in `pool` */
} shown;

shown show_key(mc_cache *cache, const mc_tile_key *key);
shown show_patch(mc_cache *cache, const char *product, int z, int x, int y);

/* What a request gets now; an alpha of 0: nothing. `known`: whether memory must, or must not, have it. */
#define expect_patch(cache, product, z, x, y, wanted, remembered)                                                      \
    do {                                                                                                               \
        shown expect_shown_ = show_patch(cache, product, z, x, y);                                                     \
        ck_ok(expect_shown_.error);                                                                                    \
        if ((wanted).alpha == 0)                                                                                       \
            ck_assert_ptr_null(expect_shown_.footprint);                                                               \
        else                                                                                                           \
            check_patch(expect_shown_.footprint, wanted);                                                              \
        ck_assert_int_eq(expect_shown_.known, remembered);                                                             \
    } while (0)

/* What a request gets now, from memory or from the file: a machine that was held up may have let a change settle. */
#define expect_content(cache, product, z, x, y, wanted)                                                                \
    do {                                                                                                               \
        shown expect_shown_ = show_patch(cache, product, z, x, y);                                                     \
        ck_ok(expect_shown_.error);                                                                                    \
        if ((wanted).alpha == 0)                                                                                       \
            ck_assert_ptr_null(expect_shown_.footprint);                                                               \
        else                                                                                                           \
            check_patch(expect_shown_.footprint, wanted);                                                              \
    } while (0)

void wait_settled(void);

/* What another program does with a product's file. */
void write_outside(const char *product, const char *sql);

/* "x'...'" of a patch's PNG. */
const char *patch_literal(patch wanted);
uint64_t counted_events(mc_counter counter);

#endif
