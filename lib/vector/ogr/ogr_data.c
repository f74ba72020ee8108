/* See ogr_data.h: worlds, projections and geometry; the rows come from the module (ogr_reader.h). */
#include "vector/ogr/ogr_data.h"

#include <apr_strings.h>
#include <string.h>

#include "base/module.h"
#include "config/opening.h"
#include "mapcache/trace.h"
#include "vector/feature/reading.h"
#include "vector/ogr/ogr_reader.h"

enum { BETWEEN_CLEARS = 256 };

typedef struct ogr_data {
    mc_feature_data data;
    mc_ogr_config config;
} ogr_data;

/* One reading of a file. */
typedef struct ogr_reading {
    mc_feature_reading base;
    const mc_ogr_ops *ops;
    mc_ogr_file *file;
    const char *srs; /* of the data; NULL: that of the map */
    const int *fields;
    const mc_feature_query *query; /* in the CRS of the data */
    int rows;                      /* since the scratch pool was cleared */
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
    mc_geometry_clear(&r->base.geometry);
    mc_error *error = mc_wkb_read(&r->base.geometry, wkb, size, &r->query->pixel_grid, r->scratch);
    if (!mc_reading_draws(&r->base, error, r->scratch))
        return MC_OK;
    return mc_error_copy(mc_reading_visit(&r->base, id, values), r->pool);
}

/* What one of the worlds shows. */
static mc_error *
read_ogr_world(mc_feature_reading *base, apr_pool_t *pool)
{
    ogr_reading *r = (ogr_reading *)base;
    mc_feature_query own;
    MC_TRY(mc_feature_query_project(&own, base->map, r->srs, base->layer, pool));
    r->query = &own;
    mc_error *error =
        r->ops->read(r->file, &own.box, r->fields, own.attribute_count, visit_ogr_row, r, base->ctx, pool);
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
open_ogr_layer(mc_ogr_file **file, const ogr_data *layer, const mc_ogr_ops *ops, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_error *error = ops->open(file, layer->config.path, layer->config.table, ctx, pool);
    return error == MC_OK
               ? MC_OK
               : mc_error_wrap(pool, error, error->kind, "the file of layer \"%s\" cannot be read", layer->data.name);
}

static mc_error *
ogr_read(mc_feature_data *data, const mc_feature_query *query, mc_feature_visitor *visit, void *baton, int64_t *skipped,
         mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_ABOUT(ctx, "mapcache_ogr_read", data->name);
    const ogr_data *layer = (const ogr_data *)data;
    const mc_ogr_ops *ops = NULL;
    mc_ogr_file *file;
    ogr_reading r = { .base = { .layer = data->name, .visit = visit, .baton = baton, .ctx = ctx }, .pool = pool };
    MC_TRY(load_ogr_ops(&ops, pool));
    MC_TRY(open_ogr_layer(&file, layer, ops, ctx, pool));
    const mc_ogr_about *about = ops->about(file);
    int *fields = apr_palloc(pool, sizeof(*fields) * (size_t)(query->attribute_count + 1));
    for (int i = 0; i < query->attribute_count; i++)
        fields[i] = find_ogr_field(about, query->attributes[i]);
    r.ops = ops;
    r.file = file;
    r.srs = layer->config.srs != NULL ? layer->config.srs : about->srs;
    r.fields = fields;
    apr_pool_create(&r.scratch, pool);
    mc_error *error =
        mc_reading_worlds(&r.base, query, r.srs, about->has_bounds ? &about->bounds : NULL, read_ogr_world, pool);
    ops->close(file, error == MC_OK);
    apr_pool_destroy(r.scratch);
    *skipped = r.base.skipped;
    return error;
}

static mc_error *
ogr_fields(apr_array_header_t **fields, mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool)
{
    const ogr_data *layer = (const ogr_data *)data;
    const mc_ogr_ops *ops = NULL;
    mc_ogr_file *file;
    MC_TRY(load_ogr_ops(&ops, pool));
    MC_TRY(open_ogr_layer(&file, layer, ops, ctx, pool));
    const mc_ogr_about *about = ops->about(file);
    *fields = apr_array_make(pool, about->field_count + 1, sizeof(mc_field));
    for (int i = 0; i < about->field_count; i++)
        APR_ARRAY_PUSH(*fields, mc_field) =
            (mc_field){ apr_pstrdup(pool, about->fields[i].name), about->fields[i].type };
    ops->close(file, true);
    return MC_OK;
}

static mc_error *
ogr_place(mc_place *place, mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool)
{
    const ogr_data *layer = (const ogr_data *)data;
    const mc_ogr_ops *ops = NULL;
    mc_ogr_file *file;
    MC_TRY(load_ogr_ops(&ops, pool));
    MC_TRY(open_ogr_layer(&file, layer, ops, ctx, pool));
    const mc_ogr_about *about = ops->about(file);
    const char *srs = layer->config.srs != NULL ? layer->config.srs : about->srs;
    place->known = about->has_bounds && srs != NULL;
    place->box = about->bounds;
    place->srs = srs == NULL ? NULL : apr_pstrdup(pool, srs);
    ops->close(file, ctx->process != NULL && ctx->process->lasting); /* not where the process forks afterwards */
    return MC_OK;
}

static const mc_feature_ops ogr_feature_ops = {
    .type = "ogr", .read = ogr_read, .fields = ogr_fields, .place = ogr_place
};

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
    mc_error *error = asked->ops->open(&file, asked->config->path, asked->config->table, NULL, pool);
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
