/*
 * Map files of MapServer (its documentation, "Mapfile"): each layer with a name becomes a tileset. What can be drawn
 * alike has a source and a style of ours; MapServer's library draws the other layers from the same map file.
 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adopt/mapfile_parts.h"
#include "adopt/mapfile_words.h"
#include "mapcache/grid.h"
#include "text/text.h"
#include "vector/crs/projection.h"

enum { INCLUDES_MAX = 200, MAPFILE_VALUES_MAX = 400000 };

/* A pixel is 0.28 mm large in SLD, and as many dots to the inch as RESOLUTION says in a map file. */
#define SLD_DOTS_PER_INCH (25.4 / 0.28)

typedef struct mapserver_reader {
    mc_mapfile_reader parts;
    mc_adopt *adopt;
    apr_array_header_t *open; /* of const char *: files on the way here */
    int included, room;
    bool has_box;
    mc_extent box; /* degrees */
    bool rescaled; /* sizes are not pixels */
} mapserver_reader;

static mc_error *parse_with_includes(mc_branch **root, mapserver_reader *reader, const char *path, const char *shown);

static bool
is_mapfile_there(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, R_OK) == 0;
}

/* What an included file has is put where INCLUDE stands. A file that is not there takes nothing else with it. */
static mc_error *
follow_includes(mapserver_reader *reader, mc_branch *block)
{
    for (mc_branch *child = block->children, *next; child != NULL; child = next) {
        next = child->next;
        if (child->kind != MC_BRANCH_TEXT) {
            MC_TRY(follow_includes(reader, child));
            continue;
        }
        if (child->key == NULL || child->taken || /* what was included is behind it, with its own INCLUDE, if any */
            strcmp(child->key,
                   block->kind == MC_BRANCH_MAP && strcmp(block->key, "METADATA") == 0 ? "include" : "INCLUDE") != 0)
            continue;
        mc_branch *part;
        child->taken = true;
        const char *path = mc_draft_path(reader->parts.folder, child->text, reader->adopt->pool);
        for (int i = 0; i < reader->open->nelts; i++)
            if (strcmp(APR_ARRAY_IDX(reader->open, i, const char *), path) == 0)
                return mc_error_create(reader->adopt->pool, MC_ERR_CONFIG,
                                       "%s:%d: INCLUDE names a file that this one is part of", child->file,
                                       child->line);
        if (!is_mapfile_there(path)) {
            mc_draft_note_at(
                reader->adopt, child,
                "INCLUDE \"%s\" is not followed: there is no such file that can be read; MapServer does not "
                "read a map file without it: put it there, or take the line out",
                mc_message_text(child->text, 200, reader->adopt->pool));
            continue;
        }
        mc_error *error =
            ++reader->included > INCLUDES_MAX
                ? mc_error_create(reader->adopt->pool, MC_ERR_CONFIG, "there are more than %d files", INCLUDES_MAX)
                : parse_with_includes(&part, reader, path, path);
        if (error != MC_OK)
            return mc_error_wrap(reader->adopt->pool, error, MC_ERR_CONFIG, "%s:%d: INCLUDE \"%s\" cannot be followed",
                                 child->file, child->line, mc_message_text(child->text, 200, reader->adopt->pool));
        for (mc_branch *one = part->children, *after; one != NULL; one = after) {
            after = one->next;
            mc_branch_add(block, one);
        }
    }
    return MC_OK;
}

static mc_error *
parse_with_includes(mc_branch **root, mapserver_reader *reader, const char *path, const char *shown)
{
    char *bytes;
    size_t size;
    MC_TRY(mc_draft_read_file(&bytes, &size, path, reader->adopt));
    if (memchr(bytes, '\0', size) != NULL)
        return mc_error_create(reader->adopt->pool, MC_ERR_CONFIG, "%s:1: the file holds a zero byte, and is no text",
                               shown);
    MC_TRY(mc_mapfile_parse(root, shown, bytes, &reader->room, reader->adopt->pool));
    APR_ARRAY_PUSH(reader->open, const char *) = path;
    mc_error *error = follow_includes(reader, *root);
    apr_array_pop(reader->open);
    return error;
}

