/* See style_sheet.h. Drawn layers have the SLD files of their sources, palettes are written as SLD 1.0 (OGC
 * 02-070, 11.2), and what web maps can show has a style of MapLibre. */
#include "service/ogcapi/style_sheet.h"

#include <apr_file_io.h>
#include <apr_strings.h>
#include <string.h>

#include "service/layer_style.h"
#include "text/text.h"

enum { SHEET_BYTES_MAX = 8 << 20, SHEET_HEAD_BYTES = 8192 };

#define SPEC_MAPBOX "https://maplibre.org/maplibre-style-spec/"
#define SPEC_SLD10 "https://www.ogc.org/standard/sld/"
#define SPEC_SLD11 "https://www.ogc.org/standard/se/"

static const mc_style_sheet sheet_kinds[] = {
    [MC_STYLE_MAPBOX] = { MC_STYLE_MAPBOX, MC_OGCAPI_MAPBOX, "mapbox", "MapLibre style", "8", SPEC_MAPBOX, NULL, NULL },
    [MC_STYLE_SLD10] = { MC_STYLE_SLD10, MC_OGCAPI_SLD10, "sld10", "OGC SLD", "1.0", SPEC_SLD10, NULL, NULL },
    [MC_STYLE_SLD11] = { MC_STYLE_SLD11, MC_OGCAPI_SLD11, "sld11", "OGC SLD and SE", "1.1", SPEC_SLD11, NULL, NULL },
};

const char *
mc_ogcapi_style_name(const mc_color_map *style)
{
    return style == NULL ? "default" : style->name;
}

/* Up to `most` bytes of a file, with a zero behind them; NULL where it cannot be read, or is longer and `whole`. */
static char *
read_sheet_file(apr_size_t *size, const char *file, apr_size_t most, bool whole, apr_pool_t *pool)
{
    apr_file_t *handle;
    apr_finfo_t info;
    char *text = NULL;
    if (apr_file_open(&handle, file, APR_READ | APR_BINARY, 0, pool) != APR_SUCCESS)
        return NULL;
    if (apr_file_info_get(&info, APR_FINFO_SIZE | APR_FINFO_TYPE, handle) == APR_SUCCESS && info.filetype == APR_REG &&
        (!whole || info.size <= (apr_off_t)most)) {
        *size = info.size < (apr_off_t)most ? (apr_size_t)info.size : most;
        text = apr_palloc(pool, *size + 1);
        if (*size > 0 && apr_file_read_full(handle, text, *size, size) != APR_SUCCESS)
            text = NULL;
    }
    apr_file_close(handle);
    if (text != NULL)
        text[*size] = '\0';
    return text;
}

/* SLD 1.1 and SE say their version in the root element; all else is read as SLD 1.0. */
static bool
find_file_kind(mc_style_encoding *kind, const char *file, apr_pool_t *pool)
{
    apr_size_t size;
    const char *text = read_sheet_file(&size, file, SHEET_HEAD_BYTES, false, pool);
    if (text == NULL)
        return false;
    bool newer = strstr(text, "version=\"1.1") != NULL || strstr(text, "version='1.1") != NULL;
    *kind = newer ? MC_STYLE_SLD11 : MC_STYLE_SLD10;
    return true;
}

const mc_grid_link *
mc_style_web_link(const mc_tileset *tileset)
{
    return mc_tile_matrix_set_link(tileset, "WebMercatorQuad");
}

