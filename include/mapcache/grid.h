/*
 * Grids (tile matrix sets): a CRS, an extent and a list of resolutions. Coordinates are always x, y (lon, lat) in units
 * of the CRS; the axis order of the CRS matters only where a protocol asks for it (mc_crs_axes_swapped).
 */
#ifndef MAPCACHE_GRID_H
#define MAPCACHE_GRID_H

#include "mapcache/config.h"

typedef struct mc_extent {
    double minx, miny, maxx, maxy;
} mc_extent;

/* Where data lie, as far as they say it. */
typedef struct mc_place {
    bool known;
    const char *srs; /* of the box: "EPSG:2056", "CRS:84" or WKT; x (longitude) first */
    mc_extent box;
} mc_place;

typedef enum mc_origin { MC_BOTTOM_LEFT, MC_TOP_LEFT, MC_TOP_RIGHT, MC_BOTTOM_RIGHT } mc_origin;

typedef struct mc_level {
    double resolution; /* CRS units per pixel */
    int columns, rows; /* tiles of the whole grid at this level (docs/reference/configuration.md 2) */
} mc_level;

typedef struct mc_grid {
    const char *name;
    const char *srs;                   /* as configured, sent to origins */
    const apr_array_header_t *aliases; /* of const char * */
    mc_extent extent;
    double metres_per_unit;
    mc_origin origin;            /* where tile 0,0 lies: x and y of a tile grow away from it */
    int tile_width, tile_height; /* pixels */
    int density; /* of a variant for fine screens (mc_grid_link_dense): pixels for a pixel of a style; 0: none */
    int level_count;
    const mc_level *levels; /* coarsest first */
    mc_metadata *metadata;
    uint64_t definition; /* hash of what decides which place a tile shows: everything but names and metadata; 0: none */
    int epsg;            /* code of the srs, 0 if it has none */
    bool axes_swapped;   /* EPSG says northing or latitude first */
} mc_grid;

/* A half-open range of tiles. */
typedef struct mc_tile_range {
    int minx, miny, maxx, maxy;
} mc_tile_range;

/* docs/reference/configuration.md 6.2. */
typedef struct mc_rule {
    bool present;
    uint8_t hidden_bgra[4]; /* premultiplied */
    int extent_count;
    mc_extent *extents;
} mc_rule;

typedef struct mc_ruleset {
    const char *name;
    int level_count;
    mc_rule *levels; /* by zoom level; shorter than the grid's list where nothing is ruled */
} mc_ruleset;

typedef enum mc_zoom_strategy { MC_REASSEMBLE, MC_PROXY } mc_zoom_strategy;

/* A grid as a tileset uses it (docs/reference/configuration.md 6.1). */
typedef struct mc_grid_link {
    const mc_grid *grid;
    mc_extent extent; /* restricted, or the grid's */
    bool restricted;
    int tolerance;        /* tiles */
    int minzoom, maxzoom; /* inclusive */
    int max_cached_zoom;  /* levels above it are synthesised; -1: none */
    mc_zoom_strategy strategy;
    const mc_tile_range *limits; /* of each grid level, clipped to it; tolerance included */
    const mc_ruleset *ruleset;
    struct mc_grid_link *intermediate; /* the hidden grid half a level between, or NULL */
} mc_grid_link;

/* `units`, `srs`, `extent`, ... of a <grid> element; complaints go to build->diagnostics, NULL then. Registers nothing.
 */
mc_grid *mc_grid_from_config(const mc_node *node, mc_build *build);
mc_ruleset *mc_ruleset_from_config(const mc_node *node, mc_build *build);
mc_grid_link *mc_grid_link_from_config(const mc_node *node, mc_build *build);

/* The same tiles of `density` times as many pixels a side, on a grid of its own, NAME@2x. NULL where a grid of that
 * name is configured. */
mc_grid_link *mc_grid_link_dense(const mc_grid_link *link, int density, mc_build *build);

/* Puts WGS84, GoogleMapsCompatible and g into `grids` (docs/reference/configuration.md 2.1). */
void mc_grid_builtins(apr_hash_t *grids, apr_pool_t *pool);

/* Extent of a tile; the numbers may lie outside the grid's extent at its far edges. */
mc_extent mc_grid_tile_extent(const mc_grid *grid, int z, int x, int y);

/* Extent of a range of tiles that is not empty. */
mc_extent mc_grid_range_extent(const mc_grid *grid, int z, const mc_tile_range *range);

/* Whether `srs` is the grid's or an alias, any case. */
bool mc_grid_has_srs(const mc_grid *grid, const char *srs);

/* MC_ERR_TILE_OUT_OF_RANGE (locator TileRow/TileCol/TileMatrix) when the level or tile is outside the link's zooms or
 * limits. */
mc_error *mc_grid_link_check(const mc_grid_link *link, int z, int x, int y, apr_pool_t *pool) MC_CHECKED;

/* Whether a map of `width` x `height` pixels over `box` is exactly one tile of the grid, by the tolerances of
 * docs/reference/configuration.md 2.
 */
bool mc_grid_find_tile(const mc_grid *grid, const mc_extent *box, int width, int height, int *z, int *x, int *y);

/*
 * Tiles of level z that the box touches, clipped to the link's limits; false if there are none.
 * An edge within 0.02 px of a tile edge does not pull in the neighbour.
 */
bool mc_grid_link_tiles(const mc_grid_link *link, const mc_extent *box, int z, mc_tile_range *range);

/* The level (of the link's or its intermediate grid, see *used) nearest to a resolution
 * (docs/reference/services.md 4.3). */
int mc_grid_link_level(const mc_grid_link *link, double resolution, const mc_grid_link **used);

/* Row from the top (WMTS, XYZ) <-> grid y; its own inverse. z must be valid. */
int mc_grid_flip_y(const mc_grid *grid, int z, int y); /* between grid y and row counted from the top */
int mc_grid_tms_y(const mc_grid *grid, int z, int y);  /* between grid y and row counted from the bottom */

/* Column counted from the west <-> grid x, which grows away from the origin; its own inverse. z and x must be valid. */
int mc_grid_from_west(const mc_grid *grid, int z, int x);

/* Whether EPSG defines the CRS with latitude or northing first; built from PROJ's database. False for unknown codes. */
bool mc_crs_axes_swapped(int epsg);

/* Metres for a unit of an EPSG CRS, of degrees on the equator; 1 for unknown codes. From the same database. */
double mc_crs_metres_per_unit(int epsg);

/* Number behind "EPSG:"/"urn:ogc:def:crs:EPSG::"/"http://www.opengis.net/def/crs/EPSG/0/"; 0 if it is no such text.
 * CRS:84 and OGC:CRS84 give 4326 with *xy_order set. */
int mc_crs_epsg(const char *srs, bool *xy_order);

bool mc_extent_intersects(const mc_extent *a, const mc_extent *b);

/* The extent around both; the part that both have in common (min >= max where they have none). */
mc_extent mc_extent_union(const mc_extent *a, const mc_extent *b);
mc_extent mc_extent_intersection(const mc_extent *a, const mc_extent *b);
mc_tile_range mc_tile_range_union(const mc_tile_range *a, const mc_tile_range *b);
mc_tile_range mc_tile_range_intersection(const mc_tile_range *a, const mc_tile_range *b);

bool mc_extent_valid(const mc_extent *extent); /* finite, min < max */

extern const mc_key mc_grid_keys[];
extern const mc_key mc_ruleset_keys[];
extern const mc_key mc_grid_link_keys[];

#endif
