/* What the files of the WMS service share. */
#ifndef MC_SERVICE_WMS_WMS_H
#define MC_SERVICE_WMS_WMS_H

#include "service/param.h"
#include "service/service_base.h"

typedef struct mc_wms {
    mc_service_base base;
    int full_wms; /* mc_full_wms */
    const mc_node *format_node;
    const mc_format *format; /* of assembled maps */
    bool format_named;       /* the configuration names it */
    bool allow_client_override;
    int resample; /* mc_resample */
    int maxsize;  /* pixels, of width and of height */
    apr_int64_t max_pixels;
    const apr_array_header_t *rule_nodes; /* of const mc_node * */
    apr_array_header_t *rules;            /* of mc_forwarding_rule * */
    const char *srs_list;                 /* as configured; or NULL */
    apr_array_header_t *drawn;            /* of mc_grid_link *: one for each CRS in which drawn maps are offered */
} mc_wms;

/* What a request says of the screen that it is for. */
typedef struct mc_wms_screen {
    double dpi, map_resolution; /* as requested; 0: not */
    const char *format_options; /* as requested; or NULL */
    double density;             /* what these come to: pixels for a pixel of a style, 1 at least */
} mc_wms_screen;

/* What GetMap and GetFeatureInfo say of a map. */
typedef struct mc_wms_view {
    bool v130;
    const char *version; /* as requested; or NULL */
    const char *srs;     /* as requested */
    int epsg;            /* its code, or 0 */
    mc_extent box;       /* x, y order */
    int width, height;
    mc_wms_screen screen;
} mc_wms_view;

static inline const mc_wms *
mc_wms_of(const mc_call *call)
{
    return (const mc_wms *)call->service;
}

/* VERSION, or WMTVER of older clients; NULL if neither is there. */
const char *mc_wms_version(const mc_call *call);

/* Whether the request is to be read and answered by WMS 1.3.0 (else 1.1.1): by the standard's negotiation. */
bool mc_wms_is_130(const mc_call *call);

/* Parameters of the operations, and those that several operations share. */
extern const mc_param_row mc_wms_capabilities_params[], mc_wms_map_params[], mc_wms_info_params[],
    mc_wms_legend_params[];
extern const mc_param_row mc_wms_view_params[], mc_wms_screen_params[], mc_wms_format_params[],
    mc_wms_background_params[];

/* VERSION, BBOX, WIDTH, HEIGHT, SRS or CRS, in this order; then the screen. */
mc_error *mc_wms_view_parse(mc_wms_view *view, const mc_call *call, apr_pool_t *pool) MC_CHECKED;

/* DPI, MAP_RESOLUTION, FORMAT_OPTIONS (of a legend also LEGEND_OPTIONS): the first that is a number counts. */
mc_error *mc_wms_screen_parse(mc_wms_screen *screen, const mc_call *call, apr_pool_t *pool) MC_CHECKED;

/* The tileset's link whose grid has the view's CRS: by the grids' own name first, then by their aliases. Or NULL. */
mc_grid_link *mc_wms_view_link(const mc_wms_view *view, const mc_tileset *tileset);

/*
 * The link by which a layer is shown in the view's CRS: the tileset's own, else, where its source draws in any CRS and
 * maps are asked from sources, that of the service's <srs>: a grid without levels. MC_ERR_INVALID_CRS where there is
 * none.
 */
mc_error *mc_wms_link(const mc_grid_link **link, const mc_call *call, const mc_wms_view *view,
                      const mc_tileset *tileset, apr_pool_t *pool) MC_CHECKED;

/* Whether maps of the tileset are offered in the CRSs of <srs>, too. */
bool mc_wms_draws_any(const mc_wms *wms, const mc_tileset *tileset);

/* Reads <srs> into wms->drawn. False after a complaint. */
bool mc_wms_read_srs(mc_wms *wms, const mc_node *node, mc_build *build);

/* Whether a tileset is a layer of the service: tilesets of images are. Tilesets of vector tiles are layers where their
 * sources draw all maps (<full_wms>forward). */
bool mc_wms_offers(const mc_wms *wms, const mc_tileset *tileset);

/* Values of the tileset's dimensions: DIM_<NAME>, then <NAME>, then the default. */
const char **mc_wms_values(const mc_call *call, const mc_tileset *tileset, apr_pool_t *pool);

/* The format of a map, from FORMAT and the service's settings. `drawn`: a layer of the map is drawn from vector data.
 * *named: FORMAT decided. */
mc_error *mc_wms_format(const mc_format **format, bool *named, bool drawn, const mc_call *call,
                        apr_pool_t *pool) MC_CHECKED;

/* Formats that a client may ask for, each media type once: of const mc_format *. */
const apr_array_header_t *mc_wms_formats(const mc_call *call, apr_pool_t *pool);

/* TRANSPARENT and BGCOLOR. */
mc_error *mc_wms_background(mc_map_request *map, const mc_call *call, apr_pool_t *pool) MC_CHECKED;

/* MC_ERR_MISSING_PARAMETER in strict mode, else MC_OK. */
mc_error *mc_wms_omitted(const mc_call *call, const char *name, apr_pool_t *pool) MC_CHECKED;

mc_error *mc_wms_get_map(mc_request *request, const mc_call *call, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_wms_get_info(mc_request *request, const mc_call *call, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_wms_get_legend(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Adds the colours of a palette to a legend: those with labels where there are any, else all, else some of many. */
struct mc_legend;
void mc_wms_add_palette_legend(struct mc_legend *legend, const mc_color_map *map, apr_pool_t *pool);

mc_error *mc_wms_capabilities(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;
void mc_wms_report(mc_document *body, int *status, const mc_error *error, const mc_call *call, apr_pool_t *pool);

/* <errors>report_img: an image with the message: of a map its size, format and background where these can be read, of
 * other requests 256 x 256 pixels in the format of the path's extension or FORMAT, else in the default one. */
mc_error *mc_wms_error_image(mc_document *body, const mc_error *error, const mc_call *call,
                             apr_pool_t *pool) MC_CHECKED;

/* Writes the message of an error into an image, black, in lines of our own small letters. */
void mc_wms_write_message(mc_pixels *pixels, const char *message);

/* Rules of the configuration; false if one was refused. */
bool mc_forwarding_read(mc_wms *wms, mc_build *build);

/* The first rule that takes the request, or NULL. */
const mc_forwarding_rule *mc_forwarding_match(const mc_wms *wms, const mc_call *call);

/* The address where a rule sends the request: with the path, where the rule wants the path, and all parameters. */
const char *mc_forwarding_url(const mc_forwarding_rule *rule, const mc_call *call, apr_pool_t *pool);

#endif
