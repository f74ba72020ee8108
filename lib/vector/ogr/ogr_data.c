/* See ogr_data.h: worlds, projections and geometry; the rows come from the module (ogr_reader.h). */
#include "vector/ogr/ogr_data.h"

#include <apr_strings.h>
#include <string.h>

#include "base/module.h"
#include "config/opening.h"
#include "mapcache/trace.h"
#include "vector/feature/wrap.h"
#include "vector/ogr/ogr_reader.h"

enum { BETWEEN_CLEARS = 256 };

typedef struct ogr_data {
    mc_feature_data data;
    mc_ogr_config config;
} ogr_data;

/* One reading of a file. */
typedef struct ogr_reading {
    const mc_feature_query *query, *map; /* in the CRS of the data, and in its own */
    const mc_wrap *plan;
    int world;
    mc_geometry geometry;
    int64_t skipped;
    int rows; /* since the scratch pool was cleared */
    mc_feature_visitor *visit;
    void *baton;
    mc_ctx *ctx;
    apr_pool_t *scratch, *pool;
} ogr_reading;

static mc_error *
load_ogr_ops(const mc_ogr_ops **ops, apr_pool_t *pool)
{
#ifdef MC_HAVE_GDAL
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, "gdal", MC_OGR_SYMBOL, pool));
    *ops = symbol;
    return MC_OK;
#else
    (void)ops;
    return mc_error_create(pool, MC_ERR_NOT_BUILT, "this build has no type \"ogr\"");
#endif
}

static mc_error *
visit_ogr_row(void *baton, int64_t id, const void *wkb, size_t size, const char *const *values)
{
    ogr_reading *r = baton;
    if (++r->rows == BETWEEN_CLEARS) {
        apr_pool_clear(r->scratch);
        r->rows = 0;
    }
    mc_geometry_clear(&r->geometry);
    mc_error *error = mc_wkb_read(&r->geometry, wkb, size, &r->query->pixel_grid, r->scratch);
    if (error != MC_OK) {
        if (r->skipped++ == 0)
            mc_log_error(r->ctx, MC_LOG_WARN, error);
        return MC_OK;
    }
    if (mc_geometry_is_empty(&r->geometry) || !mc_wrap_holds(r->plan, r->map, r->world, &r->geometry))
        return MC_OK;
    const mc_feature feature = { .id = id, .geometry = &r->geometry, .values = values, .query = r->map };
    return mc_error_copy(r->visit(r->baton, &feature, r->ctx), r->pool);
}

/* What one of the worlds shows. */
static mc_error *
read_ogr_world(ogr_reading *r, const ogr_data *layer, const mc_ogr_ops *ops, mc_ogr_file *file, const char *srs,
               const int *fields)
{
    mc_feature_query own;
    MC_TRY(mc_feature_query_project(&own, r->map, srs, layer->data.name, r->pool));
    r->query = &own;
    mc_error *error = ops->read(file, &own.box, fields, r->map->attribute_count, visit_ogr_row, r, r->ctx, r->pool);
    r->query = NULL;
    return error;
}

static int
find_ogr_field(const mc_ogr_about *about, const char *name)
{
    for (int i = 0; i < about->field_count; i++)
        if (strcmp(about->fields[i].name, name) == 0)
            return i;
    return -1;
}

static mc_error *
read_ogr_file(const ogr_data *layer, const mc_ogr_ops *ops, mc_ogr_file *file, const mc_feature_query *query,
              ogr_reading *r)
{
    mc_wrap plan;
    mc_error *error = MC_OK;
    const mc_ogr_about *about = ops->about(file);
    const char *srs = layer->config.srs != NULL ? layer->config.srs : about->srs;
    int *fields = apr_palloc(r->pool, sizeof(*fields) * (size_t)(query->attribute_count + 1));
    for (int i = 0; i < query->attribute_count; i++)
        fields[i] = find_ogr_field(about, query->attributes[i]);
    mc_wrap_plan(&plan, query, srs, about->has_bounds ? &about->bounds : NULL);
    r->plan = &plan;
    for (r->world = plan.first; r->world <= plan.last && error == MC_OK; r->world++) {
        r->map = mc_wrap_query(&plan, query, r->world, r->pool);
        if (r->map != NULL)
            error = read_ogr_world(r, layer, ops, file, srs, fields);
    }
    r->plan = NULL;
    return error;
}

static mc_error *
open_ogr_layer(mc_ogr_file **file, const ogr_data *layer, const mc_ogr_ops *ops, apr_pool_t *pool)
{
    mc_error *error = ops->open(file, layer->config.path, layer->config.table, pool);
    return error == MC_OK
               ? MC_OK
               : mc_error_wrap(pool, error, error->kind, "the file of layer \"%s\" cannot be read", layer->data.name);
}

