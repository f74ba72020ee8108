/*
 * GetFeatureInfo of vector sources: the attributes of what lies under a pixel, from the data itself. Of each layer the
 * features that were drawn last come first; those that its style does not draw at the map's scale are not there.
 */
#include "source/vector/vector_info.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <string.h>

#include "draw/style/rules.h"
#include "mapcache/trace.h"
#include "vector/geometry/hit.h"

enum { MOST_FEATURES = 50, MOST_BYTES = 1 << 20, REACH = 3 /* pixels around the point */ };

const apr_array_header_t *
mc_vector_info_formats(apr_pool_t *pool)
{
    apr_array_header_t *formats = apr_array_make(pool, 4, sizeof(const char *));
    for (const mc_info_writer *writer = mc_info_writers; writer->mime != NULL; writer++)
        APR_ARRAY_PUSH(formats, const char *) = writer->mime;
    return formats;
}

/* The last features that were found, in a ring: each with a pool that its successor takes over. They are written when
 * all have come: of a hundred thousand points under one pixel few are left. */
typedef struct kept {
    mc_feature feature;
    apr_pool_t *pool;
} kept;

typedef struct finding {
    const mc_info_writer *how;
    mc_info_layer layer;
    mc_shape_point point;
    kept ring[MOST_FEATURES];
    int most, found; /* features to keep; those of this layer so far */
    const mc_style *style;
    mc_rules **rules; /* for each pass of the style */
    apr_hash_t *placed;
    const mc_feature_query *placed_for; /* of the layer's worlds */
    apr_pool_t *layer_pool, *scratch;
} finding;

/* Whether any rule of the style draws it. */
static bool
is_drawn(finding *f, const mc_feature *feature)
{
    mc_feature placed = *feature;
    if (feature->query != f->placed_for) {
        f->placed = apr_hash_make(f->layer_pool);
        f->placed_for = feature->query;
    }
    placed.placed = f->placed;
    for (int i = 0; i < f->style->pass_count; i++) {
        mc_rules_find(f->rules[i], &placed, f->scratch);
        for (int r = 0; (r = mc_rules_next(f->rules[i], r)) >= 0; r++)
            if (f->style->passes[i].rules[r].symbolizer_count + f->style->passes[i].rules[r].text_count > 0)
                return true;
    }
    return false;
}

static mc_geometry *
copy_of(const mc_geometry *geometry, apr_pool_t *pool)
{
    mc_geometry *made = apr_pmemdup(pool, geometry, sizeof(*made));
    for (int kind = 0; kind < 3; kind++) {
        mc_shape *shape = &made->shapes[kind];
        if (shape->part_count == 0 || shape->point_count > MC_INFO_POINTS_MAX) /* only that is asked of it */
            continue;
        shape->points = apr_pmemdup(pool, shape->points, sizeof(*shape->points) * (size_t)shape->point_count);
        shape->ends = apr_pmemdup(pool, shape->ends, sizeof(*shape->ends) * (size_t)shape->part_count);
    }
    return made;
}

/* The feature, with what clients may see of its values. */
static void
keep_found_feature(kept *slot, const finding *f, const mc_feature *feature)
{
    apr_pool_clear(slot->pool);
    slot->feature = *feature;
    const char **values = apr_palloc(slot->pool, sizeof(*values) * (size_t)(f->layer.field_count + 1));
    for (int i = 0; i < f->layer.field_count; i++)
        values[i] = apr_pstrdup(slot->pool, feature->values[f->style->attribute_count + i]);
    slot->feature.values = values;
    slot->feature.query = apr_pmemdup(slot->pool, feature->query, sizeof(*feature->query));
    slot->feature.geometry = f->how->with_geometry ? copy_of(feature->geometry, slot->pool) : NULL;
}

static mc_error *
visit_info_feature(void *baton, const mc_feature *feature, mc_ctx *ctx)
{
    (void)ctx;
    finding *f = baton;
    if (!mc_geometry_hit(feature->geometry, f->point, REACH * MC_SUBPIXELS))
        return MC_OK;
    apr_pool_clear(f->scratch);
    if (!is_drawn(f, feature))
        return MC_OK;
    keep_found_feature(&f->ring[f->found++ % f->most], f, feature);
    return MC_OK;
}

/* What is looked at: the surroundings of the pixel, and all vertices. */
static void
query_of(mc_feature_query *query, const mc_info_request *wanted)
{
    const mc_extent *box = &wanted->map.box;
    double x = (box->maxx - box->minx) / wanted->map.width, y = (box->maxy - box->miny) / wanted->map.height;
    mc_vector_query(query, &wanted->map, 0);
    query->box = (mc_extent){ box->minx + (wanted->x + 0.5 - REACH) * x, box->maxy - (wanted->y + 0.5 + REACH) * y,
                              box->minx + (wanted->x + 0.5 + REACH) * x, box->maxy - (wanted->y + 0.5 - REACH) * y };
    query->pixel_grid.thinning = 0;
}

