/* What decides what vector tiles hold of a layer: for tiles, and for overviews that are made for tiles. */
#include <string.h>

#include "base/hash.h"
#include "source/vector/vector_tile_rules.h"

/* Counts what this version leaves out of vector tiles; tiles of overviews of another number are not the same. */
enum { RULES_VERSION = 1 };

/* Where the numbers of features are among their attributes: as whole numbers, so that they need not be asked for twice.
 * -1: nowhere. */
static int
find_id(const mc_vector_layer *layer, const apr_array_header_t *fields)
{
    const char *name = layer->data->id_attribute;
    for (int i = 0; name != NULL && i < fields->nelts; i++) {
        const mc_field *field = &APR_ARRAY_IDX(fields, i, mc_field);
        if (field->type == MC_FIELD_INTEGER && strcmp(field->name, name) == 0)
            return i;
    }
    return -1;
}

static uint64_t
add_to_digest(uint64_t digest, const void *bytes, size_t size)
{
    return mc_hash64(bytes, size, digest);
}

static uint64_t
digest_of_rules(const mc_vector_tile_rules *rules, const mc_vector_layer *layer, const mc_mvt_options *options,
                const mc_grid *grid)
{
    const int numbers[] = { RULES_VERSION, options->extent, options->buffer, options->max_features, rules->ids };
    uint64_t digest = mc_hash64("vector tiles", 12, grid->definition);
    digest = add_to_digest(digest, numbers, sizeof(numbers));
    digest = add_to_digest(digest, &options->simplification, sizeof(options->simplification));
    for (int i = 0; i < rules->fields->nelts; i++) {
        const mc_field *field = &APR_ARRAY_IDX(rules->fields, i, mc_field);
        digest = add_to_digest(digest, field->name, strlen(field->name) + 1);
    }
    if (rules->ids && layer->data->id_attribute != NULL)
        digest = add_to_digest(digest, layer->data->id_attribute, strlen(layer->data->id_attribute));
    return digest == 0 ? 1 : digest;
}

mc_error *
mc_vector_tile_rules_of(mc_vector_tile_rules *rules, const mc_vector_layer *layer, const mc_mvt_options *options,
                        const mc_grid *grid, mc_ctx *ctx, apr_pool_t *pool)
{
    *rules = (mc_vector_tile_rules){ 0 };
    MC_TRY(mc_vector_fields(&rules->fields, &rules->names, layer, ctx, pool));
    rules->id = find_id(layer, rules->fields);
    rules->ids = layer->data->has_ids && rules->id < 0;
    rules->digest = grid->definition == 0 ? 0 : digest_of_rules(rules, layer, options, grid);
    return MC_OK;
}

mc_vector_tile_lattice
mc_vector_tile_lattice_of(const mc_grid *grid, int z)
{
    const mc_extent first = mc_grid_tile_extent(grid, z, 0, 0);
    return (mc_vector_tile_lattice){ first.minx, first.maxy, first.maxx - first.minx, first.maxy - first.miny };
}
