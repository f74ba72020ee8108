/*
 * renderd.conf of renderd and mod_tile (their documentation, "renderd.conf"): each section is a style, whose metatiles
 * are served. Mapnik is not asked.
 */
#include <apr_strings.h>
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "adopt/draft.h"
#include "adopt/ini.h"
#include "text/text.h"

enum { RENDERD_DEEPEST = 20, BUILTIN_DEEPEST = 18 };

static const mc_draft_advice renderd_advice[] = {
    { "xml",
      "Mapnik is not asked: stored tiles are served, missing ones are not drawn. Keep renderd for drawing, or draw the "
      "data by an SLD file (docs/drawing.md)" },
    { "uri", "addresses are /gmaps/STYLE/LEVEL/COLUMN/ROW.png; a rewrite rule of the web server keeps the old ones" },
    { "aspectx", "the tiles of a grid cover its extent; write a <grid> for them" },
    { "aspecty", "the tiles of a grid cover its extent; write a <grid> for them" },
    { "parameterize_style", "the tiles of each value lie in a folder of their own: write a tileset for each" },
    { "server_alias", "the web server says who is listened to" },
    { "htcphost", "nobody is told when a tile changes; <expires> bounds how long it is kept" },
    { NULL, NULL },
};

typedef struct renderd_style {
    mc_adopt *adopt;
    mc_branch *conf;                    /* the section */
    const char *name;                   /* of the section */
    const char *folder;                 /* of its tiles */
    const char *format, *grid, *ending; /* of the addresses of its tiles: "png" */
    int first, last;                    /* levels */
} renderd_style;

static void
note_odd_line(void *baton, int line)
{
    void **both = baton;
    mc_draft_note(both[0], both[1], line,
                  "the line is neither a [section], a KEY=VALUE nor a comment, and is passed over");
}

static bool
exists_folder(const char *path)
{
    return access(path, F_OK) == 0;
}

/* renderd names folders by sections in lower case. NULL after a note. */
static const char *
tile_folder(renderd_style *style, mc_branch *root)
{
    apr_pool_t *pool = style->adopt->pool;
    const char *common = mc_branch_text(root, "renderd.tile_dir", "/var/cache/renderd/tiles");
    const char *folder = mc_branch_text(style->conf, "tiledir", common);
    if (strstr(folder, "://") != NULL || strncmp(folder, "null:", 5) == 0) {
        mc_draft_note_at(style->adopt, style->conf,
                         "style %s is not taken over: its tiles are in %s, and only those in folders are read",
                         style->name, mc_message_text(folder, 200, pool));
        return NULL;
    }
    char *lower = apr_pstrcat(pool, folder, "/", style->name, NULL);
    const char *as_written = apr_pstrdup(pool, lower);
    for (char *c = lower + strlen(folder); *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    const char *found = exists_folder(as_written) && !exists_folder(lower) ? as_written : lower;
    const mc_branch *own = mc_branch_get(style->conf, "tiledir"), *shared = mc_branch_find(root, "renderd.tile_dir");
    mc_draft_note_folder(style->adopt, own != NULL ? own : shared != NULL ? shared : style->conf, folder);
    if (strcmp(lower, as_written) != 0)
        mc_draft_note_at(style->adopt, style->conf,
                         "style %s keeps its capitals in its name here, and its tiles are read from %s: renderd writes "
                         "names of folders in lower case",
                         style->name, mc_message_text(found, 300, pool));
    return found;
}

/* "png image/png png256": the ending, the media type, Mapnik's name. */
static const char *
tile_format(renderd_style *style)
{
    const char *type = mc_branch_text(style->conf, "type", "png image/png png256");
    size_t size = strcspn(type, " \t");
    const char *ending = style->ending = apr_pstrmemdup(style->adopt->pool, type, size);
    if (strcmp(ending, "png") == 0)
        return "PNG";
    if (strcmp(ending, "jpg") == 0 || strcmp(ending, "jpeg") == 0)
        return "JPEG";
    mc_draft_note_at(style->adopt, mc_branch_get(style->conf, "type"),
                     "style %s is not taken over: metatiles are read whose tiles are PNG or JPEG, and these are %s",
                     style->name, mc_message_text(ending, 60, style->adopt->pool));
    return NULL;
}

/* The world in tiles of `side` pixels down to a level; written once. */
static const char *
tile_grid(renderd_style *style, int side, int last)
{
    static const double half = 20037508.342789244;
    mc_adopt *adopt = style->adopt;
    const char *name = side == 256 ? "web-mercator" : apr_psprintf(adopt->pool, "web-mercator-%d", side), *list = "";
    if (side == 256 && last <= BUILTIN_DEEPEST)
        return "GoogleMapsCompatible";
    if (mc_draft_has(adopt, MC_DRAFT_GRIDS, name))
        return name;
    (void)mc_draft_name(adopt, MC_DRAFT_GRIDS, name);
    for (int z = 0; z <= RENDERD_DEEPEST; z++)
        list = apr_pstrcat(adopt->pool, list, z > 0 ? " " : "",
                           mc_double_text('g', 17, ldexp(2 * half / side, -z), adopt->pool), NULL);
    mc_draft_put(adopt, MC_DRAFT_GRIDS,
                 "  <grid name=\"%s\">\n    <srs>EPSG:3857</srs>\n    <srsalias>EPSG:900913</srsalias>\n"
                 "    <extent>-20037508.342789244 -20037508.342789244 20037508.342789244 20037508.342789244</extent>\n"
                 "    <size>%d %d</size>\n    <resolutions>%s</resolutions>\n    <units>m</units>\n  </grid>\n",
                 name, side, side, list);
    adopt->counts.grids++;
    return name;
}

static int
read_style_number(renderd_style *style, const char *key, int least, int most, int otherwise)
{
    int number;
    const char *text = mc_branch_text(style->conf, key, NULL);
    if (text == NULL)
        return otherwise;
    if (mc_parse_int(&number, text, least, most))
        return number;
    mc_draft_note_at(style->adopt, mc_branch_get(style->conf, key),
                     "%s is not taken over: it is no number from %d to %d", key, least, most);
    return otherwise;
}

/* Levels that renderd draws where a section says none: 0 to 20; those beyond 18 only where they are stored. */
static int
deepest_level(const renderd_style *style)
{
    for (int z = RENDERD_DEEPEST; z > BUILTIN_DEEPEST; z--)
        if (exists_folder(apr_psprintf(style->adopt->pool, "%s/%d", style->folder, z)))
            return z;
    return BUILTIN_DEEPEST;
}

/* The path of the tiles at mod_tile. Looking leaves the note that addresses are other ones here. */
static const char *
tile_path(const renderd_style *style)
{
    const char *path = "/";
    for (const mc_branch *child = style->conf->children; child != NULL; child = child->next)
        if (strcmp(child->key, "uri") == 0 && child->text != NULL)
            path = child->text;
    return path;
}

static void
write_renderd_style(renderd_style *style)
{
    mc_adopt *adopt = style->adopt;
    const char *store = mc_draft_name(adopt, MC_DRAFT_CACHES, style->name);
    const char *tileset = mc_draft_name(adopt, MC_DRAFT_TILESETS, style->name);
    const char *about = mc_branch_text(style->conf, "description", NULL);
    mc_draft_put(adopt, MC_DRAFT_CACHES, "  <cache name=\"%s\" type=\"mod_tile\">\n",
                 mc_xml_escape(store, adopt->pool));
    mc_draft_element(adopt, MC_DRAFT_CACHES, "    ", "base", style->folder);
    mc_draft_put(adopt, MC_DRAFT_CACHES, "  </cache>\n");
    mc_draft_put(adopt, MC_DRAFT_TILESETS, "  <tileset name=\"%s\">\n    <metadata>\n",
                 mc_xml_escape(tileset, adopt->pool));
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "      ", "title", about == NULL ? style->name : about);
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "      ", "attribution",
                     mc_branch_text(style->conf, "attribution", NULL));
    mc_draft_put(adopt, MC_DRAFT_TILESETS, "    </metadata>\n");
    mc_draft_element(adopt, MC_DRAFT_TILESETS, "    ", "cache", store);
    mc_draft_put(adopt, MC_DRAFT_TILESETS, "    <grid minzoom=\"%d\" maxzoom=\"%d\">%s</grid>\n", style->first,
                 style->last, style->grid);
    mc_draft_put(
        adopt, MC_DRAFT_TILESETS,
        "    <format>%s</format>\n    <metatile>8 8</metatile>\n    <read-only>true</read-only>\n  </tileset>\n",
        style->format);
    adopt->counts.caches++;
    adopt->counts.tilesets++;
    mc_draft_layer(adopt, tileset, tile_path(style), style->ending);
}

