/* Layers that others have encoded and that become part of a tile: read as far as needed to be sure of their form. */
#ifndef MC_VECTOR_MVT_MVT_PARTS_H
#define MC_VECTOR_MVT_MVT_PARTS_H

#include "vector/mvt/mvt_layer.h"

typedef struct mc_mvt_parts {
    mc_byte_buffer layers; /* as a tile has them, each with its field number and size in front */
    mc_byte_buffer names;  /* mc_mvt_part_name */
    int64_t features;
} mc_mvt_parts;

/*
 * Adds the layers of a tile (MVT 2.1, 4.1), as they are; layers without features are left out, and so are fields that
 * the specification does not know. NULL, or what is wrong with the tile, in words; nothing of the tile is added then.
 * Wrong are: bytes that are no messages, layers without a version that is 1 or 2, without exactly one name that is a
 * text, or with the name of a layer that is there; more layers than a tile may have. Tags and geometry of features are
 * not looked at. Without memory, `layers` or `names` has failed.
 */
const char *mc_mvt_parts_add(mc_mvt_parts *parts, const void *bytes, size_t size, apr_pool_t *pool);

/* Whether there is a layer of that name. */
bool mc_mvt_parts_have(const mc_mvt_parts *parts, const char *name);

void mc_mvt_parts_free(mc_mvt_parts *parts);

#endif
