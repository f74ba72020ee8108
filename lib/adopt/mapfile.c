/*
 * Map files of MapServer (its documentation, "Mapfile"): each layer with a name becomes a tileset that MapServer's
 * library draws from the same map file, so that nothing looks different.
 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "adopt/draft.h"
#include "adopt/mapfile_words.h"
#include "mapcache/grid.h"
#include "text/text.h"
#include "vector/crs/projection.h"

enum { INCLUDES_MAX = 200 };

typedef struct mapserver_reader {
    mc_adopt *adopt;
    const char *path;         /* of the map file, absolute */
    const char *folder;       /* that INCLUDE is seen from */
    apr_array_header_t *open; /* of const char *: files on the way here */
    int included, room;
    bool has_box;
    mc_extent box;      /* degrees */
    const char *shapes; /* SHAPEPATH; NULL: none */
} mapserver_reader;

static mc_error *parse_with_includes(mc_branch **root, mapserver_reader *reader, const char *path, const char *shown);

/* What an included file has is put where INCLUDE stands. A file that is not there is an error: MapServer does not read
 * such a map file either. */
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
        const char *path = mc_draft_path(reader->folder, child->text, reader->adopt->pool);
        for (int i = 0; i < reader->open->nelts; i++)
            if (strcmp(APR_ARRAY_IDX(reader->open, i, const char *), path) == 0)
                return mc_error_create(reader->adopt->pool, MC_ERR_CONFIG,
                                       "%s:%d: INCLUDE names a file that this one is part of", child->file,
                                       child->line);
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

/* Notes a file that is not there: MapServer looks in SHAPEPATH and beside the map file. */
static void
note_missing_data(mapserver_reader *reader, mc_branch *layer, const char *name)
{
    apr_pool_t *pool = reader->adopt->pool;
    const char *data = mc_branch_text(layer, "DATA", "");
    if (!is_plain_file(layer, data) || is_data_there(reader->folder, data, pool) ||
        (reader->shapes != NULL && is_data_there(mc_draft_path(reader->folder, reader->shapes, pool), data, pool)))
        return;
    mc_draft_note_at(reader->adopt, mc_branch_get(layer, "DATA"),
                     "LAYER %s cannot be drawn: the file of its DATA %s is not there; put it there, or name another",
                     mc_message_text(name, 100, pool), mc_message_text(data, 200, pool));
}

static const char *
metadata_text(mc_branch *block, const char *first, const char *second)
{
    mc_branch *metadata = mc_branch_get(block, "METADATA");
    return mc_branch_text(metadata, first, mc_branch_text(metadata, second, NULL));
}

static void
write_mapserver_layer(mapserver_reader *reader, mc_branch *layer, const char *name)
{
    mc_adopt *adopt = reader->adopt;
    mc_extent box;
    const char *source = mc_draft_name(adopt, MC_DRAFT_SOURCES, name),
               *tileset = mc_draft_name(adopt, MC_DRAFT_TILESETS, name);
    const char *title = metadata_text(layer, "wms_title", "ows_title");
    bool own = read_degrees(&box, layer, projection_code(layer, adopt->pool), adopt->pool);
    mc_draft_put(adopt, MC_DRAFT_SOURCES, "  <source name=\"%s\" type=\"mapserver\">\n",
                 mc_xml_escape(source, adopt->pool));
    mc_draft_element(adopt, MC_DRAFT_SOURCES, "    ", "mapfile", reader->path);
    mc_draft_element(adopt, MC_DRAFT_SOURCES, "    ", "layers", name);
    mc_draft_put(adopt, MC_DRAFT_SOURCES, "    <background>transparent</background>\n  </source>\n");
    mc_draft_put(adopt, MC_DRAFT_TILESETS, "  <tileset name=\"%s\">\n    <metadata>\n",
                 mc_xml_escape(tileset, adopt->pool));
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
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "    ", "source", source);
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "    ", "cache", mc_draft_no_cache(adopt));
    mc_draft_put(adopt, MC_DRAFT_TILESETS,
                 "    <grid>GoogleMapsCompatible</grid>\n    <grid>WGS84</grid>\n    <format>PNG</format>\n    "
                 "<metatile>4 4</metatile>\n"
                 "    <metabuffer>10</metabuffer>\n  </tileset>\n");
    adopt->counts.sources++;
    adopt->counts.tilesets++;
    mc_draft_layer(adopt, tileset, name, NULL);
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
    else {
        note_missing_data(reader, layer, name);
        write_mapserver_layer(reader, layer, name);
    }
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

mc_error *
mc_adopt_mapfile(mc_adopt *adopt, const char *file)
{
    mc_branch *root;
    mapserver_reader reader = { .adopt = adopt,
                                .path = mc_draft_path(".", file, adopt->pool),
                                .room = MC_BRANCHES_MAX,
                                .open = apr_array_make(adopt->pool, 4, sizeof(const char *)) };
    reader.folder = mc_draft_folder(reader.path, adopt->pool);
    int before = adopt->counts.tilesets;
    MC_TRY(parse_with_includes(&root, &reader, reader.path, file));
    mc_branch *map = mc_branch_get(root, "MAP");
    if (map == NULL)
        return mc_error_create(adopt->pool, MC_ERR_CONFIG,
                               "%s:1: it does not begin with MAP, as map files of MapServer do", file);
    put_map_metadata(adopt, map);
    reader.shapes = mc_branch_text(map, "SHAPEPATH", NULL);
    reader.has_box = read_degrees(&reader.box, map, projection_code(map, adopt->pool), adopt->pool);
    for (mc_branch *layer = map->children; layer != NULL; layer = layer->next)
        if (layer->key != NULL && strcmp(layer->key, "LAYER") == 0)
            take_mapserver_layer(&reader, layer);
    return adopt->counts.tilesets > before
               ? MC_OK
               : mc_error_create(adopt->pool, MC_ERR_CONFIG, "%s:1: no LAYER of it can be served", file);
}
