/* From the values that dimensions resolve to, to the combinations that are keys of sub-tiles. */
#include "tileset/combine.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <string.h>

struct mc_combiner {
    mc_tileset *tileset;
    const char *const *values;
    const mc_extent *map;
    apr_pool_t *pool;
    apr_hash_t *known;           /* combinations by their values */
    apr_array_header_t **answer; /* of each dimension, for the tile before */
    const char **parts;          /* of a combination, and their lengths: scratch */
    size_t *sizes;
    mc_combinations last; /* made of it */
    bool asked;
};

mc_combiner *
mc_combiner_create(mc_tileset *tileset, const char *const *values, const mc_extent *map, apr_pool_t *pool)
{
    mc_combiner *combiner = apr_pcalloc(pool, sizeof(*combiner));
    *combiner = (mc_combiner){ .tileset = tileset, .values = values, .map = map, .pool = pool };
    combiner->known = apr_hash_make(pool);
    combiner->answer = apr_pcalloc(pool, sizeof(*combiner->answer) * (size_t)(tileset->dimension_count + 1));
    combiner->parts = apr_pcalloc(pool, sizeof(*combiner->parts) * (size_t)(tileset->dimension_count + 1));
    combiner->sizes = apr_pcalloc(pool, sizeof(*combiner->sizes) * (size_t)(tileset->dimension_count + 1));
    return combiner;
}

static bool
same_values(const apr_array_header_t *a, const apr_array_header_t *b)
{
    if (a == b)
        return true;
    if (a == NULL || b == NULL || a->nelts != b->nelts)
        return false;
    for (int i = 0; i < a->nelts; i++) {
        const char *one = APR_ARRAY_IDX(a, i, const char *), *other = APR_ARRAY_IDX(b, i, const char *);
        if (one != other && strcmp(one, other) != 0)
            return false;
    }
    return true;
}

/* Asks all dimensions; *same if they say what they said for the tile before. */
static mc_error *
ask(bool *same, mc_combiner *combiner, const mc_grid *grid, int z, const mc_extent *extent, mc_ctx *ctx)
{
    (void)z;
    *same = combiner->asked;
    combiner->asked = true;
    for (int i = 0; i < combiner->tileset->dimension_count; i++) {
        mc_dimension *dimension = combiner->tileset->dimensions[i];
        const char *value = combiner->values == NULL ? NULL : combiner->values[i];
        mc_dimension_query query = { combiner->tileset->name, grid, extent,
                                     value == NULL ? dimension->default_value : value };
        apr_array_header_t *answer = NULL;
        MC_TRY(mc_dimension_resolve(&answer, dimension, &query, ctx, combiner->pool));
        *same = *same && same_values(answer, combiner->answer[i]);
        combiner->answer[i] = answer;
    }
    return MC_OK;
}

static mc_error *
count_them(int *count, const mc_combiner *combiner)
{
    int64_t product = 1;
    for (int i = 0; i < combiner->tileset->dimension_count; i++) {
        product *= combiner->answer[i]->nelts;
        if (product > MC_COMBINATIONS_MAX)
            return mc_error_located(combiner->pool, MC_ERR_LIMIT, combiner->tileset->dimensions[i]->name,
                                    "the requested values stand for more than %d parts of one tile of layer %s",
                                    MC_COMBINATIONS_MAX, combiner->tileset->name);
    }
    *count = (int)product;
    return MC_OK;
}

/* The combination with number `index`; the last dimension changes fastest. */
static const mc_dimension_value *
combination(mc_combiner *combiner, int index)
{
    const mc_tileset *tileset = combiner->tileset;
    int count = tileset->dimension_count;
    const char **values = combiner->parts;
    size_t *sizes = combiner->sizes;
    size_t size = 0;
    for (int i = count - 1; i >= 0; i--) {
        values[i] = APR_ARRAY_IDX(combiner->answer[i], index % combiner->answer[i]->nelts, const char *);
        index /= combiner->answer[i]->nelts;
        sizes[i] = strlen(values[i]) + 1;
        size += sizes[i];
    }
    const char *name = values[0];
    if (count > 1) {
        char *joined = apr_palloc(combiner->pool, size);
        name = joined;
        for (int i = 0; i < count; joined += sizes[i], i++)
            memcpy(joined, values[i], sizes[i]);
    }
    mc_dimension_value *made = apr_hash_get(combiner->known, name, (apr_ssize_t)size);
    if (made != NULL)
        return made;
    made = apr_palloc(combiner->pool, sizeof(*made) * (size_t)count);
    for (int i = 0; i < count; i++)
        made[i] =
            (mc_dimension_value){ tileset->dimensions[i]->name, values[i], tileset->dimensions[i]->ops->from_backend };
    apr_hash_set(combiner->known, name, (apr_ssize_t)size, made);
    return made;
}

mc_error *
mc_combine(mc_combinations *combinations, mc_combiner *combiner, const mc_grid *grid, int z, const mc_extent *extent,
           mc_ctx *ctx)
{
    bool same;
    MC_TRY(ask(&same, combiner, grid, z, extent, ctx));
    if (!same) {
        int count = 0;
        MC_TRY(count_them(&count, combiner));
        const mc_dimension_value **list = apr_palloc(combiner->pool, sizeof(*list) * (size_t)(count + 1));
        for (int i = 0; i < count; i++)
            list[i] = combination(combiner, i);
        combiner->last = (mc_combinations){ count, list };
    }
    *combinations = combiner->last;
    return MC_OK;
}