static mc_error *
ogr_read(mc_feature_data *data, const mc_feature_query *query, mc_feature_visitor *visit, void *baton, int64_t *skipped,
         mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_ogr_read");
    const ogr_data *layer = (const ogr_data *)data;
    const mc_ogr_ops *ops = NULL;
    mc_ogr_file *file;
    ogr_reading r = { .visit = visit, .baton = baton, .ctx = ctx, .pool = pool };
    MC_TRY(load_ogr_ops(&ops, pool));
    MC_TRY(open_ogr_layer(&file, layer, ops, pool));
    apr_pool_create(&r.scratch, pool);
    mc_error *error = read_ogr_file(layer, ops, file, query, &r);
    ops->close(file, error == MC_OK);
    mc_geometry_free(&r.geometry);
    apr_pool_destroy(r.scratch);
    *skipped = r.skipped;
    return error;
}

static mc_error *
ogr_fields(apr_array_header_t **fields, mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool)
{
    const ogr_data *layer = (const ogr_data *)data;
    const mc_ogr_ops *ops = NULL;
    mc_ogr_file *file;
    (void)ctx;
    MC_TRY(load_ogr_ops(&ops, pool));
    MC_TRY(open_ogr_layer(&file, layer, ops, pool));
    const mc_ogr_about *about = ops->about(file);
    *fields = apr_array_make(pool, about->field_count + 1, sizeof(mc_field));
    for (int i = 0; i < about->field_count; i++)
        APR_ARRAY_PUSH(*fields, mc_field) =
            (mc_field){ apr_pstrdup(pool, about->fields[i].name), about->fields[i].type };
    ops->close(file, true);
    return MC_OK;
}

static const mc_feature_ops ogr_feature_ops = { "ogr", ogr_read, ogr_fields };

mc_feature_data *
mc_ogr_create(const mc_ogr_config *config, const char *layer, apr_pool_t *pool)
{
    ogr_data *made = apr_pcalloc(pool, sizeof(*made));
    made->data = (mc_feature_data){ &ogr_feature_ops, layer, true, NULL };
    made->config = *config;
    return &made->data;
}

typedef struct ogr_question {
    const mc_ogr_ops *ops;
    const mc_ogr_config *config;
    const apr_array_header_t *names;
} ogr_question;

/* In a child process. */
static void
look_at_ogr_file(mc_findings *findings, const void *data, apr_pool_t *pool)
{
    const ogr_question *asked = data;
    mc_ogr_file *file = NULL;
    mc_error *error = asked->ops->open(&file, asked->config->path, asked->config->table, pool);
    if (error != MC_OK) {
        mc_findings_refuse(findings, mc_error_chain(error, pool));
        return;
    }
    const mc_ogr_about *about = asked->ops->about(file);
    if (!about->indexed && !about->kept)
        mc_findings_warn(findings,
                         apr_psprintf(pool,
                                      "the %s has no spatial index: each map looks at all features (ogr2ogr -f "
                                      "FlatGeobuf makes a file that has one)",
                                      about->driver));
    if (about->srs == NULL && asked->config->srs == NULL)
        mc_findings_warn(
            findings, "neither the file nor <srs> says which CRS the data is in: it is taken to be that of each map");
    for (int i = 0; i < asked->names->nelts; i++) {
        const char *name = APR_ARRAY_IDX(asked->names, i, const char *);
        if (find_ogr_field(about, name) >= 0)
            continue;
        mc_findings_warn(
            findings,
            apr_psprintf(pool, "the style or <attributes> refers to the attribute %s, which the file does not have",
                         mc_config_quote(name, pool)));
        break;
    }
    asked->ops->close(file, false);
}

void
mc_ogr_inspect(mc_diagnostics *diagnostics, const mc_node *at, const mc_ogr_config *config, const char *layer,
               const apr_array_header_t *names, apr_pool_t *pool)
{
    ogr_question asked = { .config = config, .names = names };
    const char *subject = apr_psprintf(pool, "layer \"%s\"", layer);
    mc_error *error = load_ogr_ops(&asked.ops, pool);
    if (error != MC_OK) {
        mc_complain(diagnostics, MC_WARNING, at, "%s: %s", subject, mc_error_chain(error, pool));
        return;
    }
    asked.ops->start();
    const mc_opening opening = { look_at_ogr_file, &asked, subject, "the file", MC_WARNING };
    mc_config_look(diagnostics, at, &opening, pool);
}
