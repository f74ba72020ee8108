/* See kept.h. */
#include "draw/paint/kept.h"

#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "draw/style/expression.h"

enum { SHAPES = 3, USES = 256 };

/* The budget of the process is asked for so many bytes at a time, and for none at first. */
#define COUNTED_STEP ((size_t)1 << 20)
#define FREE_BYTES ((size_t)64 << 10)

struct mc_kept {
    size_t bytes, counted;       /* the latter in the budget of the process */
    apr_array_header_t *queries; /* of const mc_feature_query *: copies, one for each world of the map */
    apr_pool_t *pool;
};

typedef struct kept_shape {
    mc_shape_point *points;
    int *ends;
    int point_count, part_count;
} kept_shape;

struct mc_kept_feature {
    int64_t id;
    const char *const *values;
    const mc_feature_query *query;
    kept_shape shapes[SHAPES]; /* by mc_shape_kind */
};

static apr_status_t
give_budget_back(void *data)
{
    mc_kept *kept = data;
    mc_budget_give(kept->counted);
    return APR_SUCCESS;
}

mc_kept *
mc_kept_create(apr_pool_t *pool)
{
    mc_kept *made = apr_pcalloc(pool, sizeof(*made));
    made->queries = apr_array_make(pool, 2, sizeof(const mc_feature_query *));
    made->pool = pool;
    apr_pool_cleanup_register(pool, made, give_budget_back, apr_pool_cleanup_null);
    return made;
}

mc_kept_group *
mc_kept_group_create(mc_kept *kept, const mc_style_pass *sorting)
{
    mc_kept_group *made = apr_pcalloc(kept->pool, sizeof(*made));
    *made = (mc_kept_group){ kept, sorting, apr_array_make(kept->pool, USES, sizeof(mc_kept_use)) };
    return made;
}

static void *
keep_bytes(mc_kept *kept, const void *bytes, size_t size)
{
    kept->bytes += size;
    return size == 0 ? NULL : apr_pmemdup(kept->pool, bytes, size);
}

static const char *
keep_text(mc_kept *kept, const char *text)
{
    return text == NULL ? NULL : keep_bytes(kept, text, strlen(text) + 1);
}

/* Queries of one layer differ in the world of the map alone. */
static bool
is_same_world(const mc_feature_query *a, const mc_feature_query *b)
{
    return a->box.minx == b->box.minx && a->pixel_grid.x0 == b->pixel_grid.x0 &&
           a->pixel_grid.left == b->pixel_grid.left && a->pixel_grid.warp == b->pixel_grid.warp;
}

/* The query of another world lives as long as the reading only. */
static const mc_feature_query *
keep_query(mc_kept *kept, const mc_feature_query *query)
{
    for (int i = 0; i < kept->queries->nelts; i++) {
        const mc_feature_query *known = APR_ARRAY_IDX(kept->queries, i, const mc_feature_query *);
        if (is_same_world(known, query))
            return known;
    }
    const mc_feature_query *copy = keep_bytes(kept, query, sizeof(*query));
    APR_ARRAY_PUSH(kept->queries, const mc_feature_query *) = copy;
    return copy;
}

static mc_error *
check_bytes_kept(mc_kept *kept, size_t more)
{
    while (kept->bytes + more > kept->counted + FREE_BYTES && kept->counted < MC_KEPT_BYTES_MAX) {
        if (!mc_budget_take(COUNTED_STEP))
            return mc_budget_error(COUNTED_STEP, kept->pool);
        kept->counted += COUNTED_STEP;
    }
    if (kept->bytes + more <= MC_KEPT_BYTES_MAX)
        return MC_OK;
    return mc_error_create(kept->pool, MC_ERR_LIMIT,
                           "the features that are painted at the end, because of sortBy or of more than 16 feature "
                           "type styles at this scale, take more than %d MB",
                           (int)(MC_KEPT_BYTES_MAX >> 20));
}

