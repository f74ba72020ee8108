/* Which contents an archive that is being written has already, and where. Of a bounded number of contents, those stay
 * known that have come more than once: seas and empty land, which are most of the equal tiles of a planet. */
#ifndef MC_CACHE_PMTILES_CONTENTS_H
#define MC_CACHE_PMTILES_CONTENTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct mc_contents mc_contents;

typedef struct mc_content_place {
    uint64_t hash, offset;
    uint32_t length, uses;
} mc_content_place;

/* At most 2 million contents and 48 MB; memory is taken as it is used. NULL without memory. */
mc_contents *mc_contents_create(void);
void mc_contents_destroy(mc_contents *contents); /* NULL is ignored */

/* A place that had the same hash and length, or NULL. Only the bytes tell whether the content is the same. */
mc_content_place *mc_contents_find(mc_contents *contents, uint64_t hash, uint32_t length);

/* Told that the content at a place came again. */
void mc_contents_use(mc_content_place *place);

/* Remembers a place, instead of the one of its neighbours that was used the least. */
void mc_contents_add(mc_contents *contents, uint64_t hash, uint64_t offset, uint32_t length);

#endif