/* "init=epsg:3857" and "epsg:3857"; NULL: others, or none. */
static const char *
projection_code(mc_branch *block, apr_pool_t *pool)
{
    int code;
    const mc_branch *item = mc_branch_item(mc_branch_get(block, "PROJECTION"), 0);
    if (item == NULL || item->text == NULL)
        return NULL;
    const char *text = item->text + (strncasecmp(item->text, "init=", 5) == 0 ? 5 : 0);
    return strncasecmp(text, "epsg:", 5) == 0 && mc_parse_int(&code, text + 5, 1, 999999)
               ? apr_psprintf(pool, "EPSG:%d", code)
               : NULL;
}

/* Where a block's EXTENT lies, in degrees. */
static bool
read_degrees(mc_extent *box, mc_branch *block, const char *srs, apr_pool_t *pool)
{
    double edges[4];
    mc_projection *projection;
    if (srs == NULL || mc_branch_numbers(edges, 4, mc_branch_get(block, "EXTENT")) != 4)
        return false;
    *box = (mc_extent){ edges[0], edges[1], edges[2], edges[3] };
    if (!mc_extent_valid(box) || mc_projection_open(&projection, srs, "EPSG:4326", pool) != MC_OK)
        return false;
    return (projection == NULL || mc_projection_box(box, projection, false)) && mc_extent_valid(box);
}

/* A file of data, with or without the ending of shapefiles. */
static bool
is_data_there(const char *folder, const char *name, apr_pool_t *pool)
{
    static const char *const endings[] = { "", ".shp", ".SHP" };
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
        if (access(apr_pstrcat(pool, mc_draft_path(folder, name, pool), endings[i], NULL), F_OK) == 0)
            return true;
    return false;
}

/* Whether DATA names a file: no table, no address of GDAL's, nothing that a request fills in. */
static bool
is_plain_file(mc_branch *layer, const char *data)
{
    const char *type = mc_branch_text(layer, "CONNECTIONTYPE", "LOCAL");
    return strcasecmp(type, "LOCAL") == 0 && *data != '\0' && strpbrk(data, ":%<(") == NULL &&
           strncasecmp(data, "/vsi", 4) != 0;
}

/* Notes a file that is not there: MapServer looks in SHAPEPATH and beside the map file. Whether there is such a note.
 */
static bool
note_missing_data(mapserver_reader *reader, mc_branch *layer, const char *name)
{
    apr_pool_t *pool = reader->adopt->pool;
    const char *data = mc_branch_text(layer, "DATA", "");
    if (!is_plain_file(layer, data) || is_data_there(reader->parts.folder, data, pool) ||
        (reader->parts.shapes != NULL &&
         is_data_there(mc_draft_path(reader->parts.folder, reader->parts.shapes, pool), data, pool)))
        return false;
    mc_draft_note_at(reader->adopt, mc_branch_get(layer, "DATA"),
                     "LAYER %s cannot be drawn: the file of its DATA %s is not there; put it there, or name another",
                     mc_message_text(name, 100, pool), mc_message_text(data, 200, pool));
    return true;
}

static const char *
metadata_text(mc_branch *block, const char *first, const char *second)
{
    mc_branch *metadata = mc_branch_get(block, "METADATA");
    return mc_branch_text(metadata, first, mc_branch_text(metadata, second, NULL));
}

/* What the layer's tileset says of itself. */
static void
put_mapfile_metadata(mapserver_reader *reader, mc_branch *layer, const char *name)
{
    mc_adopt *adopt = reader->adopt;
    mc_extent box;
    const char *title = metadata_text(layer, "wms_title", "ows_title");
    bool own = read_degrees(&box, layer, projection_code(layer, adopt->pool), adopt->pool);
    mc_draft_put(adopt, MC_DRAFT_TILESETS, "    <metadata>\n");
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "      ", "title", title == NULL ? name : title);
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "      ", "abstract",
                     metadata_text(layer, "wms_abstract", "ows_abstract"));
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "      ", "attribution",
                     metadata_text(layer, "wms_attribution_title", "ows_attribution_title"));
    if (own || reader->has_box) {
        const mc_extent *shown = own ? &box : &reader->box;
        mc_draft_put(adopt, MC_DRAFT_TILESETS, "      <wgs84boundingbox>%s %s %s %s</wgs84boundingbox>\n",
                     mc_double_text('g', 9, shown->minx, adopt->pool), mc_double_text('g', 9, shown->miny, adopt->pool),
                     mc_double_text('g', 9, shown->maxx, adopt->pool),
                     mc_double_text('g', 9, shown->maxy, adopt->pool));
    }
    mc_draft_put(adopt, MC_DRAFT_TILESETS, "    </metadata>\n");
}

