/* <palette>: styles of stored palette PNGs (docs/palettes.md). The colours are changed when a tile is asked for; the
 * store keeps each tile once. */
#include <apr_file_io.h>
#include <apr_strings.h>
#include <string.h>

#include "base/hash.h"
#include "config/config_files.h"
#include "text/text.h"
#include "tileset/tileset_private.h"

#define OWN_STYLE "default"

enum { PALETTES_MAX = 100, PALETTE_NAME_MAX = 100, PALETTE_FILE_MAX = 1 << 20 };

typedef struct palette_config {
    const char *name, *title, *file, *colors;
} palette_config;

#define FIELD(member) offsetof(palette_config, member)

const mc_key mc_palette_keys[] = {
    MC_KEY_TEXT(
        "@name", FIELD(name),
        "The style as clients ask for it. `default` names the colours that the tiles are stored with: entries of "
        "a tile's palette are then known by their colours, not by their places.",
        .flags = MC_KEY_OURS | MC_KEY_REQUIRED),
    MC_KEY_TEXT("@title", FIELD(title), "For capabilities, legends and pages; the name without it.",
                .flags = MC_KEY_OURS),
    MC_KEY_TEXT(
        "@file", FIELD(file),
        "A colour table (lines of number, red, green, blue, alpha, label) or a ColorMap of NASA's GIBS, instead of "
        "the element's text.",
        .flags = MC_KEY_OURS | MC_KEY_FILE),
    MC_KEY_TEXT("", FIELD(colors), "A colour table: the lines that a file would have.", .flags = MC_KEY_OURS),
    MC_KEY_END,
};

#undef FIELD

static const char *
read_palette_file(const char *file, apr_pool_t *pool)
{
    apr_file_t *handle;
    apr_finfo_t info;
    if (apr_file_open(&handle, file, APR_READ | APR_BINARY, 0, pool) != APR_SUCCESS)
        return NULL;
    apr_size_t size = 0;
    char *text = NULL;
    if (apr_file_info_get(&info, APR_FINFO_SIZE | APR_FINFO_TYPE, handle) == APR_SUCCESS && info.filetype == APR_REG &&
        info.size <= PALETTE_FILE_MAX) {
        size = (apr_size_t)info.size;
        text = apr_palloc(pool, size + 1);
        if (apr_file_read_full(handle, text, size, &size) != APR_SUCCESS && size != 0)
            text = NULL;
    }
    apr_file_close(handle);
    if (text != NULL)
        text[size] = '\0';
    return text != NULL && strlen(text) == size ? text : NULL;
}

static bool
read_palette_xml(mc_color_map *map, const char *file, const mc_node *node, mc_build *build)
{
    mc_node *root;
    mc_color_map_problem problem;
    mc_error *error = mc_xml_parse_file(&root, file, build->pool);
    if (error != MC_OK) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "palette \"%s\": %s", map->name, error->message);
        return false;
    }
    if (mc_color_map_read_xml(map, root, &problem, build->pool))
        return true;
    mc_complain_at(build->diagnostics, MC_REFUSED, file, problem.line, 1, "palette \"%s\": %s", map->name,
                   problem.text);
    return false;
}

/* Lines of a text count from `line`. */
static bool
read_palette_text(mc_color_map *map, const char *text, const char *file, int line, mc_build *build)
{
    mc_color_map_problem problem;
    if (mc_color_map_read_text(map, text, &problem, build->pool))
        return true;
    mc_complain_at(build->diagnostics, MC_REFUSED, file, line + problem.line - 1, 1, "palette \"%s\": %s", map->name,
                   problem.text);
    return false;
}

