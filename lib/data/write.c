/* See write.h, and mc_data_write_config of data.h. */
#include "data/write.h"

#include <apr_escape.h>
#include <apr_strings.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "mapcache/config.h"
#include "text/text.h"

static void MC_PRINTF(2, 3) put_line(apr_array_header_t *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    APR_ARRAY_PUSH(out, const char *) = apr_pvsprintf(out->pool, format, arguments);
    va_end(arguments);
}

/* <name>text</name>, where there is a text. */
static void
put_element(apr_array_header_t *out, const char *indent, const char *name, const char *text)
{
    if (text != NULL && *text != '\0')
        put_line(out, "%s<%s>%s</%s>\n", indent, name, mc_xml_escape(text, out->pool), name);
}

/* A text of at most so many bytes that may stand in a comment: "--" may not (XML 1.0, 2.5). */
static const char *
comment_text(const char *text, size_t most, apr_pool_t *pool)
{
    char *copy = apr_pstrdup(pool, mc_message_text(text, most, pool));
    for (char *c = copy; *c != '\0'; c++)
        if (*c == '-' && (c[1] == '-' || c[1] == '\0'))
            *c = '_';
    return copy;
}

/* --- one layer ---------------------------------------------------------------------------------------------------- */

static void
put_raster_source(apr_array_header_t *out, const mc_data_layer *layer, const char *name)
{
    put_line(out, "  <source name=\"%s\" type=\"%s\">\n", mc_xml_escape(name, out->pool), layer->type);
    put_element(out, "    ", strcmp(layer->type, "mapserver") == 0 ? "mapfile" : "data", layer->data);
    put_element(out, "    ", "drivers", layer->drivers);
    put_element(out, "    ", "bands", layer->picture);
    put_line(out, "  </source>\n");
}

static void
put_vector_source(apr_array_header_t *out, const mc_data_layer *layer, const mc_data_elements *elements)
{
    const char *name = mc_xml_escape(elements->source, out->pool);
    bool database = strcmp(layer->type, "postgis") == 0;
    put_line(out, "  <source name=\"%s\" type=\"%s\">\n    <layer name=\"%s\">\n", name, layer->type,
             mc_xml_escape(layer->name, out->pool));
    put_element(out, "      ", database ? "connection" : "data", layer->data);
    put_element(out, "      ", "table", layer->table);
    put_element(out, "      ", "geometry", layer->geometry);
    put_element(out, "      ", "id", layer->id);
    put_element(out, "      ", "srs", layer->assumed ? layer->srs : NULL);
    put_element(out, "      ", "style", elements->style);
    put_element(out, "      ", "style_name", elements->style_name);
    put_element(out, "      ", "default_style", elements->style == NULL ? "colored" : NULL);
    put_line(out, "    </layer>\n  </source>\n");
}

/* Tiles that are stored under another name than their tileset's: the stored name is any text, and stands in SQL as
 * bytes. */
static void
put_queries(apr_array_header_t *out, const char *stored)
{
    const char *key = apr_psprintf(out->pool,
                                   "FROM tiles WHERE tileset=CAST(x'%s' AS TEXT) AND grid=:grid AND x=:x AND y=:y AND "
                                   "z=:z AND dim=:dim",
                                   apr_pescape_hex(out->pool, stored, strlen(stored), 0));
    put_line(out, "    <queries>\n");
    put_element(out, "      ", "exists", apr_pstrcat(out->pool, "SELECT 1 ", key, NULL));
    put_element(out, "      ", "get", apr_pstrcat(out->pool, "SELECT data, strftime('%s', ctime) ", key, NULL));
    put_line(out, "    </queries>\n");
}

/* What a cache calls its file or folder. */
static const char *
place_element(const char *type)
{
    return strcmp(type, "bundle") == 0 || strcmp(type, "rok4") == 0   ? "base"
           : strcmp(type, "pmtiles") == 0 || strcmp(type, "mrf") == 0 ? "file"
                                                                      : "dbfile";
}

