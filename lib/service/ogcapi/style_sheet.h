/* The encodings that a style is to be had in (OGC 20-009). */
#ifndef MC_SERVICE_OGCAPI_STYLE_SHEET_H
#define MC_SERVICE_OGCAPI_STYLE_SHEET_H

#include "service/ogcapi/ogcapi.h"

/* In the order of the choices of `f`. */
typedef enum mc_style_encoding { MC_STYLE_MAPBOX, MC_STYLE_SLD10, MC_STYLE_SLD11 } mc_style_encoding;

typedef struct mc_style_sheet {
    mc_style_encoding encoding;
    const char *mime, *f, *title, *version, *specification;
    const char *layer; /* of a source with a file for each of its layers: whose file; else NULL */
    const char *file;  /* NULL: the sheet is written here */
} mc_style_sheet;

/* The sheets of a style of a tileset (mc_style_sheet), that which the style is kept in first. Files are looked at for
 * their version; one that cannot be read is left out. */
apr_array_header_t *mc_style_sheets(const mc_tileset *tileset, const mc_color_map *style, apr_pool_t *pool);

/* The text of a sheet. `url`: of TileJSON, for those of MapLibre. MC_ERR_IO where a file is not to be read. */
mc_error *mc_style_sheet_write(mc_buf **text, const mc_style_sheet *sheet, const mc_ogcapi_ask *ask,
                               const char *url) MC_CHECKED;

/* The link whose tiles a sheet of MapLibre shows: of the square world of web maps. NULL: the tileset has none. */
const mc_grid_link *mc_style_web_link(const mc_tileset *tileset);

#endif