mc_error *
mc_kept_add(const mc_kept_feature **copy, mc_kept *kept, const mc_feature *feature)
{
    const mc_geometry *geometry = feature->geometry;
    size_t size = sizeof(mc_kept_feature);
    for (int i = 0; i < SHAPES; i++)
        size += sizeof(mc_shape_point) * (size_t)geometry->shapes[i].point_count +
                sizeof(int) * (size_t)geometry->shapes[i].part_count;
    MC_TRY(check_bytes_kept(kept, size));
    mc_kept_feature *made = keep_bytes(kept, &(mc_kept_feature){ .id = feature->id }, sizeof(*made));
    made->query = keep_query(kept, feature->query);
    for (int i = 0; i < SHAPES; i++) {
        const mc_shape *shape = &geometry->shapes[i];
        made->shapes[i] = (kept_shape){
            .points = keep_bytes(kept, shape->points, sizeof(*shape->points) * (size_t)shape->point_count),
            .ends = keep_bytes(kept, shape->ends, sizeof(*shape->ends) * (size_t)shape->part_count),
            .point_count = shape->point_count,
            .part_count = shape->part_count,
        };
    }
    if (feature->values != NULL) {
        int count = feature->query->attribute_count;
        const char **values = apr_palloc(kept->pool, sizeof(*values) * (size_t)(count + 1));
        kept->bytes += sizeof(*values) * (size_t)count;
        for (int i = 0; i < count; i++)
            values[i] = keep_text(kept, feature->values[i]);
        made->values = values;
    }
    *copy = made;
    return MC_OK;
}

mc_error *
mc_kept_use_add(mc_kept_group *group, const mc_kept_feature *copy, int pass, const uint64_t *rules, int words,
                const mc_feature *feature, apr_pool_t *scratch)
{
    mc_kept *kept = group->kept;
    const int count = group->sorting->sort_count;
    mc_kept_key *keys = count == 0 ? NULL : apr_palloc(kept->pool, sizeof(*keys) * (size_t)count);
    kept->bytes += sizeof(mc_kept_use) + sizeof(*keys) * (size_t)count;
    for (int i = 0; i < count; i++) {
        const mc_expression *value = group->sorting->sort[i].value;
        keys[i].text = keep_text(kept, mc_expression_text(value, feature, scratch));
        keys[i].number = mc_expression_number(value, feature, NAN, scratch);
    }
    APR_ARRAY_PUSH(group->uses, mc_kept_use) =
        (mc_kept_use){ .feature = copy,
                       .keys = keys,
                       .rules = keep_bytes(kept, rules, sizeof(*rules) * (size_t)words),
                       .pass = pass,
                       .number = group->uses->nelts };
    return check_bytes_kept(kept, 0);
}

/* Null before everything else, numbers before other text: any three values have one order. */
static int
compare_kept_keys(const mc_kept_key *a, const mc_kept_key *b)
{
    if (a->text == NULL || b->text == NULL)
        return (a->text != NULL) - (b->text != NULL);
    bool a_is_word = isnan(a->number), b_is_word = isnan(b->number);
    if (a_is_word != b_is_word)
        return a_is_word - b_is_word;
    if (!a_is_word)
        return (a->number > b->number) - (a->number < b->number);
    return strcmp(a->text, b->text);
}

static int
compare_kept_uses(const void *left, const void *right, void *baton)
{
    const mc_kept_use *a = left, *b = right;
    const mc_style_pass *sorting = baton;
    for (int i = 0; i < sorting->sort_count; i++) {
        int order = compare_kept_keys(&a->keys[i], &b->keys[i]);
        if (order != 0)
            return sorting->sort[i].descending ? -order : order;
    }
    return a->pass != b->pass ? a->pass - b->pass : a->number - b->number;
}

void
mc_kept_sort(mc_kept_group *group)
{
    if (group->sorting->sort_count > 0)
        qsort_r(group->uses->elts, (size_t)group->uses->nelts, sizeof(mc_kept_use), compare_kept_uses,
                (void *)(uintptr_t)group->sorting);
}

mc_feature
mc_kept_restore(mc_geometry *geometry, const mc_kept_feature *copy)
{
    *geometry = (mc_geometry){ 0 };
    for (int i = 0; i < SHAPES; i++)
        geometry->shapes[i] = (mc_shape){ .kind = (mc_shape_kind)i,
                                          .points = copy->shapes[i].points,
                                          .point_count = copy->shapes[i].point_count,
                                          .ends = copy->shapes[i].ends,
                                          .part_count = copy->shapes[i].part_count };
    return (mc_feature){ .id = copy->id, .geometry = geometry, .values = copy->values, .query = copy->query };
}