void
mc_data_write_store(apr_array_header_t *out, const mc_data_layer *layer, const mc_data_elements *elements)
{
    if (layer->kind == MC_DATA_RASTER) {
        put_raster_source(out, layer, elements->source);
        return;
    }
    if (layer->kind == MC_DATA_VECTOR) {
        put_vector_source(out, layer, elements);
        return;
    }
    put_line(out, "  <cache name=\"%s\" type=\"%s\">\n", mc_xml_escape(elements->source, out->pool), layer->type);
    put_element(out, "    ", place_element(layer->type), layer->data);
    put_element(out, "    ", "table", layer->table);
    if (layer->slab_columns > 0)
        put_line(out, "    <xcount>%d</xcount>\n    <ycount>%d</ycount>\n    <path_depth>%d</path_depth>\n",
                 layer->slab_columns, layer->slab_rows, layer->slab_depth);
    if (layer->tileset != NULL && strcmp(layer->tileset, elements->tileset) != 0)
        put_queries(out, layer->tileset);
    put_line(out, "  </cache>\n");
}

const char *
mc_data_vector_tiles_title(const char *title, apr_pool_t *pool)
{
    return title == NULL || *title == '\0' ? NULL : apr_pstrcat(pool, title, " (vector tiles)", NULL);
}

/* Sources are asked where their data lie; stores of tiles and map files know no more than what stands here. */
static void
put_layer_metadata(apr_array_header_t *out, const mc_data_layer *layer, bool vector_tiles)
{
    const mc_extent *box = &layer->degrees;
    put_line(out, "    <metadata>\n");
    put_element(out, "      ", "title",
                vector_tiles ? mc_data_vector_tiles_title(layer->title, out->pool) : layer->title);
    put_element(out, "      ", "abstract", layer->description);
    put_element(out, "      ", "attribution", layer->attribution);
    if ((layer->kind == MC_DATA_TILES || strcmp(layer->type, "mapserver") == 0) && layer->has_degrees)
        put_line(out, "      <wgs84boundingbox>%.7g %.7g %.7g %.7g</wgs84boundingbox>\n", box->minx, box->miny,
                 box->maxx, box->maxy);
    put_line(out, "    </metadata>\n");
}

/* Rasters end one level beyond their own pixels, files of tiles where their tiles end. */
static void
put_grid(apr_array_header_t *out, const mc_data_layer *layer, bool vector_tiles)
{
    int last = layer->kind == MC_DATA_RASTER ? layer->maxzoom + 1 : layer->maxzoom;
    const char *grid = layer->grid == NULL ? "GoogleMapsCompatible" : layer->grid;
    bool ends = layer->kind != MC_DATA_VECTOR || vector_tiles;
    int most = layer->kind == MC_DATA_TILES ? 21 : 18; /* of stored tiles the grid's last level */
    if (layer->maxzoom >= 0 && ends && last < most)
        put_line(out, "    <grid maxzoom=\"%d\">%s</grid>\n", last, mc_xml_escape(grid, out->pool));
    else
        put_element(out, "    ", "grid", grid);
}

