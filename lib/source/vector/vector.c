/* Drawing vector layers: see vector.h. */
#include "source/vector/vector.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "base/metrics.h"
#include "base/semaphore.h"
#include "base/workers.h"
#include "draw/label/label.h"
#include "draw/paint/parallel_painter.h"
#include "draw/paint/sieve.h"
#include "draw/sld/sld.h"
#include "mapcache/trace.h"
#include "source/vector/vector_counters.h"
#include "vector/crs/projection.h"
#include "vector/mvt/mvt.h"

/* From so many processors on, readers hand over packets that workers decode. With fewer, reading, painting and the
 * database keep them busy already. */
enum { PACKETS_PROCESSORS = 4 };

/* As <thinning> names them, in 1/256 pixel. */
static const int thinnings[] = { 0, MC_SUBPIXELS / 4, MC_SUBPIXELS / 2, MC_SUBPIXELS };

int
mc_vector_layer_thinning(const mc_vector_layer *layer)
{
    return thinnings[layer->thinning];
}

/* The maps of one or more sources, drawn over each other. */
typedef struct vector_stack {
    const mc_vector_source *const *sources; /* bottom first */
    const mc_render *wanted;                /* a map of each, all of one box and size */
    int count;
} vector_stack;

/* labels: NULL where no layer of the map has any. `paints`: of the canvas' root pool. */
static mc_error *
draw_layer(mc_canvas *canvas, mc_labels *labels, const mc_vector_layer *layer, bool wrap, const mc_render *wanted,
           mc_ctx *ctx, apr_pool_t *paints, apr_pool_t *pool)
{
    mc_feature_query query = { .attributes = layer->style->attributes,
                               .attribute_count = layer->style->attribute_count,
                               .ids = layer->style->ids,
                               .wrap = wrap };
    mc_painter *painter;
    int64_t skipped = 0;
    mc_vector_query(&query, wanted, 0);
    if (!mc_vector_layer_shows(layer, query.scale))
        return MC_OK;
    mc_vector_query(&query, wanted, mc_painter_margin(layer->style, query.scale) * mc_query_density(&query));
    query.pixel_grid.thinning = mc_vector_layer_thinning(layer);
    query.pixel_grid.keep_small = true;
    if (query.pixel_grid.thinning == MC_SIEVE_THINNING) /* others are not what overviews are made for */
        query.style = layer->style->digest;
    MC_TRY(mc_painter_create_on(&painter, layer->style, canvas, &query, false, paints));
    if (labels != NULL) {
        mc_labels_next_layer(labels, query.scale);
        mc_painter_set_labels(painter, mc_labels_visit, labels);
        mc_painter_set_obstacles(painter, mc_labels_obstacles(labels));
    }
    mc_parallel_painter *parallel = mc_parallel_painter_create(painter, ctx, pool);
    if (mc_processors() >= PACKETS_PROCESSORS)
        query.taker = mc_parallel_painter_taker(parallel);
    mc_error *error =
        layer->data->ops->read(layer->data, &query, mc_parallel_painter_visit, parallel, &skipped, ctx, pool);
    MC_TRY(mc_parallel_painter_end(parallel, error));
    return mc_painter_finish(painter, ctx);
}

/* Pixels of images whose palette is worth a look for colours that do not occur: tiles. */
enum { TRIMMED = 1 << 18 };

/* What goes out as it is if it is still one of indexed colours; else pixels. */
static mc_error *
finish_vector_map(mc_rendered *map, mc_canvas *canvas, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_indexed *indexed;
    MC_TRY(mc_canvas_indexed(&indexed, canvas));
    if (indexed == NULL || wanted->format == NULL || !mc_indexed_suits(wanted->format)) {
        MC_TRY(mc_canvas_pixels(&map->pixels, canvas));
        mc_pixels_attach(mc_pixels_ref(map->pixels), pool);
        return MC_OK;
    }
    if (canvas->palette != NULL && wanted->width * wanted->height <= TRIMMED)
        mc_indexed_trim(indexed);
    if (wanted->background != NULL)
        mc_indexed_over(indexed, wanted->background);
    map->final = true;
    return mc_indexed_encode(&map->data, wanted->format, indexed, MC_ON_THE_FLY, ctx, pool);
}