/* A tileset of a source that has been written; `margin`: around each metatile, of sources that do not see beyond. */
static void
write_mapfile_tileset(mapserver_reader *reader, mc_branch *layer, const char *name, const char *source, bool margin)
{
    mc_adopt *adopt = reader->adopt;
    const char *tileset = mc_draft_name(adopt, MC_DRAFT_TILESETS, name);
    mc_draft_put(adopt, MC_DRAFT_TILESETS, "  <tileset name=\"%s\">\n", mc_xml_escape(tileset, adopt->pool));
    put_mapfile_metadata(reader, layer, name);
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "    ", "source", source);
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "    ", "cache", mc_draft_no_cache(adopt));
    mc_draft_put(adopt, MC_DRAFT_TILESETS,
                 "    <grid>GoogleMapsCompatible</grid>\n    <grid>WGS84</grid>\n    <format>PNG</format>\n    "
                 "<metatile>4 4</metatile>\n%s  </tileset>\n",
                 margin ? "    <metabuffer>10</metabuffer>\n" : "");
    adopt->counts.sources++;
    adopt->counts.tilesets++;
    mc_draft_layer(adopt, tileset, name, NULL);
}

static void
write_mapserver_layer(mapserver_reader *reader, mc_branch *layer, const char *name)
{
    mc_adopt *adopt = reader->adopt;
    const char *source = mc_draft_name(adopt, MC_DRAFT_SOURCES, name);
    mc_draft_put(adopt, MC_DRAFT_SOURCES, "  <source name=\"%s\" type=\"mapserver\">\n",
                 mc_xml_escape(source, adopt->pool));
    mc_draft_element(adopt, MC_DRAFT_SOURCES, "    ", "mapfile", reader->parts.path);
    mc_draft_element(adopt, MC_DRAFT_SOURCES, "    ", "layers", name);
    mc_draft_put(adopt, MC_DRAFT_SOURCES, "    <background>transparent</background>\n  </source>\n");
    write_mapfile_tileset(reader, layer, name, source, true);
}

/* TYPE of a layer that can be drawn here. */
static bool
read_layer_type(mc_mapfile_reader *parts)
{
    const mc_branch *said = mc_branch_get(parts->layer, "TYPE");
    const char *type = mc_branch_text(parts->layer, "TYPE", "");
    parts->type = strcasecmp(type, "POINT") == 0  ? MC_MAPFILE_POINT
                  : strcasecmp(type, "LINE") == 0 ? MC_MAPFILE_LINE
                                                  : MC_MAPFILE_POLYGON;
    return parts->type != MC_MAPFILE_POLYGON || strcasecmp(type, "POLYGON") == 0 ||
           mc_mapfile_refuse(parts, said == NULL ? parts->layer : said, "TYPE %s",
                             mc_message_text(type, 60, parts->pool));
}

/* Values of a layer that change no picture, or that others read. */
static bool
read_layer_rest(mc_mapfile_reader *parts)
{
    static const char *const passed[] = { "NAME",
                                          "GROUP",
                                          "STATUS",
                                          "TEMPLATE",
                                          "HEADER",
                                          "FOOTER",
                                          "DEBUG",
                                          "DUMP",
                                          "TOLERANCEUNITS",
                                          "TOLERANCE",
                                          "METADATA",
                                          "VALIDATION",
                                          "EXTENT",
                                          "ENCODING",
                                          "LABELCACHE",
                                          "CONNECTION",
                                          "CLASSGROUP",
                                          "CLASSITEM",
                                          "LABELITEM",
                                          "FILTERITEM",
                                          "UNITS",
                                          "LABELMINSCALEDENOM",
                                          "LABELMAXSCALEDENOM",
                                          NULL };
    const mc_branch *units = mc_branch_get(parts->layer, "SIZEUNITS");
    if (units != NULL && (units->text == NULL || strcasecmp(units->text, "PIXELS") != 0))
        return mc_mapfile_refuse(parts, units, "SIZEUNITS that are not pixels");
    mc_mapfile_pass(parts->layer, passed);
    return mc_mapfile_is_read(parts, parts->layer);
}