static void
read_renderd_style(mc_adopt *adopt, mc_branch *root, mc_branch *section)
{
    static const char *const tuning[] = { "host", "scale", "socketname", "threads" };
    renderd_style style = { .adopt = adopt, .conf = section, .name = section->key };
    section->taken = true;
    for (size_t i = 0; i < sizeof(tuning) / sizeof(*tuning); i++)
        mc_branch_pass(mc_branch_get(section, tuning[i]));
    if (*style.name == '\0' || strchr(style.name, '/') != NULL || strcmp(style.name, "..") == 0 ||
        strcmp(style.name, ".") == 0) {
        mc_draft_note_at(adopt, section, "a style without a name that a folder can have is not taken over");
        mc_branch_pass(section);
        return;
    }
    style.folder = tile_folder(&style, root);
    style.format = style.folder == NULL ? NULL : tile_format(&style);
    if (style.format == NULL) {
        mc_branch_pass(section);
        return;
    }
    int side = read_style_number(&style, "tilesize", 16, 4096, 256);
    style.last = read_style_number(&style, "maxzoom", 0, RENDERD_DEEPEST, deepest_level(&style));
    style.first = read_style_number(&style, "minzoom", 0, style.last, 0);
    style.grid = tile_grid(&style, side, style.last);
    const char *cors = mc_branch_text(section, "cors", NULL);
    if (cors != NULL && *cors != '\0')
        adopt->cors = cors;
    write_renderd_style(&style);
}

/* [renderd], [renderd1], ...: a process; not a style. */
static bool
is_process_section(const char *name)
{
    return strncasecmp(name, "renderd", 7) == 0 && name[7 + strspn(name + 7, "0123456789")] == '\0';
}

mc_error *
mc_adopt_renderd(mc_adopt *adopt, const char *file)
{
    char *bytes;
    size_t size;
    mc_branch *root;
    void *baton[] = { adopt, (void *)(uintptr_t)file };
    int before = adopt->counts.tilesets;
    MC_TRY(mc_draft_read_file(&bytes, &size, file, adopt));
    MC_TRY(mc_ini_parse(&root, file, bytes, size, note_odd_line, baton, adopt->pool));
    for (mc_branch *section = root->children; section != NULL; section = section->next)
        if (is_process_section(section->key) || strcasecmp(section->key, "mapnik") == 0)
            mc_branch_pass(section);
        else
            read_renderd_style(adopt, root, section);
    mc_draft_note_untaken(adopt, root, renderd_advice);
    return adopt->counts.tilesets > before
               ? MC_OK
               : mc_error_create(adopt->pool, MC_ERR_CONFIG, "%s:1: no section is a style whose tiles can be served",
                                 file);
}
