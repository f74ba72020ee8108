/* What the files of the OGC API share: a request, documents and their links. */
#ifndef MC_SERVICE_OGCAPI_OGCAPI_H
#define MC_SERVICE_OGCAPI_OGCAPI_H

#include "service/ogcapi/tile_matrix_set.h"
#include "service/param.h"
#include "service/service_base.h"
#include "text/json_writer.h"

#define MC_OGCAPI_REL "http://www.opengis.net/def/rel/ogc/1.0/"
#define MC_OGCAPI_CRS84 "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
#define MC_OGCAPI_MVT "application/vnd.mapbox-vector-tile"

typedef struct mc_ogcapi {
    mc_service_base base;
    const mc_format *webp; /* of images that no configured format makes */
} mc_ogcapi;

/* The forms of documents, in the order of preference where a client accepts several alike. */
enum { MC_OGCAPI_JSON, MC_OGCAPI_HTML, MC_OGCAPI_TILEJSON };

/* Variables of an address. */
enum { MC_OGCAPI_VARIABLES = 6 };

/* What a client asks of a map. */
typedef struct mc_ogcapi_map {
    const char *crs, *bbox, *bbox_crs, *subset_crs, *center, *center_crs; /* as requested; NULL: not said */
    const char *bgcolor, *void_color;
    int width, height;                  /* pixels; 0: not said */
    double scale;                       /* 0: not said */
    double pixel;                       /* millimetres; 0: not said */
    int transparent, void_transparent;  /* -1: not said */
    uint8_t background[3], void_rgb[3]; /* red, green, blue of `bgcolor` and `void-color` */
} mc_ogcapi_map;

/* A request of the API while it is read and answered. */
typedef struct mc_ogcapi_ask {
    mc_request *request;
    const mc_call *call;
    mc_ctx *ctx;
    apr_pool_t *pool;
    const struct mc_operation *operation;       /* that was asked for */
    const struct mc_operation *operations;      /* all of them, to the one without a name */
    const struct mc_ogcapi_resource *resources; /* how each is answered, in the same order */
    const char *json_mime; /* of a document in JSON; "application/json" where it has no type of its own */
    const char *title;     /* of a document as a page */
    const char *picture;   /* the address of an image for the page, seen from /ogcapi; or NULL */

    /* elements of the path */
    const char *collection, *set, *file;
    mc_tileset *tileset;  /* of the collection; of several, the lowest one */
    mc_map_layer *layers; /* of the collections, the lowest first; their links are not set */
    int layer_count;
    const mc_grid_link *link;  /* of the tile matrix set */
    const mc_grid *grid;       /* of a tile matrix set without a collection */
    const char *style_id;      /* as in the path; NULL: there is none */
    const mc_color_map *style; /* a palette; NULL: the default style */
    int z, row, column;

    /* the query */
    int form;                      /* of a document: MC_OGCAPI_JSON... */
    int image;                     /* of a tile: what `f` names; -1: nothing */
    int sheet;                     /* of a style: what `f` names; -1: nothing */
    const char *sheet_layer;       /* of a style: whose file is wanted; NULL: that of the lowest layer that has one */
    bool negotiated;               /* the Accept header decided */
    const char *datetime, *subset; /* the first one of several */
    const char *collections;       /* those of a dataset's map or tiles, as requested; NULL: not said */
    mc_ogcapi_map map;
} mc_ogcapi_ask;

typedef mc_error *mc_ogcapi_answer(mc_ogcapi_ask *ask);

/* What an operation answers with. */
typedef enum mc_ogcapi_kind {
    MC_OGCAPI_DOCUMENT,
    MC_OGCAPI_DEFINITION,
    MC_OGCAPI_STYLE,
    MC_OGCAPI_IMAGE,
    MC_OGCAPI_VECTOR,
    MC_OGCAPI_FILE
} mc_ogcapi_kind;

/* An operation's answer, and its identifier in the definition of the API (OGC 20-057, table 15), NULL where the
 * operation does not stand there. */
typedef struct mc_ogcapi_resource {
    mc_ogcapi_answer *answer;
    mc_ogcapi_kind media;
    const char *id;
} mc_ogcapi_resource;

/* Style sheets (OGC 20-009). */
#define MC_OGCAPI_MAPBOX "application/vnd.mapbox.style+json"
#define MC_OGCAPI_SLD10 "application/vnd.ogc.sld+xml;version=1.0"
#define MC_OGCAPI_SLD11 "application/vnd.ogc.sld+xml;version=1.1"

#define MC_OGCAPI_OPENAPI "application/vnd.oai.openapi+json;version=3.0"

/* --- addresses and documents ------------------------------------------------------------------------------------ */