/* Writes a source and a style of ours. False: the layer is refused, and nothing is written. */
static bool
write_own_layer(mapserver_reader *reader, mc_branch *layer, const char *name)
{
    mc_mapfile_reader *parts = &reader->parts;
    mc_adopt *adopt = reader->adopt;
    const char *kind;
    double least, most;
    parts->layer = layer;
    parts->refused = NULL;
    if (!read_layer_type(parts))
        return false;
    const char *data = mc_mapfile_data(&kind, parts), *style = data == NULL ? NULL : mc_mapfile_style(parts);
    if (style == NULL || !mc_mapfile_number(&least, parts, layer, "MINSCALEDENOM", -1) ||
        !mc_mapfile_number(&most, parts, layer, "MAXSCALEDENOM", -1) || !read_layer_rest(parts))
        return false;
    const char *source = mc_draft_name(adopt, MC_DRAFT_SOURCES, name), *shown = mc_xml_escape(source, adopt->pool);
    mc_draft_put(adopt, MC_DRAFT_SOURCES, "  <source name=\"%s\" type=\"%s\">\n    <layer name=\"%s\">\n%s", shown,
                 kind, mc_xml_escape(name, adopt->pool), data);
    mc_draft_element(adopt, MC_DRAFT_SOURCES, "      ", "style", mc_draft_style(adopt, name, style));
    if (least > 0)
        mc_draft_element(adopt, MC_DRAFT_SOURCES, "      ", "min_scale",
                         mc_mapfile_digits(least * parts->scale_unit, adopt->pool));
    if (most > 0)
        mc_draft_element(adopt, MC_DRAFT_SOURCES, "      ", "max_scale",
                         mc_mapfile_digits(most * parts->scale_unit, adopt->pool));
    mc_draft_put(adopt, MC_DRAFT_SOURCES, "    </layer>\n  </source>\n");
    write_mapfile_tileset(reader, layer, name, source, false);
    return true;
}

/* By a source of ours where the layer can be drawn alike; else by MapServer, with a note, unless the data are in the
 * map file itself, which nothing else can read. */
static void
write_mapfile_layer(mapserver_reader *reader, mc_branch *layer, const char *name)
{
    bool missing = note_missing_data(reader, layer, name), own = mc_draft_has_styles(reader->adopt);
    bool inside = mc_branch_get(layer, "FEATURE") != NULL ||
                  (mc_branch_get(layer, "DATA") == NULL && mc_branch_get(layer, "CONNECTION") == NULL &&
                   mc_branch_get(layer, "TILEINDEX") == NULL);
    if (own && !missing && !inside && !reader->rescaled) {
        if (write_own_layer(reader, layer, name))
            return;
        mc_draft_note_at(
            reader->adopt, reader->parts.refused,
            "LAYER %s is drawn by MapServer's library, because of %s: without that mapcache draws the layer "
            "itself, in a part of the time",
            mc_message_text(name, 100, reader->adopt->pool), reader->parts.refusal);
    }
    write_mapserver_layer(reader, layer, name);
}

static void
take_mapserver_layer(mapserver_reader *reader, mc_branch *layer)
{
    const char *name = mc_branch_text(layer, "NAME", NULL);
    mc_adopt *adopt = reader->adopt;
    if (name == NULL || *name == '\0')
        mc_draft_note_at(adopt, layer, "LAYER without a NAME is not taken over: give it one");
    else if (strchr(name, ',') != NULL)
        mc_draft_note_at(adopt, layer,
                         "LAYER %s is not taken over: a comma stands in its NAME, which parts names in requests", name);
    else if (mc_branch_get(layer, "CONNECTIONTYPE") != NULL &&
             strcasecmp(mc_branch_text(layer, "CONNECTIONTYPE", ""), "WFS") == 0)
        mc_draft_note_at(
            adopt, mc_branch_get(layer, "CONNECTIONTYPE"),
            "LAYER %s is not taken over: CONNECTIONTYPE WFS is not served from tiles; copy the features into a file",
            name);
    else if (strcasecmp(mc_branch_text(layer, "TYPE", ""), "QUERY") == 0)
        mc_draft_note_at(adopt, layer, "LAYER %s is not taken over: TYPE QUERY draws nothing", name);
    else
        write_mapfile_layer(reader, layer, name);
}

