/* TextSymbolizer of SLD (OGC 02-070, 11.4) and SE (OGC 05-077r4, 11.4), with GeoServer's options. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "draw/sld/sld.h"
#include "draw/style/label_style.h"
#include "draw/symbol/picture.h"
#include "text/text.h"

enum { FAMILIES_MAX = 16 };

/* The one complaint for an element that nothing is made of. */
static void
report_label_element(mc_sld *sld, const mc_node *node)
{
    mc_sld_lacking(sld, node, apr_psprintf(sld->build->pool, "<%s> of a label", mc_sld_name(node)));
}

static void
read_label_value(mc_label_number *number, mc_sld *sld, const mc_node *node)
{
    mc_sld_number(&number->constant, &number->value, sld, node);
}

static void
read_label_length(double *length, mc_sld *sld, const mc_node *node)
{
    const mc_expression *value;
    mc_sld_number(length, &value, sld, node);
    if (value != NULL)
        mc_sld_lacking(sld, node,
                       apr_psprintf(sld->build->pool, "<%s> that differs between features", mc_sld_name(node)));
}

/* "true" and "false", as XML Schema and as people write them. */
static void
read_flag(bool *flag, mc_sld *sld, const mc_node *node)
{
    static const char *const yes[] = { "true", "1", "yes", "on" }, *const no[] = { "false", "0", "no", "off" };
    const char *text = mc_sld_text(node, sld->build->pool);
    for (int i = 0; i < 4; i++)
        if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
            *flag = strcasecmp(text, yes[i]) == 0;
            return;
        }
    mc_sld_lacking(sld, node, mc_config_quote(text, sld->build->pool));
}

/* ---- Text ---- */

/* Text of a label as it is meant: a line break with blanks after it is how the file is laid out, and counts as a blank,
 * or as nothing where there is no other text. A line break alone is one in the label, and blanks are blanks. */
static const char *
normalize_label_text(const char *text, size_t size, apr_pool_t *pool)
{
    char *out = apr_palloc(pool, size + 1);
    size_t length = 0;
    bool only_blanks = true, laid_out = false;
    for (size_t i = 0; i < size; i++) {
        size_t blanks = 0;
        only_blanks &= strchr(" \t\r\n", text[i]) != NULL;
        while (text[i] == '\n' && i + blanks + 1 < size && strchr(" \t\r\n", text[i + blanks + 1]) != NULL)
            blanks++;
        laid_out |= blanks > 0;
        out[length++] = blanks > 0 ? ' ' : text[i];
        i += blanks;
    }
    out[only_blanks && laid_out ? 0 : length] = '\0';
    return out;
}

/* Text and expressions in turn; NULL where there is neither. */
static const mc_expression *
read_label(mc_sld *sld, const mc_node *node)
{
    apr_pool_t *pool = sld->build->pool;
    mc_expression *joined = apr_pcalloc(pool, sizeof(*joined));
    const mc_expression **parts = apr_pcalloc(pool, sizeof(*parts) * MC_ARGUMENTS_MAX);
    const char *at = node->text, *end = node->text + strlen(node->text);
    *joined = (mc_expression){ .kind = MC_CONCATENATE, .arguments = parts };
    for (const mc_node *child = node->children;; child = child->next) {
        const char *until = child == NULL ? end : node->text + child->text_before;
        const char *text = normalize_label_text(at, (size_t)(until - at), pool);
        if (*text != '\0')
            parts[joined->argument_count++] = mc_sld_literal(text, pool);
        at = until;
        if (child == NULL)
            break;
        const mc_expression *part =
            joined->argument_count + 3 > MC_ARGUMENTS_MAX ? NULL : mc_sld_expression(sld, child, 1);
        if (part == NULL)
            return NULL;
        parts[joined->argument_count++] = part;
    }
    return joined->argument_count == 0 ? NULL : joined->argument_count == 1 ? parts[0] : joined;
}

/* A colour; letters have no patterns. */
static void
read_fill(mc_paint *paint, mc_sld *sld, const mc_node *node)
{
    mc_sld_fill(paint, sld, node);
    if (paint->pattern != NULL)
        mc_sld_lacking(sld, node, "letters filled with a pattern");
    paint->pattern = NULL;
}

/* ---- Font ---- */