/* An address of the API: the base of the request, "ogcapi" and a path that begins with a slash, as printf has it. */
const char *mc_ogcapi_url(const mc_ogcapi_ask *ask, const char *format, ...) MC_PRINTF(2, 3);

/* One link object (OGC 17-083r4, table 15). type, title: NULL where there is none. */
void mc_ogcapi_link(mc_json_writer *json, const char *rel, const char *type, const char *title, const char *href);

/* The same with an address that holds variables in braces. */
void mc_ogcapi_link_template(mc_json_writer *json, const char *rel, const char *type, const char *title,
                             const char *href);

/* Opens "links" with those of the document itself: the form that is answered and the other one. */
void mc_ogcapi_open_links(mc_json_writer *json, const mc_ogcapi_ask *ask);

/* A member whose text may be NULL: then it is left out. */
void mc_ogcapi_member(mc_json_writer *json, const char *key, const char *text);

/* Makes the document of the request's form from a finished writer: its text, or a page that shows it. */
mc_error *mc_ogcapi_respond(mc_ogcapi_ask *ask, mc_json_writer *json) MC_CHECKED;

/* What holds of a document of the request's form, wherever its text comes from: Vary, and what a page may load. */
void mc_ogcapi_finish(mc_ogcapi_ask *ask);

/* A page with all that a JSON document of ours says (page.c). */
mc_error *mc_ogcapi_page(mc_ogcapi_ask *ask, const mc_buf *json) MC_CHECKED;

/* --- collections ------------------------------------------------------------------------------------------------ */

/* Whether a tileset is a collection: of images or vector tiles, with a name that a path can hold. */
bool mc_ogcapi_offers(const mc_tileset *tileset);

/* Whether its tiles are vector tiles (else: images). */
bool mc_ogcapi_is_vector(const mc_tileset *tileset);

/*
 * A step behind `collections`: the collections that a request of the dataset is of, as names or as addresses of this
 * API, the lowest first (OGC 20-058, 10); without the parameter the first one of that kind in the configuration.
 * MC_ERR_INVALID_PARAMETER for unknown ones and for those of the other kind, MC_ERR_NOT_FOUND where there is none.
 */
mc_error *mc_ogcapi_find_collections(mc_param_reader *reader) MC_CHECKED;

/* "/collections/NAME/map/tiles", or without "/map" of vector tiles. */
const char *mc_ogcapi_tiles_path(const mc_tileset *tileset, apr_pool_t *pool);

/* The link of a tileset with a tile matrix set: where the request is of several collections, one whose rows and columns
 * count as those of the lowest collection. NULL where there is none. */
const mc_grid_link *mc_ogcapi_shared_link(const mc_ogcapi_ask *ask, const mc_tileset *tileset, const char *id);

/* What the request says of `collections`, as it stands in addresses: "collections=a,b&", or nothing. */
const char *mc_ogcapi_selection(const mc_ogcapi_ask *ask);

/* The titles of the collections that a request is of, with commas between them. */
const char *mc_ogcapi_titles(const mc_ogcapi_ask *ask);

/* The members of "extent" of a box in degrees, with that in the storage CRS of the request's tileset. */
void mc_ogcapi_spatial_extent(mc_json_writer *json, const mc_extent *box, const mc_ogcapi_ask *ask);

/* "extent" of a collection (OGC 20-024, 7.3). */
void mc_ogcapi_extent(mc_json_writer *json, const mc_ogcapi_ask *ask);

/* "crs", the CRSs of a tileset's grids, each once, and "storageCrs". */
void mc_ogcapi_collection_crs(mc_json_writer *json, const mc_tileset *tileset, apr_pool_t *pool);

/* --- answers ---------------------------------------------------------------------------------------------------- */

mc_ogcapi_answer mc_ogcapi_landing, mc_ogcapi_conformance, mc_ogcapi_definition, mc_ogcapi_collections,
    mc_ogcapi_collection, mc_ogcapi_styles, mc_ogcapi_style, mc_ogcapi_style_metadata, mc_ogcapi_sets, mc_ogcapi_set,
    mc_ogcapi_tilesets, mc_ogcapi_tileset, mc_ogcapi_tile;

/* MC_ERR_NOT_FOUND where the address is one of images, and the collection has vector tiles, or the other way round. */
mc_error *mc_ogcapi_check_kind(const mc_ogcapi_ask *ask) MC_CHECKED;

/* The media types and the names of `f` of a tileset's tiles, the stored type first. Returns how many. */
enum { MC_OGCAPI_IMAGES = 3 };
typedef struct mc_ogcapi_media {
    const char *mime, *name;
    const mc_format *format; /* that makes it; NULL of vector tiles */
} mc_ogcapi_media;
int mc_ogcapi_tile_media(mc_ogcapi_media media[MC_OGCAPI_IMAGES + 1], const mc_tileset *tileset, const mc_call *call,
                         apr_pool_t *pool);