static void
put_map_metadata(mc_adopt *adopt, mc_branch *map)
{
    static const struct {
        const char *wms, *ows, *here;
    } words[] = { { "wms_title", "ows_title", "title" },
                  { "wms_abstract", "ows_abstract", "abstract" },
                  { "wms_fees", "ows_fees", "fees" },
                  { "wms_accessconstraints", "ows_accessconstraints", "accessconstraints" },
                  { "wms_contactperson", "ows_contactperson", "contactname" },
                  { "wms_contactorganization", "ows_contactorganization", "contactorganization" },
                  { "wms_contactelectronicmailaddress", "ows_contactelectronicmailaddress",
                    "contactelectronicmailaddress" } };
    mc_branch *web = mc_branch_get(map, "WEB");
    if (web == NULL || mc_draft_has(adopt, MC_DRAFT_HEAD, "metadata"))
        return;
    (void)mc_draft_name(adopt, MC_DRAFT_HEAD, "metadata");
    mc_draft_put(adopt, MC_DRAFT_HEAD, "  <metadata>\n");
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        mc_draft_element(adopt, MC_DRAFT_HEAD, "    ", words[i].here, metadata_text(web, words[i].wms, words[i].ows));
    mc_draft_put(adopt, MC_DRAFT_HEAD, "  </metadata>\n");
}

/* What layers have in common. */
static void
read_map_values(mapserver_reader *reader, mc_branch *map)
{
    mc_mapfile_reader *parts = &reader->parts;
    double resolution, sizes;
    parts->shapes = mc_branch_text(map, "SHAPEPATH", NULL);
    parts->srs = projection_code(map, parts->pool);
    reader->has_box = read_degrees(&reader->box, map, parts->srs, parts->pool);
    if (!mc_draft_has_styles(reader->adopt))
        return;
    if (!mc_parse_double(&resolution, mc_branch_text(map, "RESOLUTION", "72")) || !(resolution >= 1))
        resolution = 72;
    if (!mc_parse_double(&sizes, mc_branch_text(map, "DEFRESOLUTION", "72")) || sizes != resolution) {
        reader->rescaled = true;
        mc_draft_note_at(
            reader->adopt, mc_branch_get(map, "RESOLUTION") == NULL ? map : mc_branch_get(map, "RESOLUTION"),
            "all layers are drawn by MapServer's library, because of a RESOLUTION that is not DEFRESOLUTION: "
            "sizes are not pixels");
    }
    parts->scale_unit = SLD_DOTS_PER_INCH / resolution;
    mc_mapfile_read_symbols(parts, map);
    mc_mapfile_read_fonts(parts, map);
}

mc_error *
mc_adopt_mapfile(mc_adopt *adopt, const char *file)
{
    mc_branch *root;
    mapserver_reader reader = { .adopt = adopt,
                                .room = MAPFILE_VALUES_MAX,
                                .open = apr_array_make(adopt->pool, 4, sizeof(const char *)) };
    reader.parts = (mc_mapfile_reader){ .adopt = adopt,
                                        .pool = adopt->pool,
                                        .path = mc_draft_path(".", file, adopt->pool),
                                        .symbols = apr_hash_make(adopt->pool),
                                        .fonts = apr_hash_make(adopt->pool),
                                        .families = apr_hash_make(adopt->pool) };
    reader.parts.folder = mc_draft_folder(reader.parts.path, adopt->pool);
    int before = adopt->counts.tilesets;
    MC_TRY(parse_with_includes(&root, &reader, reader.parts.path, file));
    mc_branch *map = mc_branch_get(root, "MAP");
    if (map == NULL)
        return mc_error_create(adopt->pool, MC_ERR_CONFIG,
                               "%s:1: it does not begin with MAP, as map files of MapServer do", file);
    put_map_metadata(adopt, map);
    read_map_values(&reader, map);
    for (mc_branch *layer = map->children; layer != NULL; layer = layer->next)
        if (layer->key != NULL && strcmp(layer->key, "LAYER") == 0)
            take_mapserver_layer(&reader, layer);
    return adopt->counts.tilesets > before
               ? MC_OK
               : mc_error_create(adopt->pool, MC_ERR_CONFIG, "%s:1: no LAYER of it can be served", file);
}
