/* Tile matrix sets and bounding boxes of the WMTS capabilities document (OGC 07-057r7, table 9 and annex E). */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "grid/earth.h"
#include "service/wmts/wmts.h"

#define GOOGLE_SCALE 559082264.0287178
#define GOOGLE_LEVELS 19
#define GOOGLE_SET "urn:ogc:def:wkss:OGC:1.0:GoogleMapsCompatible"

static double
scale_denominator(const mc_grid *grid, int z)
{
    return grid->levels[z].resolution * grid->metres_per_unit / MC_PIXEL_METRES;
}

/* The upper left corner of the matrix, which for grids counted from the bottom need not be the extent's. */
static double
matrix_top(const mc_grid *grid, int z)
{
    const mc_level *level = &grid->levels[z];
    if (grid->origin == MC_TOP_LEFT || grid->origin == MC_TOP_RIGHT)
        return grid->extent.maxy;
    return grid->extent.miny + level->rows * level->resolution * grid->tile_height;
}

/* Annex E.4 of the standard: the scale set may be claimed only with these very scales from the first one on. */
static bool
is_google_set(const mc_grid *grid)
{
    const char *claimed = mc_meta(grid->metadata, "WellKnownScaleSet");
    if (claimed == NULL || strcmp(claimed, GOOGLE_SET) != 0 || grid->epsg != 3857)
        return false;
    if (grid->level_count < GOOGLE_LEVELS || grid->tile_width != 256 || grid->tile_height != 256)
        return false;
    for (int z = 0; z < GOOGLE_LEVELS; z++)
        if (fabs(scale_denominator(grid, z) / (GOOGLE_SCALE / (double)(1 << z)) - 1) > 1e-8)
            return false;
    return true;
}

static const char *
crs_urn(const mc_grid *grid, bool google, apr_pool_t *pool)
{
    bool xy_order = false;
    if (google)
        return "urn:ogc:def:crs:EPSG:6.18:3:3857";
    if (mc_crs_epsg(grid->srs, &xy_order) == 4326 && xy_order)
        return "urn:ogc:def:crs:OGC:1.3:CRS84";
    return grid->epsg > 0 ? apr_psprintf(pool, "urn:ogc:def:crs:EPSG:6.3:%d", grid->epsg) : grid->srs;
}

static void
write_corner(mc_xml *xml, const char *name, const mc_grid *grid, double x, double y)
{
    mc_xml_elementf(xml, name, "%f %f", grid->axes_swapped ? y : x, grid->axes_swapped ? x : y);
}

void
mc_wmts_write_bounding_box(mc_xml *xml, const mc_grid *grid, const mc_extent *extent, apr_pool_t *pool)
{
    mc_xml_open(xml, "ows:BoundingBox");
    mc_xml_attr(xml, "crs", crs_urn(grid, is_google_set(grid), pool));
    write_corner(xml, "ows:LowerCorner", grid, extent->minx, extent->miny);
    write_corner(xml, "ows:UpperCorner", grid, extent->maxx, extent->maxy);
    mc_xml_close(xml);
}

static void
write_matrix(mc_xml *xml, const mc_grid *grid, int z)
{
    mc_xml_open(xml, "TileMatrix");
    mc_xml_elementf(xml, "ows:Identifier", "%d", z);
    mc_xml_elementf(xml, "ScaleDenominator", "%.20f", scale_denominator(grid, z));
    write_corner(xml, "TopLeftCorner", grid, grid->extent.minx, matrix_top(grid, z));
    mc_xml_elementf(xml, "TileWidth", "%d", grid->tile_width);
    mc_xml_elementf(xml, "TileHeight", "%d", grid->tile_height);
    mc_xml_elementf(xml, "MatrixWidth", "%d", grid->levels[z].columns);
    mc_xml_elementf(xml, "MatrixHeight", "%d", grid->levels[z].rows);
    mc_xml_close(xml);
}

static void
write_matrix_set(mc_xml *xml, const mc_grid *grid, apr_pool_t *pool)
{
    bool google = is_google_set(grid);
    const char *crs = crs_urn(grid, google, pool);
    mc_xml_open(xml, "TileMatrixSet");
    mc_xml_element(xml, "ows:Title", mc_meta(grid->metadata, "title"));
    mc_xml_element(xml, "ows:Identifier", grid->name);
    mc_wmts_write_bounding_box(xml, grid, &grid->extent, pool);
    mc_xml_element(xml, "ows:SupportedCRS", crs);
    if (google)
        mc_xml_element(xml, "WellKnownScaleSet", GOOGLE_SET);
    for (int z = 0; z < grid->level_count; z++)
        write_matrix(xml, grid, z);
    mc_xml_close(xml);
}

static bool
grid_in_use(const mc_config *config, const mc_grid *grid)
{
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, mc_tileset *);
        for (int j = 0; j < tileset->link_count; j++)
            if (tileset->links[j]->grid == grid)
                return true;
    }
    return false;
}

/* Those of fine screens, each once. */
static void
write_dense_matrix_sets(mc_xml *xml, const mc_config *config, apr_pool_t *pool)
{
    apr_hash_t *written = apr_hash_make(pool);
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, mc_tileset *);
        for (int j = 0; j < tileset->dense_link_count; j++) {
            const mc_grid *grid = tileset->dense_links[j]->grid;
            if (apr_hash_get(written, grid->name, APR_HASH_KEY_STRING) == NULL)
                write_matrix_set(xml, grid, pool);
            apr_hash_set(written, grid->name, APR_HASH_KEY_STRING, grid);
        }
    }
}

void
mc_wmts_write_matrix_sets(mc_xml *xml, const mc_config *config, apr_pool_t *pool)
{
    for (int i = 0; i < config->grids->nelts; i++) {
        const mc_grid *grid = APR_ARRAY_IDX(config->grids, i, mc_grid *);
        if (grid_in_use(config, grid))
            write_matrix_set(xml, grid, pool);
    }
    write_dense_matrix_sets(xml, config, pool);
}