/*
 * The format that a request of images wants, by `f` or Accept. *format is NULL where the stored bytes of a tile will
 * do, whatever they are: where the client likes all images alike; of a `map` there is always one.
 * MC_ERR_NOT_ACCEPTABLE, MC_ERR_INVALID_PARAMETER where none can be had.
 */
mc_error *mc_ogcapi_choose_image(const mc_format **format, mc_ogcapi_ask *ask, bool map) MC_CHECKED;

/* --- styles ----------------------------------------------------------------------------------------------------- */

/* The name of a style of a collection: "default", or that of a palette. */
const char *mc_ogcapi_style_name(const mc_color_map *style);

/* The style of the dataset with an identifier "collection:style", as ask->tileset and ask->style. False: none. */
bool mc_ogcapi_find_global_style(mc_ogcapi_ask *ask, const char *id);

/* Whether the tileset has a style that there is a sheet of. */
bool mc_ogcapi_has_styles(const mc_tileset *tileset);

/* --- CRSs ------------------------------------------------------------------------------------------------------- */

typedef struct mc_ogcapi_crs {
    const char *uri;
    int epsg; /* 4326 for CRS84, too */
    bool yx;  /* coordinates are written northing or latitude first */
} mc_ogcapi_crs;

/* A CRS as a client names it: its address in OGC's register by http or https, [EPSG:3857], EPSG:3857, a URN. */
bool mc_ogcapi_crs_parse(mc_ogcapi_crs *crs, const char *text, apr_pool_t *pool);

/* The same of a place, whose CRS may have heights, which are passed over: [OGC:CRS84h]. */
bool mc_ogcapi_place_crs_parse(mc_ogcapi_crs *crs, const char *text, apr_pool_t *pool);

/* Half of the way around the earth along the x axis of a grid's CRS: 180 degrees, or that in metres of the spherical
 * Mercator. 0 where the axis does not lead around. */
double mc_ogcapi_half_round(const mc_grid *grid);

/* That of a grid. */
mc_ogcapi_crs mc_ogcapi_crs_of(const mc_grid *grid, apr_pool_t *pool);

/* The first link of a tileset whose grid has the CRS, or NULL. */
const mc_grid_link *mc_ogcapi_crs_link(const mc_ogcapi_crs *crs, const mc_tileset *tileset);

/* The link whose CRS a map of one collection has without `crs`: one in degrees, as clients take for granted that give a
 * `bbox` in degrees, else the first one. NULL without links. */
const mc_grid_link *mc_ogcapi_storage_link(const mc_tileset *tileset);

/*
 * Turns a box whose numbers stand as the CRS orders its axes into one of a grid's CRS, x first. What lies beyond the
 * ends of the spherical Mercator is cut off. A box whose west edge is east of its east edge reaches over the
 * antimeridian: then *across, and maxx counts on behind the edge of the grid's CRS (OGC 20-058, 13.3, E).
 * MC_ERR_INVALID_PARAMETER where there is no such box, or nothing is left; `parameter`: of the request.
 */
mc_error *mc_ogcapi_crs_box(mc_extent *box, bool *across, const mc_ogcapi_crs *from, const mc_grid *grid,
                            const char *parameter, apr_pool_t *pool) MC_CHECKED;

/* --- values of dimensions --------------------------------------------------------------------------------------- */

/*
 * The values of a tileset's dimensions that `datetime` and `subset` of the request name (OGC 20-057, 13; OGC 20-058,
 * 14 and 15). MC_ERR_INVALID_PARAMETER for what is written wrongly and for unknown axes, MC_ERR_NOT_FOUND where nothing
 * lies in an interval.
 */
mc_error *mc_ogcapi_values(const char ***values, const mc_ogcapi_ask *ask, const mc_tileset *tileset) MC_CHECKED;

/* All `subset` parameters of the query, as if they stood in one (OGC 20-058, 13.3). MC_ERR_INVALID_PARAMETER. */
struct mc_subset;
mc_error *mc_ogcapi_subsets(struct mc_subset *list, int *count, const mc_ogcapi_ask *ask) MC_CHECKED;

/* Whether an axis of `subset` is one of a map's place, and none of a collection's dimensions. */
bool mc_ogcapi_is_place_axis(const char *axis, const mc_ogcapi_ask *ask);

/* The dimension of a tileset that `datetime` is about, or NULL. */
mc_dimension *mc_ogcapi_time(const mc_tileset *tileset);

#endif