/* Decided by the styles alone, so that all tiles are painted alike. A palette of inks takes some milliseconds to make:
 * a plain CGI paints on pixels instead. */
static mc_error *
make_canvas(mc_canvas **canvas, const vector_stack *stack, const mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_render *wanted = stack->wanted;
    bool brief = ctx->process != NULL && ctx->process->brief;
    mc_painter_needs needs = { .merged = true, .suits = true };
    mc_color ground = stack->sources[0]->ground;
    needs.suits = ground.alpha == 0 || mc_inks_add(&needs.inks, ground);
    for (int s = 0; s < stack->count; s++) {
        mc_feature_query query = { 0 };
        mc_vector_query(&query, &wanted[s], 0);
        for (int i = 0; i < stack->sources[s]->layer_count; i++)
            mc_painter_needs_add(&needs, stack->sources[s]->layers[i]->style, query.scale);
    }
    mc_ink_palette *palette = needs.suits && !needs.merged && !brief ? mc_ink_palette_get(&needs.inks, pool) : NULL;
    if (palette != NULL)
        return mc_canvas_create_with_palette(canvas, wanted->width, wanted->height, palette, pool);
    bool indexed = wanted->format != NULL && mc_indexed_suits(wanted->format);
    *canvas = mc_canvas_create(wanted->width, wanted->height, indexed, pool);
    return MC_OK;
}

static bool
stack_has_labels(const vector_stack *stack)
{
    for (int s = 0; s < stack->count; s++) {
        mc_feature_query query = { 0 };
        mc_vector_query(&query, &stack->wanted[s], 0);
        for (int i = 0; i < stack->sources[s]->layer_count; i++)
            if (mc_painter_labels(stack->sources[s]->layers[i]->style, query.scale))
                return true;
    }
    return false;
}

static mc_error *
draw_on(mc_rendered *map, mc_canvas *canvas, const vector_stack *stack, mc_ctx *ctx, apr_pool_t *scratch,
        apr_pool_t *pool)
{
    apr_pool_t *layers, *paints;
    apr_pool_create(&layers, pool);
    apr_pool_create(&paints, scratch);
    mc_labels *labels = stack_has_labels(stack) ? mc_labels_create(canvas, scratch) : NULL;
    if (labels != NULL && stack->wanted->whole)
        mc_labels_allow_partials(labels);
    if (labels != NULL && stack->wanted->density > 0)
        mc_labels_set_density(labels, stack->wanted->density);
    mc_canvas_set_ground(canvas, stack->sources[0]->ground);
    for (int s = 0; s < stack->count; s++) {
        const mc_vector_source *vector = stack->sources[s];
        for (int i = 0; i < vector->layer_count; i++) {
            apr_pool_clear(layers);
            apr_pool_clear(paints);
            MC_TRY(mc_error_copy(
                draw_layer(canvas, labels, vector->layers[i], vector->wrap, &stack->wanted[s], ctx, paints, layers),
                pool));
        }
    }
    apr_pool_destroy(layers);
    if (labels != NULL)
        MC_TRY(mc_labels_finish(labels, ctx));
    return finish_vector_map(map, canvas, stack->wanted, ctx, pool);
}

static mc_error *
draw_vector_map(mc_rendered *map, const vector_stack *stack, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_pool_t *scratch = mc_task_pool_acquire(); /* a worker may take from it while this thread reads */
    mc_canvas *canvas;
    mc_error *error = make_canvas(&canvas, stack, ctx, scratch);
    if (error == MC_OK)
        error = draw_on(map, canvas, stack, ctx, scratch, pool);
    error = mc_error_copy(error, pool);
    mc_task_pool_release(scratch);
    return error;
}

/* Drawing needs processors and megabytes: as many maps at a time as there are processors, the others in the order in
 * which they came, so that all wait alike. */