static bool
read_palette_colors(mc_color_map *map, const palette_config *config, const mc_node *node, mc_build *build)
{
    bool inside = config->colors != NULL && config->colors[strspn(config->colors, " \t\r\n")] != '\0';
    if (inside == (config->file != NULL)) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "palette \"%s\" has %s: give a file, or lines \"number red green blue\" inside of the element",
                    config->name, inside ? "a file and colours of its own" : "neither a file nor colours");
        return false;
    }
    if (inside)
        return read_palette_text(map, config->colors, node->file, node->line, build);
    mc_config_files_note(build->diagnostics->read, config->file);
    const char *text = read_palette_file(config->file, build->pool);
    if (text == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "palette \"%s\": cannot read \"%s\"; a text file of at most 1 MB is needed", config->name,
                    config->file);
        return false;
    }
    if (text[strspn(text, " \t\r\n")] == '<')
        return read_palette_xml(map, config->file, node, build);
    return read_palette_text(map, text, config->file, 1, build);
}

static const mc_color_map *
find_palette_style(const mc_tileset *tileset, const char *name)
{
    for (int i = 0; i < tileset->palette_count; i++)
        if (strcmp(tileset->palettes[i]->name, name) == 0)
            return tileset->palettes[i];
    return NULL;
}

/* A style's name stands in lists with commas, in paths and in brackets. */
static bool
is_palette_name(const char *name)
{
    return *name != '\0' && strlen(name) <= PALETTE_NAME_MAX && strpbrk(name, ",;/[]=") == NULL &&
           !mc_text_has_controls(name) && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static void
add_palette(mc_tileset *tileset, const mc_node *node, mc_build *build)
{
    palette_config config = { 0 };
    if (!mc_config_read(&config, node, mc_palette_keys, build->diagnostics))
        return;
    bool own = strcmp(config.name, OWN_STYLE) == 0;
    if (!is_palette_name(config.name)) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "a palette's name has 1 to %d bytes and none of , ; / [ ] = in it", (int)PALETTE_NAME_MAX);
        return;
    }
    if (own ? tileset->stored_palette != NULL : find_palette_style(tileset, config.name) != NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "tileset \"%s\" has two palettes \"%s\"", tileset->name,
                    config.name);
        return;
    }
    mc_color_map *map = apr_pcalloc(build->pool, sizeof(*map));
    map->name = config.name;
    map->title = config.title != NULL ? config.title : config.name;
    if (!read_palette_colors(map, &config, node, build))
        return;
    if (own)
        tileset->stored_palette = map;
    else
        tileset->palettes[tileset->palette_count++] = map;
}

/* Why the tiles of a tileset cannot have other palettes; NULL: they can. */
static const char *
find_palette_obstacle(const mc_tileset *tileset)
{
    const mc_format *format = tileset->format;
    if (tileset->assembly != MC_ASSEMBLE_NONE)
        return "an <assembly_type>: its tiles are drawn from several";
    if (format != NULL && format->type != MC_FORMAT_PNG)
        return "a <format> that is not PNG";
    if (tileset->watermark != NULL)
        return "a <watermark>, which has colours of its own";
    for (int i = 0; i < tileset->link_count; i++) {
        if (tileset->links[i]->ruleset != NULL)
            return "a grid with a ruleset, whose colour is not of the palette";
        if (tileset->links[i]->max_cached_zoom >= 0 && tileset->links[i]->strategy == MC_PROXY)
            return "a max-cached-zoom with the strategy proxy, whose tiles are not stored";
    }
    return NULL;
}

/* What each style says of the numbers that are stored. */
static void
compare_palettes(const mc_tileset *tileset, const mc_node *node, mc_build *build)
{
    const mc_color_map *stored = tileset->stored_palette;
    for (int i = 0; i < tileset->palette_count; i++) {
        const mc_color_map *map = tileset->palettes[i];
        for (int number = 0; number < stored->count; number++) {
            if (stored->listed[number] && !map->known[number]) {
                mc_complain(build->diagnostics, MC_WARNING, node,
                            "palette \"%s\" has no colour for number %d of the palette \"default\": tiles with that "
                            "colour are answered with an error; add a line for the number, or a line default",
                            map->name, number);
                break;
            }
            if (stored->listed[number] && stored->rgba[number][3] == 0 && map->rgba[number][3] != 0) {
                mc_complain(build->diagnostics, MC_WARNING, node,
                            "palette \"%s\" shows number %d, which the palette \"default\" has transparent: tiles of "
                            "nothing else stay transparent, since caches do not keep them",
                            map->name, number);
                break;
            }
        }
    }
}

