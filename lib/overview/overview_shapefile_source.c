/* A shapefile as the source of overviews: its records as well-known binary. */
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>

#include "overview/overview_shapefile.h"
#include "vector/geometry/wkb_thin.h"
#include "vector/shapefile/shp_wkb.h"

mc_error *
mc_overview_find_shapes(mc_overview_shapefile *shapefile)
{
    mc_overview_job *job = &shapefile->job;
    mc_shp_reader reader;
    mc_shp_record record;
    job->bounds = (mc_extent){ HUGE_VAL, HUGE_VAL, -HUGE_VAL, -HUGE_VAL };
    mc_shp_begin(&reader, shapefile->shp, NULL, job->pool);
    reader.ctx = job->ctx;
    while (mc_shp_next(&reader, &record)) {
        const mc_extent *box = &record.box;
        if (!record.has_box || !isfinite(box->minx + box->miny + box->maxx + box->maxy))
            continue;
        job->rows++;
        job->bounds.minx = fmin(job->bounds.minx, box->minx);
        job->bounds.miny = fmin(job->bounds.miny, box->miny);
        job->bounds.maxx = fmax(job->bounds.maxx, box->maxx);
        job->bounds.maxy = fmax(job->bounds.maxy, box->maxy);
    }
    mc_shp_end(&reader);
    MC_TRY(mc_shp_check(&reader, job->pool));
    job->extent = job->bounds;
    job->pieces = shapefile->shp->count;
    job->piece_ordinals = 1;
    job->reads_fast = true;
    job->all_bytes = job->bytes = (double)(shapefile->shp->main.size + shapefile->shp->table.size);
    job->points = shapefile->shp->type % 10 == 1 || shapefile->shp->type % 10 == 8;
    return job->rows > 0 ? MC_OK : mc_overview_refuse(job, "it has no geometry");
}

static void
take_record(apr_array_header_t *rows, const mc_overview_shapefile *shapefile, const mc_shp_record *record,
            mc_dbf_reader *table, mc_wkb_buffer *wkb, apr_pool_t *pool)
{
    const int attributes = shapefile->job.attribute_count;
    wkb->size = 0;
    if (!mc_dbf_row(table, record->number) || !mc_shp_to_wkb(wkb, record))
        return;
    mc_overview_row *row = &APR_ARRAY_PUSH(rows, mc_overview_row);
    *row = (mc_overview_row){ .geometry = apr_pmemdup(pool, wkb->data, wkb->size),
                              .size = wkb->size,
                              .values = apr_palloc(pool, sizeof(char *) * (size_t)(attributes + 1)),
                              .ordinal = record->number };
    for (int i = 0; i < attributes; i++)
        row->values[i] = mc_dbf_value(table, shapefile->fields[i], pool);
}

static mc_error *
read_shapefile_records(apr_array_header_t **rows, const mc_overview_job *job, int64_t from, int64_t to,
                       apr_pool_t *pool)
{
    const mc_overview_shapefile *shapefile = (const mc_overview_shapefile *)job;
    mc_wkb_buffer wkb = { 0 };
    mc_shp_reader reader;
    mc_shp_record record;
    mc_dbf_reader table;
    MC_TRY(mc_ctx_check(job->ctx, job->pool));
    *rows = apr_array_make(pool, 4096, sizeof(mc_overview_row));
    mc_dbf_begin(&table, shapefile->shp->attributes);
    mc_shp_begin(&reader, shapefile->shp, NULL, pool);
    reader.at = (uint32_t)from;
    reader.ctx = job->ctx;
    while (reader.at < to && mc_shp_next(&reader, &record))
        take_record(*rows, shapefile, &record, &table, &wkb, pool);
    mc_shp_end(&reader);
    mc_error *error = mc_dbf_check(&table, job->pool);
    mc_dbf_end(&table);
    const bool failed = wkb.failed;
    free(wkb.data);
    MC_TRY(error);
    return failed ? mc_error_create(job->pool, MC_ERR_UNAVAILABLE, "there is no memory for a shape")
                  : mc_shp_check(&reader, job->pool);
}

/* As servers draw it without overviews. */
static mc_error *
draw_shapefile(const mc_overview_job *job, const mc_feature_query *query, mc_feature_visitor *visit, void *baton,
               int64_t *skipped, apr_pool_t *pool)
{
    mc_feature_query all = *query;
    all.style = 0;
    return job->layer->data->ops->read(job->layer->data, &all, visit, baton, skipped, job->ctx, pool);
}

const mc_overview_source_ops mc_overview_shapefile_source = { .read = read_shapefile_records, .draw = draw_shapefile };