mc_error *
mc_vector_render_stack(mc_rendered *map, mc_source *const *sources, const mc_render *wanted, int count, mc_ctx *ctx,
                       apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_vector_render");
    const vector_stack stack = { (const mc_vector_source *const *)sources, wanted, count };
    mc_count(ctx->process == NULL ? NULL : ctx->process->metrics, MC_COUNT_vector_maps_total, 1);
    MC_TRY(mc_semaphore_acquire(ctx->process == NULL ? NULL : ctx->process->drawing, ctx, pool));
    struct mc_workers *workers = ctx->process == NULL ? NULL : ctx->process->workers;
    mc_workers_enter(workers);
    mc_error *error = wanted->vector_tile != NULL ? mc_vector_tile(map, stack.sources[0], wanted, ctx, pool)
                                                  : draw_vector_map(map, &stack, ctx, pool);
    mc_workers_leave(workers);
    mc_semaphore_release(ctx);
    return error;
}

mc_error *
mc_vector_render(mc_rendered *map, mc_source *source, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    return mc_vector_render_stack(map, &source, wanted, 1, ctx, pool);
}

void
mc_vector_legend(mc_legend *legend, mc_source *source)
{
    const mc_vector_source *vector = (const mc_vector_source *)source;
    for (int i = vector->layer_count - 1; i >= 0; i--) /* what lies on top first */
        mc_legend_add(legend, vector->layers[i]->name, vector->layers[i]->style);
}

apr_array_header_t *
mc_vector_styles(mc_source *source, apr_pool_t *pool)
{
    const mc_vector_source *vector = (const mc_vector_source *)source;
    apr_array_header_t *styles = apr_array_make(pool, 4, sizeof(mc_source_style));
    for (int i = 0; i < vector->layer_count; i++) {
        const mc_vector_layer *layer = vector->layers[i];
        bool known = layer->style_file == NULL;
        for (int j = 0; j < styles->nelts && !known; j++)
            known = strcmp(APR_ARRAY_IDX(styles, j, mc_source_style).file, layer->style_file) == 0;
        if (!known)
            APR_ARRAY_PUSH(styles, mc_source_style) = (mc_source_style){ layer->name, layer->style_file };
    }
    return styles;
}

mc_error *
mc_vector_place(mc_place *place, mc_source *source, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_vector_source *vector = (const mc_vector_source *)source;
    mc_extent all = { HUGE_VAL, HUGE_VAL, -HUGE_VAL, -HUGE_VAL };
    for (int i = 0; i < vector->layer_count; i++) {
        mc_projection *projection;
        mc_place own = { 0 };
        mc_feature_data *data = vector->layers[i]->data;
        MC_TRY(data->ops->place(&own, data, ctx, pool));
        if (!own.known)
            return MC_OK;
        MC_TRY(mc_projection_open(&projection, own.srs, "CRS:84", pool));
        if (projection != NULL && !mc_projection_box(&own.box, projection, false))
            return MC_OK;
        all = mc_extent_union(&all, &own.box);
    }
    *place = (mc_place){ vector->layer_count > 0, "CRS:84", all };
    return MC_OK;
}

/* Names with commas between them, without the blanks around them. */
static apr_array_header_t *
split_names(const char *list, apr_pool_t *pool)
{
    apr_array_header_t *names = apr_array_make(pool, 8, sizeof(const char *));
    char *rest = apr_pstrdup(pool, list);
    for (char *name = strsep(&rest, ","); name != NULL; name = strsep(&rest, ",")) {
        name += strspn(name, " \t\r\n");
        for (size_t size = strlen(name); size > 0 && strchr(" \t\r\n", name[size - 1]) != NULL; size--)
            name[size - 1] = '\0';
        if (*name != '\0')
            APR_ARRAY_PUSH(names, const char *) = name;
    }
    return names;
}

bool
mc_vector_layer_finish(mc_vector_layer *layer, const mc_node *node, mc_build *build)
{
    const mc_node *at = mc_node_child(node, "style");
    if (layer->attribute_list != NULL)
        layer->shown = split_names(layer->attribute_list, build->pool);
    layer->style = layer->style_file == NULL ? mc_vector_default_style(layer, build)
                                             : mc_style_read(layer->style_file, layer->style_name, at, build);
    return layer->style != NULL;
}

