/*
 * What the protocols share: the common keys, parameters, addresses of layers and tiles, URLs.
 */
#ifndef MC_SERVICE_SERVICE_BASE_H
#define MC_SERVICE_SERVICE_BASE_H

#include "mapcache/service.h"
#include "service/service_kinds.h"
#include "service/xml_writer.h"

/* How many layers one request may name, how many elements its path and pairs its query may have. */
#define MC_LAYERS_MAX 256
#define MC_SEGMENTS_MAX 64
#define MC_PARAMS_MAX 512

/* The first member of every protocol's own struct. */
typedef struct mc_service_base {
    mc_service service;
    const char *type;
    const char *enabled;
} mc_service_base;

/* Rows of the keys that every service has, for a struct whose first member is `base`. */
#define MC_SERVICE_KEYS(type_)                                                                                         \
    MC_KEY_TEXT("@type", offsetof(type_, base.type), "Protocol; decides the path below the alias.",                    \
                .flags = MC_KEY_REQUIRED),                                                                             \
        MC_KEY_TEXT("@enabled", offsetof(type_, base.enabled),                                                         \
                    "true serves the protocol, anything else skips the element.", .flags = MC_KEY_REQUIRED),           \
        MC_KEY_LINE("cors", offsetof(type_, base.service.cors),                                                        \
                    "Origins that browsers may call from: *, a list, or off. The server's setting without it.",        \
                    .flags = MC_KEY_OURS)

#define MC_SERVICE_STRICT_KEY(type_)                                                                                   \
    MC_KEY_BOOL("strict", offsetof(type_, base.service.strict),                                                        \
                "Requests that omit what the standard makes mandatory are errors.", .flags = MC_KEY_OURS,              \
                .fallback = "false")