/* Without the stored colours, places in a tile's palette are numbers: encoders that number colours by themselves make
 * wrong pictures of that. */
static void
check_stored_order(const mc_tileset *tileset, const mc_node *node, mc_build *build)
{
    if (tileset->stored_palette == NULL && tileset->source != NULL)
        mc_complain(
            build->diagnostics, MC_WARNING, node,
            "tileset \"%s\" has palettes and a source: tiles that are rendered here number their colours in any "
            "order. Add a <palette name=\"default\"> with the colours as they are rendered",
            tileset->name);
}

void
mc_tileset_read_palettes(mc_tileset *tileset, const apr_array_header_t *nodes, const mc_node *node, mc_build *build)
{
    if (nodes->nelts == 0)
        return;
    const mc_node *first = APR_ARRAY_IDX(nodes, 0, const mc_node *);
    const char *why = find_palette_obstacle(tileset);
    if (why != NULL || nodes->nelts > PALETTES_MAX) {
        mc_complain(build->diagnostics, MC_REFUSED, first, "tileset \"%s\" cannot have palettes: it has %s",
                    tileset->name, why != NULL ? why : "more than 100");
        return;
    }
    tileset->palettes = apr_pcalloc(build->pool, sizeof(mc_color_map *) * (size_t)nodes->nelts);
    for (int i = 0; i < nodes->nelts; i++)
        add_palette(tileset, APR_ARRAY_IDX(nodes, i, const mc_node *), build);
    if (mc_tileset_dimension(tileset, "style", true) >= 0)
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "tileset \"%s\" has a dimension style: in brackets ([style=...]) clients reach the dimension, not "
                    "the palettes",
                    tileset->name);
    if (tileset->stored_palette != NULL)
        compare_palettes(tileset, first, build);
    else
        check_stored_order(tileset, first, build);
}

bool
mc_tileset_find_style(const mc_color_map **style, const mc_tileset *tileset, const char *name)
{
    *style = NULL;
    if (name == NULL || *name == '\0' || strcmp(name, OWN_STYLE) == 0)
        return true;
    *style = find_palette_style(tileset, name);
    return *style != NULL;
}

static mc_error *
recolor_tile(mc_buf **data, const mc_tile *tile, const mc_tile_request *wanted, apr_pool_t *pool)
{
    const mc_color_map *stored = wanted->tileset->stored_palette;
    if (tile->blank && stored == NULL)
        return mc_error_create(pool, MC_ERR_CORRUPT,
                               "its cache has kept one colour of it and not the "
                               "colour's number (a <palette name=\"default\"> tells the numbers of colours)");
    return mc_color_map_apply(data, tile->data, wanted->style, stored, pool);
}

mc_error *
mc_tile_restyle(mc_tile *tile, const mc_tile_request *wanted, apr_pool_t *pool)
{
    mc_buf *data;
    if (wanted->style == NULL || tile == NULL || tile->no_data || tile->data == NULL)
        return MC_OK;
    const mc_color_map *stored = wanted->tileset->stored_palette;
    uint64_t tags[3] = { mc_tile_tag(tile), wanted->style->tag, stored == NULL ? 0 : stored->tag };
    mc_error *error = recolor_tile(&data, tile, wanted, pool);
    if (error != MC_OK)
        return mc_error_wrap(pool, error, error->kind,
                             "tileset \"%s\": the tile %d/%d/%d cannot be shown in style \"%s\"", wanted->tileset->name,
                             wanted->z, wanted->x, wanted->y, wanted->style->name);
    tile->data = data;
    tile->blank = false;
    tile->coding = MC_CODING_PNG;
    tile->tag = mc_hash64(tags, sizeof(tags), 0);
    tile->tag = tile->tag == 0 ? 1 : tile->tag;
    return MC_OK;
}
