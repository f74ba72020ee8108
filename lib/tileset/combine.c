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
    mc_combinations last;  /* made of it */
    mc_combinations first; /* the first list, while `known` does not have it */
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
    if (a == NULL || b == NULL || a->nelts != b->nelts)
        return false;
    if (a == b || a->elts == b->elts)
        return true;
    for (int i = 0; i < a->nelts; i++) {
        const char *one = APR_ARRAY_IDX(a, i, const char *), *other = APR_ARRAY_IDX(b, i, const char *);
        if (one != other && strcmp(one, other) != 0)
            return false;
    }
    return true;
}

/* The extent that a dimension is asked with; *once: it is the same for all tiles of the map. An animation has the same
 * frames everywhere. */
static const mc_extent *
extent_for(bool *once, const mc_combiner *combiner, const mc_dimension *dimension, int z, const mc_extent *extents)
{
    bool by_map = (dimension->query_by_map && z >= dimension->query_by_map_minzoom) ||
                  combiner->tileset->assembly == MC_ASSEMBLE_ANIMATE;
    by_map = by_map && combiner->map != NULL;
    *once = by_map || !mc_dimension_by_extent(dimension);
    return by_map ? combiner->map : extents;
}

/* answers[i]: of dimension `index` for tile i. */
static mc_error *
ask_dimension_values(apr_array_header_t **answers, mc_combiner *combiner, int index, const mc_grid *grid, int z,
                     const mc_extent *extents, int count, mc_ctx *ctx)
{
    mc_dimension *dimension = combiner->tileset->dimensions[index];
    const char *value = combiner->values == NULL ? NULL : combiner->values[index];
    bool once;
    const mc_extent *extent = extent_for(&once, combiner, dimension, z, extents);
    int questions = once ? 1 : count;
    mc_dimension_query *queries = apr_palloc(combiner->pool, sizeof(*queries) * (size_t)questions);
    for (int i = 0; i < questions; i++)
        queries[i] = (mc_dimension_query){ combiner->tileset->name, grid, &extent[i],
                                           value == NULL ? dimension->default_value : value };
    MC_TRY(mc_dimension_resolve_all(answers, dimension, queries, questions, ctx, combiner->pool));
    for (int i = questions; i < count; i++)
        answers[i] = answers[0];
    return MC_OK;
}

/* Takes over what the dimensions say about a tile. True if that is what they said about the tile before. */
static bool
accept_tile_answers(mc_combiner *combiner, apr_array_header_t *const *const *answers, int tile)
{
    bool same = combiner->asked;
    combiner->asked = true;
    for (int i = 0; i < combiner->tileset->dimension_count; i++) {
        same = same && same_values(answers[i][tile], combiner->answer[i]);
        combiner->answer[i] = answers[i][tile];
    }
    return same;
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
combination_at(mc_combiner *combiner, int index)
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

/* The values of a single dimension, of which most maps have one list: nothing is looked for in it until there is
 * another one. A map without a filter has thousands. */
static void
list_first_values(const mc_dimension_value **made, mc_combiner *combiner, int count)
{
    const mc_dimension *dimension = combiner->tileset->dimensions[0];
    mc_dimension_value *values = apr_palloc(combiner->pool, sizeof(*values) * (size_t)(count + 1));
    for (int i = 0; i < count; i++) {
        values[i] = (mc_dimension_value){ dimension->name, APR_ARRAY_IDX(combiner->answer[0], i, const char *),
                                          dimension->ops->from_backend };
        made[i] = &values[i];
    }
    combiner->first = (mc_combinations){ count, made };
}

static void
remember_first_values(mc_combiner *combiner)
{
    for (int i = 0; i < combiner->first.count; i++) {
        const mc_dimension_value *made = combiner->first.list[i];
        apr_hash_set(combiner->known, made->value, (apr_ssize_t)strlen(made->value) + 1, made);
    }
    combiner->first.count = 0;
}

static mc_error *
list_combinations(mc_combinations *list, mc_combiner *combiner)
{
    int count = 0;
    MC_TRY(count_them(&count, combiner));
    const mc_dimension_value **made = apr_palloc(combiner->pool, sizeof(*made) * (size_t)(count + 1));
    if (combiner->tileset->dimension_count == 1 && combiner->last.list == NULL) {
        list_first_values(made, combiner, count);
    } else {
        remember_first_values(combiner);
        for (int i = 0; i < count; i++)
            made[i] = combination_at(combiner, i);
    }
    *list = (mc_combinations){ count, made };
    return MC_OK;
}

mc_error *
mc_combine(mc_combinations *lists, mc_combiner *combiner, const mc_grid *grid, int z, const mc_extent *extents,
           int count, mc_ctx *ctx)
{
    int dimensions = combiner->tileset->dimension_count;
    apr_array_header_t ***answers = apr_palloc(combiner->pool, sizeof(*answers) * (size_t)(dimensions + 1));
    for (int i = 0; i < dimensions; i++) {
        answers[i] = apr_pcalloc(combiner->pool, sizeof(**answers) * (size_t)count);
        MC_TRY(ask_dimension_values(answers[i], combiner, i, grid, z, extents, count, ctx));
    }
    for (int i = 0; i < count; i++) {
        if (!accept_tile_answers(combiner, (apr_array_header_t *const *const *)answers, i))
            MC_TRY(list_combinations(&combiner->last, combiner));
        lists[i] = combiner->last;
    }
    return MC_OK;
}