/* The members of mc_service_ops of a protocol: its type, and the functions and tables of its file with that prefix. */
#define MC_SERVICE(type_, prefix_, keys_, from_config_, help_)                                                         \
    MC_KIND(#type_, keys_, from_config_, help_), .prefix = (prefix_), .parse = type_##_parse,                          \
                                                 .operations = type_##_operations

/* Reads `node` (NULL: all defaults) by the keys of `ops` into `base`, a zeroed struct of the protocol. False if
 * anything was refused. */
bool mc_service_read(mc_service_base *base, const mc_service_ops *ops, const mc_node *node, mc_build *build);

/* from_config of protocols that have no keys of their own. */
mc_service *mc_service_plain(const mc_service_ops *ops, const mc_node *node, mc_build *build);

extern const mc_key mc_service_plain_keys[];

/* The configured service of a type, or NULL. */
const mc_service *mc_call_service(const mc_call *call, const char *type);

/* A query parameter, name in any case; NULL if it is absent. */
const char *mc_param(const mc_call *call, const char *name);

/* A header of the request, name in any case; NULL where it is absent. */
const char *mc_call_header(const mc_call *call, const char *name);

/*
 * The age of capabilities, an ISO 8601 time: of the newest of the configuration and the files that dimensions ask.
 * Where there are dimensions with databases, the last digits are those of their values, so that others make another
 * text. NULL where the configuration's age is not known.
 */
const char *mc_update_sequence(const mc_call *call, mc_ctx *ctx, apr_pool_t *pool);

/* Whether a request that no other service takes says at least as much as a WMS request does. */
bool mc_service_is_addressed(const mc_call *call);

/* The answer to a request that no service takes: at the root of the alias the demo or a list of the services, elsewhere
 * MC_ERR_NOT_FOUND with what there is, or with the service that is not enabled. */
mc_error *mc_service_absent(mc_request *request, const mc_call *call, apr_pool_t *pool) MC_CHECKED;

/* --- URLs ------------------------------------------------------------------------------------------------------- */

/* metadata <url>, else the base URL of the request; with a trailing slash. */
const char *mc_url_base(const mc_config *config, const mc_http_request *http, apr_pool_t *pool);

/* The endpoint of the WMS service, ending in "?". */
const char *mc_url_wms(const mc_call *call, apr_pool_t *pool);

/* An address of the configuration as documents have it: bytes that no URI may hold are encoded. */
const char *mc_url_clean(const char *url, apr_pool_t *pool);

/* A text as one path element. */
const char *mc_url_segment(const char *text, apr_pool_t *pool);

/* --- formats ---------------------------------------------------------------------------------------------------- */

/* What a path writes instead of an extension where the client's Accept header chooses the format (<formats>). */
#define MC_EXTENSION_BY_ACCEPT "auto"

/*
 * Chooses the format of an answer by the extension of its address, NULL for none: that of the first tileset's <format>
 * or of one of its <formats>. Any other one lets Accept choose (RFC 9110, 12.5.1), and stack->vary says so. Nothing
 * happens where the tileset has one format. MC_ERR_NOT_ACCEPTABLE where Accept allows none of them.
 */
mc_error *mc_stack_choose(mc_tile_stack *stack, const char *extension, const mc_call *call,
                          apr_pool_t *pool) MC_CHECKED;

/* The same by a media type; NULL lets Accept choose, and one that the tileset does not have is its <format>. */
mc_error *mc_stack_choose_type(mc_tile_stack *stack, const char *mime, const mc_call *call,
                               apr_pool_t *pool) MC_CHECKED;

/* --- layers and tiles ------------------------------------------------------------------------------------------- */

/* The tileset that answers to a layer name. In the mirror modes any name is known, and the tileset bears that name.
 * NULL where there is no such tileset. */
mc_tileset *mc_call_tileset(const mc_call *call, const char *name, apr_pool_t *pool);

/*
 * A layer key "name[dim=value][dim2=value2]@grid" (docs/reference/services.md 6.1). Without a grid, the tileset's
 * first; a missing dimension has its default. Only tileset, link and values of `tile` are set. `kind`: the error for
 * unknown names.
 */
mc_error *mc_layer_parse(mc_tile_request *tile, const char *text, const mc_call *call, mc_error_kind kind,
                         apr_pool_t *pool) MC_CHECKED;

/* Layer keys joined by ';'. Empty ones are skipped; all must use one grid, and one at least must remain. */
mc_error *mc_layers_parse(mc_tile_stack *stack, const char *text, const mc_call *call, mc_error_kind kind,
                          apr_pool_t *pool) MC_CHECKED;

/*
 * Puts the stack at level z, column x and a row counted from the top (from_top) or the bottom of the grid. Tiles
 * outside of their layer's limits are dropped. MC_ERR_TILE_OUT_OF_RANGE if none remains.
 */
mc_error *mc_stack_place(mc_tile_stack *stack, int z, int x, int row, bool from_top, apr_pool_t *pool) MC_CHECKED;

/* Whether the name of any tileset has a character that addresses of layers use: ';', '@' or '['. */
bool mc_layers_use_separators(const mc_config *config);

/* Whether the limits of a link can be told in a document that the published schema of WMTS calls valid: the schema
 * types rows and columns as positive, against the standard's text, in which they count from 0. */
bool mc_wmts_limits_are_valid(const mc_grid_link *link);

/* Whether the link has fewer tiles than its grid. */
bool mc_wmts_is_limited(const mc_grid_link *link);

/* Drops the tiles that lie outside of their layer's limits; the first one's error if none remains. */
mc_error *mc_stack_clip(mc_tile_stack *stack, apr_pool_t *pool) MC_CHECKED;

/* The text that a dimension is asked for: the default where the client says nothing. */
const char *mc_dimension_wanted(const mc_dimension *dimension, const char *text);

/*
 * Whether the dimensions of a tileset accept the values (settled ones, in configuration order) for a map that a source
 * is asked for: MC_ERR_INVALID_DIMENSION, MC_ERR_NOT_FOUND where one stands for nothing, or what the back end fails
 * with.
 */
mc_error *mc_values_check(const mc_tileset *tileset, const mc_grid *grid, const char *const *values, mc_ctx *ctx,
                          apr_pool_t *pool) MC_CHECKED;

/* The last step of parsing: "current" is settled, and values that no key of a tile is made of are checked. */
mc_error *mc_request_settle(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The check of all values of tiles and maps, before another server gets the request instead. */
mc_error *mc_request_check_values(const mc_request *request, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The values of a dimension for a document: the list of the back end, at least the default. A failing back end is
 * logged. One request (ctx->pool) asks once. */
const apr_array_header_t *mc_dimension_values_known(mc_dimension *dimension, const char *tileset, mc_ctx *ctx);

/* The same as documents list them: as periods where the dimension wants them. */
const apr_array_header_t *mc_dimension_values_published(mc_dimension *dimension, const char *tileset, mc_ctx *ctx);

/* The default value of a dimension for a WMS document: the back end's answer. Without an answer, the configured value;
 * a failure is logged. One request asks once. */
const char *mc_dimension_default_known(mc_dimension *dimension, const char *tileset, mc_ctx *ctx);

/* The unit of a dimension's values: the configured unit, "ISO8601" for times, else "". */
const char *mc_dimension_units(const mc_dimension *dimension);

/* The symbol of the unit where the unit is a known one, else NULL. */
const char *mc_dimension_unit_symbol(const mc_dimension *dimension);

/* Whether a path without its leading slash begins with a service's prefix, which ends at a slash or at the end: as web
 * servers read their rules of access, so that `<Location /mc/jobs>` covers all of it. False for the empty prefix. */
bool mc_path_has_prefix(const char *path, const char *prefix);

/* A path as its elements, at most MC_SEGMENTS_MAX of them (more: the last one holds the rest). */
const apr_array_header_t *mc_path_segments(const char *path, apr_pool_t *pool);

/* "17.png" -> 17 and "png"; *extension NULL without a dot. False where no number from 0 on stands before the dot. */
bool mc_path_number(int *number, const char **extension, const char *text, apr_pool_t *pool);

/* --- places ----------------------------------------------------------------------------------------------------- */

/* Whether the grid is one of the spherical Mercator. */
bool mc_grid_is_mercator(const mc_grid *grid);

/* A box of the grid's CRS in degrees (lon, lat), latitudes up to the poles. True for CRSs of degrees and the spherical
 * Mercator; else false. */
bool mc_grid_degrees(mc_extent *degrees, const mc_grid *grid, const mc_extent *box);

/* The first value of a metadata key; NULL without it, and without metadata. */
const char *mc_meta(const mc_metadata *metadata, const char *key);

/* Where a tileset has data, in degrees: configured, or from its first grid that can be converted, else the world. */
mc_extent mc_tileset_degrees(const mc_tileset *tileset);

/* <metadataurl> of a layer or of the whole service: a document about the data. */
typedef struct mc_metadata_link {
    const char *url, *format;
    bool is_fgdc; /* by FGDC's standard; else by ISO 19115 */
} mc_metadata_link;

/* False where there is none. */
bool mc_metadata_find_link(mc_metadata_link *link, const mc_metadata *metadata);

/* Media type of a tileset's tiles: "image/png" where nothing says better. */
const char *mc_tileset_mime(const mc_tileset *tileset);

/* What addresses of its tiles end in where documents and pages give them: "png" for tiles that are PNG or JPEG by what
 * is in them, whose stores say "xxx". */
const char *mc_tileset_address_extension(const mc_tileset *tileset);

/* Whether an address of its tiles may end so in a strict service. */
bool mc_tileset_takes_extension(const mc_tileset *tileset, const char *extension);

/* The same, or one of its further formats, or the one that leaves the choice to Accept. */
bool mc_tileset_offers_extension(const mc_tileset *tileset, const char *extension);

/* Whether a tileset's tiles are images, which WMS may draw and other services merge: tiles of RAW and MVT are not. */
bool mc_tileset_is_image(const mc_tileset *tileset);

/* Info formats of the tileset's source, or NULL if it answers no feature info. */
const apr_array_header_t *mc_tileset_info_formats(const mc_tileset *tileset);

/* "NAME.json" in an address: *layer is the key of the layer before ".json". False where a tileset bears the whole name.
 */
bool mc_tilejson_layer(const char **layer, const char *text, const mc_call *call, apr_pool_t *pool);

/* Makes `request` an answer with the TileJSON of a layer whose tiles lie below `path`, with rows from the top or the
 * bottom. MC_ERR_NOT_FOUND for an unknown layer, and for one whose tiles TileJSON cannot name. */
mc_error *mc_tilejson(mc_request *request, const char *layer, const char *path, bool from_top, const mc_call *call,
                      mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The same of a tileset and its link, whose tiles are at `url`, which holds {z}, {x} and {y}. */
mc_error *mc_tilejson_at(mc_request *request, const mc_tile_request *tile, const char *url, bool from_top, mc_ctx *ctx,
                         apr_pool_t *pool) MC_CHECKED;

/* Whether the tileset's source can draw a legend. */
bool mc_tileset_has_legend(const mc_tileset *tileset);

/* Whether there is a legend of the tileset in a style (NULL: the default one). */
bool mc_tileset_style_has_legend(const mc_tileset *tileset, const mc_color_map *style);

/* Where a document says that a legend is. */
typedef struct mc_legend_url {
    const char *href, *mime;
    int width, height; /* pixels */
} mc_legend_url;

/* The legend of a tileset in a style (NULL: the default one) at the wms service; false where there is none, or no such
 * service. */
bool mc_wms_legend_url(mc_legend_url *url, const mc_call *call, const mc_tileset *tileset, const mc_color_map *style,
                       mc_ctx *ctx, apr_pool_t *pool);

/* Makes `request` an answer with a document. */
mc_error *mc_request_document(mc_request *request, mc_xml *xml, const char *mime) MC_CHECKED;

#endif
