/* Reading colour maps: tables of text, and the XML of NASA's GIBS. */
#include "mapcache/color_map.h"

#include <apr_lib.h>
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "text/text.h"

enum { LABEL_BYTES_MAX = 200, COLUMNS = 5 /* number, red, green, blue, alpha */ };

static const char SEPARATORS[] = " \t,:";

typedef struct color_line {
    const char *words[COLUMNS];
    int count;
    const char *label; /* what is left; or NULL */
} color_line;

static bool
is_whole_number(const char *word)
{
    size_t digits = strspn(word, "0123456789");
    return digits > 0 && word[digits] == '\0';
}

/* Up to five words; the fifth is an alpha only where it is a number. */
static void
split_color_line(color_line *line, char *text)
{
    *line = (color_line){ .count = 0 };
    for (;;) {
        text += strspn(text, SEPARATORS);
        if (*text == '\0')
            return;
        size_t size = strcspn(text, SEPARATORS);
        bool last = text[size] == '\0';
        if (line->count == COLUMNS || (line->count == COLUMNS - 1 && strspn(text, "0123456789") != size)) {
            line->label = text;
            return;
        }
        text[size] = '\0';
        line->words[line->count++] = text;
        if (last)
            return;
        text += size + 1;
    }
}

static const char *
keep_color_label(const char *text, apr_pool_t *pool)
{
    if (text == NULL || *text == '\0')
        return NULL;
    return mc_message_text(text, LABEL_BYTES_MAX, pool);
}

static const char *
read_channels(uint8_t rgba[4], const char *const *words, int count)
{
    rgba[3] = 255;
    for (int i = 0; i < count; i++) {
        int value;
        if (!is_whole_number(words[i]) || !mc_parse_int(&value, words[i], 0, 255))
            return "red, green, blue and alpha are whole numbers from 0 to 255";
        rgba[i] = (uint8_t)value;
    }
    return NULL;
}

/* The colour of the numbers that have no line. */
typedef struct other_colors {
    bool given;
    uint8_t rgba[4];
} other_colors;

static const char *
add_color_line(mc_color_map *map, other_colors *others, char *text, apr_pool_t *pool)
{
    color_line line;
    uint8_t rgba[4];
    int number = 0;
    split_color_line(&line, text);
    bool rest = line.count > 0 && strcasecmp(line.words[0], "default") == 0;
    if (line.count < 4)
        return "a line is: number red green blue, then alpha and a label where there are any";
    if (!rest &&
        (!is_whole_number(line.words[0]) || !mc_parse_int(&number, line.words[0], 0, MC_COLOR_MAP_ENTRIES - 1)))
        return "a line begins with a number from 0 to 255, or with the word default";
    const char *problem = read_channels(rgba, line.words + 1, line.count - 1);
    if (problem != NULL)
        return problem;
    if (rest) {
        if (others->given)
            return "there is a line default already";
        others->given = true;
        memcpy(others->rgba, rgba, 4);
        return NULL;
    }
    if (map->listed[number])
        return "this number has a line already";
    map->listed[number] = map->known[number] = true;
    memcpy(map->rgba[number], rgba, 4);
    map->labels[number] = keep_color_label(line.label, pool);
    map->count = number >= map->count ? number + 1 : map->count;
    return NULL;
}

static const char *
finish_color_map(mc_color_map *map, const other_colors *others)
{
    if (map->count == 0)
        return "there is no colour";
    for (int i = 0; i < MC_COLOR_MAP_ENTRIES; i++) {
        if (map->known[i] || !others->given)
            continue;
        map->known[i] = true;
        memcpy(map->rgba[i], others->rgba, 4);
    }
    map->tag = mc_hash64(map->rgba, sizeof(map->rgba), 0);
    map->tag = map->tag == 0 ? 1 : map->tag;
    return NULL;
}

static void
begin_color_map(mc_color_map *map)
{
    *map = (mc_color_map){ .name = map->name, .title = map->title };
}

/* A comment, nothing, or what QGIS writes above its colours. */
static bool
is_line_without_color(const char *line)
{
    return *line == '\0' || *line == '#' || strcasecmp(line, "INTERPOLATION:EXACT") == 0;
}

bool
mc_color_map_read_text(mc_color_map *map, const char *text, mc_color_map_problem *problem, apr_pool_t *pool)
{
    other_colors others = { false, { 0 } };
    char *rest = apr_pstrdup(pool, text);
    *problem = (mc_color_map_problem){ 0, NULL };
    begin_color_map(map);
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        size_t size = strlen(line);
        problem->line++;
        while (size > 0 && apr_isspace(line[size - 1]))
            line[--size] = '\0';
        line += strspn(line, " \t");
        if (is_line_without_color(line))
            continue;
        problem->text = add_color_line(map, &others, line, pool);
        if (problem->text != NULL)
            return false;
    }
    problem->text = finish_color_map(map, &others);
    return problem->text == NULL;
}

static const char *
add_color_element(mc_color_map *map, const mc_node *node, apr_pool_t *pool)
{
    const char *rgb = mc_node_attr(node, "rgb"), *transparent = mc_node_attr(node, "transparent");
    const char *label = mc_node_attr(node, "label");
    color_line line;
    if (map->count == MC_COLOR_MAP_ENTRIES)
        return "a palette has at most 256 colours";
    if (rgb == NULL)
        return "a ColorMapEntry has no attribute rgb";
    split_color_line(&line, apr_pstrdup(pool, rgb));
    if (line.count != 3 || line.label != NULL)
        return "rgb is: red,green,blue";
    int number = map->count++;
    map->listed[number] = map->known[number] = true;
    map->labels[number] = keep_color_label(label != NULL ? label : mc_node_attr(node, "tooltip"), pool);
    const char *problem = read_channels(map->rgba[number], line.words, 3);
    if (transparent != NULL && strcasecmp(transparent, "true") == 0)
        map->rgba[number][3] = 0;
    return problem;
}

/* The element behind `node` in the order of the document, inside of `root`; or NULL. */
static const mc_node *
find_next_element(const mc_node *node, const mc_node *root)
{
    if (node->children != NULL)
        return node->children;
    while (node != root && node->next == NULL)
        node = node->parent;
    return node == root ? NULL : node->next;
}

bool
mc_color_map_read_xml(mc_color_map *map, const mc_node *root, mc_color_map_problem *problem, apr_pool_t *pool)
{
    const other_colors none = { false, { 0 } };
    *problem = (mc_color_map_problem){ root->line, NULL };
    begin_color_map(map);
    for (const mc_node *node = root; node != NULL; node = find_next_element(node, root)) {
        const char *colon = strrchr(node->name, ':');
        if (strcmp(colon == NULL ? node->name : colon + 1, "ColorMapEntry") != 0)
            continue;
        problem->line = node->line;
        problem->text = add_color_element(map, node, pool);
        if (problem->text != NULL)
            return false;
    }
    problem->line = root->line;
    problem->text = finish_color_map(map, &none);
    return problem->text == NULL;
}