/* The attributes that the style looks at, then those that clients may see. */
static void
want_attributes(mc_feature_query *query, const mc_style *style, const char **names, int count, apr_pool_t *pool)
{
    const char **all = apr_palloc(pool, sizeof(*all) * (size_t)(style->attribute_count + count + 1));
    for (int i = 0; i < style->attribute_count; i++)
        all[i] = style->attributes[i];
    for (int i = 0; i < count; i++)
        all[style->attribute_count + i] = names[i];
    query->attributes = all;
    query->attribute_count = style->attribute_count + count;
}

static void
prepare_rules(finding *f, const mc_style *style, double scale, apr_pool_t *pool)
{
    f->style = style;
    f->rules = apr_palloc(pool, sizeof(mc_rules *) * (size_t)(style->pass_count + 1));
    for (int i = 0; i < style->pass_count; i++)
        f->rules[i] = mc_rules_create(&style->passes[i], scale, pool);
    f->placed_for = NULL;
    f->layer_pool = pool;
}

static mc_error *
find_in_layer(finding *f, const mc_vector_layer *layer, bool wrap, const mc_info_request *wanted, mc_ctx *ctx,
              apr_pool_t *pool)
{
    mc_feature_query query = { 0 };
    apr_array_header_t *fields = NULL;
    int64_t skipped = 0;
    const char **names;
    mc_projection *to_degrees = NULL;
    f->found = 0;
    query_of(&query, wanted);
    if (!mc_vector_layer_shows(layer, query.scale))
        return MC_OK;
    MC_TRY(mc_vector_fields(&fields, &names, layer, ctx, pool));
    want_attributes(&query, layer->style, names, fields->nelts, pool);
    query.ids = layer->data->has_ids || layer->style->ids;
    query.wrap = wrap;
    prepare_rules(f, layer->style, query.scale, pool);
    mc_error *unknown = mc_projection_open(&to_degrees, query.srs, "CRS:84", pool);
    f->layer = (mc_info_layer){ .name = layer->name,
                                .has_ids = layer->data->has_ids,
                                .fields = (const mc_field *)(const void *)fields->elts,
                                .field_count = fields->nelts,
                                .to_degrees = to_degrees,
                                .no_geometry = unknown != MC_OK };
    return layer->data->ops->read(layer->data, &query, visit_info_feature, f, &skipped, ctx, pool);
}

/* Appends what was found in a layer, the last first. *written: features so far. What would make the answer too long is
 * left out. */
static mc_error *
write_found(mc_buf *out, int *written, const finding *f, apr_pool_t *pool)
{
    int count = f->found < f->most ? f->found : f->most;
    for (int i = 0; i < count; i++) {
        const kept *slot = &f->ring[(f->found - 1 - i) % f->most];
        const char *text = f->how->feature(&f->layer, &slot->feature, slot->pool);
        if (out->size + strlen(text) + strlen(f->how->end) + 1 > MOST_BYTES)
            break;
        if (*written > 0)
            MC_TRY(mc_buf_append(out, f->how->between, strlen(f->how->between), pool));
        MC_TRY(mc_buf_append(out, text, strlen(text), pool));
        ++*written;
    }
    return MC_OK;
}

static const mc_info_writer *
find_info_writer(const char *format)
{
    const mc_info_writer *found = mc_info_writers;
    for (const mc_info_writer *writer = mc_info_writers; writer->mime != NULL; writer++)
        if (strcmp(writer->mime, format) == 0)
            found = writer;
    return found;
}

mc_error *
mc_vector_info(mc_buf **text, mc_source *source, const mc_info_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_vector_info");
    mc_vector_source *vector = (mc_vector_source *)source;
    finding *f = apr_pcalloc(pool, sizeof(*f));
    int written = 0;
    f->how = find_info_writer(wanted->format);
    f->most = wanted->count > 0 && wanted->count < MOST_FEATURES ? wanted->count : MOST_FEATURES;
    f->point =
        (mc_shape_point){ wanted->x * MC_SUBPIXELS + MC_SUBPIXELS / 2, wanted->y * MC_SUBPIXELS + MC_SUBPIXELS / 2 };
    for (int i = 0; i < f->most; i++)
        apr_pool_create(&f->ring[i].pool, pool);
    apr_pool_create(&f->scratch, pool);
    mc_buf *out = mc_buf_attach(mc_buf_create(1024, MOST_BYTES), pool);
    MC_TRY(mc_buf_append(out, f->how->begin, strlen(f->how->begin), pool));
    for (int i = vector->layer_count - 1; i >= 0; i--) { /* what lies on top first */
        MC_TRY(find_in_layer(f, vector->layers[i], vector->wrap, wanted, ctx, pool));
        MC_TRY(write_found(out, &written, f, pool));
    }
    MC_TRY(mc_buf_append(out, f->how->end, strlen(f->how->end), pool));
    *text = out;
    return MC_OK;
}