/* One family, or several with commas between them, each perhaps in quotes. */
static void
add_families(mc_font_spec *font, mc_sld *sld, const mc_node *node)
{
    apr_pool_t *pool = sld->build->pool;
    const char **list = apr_pcalloc(pool, sizeof(*list) * FAMILIES_MAX);
    for (int i = 0; i < font->family_count; i++)
        list[i] = font->families[i];
    const mc_expression *value = mc_sld_value(sld, node);
    if (value == NULL || value->kind != MC_LITERAL) {
        mc_sld_lacking(sld, node, "a font family that differs between features");
        return;
    }
    char *rest = apr_pstrdup(pool, value->literal), *state;
    for (char *name = apr_strtok(rest, ",", &state); name != NULL; name = apr_strtok(NULL, ",", &state)) {
        name += strspn(name, " \t\r\n'\"");
        size_t size = strlen(name);
        while (size > 0 && strchr(" \t\r\n'\"", name[size - 1]) != NULL)
            size--;
        if (size > 0 && font->family_count < FAMILIES_MAX)
            list[font->family_count++] = apr_pstrmemdup(pool, name, size);
    }
    font->families = list;
}

static void
read_weight(mc_font_spec *font, mc_sld *sld, const mc_node *node)
{
    const char *text = mc_sld_text(node, sld->build->pool);
    int weight;
    if (strcasecmp(text, "normal") == 0)
        font->weight = 400;
    else if (strcasecmp(text, "bold") == 0)
        font->weight = 700;
    else if (mc_parse_int(&weight, text, 1, 1000))
        font->weight = weight;
    else
        mc_sld_lacking(sld, node, mc_config_quote(text, sld->build->pool));
}

static void
read_font_style(mc_font_spec *font, mc_sld *sld, const mc_node *node)
{
    const char *text = mc_sld_text(node, sld->build->pool);
    font->italic = strcasecmp(text, "italic") == 0 || strcasecmp(text, "oblique") == 0;
    if (!font->italic && strcasecmp(text, "normal") != 0)
        mc_sld_lacking(sld, node, mc_config_quote(text, sld->build->pool));
}

/* Says which families are not there, and what is taken instead: the next one that is, or fontconfig's choice. */
static void
look_for_fonts(const mc_font_spec *font, mc_sld *sld, const mc_node *node)
{
    const char *substitute = NULL, *instead;
    for (int i = font->family_count - 1; i >= 0; i--) {
        mc_error *error = mc_text_substitute(&instead, font->families[i], sld->build->pool);
        if (error != MC_OK) {
            mc_complain(sld->build->diagnostics, MC_WARNING, node, "labels cannot be drawn here: %s",
                        mc_error_chain(error, sld->build->pool));
            return;
        }
        if (instead != NULL)
            mc_complain(sld->build->diagnostics, MC_WARNING, node, "no font of the family %s can be found: %s is taken",
                        mc_config_quote(font->families[i], sld->build->pool),
                        mc_config_quote(substitute == NULL ? instead : substitute, sld->build->pool));
        else
            substitute = font->families[i];
    }
}

static void
read_font(mc_text_symbol *symbol, mc_sld *sld, const mc_node *node)
{
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const char *name = mc_sld_parameter(child);
        name = name == NULL ? "" : name;
        if (strcmp(name, "font-family") == 0)
            add_families(&symbol->font, sld, child);
        else if (strcmp(name, "font-size") == 0)
            read_label_value(&symbol->size, sld, child);
        else if (strcmp(name, "font-weight") == 0)
            read_weight(&symbol->font, sld, child);
        else if (strcmp(name, "font-style") == 0)
            read_font_style(&symbol->font, sld, child);
        else
            mc_sld_lacking(sld, child,
                           apr_psprintf(sld->build->pool, "%s of a font",
                                        mc_config_quote(*name == '\0' ? mc_sld_name(child) : name, sld->build->pool)));
    }
    if (sld->build->diagnostics->thorough)
        look_for_fonts(&symbol->font, sld, node);
}

/* ---- Placement ---- */

/* Two numbers, in elements whose names end with X and Y. */
static void
read_label_pair(mc_label_number *x, mc_label_number *y, mc_sld *sld, const mc_node *node)
{
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const char *name = mc_sld_name(child);
        size_t size = strlen(name);
        if (strncmp(name, mc_sld_name(node), strlen(mc_sld_name(node))) != 0 || strchr("XY", name[size - 1]) == NULL)
            report_label_element(sld, child);
        else
            read_label_value(name[size - 1] == 'X' ? x : y, sld, child);
    }
}

