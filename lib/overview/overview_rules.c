/* What the levels of a job are for: the maps of a tileset, or its vector tiles. */
#include <apr_strings.h>

#include "draw/paint/sieve.h"
#include "overview/overview_tiles.h"

/* The grid of the tileset that is in the CRS of the source. */
static const mc_grid *
find_grid(const mc_tileset *tileset, int srid)
{
    for (int i = 0; i < tileset->link_count; i++)
        if (mc_crs_epsg(tileset->links[i]->grid->srs, NULL) == srid)
            return tileset->links[i]->grid;
    return NULL;
}

static mc_error *
set_tile_rules(mc_overview_job *job, const mc_format *format)
{
    struct mc_overview_tiles *tiles = apr_pcalloc(job->pool, sizeof(*tiles));
    tiles->options = &format->mvt;
    MC_TRY(mc_vector_tile_rules_of(&tiles->rules, job->layer, &format->mvt, job->grid, job->ctx, job->pool));
    job->tiles = tiles;
    job->attributes = tiles->rules.names;
    job->attribute_count = tiles->rules.fields->nelts;
    job->ids = tiles->rules.ids;
    job->digest = tiles->rules.digest;
    return MC_OK;
}

mc_error *
mc_overview_set_rules(mc_overview_job *job, const mc_tileset *tileset)
{
    const mc_style *style = job->layer->style;
    job->grid = find_grid(tileset, job->srid);
    if (job->grid == NULL)
        return mc_overview_refuse(
            job, apr_psprintf(job->pool, "its SRID is %d, and the tileset has no grid of that CRS", job->srid));
    if (tileset->format != NULL && tileset->format->type == MC_FORMAT_MVT)
        return set_tile_rules(job, tileset->format);
    if (mc_vector_layer_thinning(job->layer) != MC_SIEVE_THINNING)
        return mc_overview_refuse(job, "overviews need the <thinning> quarter");
    job->attributes = style->attributes;
    job->attribute_count = style->attribute_count;
    job->digest = style->digest;
    return MC_OK;
}
