/*
 * What a file, a folder, an address or a database holds that can be served: a list of layers, each with what a source
 * or a cache needs to be configured, and with what documents say of it. Nothing is drawn, and files are opened for
 * reading only.
 */
#ifndef MC_DATA_DATA_H
#define MC_DATA_DATA_H

#include "mapcache/ctx.h"
#include "mapcache/grid.h"

typedef enum mc_data_kind {
    MC_DATA_RASTER, /* drawn by a source of type gdal or mapserver */
    MC_DATA_VECTOR, /* drawn by a source of type shapefile, ogr or postgis */
    MC_DATA_TILES,  /* stored in a cache, read-only: mbtiles, pmtiles, geopackage, sqlite3, bundle, mrf, rok4 */
} mc_data_kind;

typedef enum mc_data_shape { MC_DATA_ANY_SHAPE, MC_DATA_POINTS, MC_DATA_LINES, MC_DATA_AREAS } mc_data_shape;

/* One layer. Texts that the data do not say are NULL. */
typedef struct mc_data_layer {
    mc_data_kind kind;
    const char *type; /* of the source or cache: "gdal", "mapserver", "shapefile", "ogr", "postgis", "mbtiles", ... */
    const char *name; /* unique in its list; letters, digits, '_', '-' and '.' only */
    const char *title, *description, *attribution;
    const char *data;  /* the file, the folder or GDAL's name of an address; of postgis the connection string */
    const char *table; /* of a file or a database with several: as <table> names it; of vector tiles: NULL */

    const char *srs; /* "EPSG:2056" or WKT; NULL: unknown */
    bool assumed;    /* the data do not say their CRS: `srs` is what their coordinates look like */
    bool has_extent; /* in units of `srs`, x first */
    bool estimated;  /* the extent is an estimate, with a margin */
    mc_extent extent;
    bool has_degrees; /* longitude and latitude of WGS 84 */
    mc_extent degrees;
    int minzoom, maxzoom; /* levels of GoogleMapsCompatible that make sense for it, or that are stored; -1: unknown */

    /* vectors */
    mc_data_shape shape;
    const char *geometry, *id;            /* columns of a table of a database */
    const apr_array_header_t *attributes; /* of mc_field (vector/feature/feature.h); NULL: unknown */

    /* rasters */
    int bands;           /* how many there are */
    const char *drivers; /* of GDAL, with blanks between, that may open it; NULL: a mosaic, whose files say that */
    const char *picture; /* which bands make the picture, as <bands> has it; NULL: as they are */
    bool measured;       /* values, which a stretch makes colours of */
    bool transparent;    /* it has holes, or lies at an angle: pictures need transparency */
    bool mosaic;         /* of several files in the folder `data` */

    /* tiles */
    const char *format;  /* "PNG", "JPEG", "MVT" */
    const char *grid;    /* the grid's name in the file, or of our builtin grids; NULL: GoogleMapsCompatible */
    const char *tileset; /* of caches of ours: the name under which the tiles are stored, as the file has it */
    int slab_columns, slab_rows, slab_depth; /* of rok4: tiles in a slab, folders in its path */
} mc_data_layer;

/* What a look may cost. Fields of 0 are the defaults. */
typedef struct mc_data_limits {
    int layers;     /* 200 */
    int files;      /* that are looked at in folders: 10000 */
    double seconds; /* 10; ctx->deadline counts too */
} mc_data_limits;

/* What was found in a thing, and what was not taken. */
typedef struct mc_data_found {
    const apr_array_header_t *layers; /* of const mc_data_layer * */
    const apr_array_header_t *notes;  /* of const char *: what was left out, and why */
} mc_data_found;

/*
 * Looks at `thing`: a raster that GDAL opens, a shapefile, a GeoPackage, FlatGeobuf or GeoJSON, an MBTiles, a SQLite
 * cache, a PMTiles archive, an MRF, a bundle of Esri, the descriptor of a pyramid of ROK4, a map file of MapServer,
 * each by its path (`FILE#LAYER`: one layer of it), http:// and https:// addresses of these, postgresql:// addresses
 * (`?table=schema.name`), or a folder of files. `limits` may be NULL; ctx->process may be NULL but for databases.
 *
 * MC_ERR_UNAVAILABLE: it is not there (yet), or was not open in time. MC_ERR_CONFIG: it holds nothing that can be
 * served, in words for people. No error leaves an empty list.
 */
mc_error *mc_data_find(mc_data_found *found, const char *thing, const mc_data_limits *limits, mc_ctx *ctx,
                       apr_pool_t *pool) MC_CHECKED;

/* As mc_data_find of each thing, in one list with unique names. An error is that of the first thing that has one. */
mc_error *mc_data_find_all(mc_data_found *found, const char *const *things, int count, const mc_data_limits *limits,
                           mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* What mc_data_write_config is told besides the layers. */
typedef struct mc_data_config {
    const char *made_by; /* for the comment at the top: "mapcache serve world.tif" */
    const char *title;   /* of the whole service; NULL: none */
    bool closed;         /* pages of other sites may not read the answers */
} mc_data_config;

/*
 * A whole mapcache.xml, with comments, that serves the layers: sources that draw, a cache that keeps nothing for them,
 * caches of tile files, a tileset for each layer, for vectors a second one NAME-mvt of vector tiles, all services for
 * maps. Every text of the data is escaped.
 */
const char *mc_data_write_config(const mc_data_found *found, const mc_data_config *config, apr_pool_t *pool);

/* A name for the thing itself (its file's or database's name), as those of layers; needs no look at it. */
const char *mc_data_name(const char *thing, apr_pool_t *pool);

#endif