static void
read_point_placement(mc_text_symbol *symbol, mc_sld *sld, const mc_node *node)
{
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const char *name = mc_sld_name(child);
        if (strcmp(name, "AnchorPoint") == 0) {
            read_label_pair(&symbol->anchor_x, &symbol->anchor_y, sld, child);
            symbol->anchored = true;
        } else if (strcmp(name, "Displacement") == 0)
            read_label_pair(&symbol->displacement_x, &symbol->displacement_y, sld, child);
        else if (strcmp(name, "Rotation") == 0)
            read_label_value(&symbol->rotation, sld, child);
        else
            report_label_element(sld, child);
    }
}

static void
read_line_placement(mc_text_symbol *symbol, mc_sld *sld, const mc_node *node)
{
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const char *name = mc_sld_name(child);
        if (strcmp(name, "PerpendicularOffset") == 0)
            read_label_value(&symbol->offset, sld, child);
        else if (strcmp(name, "IsRepeated") == 0 || strcmp(name, "Repeat") == 0) /* as QGIS writes it */
            read_flag(&symbol->repeated, sld, child);
        else if (strcmp(name, "InitialGap") == 0)
            read_label_length(&symbol->initial_gap, sld, child);
        else if (strcmp(name, "Gap") == 0)
            read_label_length(&symbol->gap, sld, child);
        else if (strcmp(name, "IsAligned") == 0)
            read_flag(&symbol->aligned, sld, child);
        else if (strcmp(name, "GeneralizeLine") == 0)
            read_flag(&symbol->generalize, sld, child);
        else
            report_label_element(sld, child);
    }
    symbol->placement = MC_LABEL_LINE;
}

static void
read_placement(mc_text_symbol *symbol, mc_sld *sld, const mc_node *node)
{
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        if (strcmp(mc_sld_name(child), "PointPlacement") == 0)
            read_point_placement(symbol, sld, child);
        else if (strcmp(mc_sld_name(child), "LinePlacement") == 0)
            read_line_placement(symbol, sld, child);
        else
            report_label_element(sld, child);
    }
}

static void
read_halo(mc_text_symbol *symbol, mc_sld *sld, const mc_node *node)
{
    symbol->halo = (mc_paint){ .present = true, .color = { 255, 255, 255, 255 } };
    symbol->halo_radius.constant = 1;
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        if (strcmp(mc_sld_name(child), "Radius") == 0)
            read_label_value(&symbol->halo_radius, sld, child);
        else if (strcmp(mc_sld_name(child), "Fill") == 0)
            read_fill(&symbol->halo, sld, child);
        else
            report_label_element(sld, child);
    }
}

/* ---- The graphic behind it ---- */

static bool
is_computed(const mc_graphic *pattern)
{
    return pattern != NULL && !mc_graphic_is_constant(pattern);
}

/* A label is drawn when its feature has gone: so what its graphic is painted with may not look at one. */
static void
read_graphic(mc_text_symbol *symbol, mc_sld *sld, const mc_node *node)
{
    memset(sld->margin, 0, sizeof(sld->margin));
    sld->cell_x = sld->cell_y = 0;
    symbol->shielded = mc_sld_graphic(&symbol->graphic, sld, node);
    const mc_graphic *read = &symbol->graphic;
    if (symbol->shielded && (is_computed(read->fill.pattern) || is_computed(read->stroke.paint.pattern) ||
                             is_computed(read->stroke.graphic))) {
        mc_sld_lacking(sld, node, "a pattern behind a label that differs between features");
        symbol->shielded = false;
    }
}

/* False where it is none of its two options. */
static bool
read_graphic_option(mc_text_symbol *symbol, mc_sld *sld, const mc_node *node, const char *name)
{
    static const char *const ways[] = {
        [MC_RESIZE_NONE] = "none", [MC_RESIZE_STRETCH] = "stretch", [MC_RESIZE_PROPORTIONAL] = "proportional"
    };
    bool margin = strcasecmp(name, "graphic-margin") == 0;
    if (!margin && strcasecmp(name, "graphic-resize") != 0)
        return false;
    const char *text = mc_sld_plain(sld, node);
    if (margin && mc_sld_margin(symbol->graphic_margin, text))
        return true;
    for (int i = 0; !margin && i < 3; i++)
        if (strcasecmp(text, ways[i]) == 0) {
            symbol->resize = (mc_label_resize)i;
            return true;
        }
    mc_sld_lacking(sld, node, mc_config_quote(text, sld->build->pool));
    return true;
}

/* ---- Options ---- */