void
mc_data_write_tileset(apr_array_header_t *out, const mc_data_layer *layer, const mc_data_elements *elements,
                      bool vector_tiles)
{
    bool stored = layer->kind == MC_DATA_TILES;
    const char *drawn = layer->kind == MC_DATA_RASTER && strcmp(layer->type, "gdal") == 0 ? "mixed" : "PNG";
    put_line(out, "  <tileset name=\"%s%s\">\n", mc_xml_escape(elements->tileset, out->pool),
             vector_tiles ? "-mvt" : "");
    put_layer_metadata(out, layer, vector_tiles);
    if (!stored)
        put_element(out, "    ", "source", elements->source);
    put_element(out, "    ", "cache", stored ? elements->source : elements->none);
    put_grid(out, layer, vector_tiles);
    if (!stored)
        put_element(out, "    ", "format", vector_tiles ? elements->mvt : drawn);
    else if (layer->format != NULL)
        put_element(out, "    ", "format", strcmp(layer->format, "MVT") == 0 ? elements->mvt : layer->format);
    if (stored)
        put_line(out, "    <read-only>true</read-only>\n");
    put_line(out, "    <expires>0</expires>\n    <cache-control>no-cache</cache-control>\n");
    put_line(out, "  </tileset>\n");
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

const char *
mc_data_crs_list(const apr_array_header_t *layers, apr_pool_t *pool)
{
    const char *list = "EPSG:4326 CRS:84";
    for (int i = 0; i < layers->nelts && strlen(list) < 200; i++) {
        const mc_data_layer *layer = APR_ARRAY_IDX(layers, i, const mc_data_layer *);
        if (layer->srs == NULL || strncmp(layer->srs, "EPSG:", 5) != 0 || strcmp(layer->srs, "EPSG:3857") == 0 ||
            strchr(layer->srs, ' ') != NULL)
            continue;
        const char *word = apr_pstrcat(pool, " ", layer->srs, " ", NULL);
        if (strstr(apr_pstrcat(pool, " ", list, " ", NULL), word) == NULL)
            list = apr_pstrcat(pool, list, " ", layer->srs, NULL);
    }
    return list;
}

void
mc_data_write_services(apr_array_header_t *out, const char *crs)
{
    static const char *const plain[] = { "wmts", "tms", "gmaps", "kml", "ve", "ogcapi", "demo" };
    put_line(out, "  <service type=\"wms\" enabled=\"true\">\n    <full_wms>forward</full_wms>\n");
    put_line(out, "    <format allow_client_override=\"true\">PNG</format>\n");
    put_element(out, "    ", "srs", crs);
    put_line(out, "  </service>\n");
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        put_line(out, "  <service type=\"%s\" enabled=\"true\"/>\n", plain[i]);
}

static void
put_config_head(apr_array_header_t *out, const mc_data_config *config)
{
    put_line(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!--\n");
    if (config->made_by != NULL)
        put_line(out, "  Written by: %s\n", comment_text(config->made_by, 200, out->pool));
    put_line(out,
             "  For Apache:  MapCacheAlias /maps /path/of/this/mapcache.xml\n"
             "  For nginx:   as /etc/mapcache/mapcache.xml, systemctl start mapcache.socket, and "
             "fastcgi_pass unix:/run/mapcache/mapcache.sock\n"
             "  Complaints about changes: mapcache check mapcache.xml. All that may stand here: mapcache.xml.sample "
             "and docs/configuration.md.\n-->\n<mapcache>\n");
    if (config->title != NULL)
        put_line(out, "  <metadata><title>%s</title></metadata>\n\n", mc_xml_escape(config->title, out->pool));
}

static const char *
describe_place(const mc_data_layer *layer, apr_pool_t *pool)
{
    if (!layer->has_degrees)
        return "its place is not known";
    const mc_extent *box = &layer->degrees;
    return apr_psprintf(pool, "%.4f to %.4f degrees of longitude, %.4f to %.4f of latitude", box->minx, box->maxx,
                        box->miny, box->maxy);
}

static void
put_layer_comment(apr_array_header_t *out, const mc_data_layer *layer)
{
    static const char *const kinds[] = { "a raster", "vector data", "stored tiles" };
    static const char *const shapes[] = { "", " (points)", " (lines)", " (areas)" };
    const char *srs = layer->srs == NULL                     ? "unknown CRS"
                      : strncmp(layer->srs, "EPSG:", 5) == 0 ? layer->srs
                                                             : "a CRS without a code";
    const char *text =
        apr_psprintf(out->pool, "%s: %s%s, %s; %s", mc_message_text(layer->title, 200, out->pool), kinds[layer->kind],
                     layer->kind == MC_DATA_VECTOR ? shapes[layer->shape] : "", srs, describe_place(layer, out->pool));
    put_line(out, "  <!-- %s -->\n", comment_text(text, 600, out->pool));
}

static bool
any_of_kind(const mc_data_found *found, mc_data_kind kind)
{
    for (int i = 0; i < found->layers->nelts; i++)
        if (APR_ARRAY_IDX(found->layers, i, const mc_data_layer *)->kind == kind)
            return true;
    return false;
}

static bool
any_vector_tiles(const mc_data_found *found)
{
    bool any = any_of_kind(found, MC_DATA_VECTOR);
    for (int i = 0; i < found->layers->nelts && !any; i++) {
        const char *format = APR_ARRAY_IDX(found->layers, i, const mc_data_layer *)->format;
        any = format != NULL && strcmp(format, "MVT") == 0;
    }
    return any;
}

/* A name of a cache or a format that no layer has. */
static const char *
free_name(const char *wanted, const mc_data_found *found, apr_pool_t *pool)
{
    for (int i = 0; i < found->layers->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(found->layers, i, const mc_data_layer *)->name, wanted) == 0)
            return free_name(apr_pstrcat(pool, wanted, "_", NULL), found, pool);
    return wanted;
}

static void
put_stores(apr_array_header_t *out, const mc_data_found *found, const mc_data_elements *names)
{
    for (int i = 0; i < found->layers->nelts; i++) {
        const mc_data_layer *layer = APR_ARRAY_IDX(found->layers, i, const mc_data_layer *);
        mc_data_elements elements = *names;
        elements.tileset = elements.source = layer->name;
        put_layer_comment(out, layer);
        mc_data_write_store(out, layer, &elements);
    }
    if (any_of_kind(found, MC_DATA_RASTER) || any_of_kind(found, MC_DATA_VECTOR))
        put_line(
            out,
            "\n  <!-- Maps are drawn when they are asked for, and are never older than the data. A cache that keeps "
            "tiles instead is, for example,\n       <cache name=\"tiles\" type=\"sqlite3\"><dbfile>"
            "/var/cache/mapcache/tiles.sqlite3</dbfile></cache>; a tileset of such a cache sees\n       "
            "changes of the data with <auto_expire>. -->\n  <cache name=\"%s\" type=\"none\"/>\n",
            names->none);
    if (any_vector_tiles(found))
        put_line(out, "  <format name=\"%s\" type=\"MVT\"/>\n", names->mvt);
    put_line(out, "\n");
}

static bool
mvt_name_is_free(const char *name, const mc_data_found *found)
{
    for (int i = 0; i < found->layers->nelts; i++) {
        const char *other = APR_ARRAY_IDX(found->layers, i, const mc_data_layer *)->name;
        size_t size = strlen(name);
        if (strncmp(other, name, size) == 0 && strcmp(other + size, "-mvt") == 0)
            return false;
    }
    return true;
}

const char *
mc_data_write_config(const mc_data_found *found, const mc_data_config *config, apr_pool_t *pool)
{
    apr_array_header_t *out = apr_array_make(pool, 64, sizeof(const char *));
    const mc_data_elements names = { .none = free_name("none", found, pool), .mvt = free_name("mvt", found, pool) };
    put_config_head(out, config);
    put_stores(out, found, &names);
    for (int i = 0; i < found->layers->nelts; i++) {
        const mc_data_layer *layer = APR_ARRAY_IDX(found->layers, i, const mc_data_layer *);
        mc_data_elements elements = names;
        elements.tileset = elements.source = layer->name;
        mc_data_write_tileset(out, layer, &elements, false);
        if (layer->kind == MC_DATA_VECTOR && mvt_name_is_free(layer->name, found))
            mc_data_write_tileset(out, layer, &elements, true);
    }
    put_line(out, "\n");
    mc_data_write_services(out, mc_data_crs_list(found->layers, pool));
    if (config->closed)
        put_line(out, "  <cors>off</cors>\n");
    put_line(out, "</mapcache>\n");
    return apr_array_pstrcat(pool, out, '\0');
}