apr_array_header_t *
mc_style_sheets(const mc_tileset *tileset, const mc_color_map *style, apr_pool_t *pool)
{
    apr_array_header_t *sheets = apr_array_make(pool, 4, sizeof(mc_style_sheet));
    const mc_source *source = tileset->source;
    const apr_array_header_t *files = style != NULL || source == NULL || source->ops->styles == NULL
                                          ? NULL
                                          : source->ops->styles(tileset->source, pool);
    for (int i = 0; files != NULL && i < files->nelts; i++) {
        const mc_source_style *each = &APR_ARRAY_IDX(files, i, mc_source_style);
        mc_style_encoding kind;
        if (!find_file_kind(&kind, each->file, pool))
            continue;
        mc_style_sheet sheet = sheet_kinds[kind];
        sheet.file = each->file;
        sheet.layer = files->nelts > 1 ? each->layer : NULL;
        APR_ARRAY_PUSH(sheets, mc_style_sheet) = sheet;
    }
    if (style != NULL || tileset->stored_palette != NULL)
        APR_ARRAY_PUSH(sheets, mc_style_sheet) = sheet_kinds[MC_STYLE_SLD10];
    if (mc_style_web_link(tileset) != NULL)
        APR_ARRAY_PUSH(sheets, mc_style_sheet) = sheet_kinds[MC_STYLE_MAPBOX];
    return sheets;
}

static mc_error *
read_file_sheet(mc_buf **text, const mc_style_sheet *sheet, const mc_ogcapi_ask *ask)
{
    apr_size_t size;
    const char *bytes = read_sheet_file(&size, sheet->file, SHEET_BYTES_MAX, true, ask->pool);
    if (bytes == NULL)
        return mc_error_create(ask->pool, MC_ERR_IO, "the style of collection %s cannot be read", ask->tileset->name);
    *text = mc_buf_attach(mc_buf_create(size + 1, SHEET_BYTES_MAX + 1), ask->pool);
    return mc_buf_append(*text, bytes, size, ask->pool);
}

/* The numbers of a palette with their colours: those that have lines of their own. */
static mc_error *
write_palette_sheet(mc_buf **text, const mc_color_map *map, const mc_ogcapi_ask *ask)
{
    mc_xml *xml = mc_xml_create("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", ask->pool);
    mc_xml_open(xml, "StyledLayerDescriptor");
    mc_xml_attr(xml, "version", "1.0.0");
    mc_xml_attr(xml, "xmlns", "http://www.opengis.net/sld");
    mc_xml_open(xml, "NamedLayer");
    mc_xml_element(xml, "Name", ask->tileset->name);
    mc_xml_open(xml, "UserStyle");
    mc_xml_element(xml, "Name", mc_ogcapi_style_name(ask->style));
    mc_xml_element(xml, "Title", map->title);
    mc_xml_open(xml, "FeatureTypeStyle");
    mc_xml_open(xml, "Rule");
    mc_xml_open(xml, "RasterSymbolizer");
    mc_xml_open(xml, "ColorMap");
    for (int i = 0; i < MC_COLOR_MAP_ENTRIES; i++) {
        const uint8_t *rgba = map->rgba[i];
        if (!map->listed[i])
            continue;
        mc_xml_open(xml, "ColorMapEntry");
        mc_xml_attrf(xml, "color", "#%02x%02x%02x", rgba[0], rgba[1], rgba[2]);
        mc_xml_attr(xml, "opacity", mc_double_text('g', 4, rgba[3] / 255.0, ask->pool));
        mc_xml_attrf(xml, "quantity", "%d", i);
        mc_xml_attr(xml, "label", map->labels[i]);
        mc_xml_close(xml);
    }
    for (int i = 0; i < 7; i++)
        mc_xml_close(xml);
    return mc_xml_finish(text, xml);
}

mc_error *
mc_style_sheet_write(mc_buf **text, const mc_style_sheet *sheet, const mc_ogcapi_ask *ask, const char *url)
{
    if (sheet->file != NULL)
        return read_file_sheet(text, sheet, ask);
    if (sheet->encoding == MC_STYLE_SLD10)
        return write_palette_sheet(text, ask->style != NULL ? ask->style : ask->tileset->stored_palette, ask);
    const mc_tile_request tile = { .tileset = ask->tileset, .link = mc_style_web_link(ask->tileset) };
    return mc_layer_style(text, &tile, url, ask->call, ask->ctx, ask->pool);
}