static void
read_label_option(mc_text_symbol *symbol, mc_sld *sld, const mc_node *node)
{
    const char *name = mc_node_attr(node, "name");
    bool flag = true;
    name = name == NULL ? "" : name;
    if (read_graphic_option(symbol, sld, node, name))
        return;
    const struct {
        const char *name;
        double *length;
        bool *flag, *inverse; /* inverse: what it says is the other way round here */
    } options[] = { { "repeat", &symbol->repeat, NULL, NULL },
                    { "maxDisplacement", &symbol->max_displacement, NULL, NULL },
                    { "spaceAround", &symbol->space_around, NULL, NULL },
                    { "autoWrap", &symbol->auto_wrap, NULL, NULL },
                    { "maxAngleDelta", &symbol->max_angle, NULL, NULL },
                    { "group", NULL, &symbol->group, NULL },
                    { "labelAllGroup", NULL, &symbol->label_all, NULL },
                    { "followLine", NULL, &symbol->curved, NULL },
                    { "forceLeftToRight", NULL, &flag, &symbol->any_direction },
                    { "conflictResolution", NULL, &flag, &symbol->overlapping } };
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (strcasecmp(name, options[i].name) != 0)
            continue;
        if (options[i].length != NULL)
            read_label_length(options[i].length, sld, node);
        else
            read_flag(options[i].flag, sld, node);
        if (options[i].inverse != NULL)
            *options[i].inverse = !flag;
        return;
    }
    mc_sld_lacking(sld, node,
                   apr_psprintf(sld->build->pool, "the option %s of a label", mc_config_quote(name, sld->build->pool)));
}

static void
read_text_part(mc_text_symbol *symbol, mc_sld *sld, const mc_node *child)
{
    static const char *const silent[] = { "Name", "Description", NULL };
    const char *name = mc_sld_name(child);
    if (strcmp(name, "Label") == 0)
        symbol->label = read_label(sld, child);
    else if (strcmp(name, "Font") == 0)
        read_font(symbol, sld, child);
    else if (strcmp(name, "LabelPlacement") == 0)
        read_placement(symbol, sld, child);
    else if (strcmp(name, "Halo") == 0)
        read_halo(symbol, sld, child);
    else if (strcmp(name, "Fill") == 0)
        read_fill(&symbol->fill, sld, child);
    else if (strcmp(name, "Graphic") == 0)
        read_graphic(symbol, sld, child);
    else if (strcmp(name, "Priority") == 0)
        read_label_value(&symbol->priority, sld, child);
    else if (strcmp(name, "Geometry") == 0)
        symbol->part = mc_sld_part(sld, child);
    else if (strcmp(name, "VendorOption") == 0)
        read_label_option(symbol, sld, child);
    else
        for (int i = 0; silent[i] == NULL || strcmp(name, silent[i]) != 0; i++)
            if (silent[i] == NULL) {
                report_label_element(sld, child);
                return;
            }
}

/* The lengths that options give are finite, and far from where floats end. */
static void
clamp_length(double *length, double least, double most)
{
    *length = fmin(fmax(*length, least), most);
}

bool
mc_sld_text_symbol(mc_text_symbol *symbol, mc_sld *sld, const mc_node *node)
{
    const double far = 1e6;
    *symbol = (mc_text_symbol){ .number = sld->labels++,
                                .uom = mc_sld_uom(sld, node),
                                .font = { .weight = 400 },
                                .size = { .constant = 10 },
                                .fill = { .present = true, .color = { 0, 0, 0, 255 } },
                                .anchor_x = { .constant = 0 },
                                .anchor_y = { .constant = 0.5 },
                                .aligned = true,
                                .curved = true,
                                .max_angle = 22.5 };
    for (const mc_node *child = node->children; child != NULL; child = child->next)
        read_text_part(symbol, sld, child);
    clamp_length(&symbol->repeat, 0, far);
    clamp_length(&symbol->gap, 0, far);
    clamp_length(&symbol->initial_gap, 0, far);
    clamp_length(&symbol->max_displacement, 0, far);
    clamp_length(&symbol->space_around, -far, far);
    clamp_length(&symbol->auto_wrap, 0, far);
    clamp_length(&symbol->max_angle, 0, 180);
    for (int i = 0; i < 4; i++)
        clamp_length(&symbol->graphic_margin[i], 0, far);
    if (symbol->label == NULL)
        mc_sld_lacking(sld, node, "a label without a text");
    return symbol->label != NULL;
}