/* Layers of a vector tile are told apart by their names (MVT 2.1, 4.1). */
static bool
repeated_name(const mc_vector_source *source)
{
    for (int i = 0; i < source->layer_count; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(source->layers[i]->name, source->layers[j]->name) == 0)
                return true;
    return false;
}

static const mc_key shared_layer_keys[] = {
    MC_KEY_TEXT("@name", offsetof(mc_vector_layer, name), "", .flags = MC_KEY_REQUIRED),
    MC_KEY_TEXT("@of", offsetof(mc_vector_layer, shared_of), "", .flags = MC_KEY_REQUIRED),
    MC_KEY_END,
};

/* The layer of another source that the element names. NULL after a complaint. */
static mc_vector_layer *
find_shared_layer(const mc_node *node, mc_build *build)
{
    mc_vector_layer named = { 0 };
    if (!mc_config_read(&named, node, shared_layer_keys, build->diagnostics))
        return NULL;
    const mc_source *source = apr_hash_get(build->sources, named.shared_of, APR_HASH_KEY_STRING);
    if (source == NULL || source->ops->render != mc_vector_render) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "layer \"%s\" is of source \"%s\", which %s", named.name,
                    named.shared_of, source == NULL ? "is not declared before it" : "has no layers of vector data");
        return NULL;
    }
    const mc_vector_source *vector = (const mc_vector_source *)source;
    for (int i = 0; i < vector->layer_count; i++)
        if (strcmp(vector->layers[i]->name, named.name) == 0)
            return vector->layers[i];
    mc_complain(build->diagnostics, MC_REFUSED, node, "source \"%s\" has no layer \"%s\"", named.shared_of, named.name);
    return NULL;
}

/* Reads the <layer>s, and what they tell of the source. False after a complaint. */
static bool
read_vector_layers(mc_vector_source *source,
                   mc_vector_layer *(*layer_from_config)(const mc_node *node, mc_build *build), mc_build *build)
{
    bool features = false;
    source->layers = apr_pcalloc(build->pool, sizeof(*source->layers) * (size_t)(source->nodes->nelts + 1));
    for (int i = 0; i < source->nodes->nelts; i++) {
        const mc_node *child = APR_ARRAY_IDX(source->nodes, i, const mc_node *);
        mc_vector_layer *layer =
            mc_node_attr(child, "of") != NULL ? find_shared_layer(child, build) : layer_from_config(child, build);
        if (layer == NULL)
            return false;
        source->layers[source->layer_count++] = layer;
        if (layer->data->ops->tiles == NULL)
            features = true;
        else
            source->base.source.no_images =
                apr_psprintf(build->pool, "its layer \"%s\" is made of vector tiles", layer->name);
    }
    if (features)
        source->base.source.info_formats = mc_vector_info_formats(build->pool);
    return true;
}

mc_source *
mc_vector_from_config(const mc_source_ops *ops,
                      mc_vector_layer *(*layer_from_config)(const mc_node *node, mc_build *build), const mc_node *node,
                      mc_build *build)
{
    mc_vector_source *source = apr_pcalloc(build->pool, sizeof(*source));
    if (!mc_source_read(&source->base, ops, node, build))
        return NULL;
    if (source->background != NULL && !mc_color_parse(&source->ground, source->background)) {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "background"), "%s is not #RRGGBB",
                    mc_config_quote(source->background, build->pool));
        return NULL;
    }
    source->ground.alpha = source->background == NULL ? 0 : 255;
    source->base.source.needs_format = true;
    source->base.source.any_srs = true;
    source->base.source.stacks_over = source->background == NULL;
    if (!read_vector_layers(source, layer_from_config, build))
        return NULL;
    source->base.source.no_vector_tiles = source->layer_count > MC_MVT_LAYERS ? "it has more than 256 layers"
                                          : repeated_name(source)             ? "two of its layers have the same name"
                                                                              : NULL;
    return &source->base.source;
}
