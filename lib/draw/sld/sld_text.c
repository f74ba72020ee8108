/* TextSymbolizer of SLD (OGC 02-070, 11.4) and SE (OGC 05-077r4, 11.4), with GeoServer's options. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "draw/sld/sld_elements.h"
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
read_label_value(void *member, mc_sld *sld, const mc_node *node)
{
    mc_label_number *number = member;
    mc_sld_number(&number->constant, &number->value, sld, node);
}

/* The option is the other way round here. */
static void
read_inverse_flag(void *member, mc_sld *sld, const mc_node *node)
{
    bool *inverse = member, flag = true;
    mc_sld_read_flag(&flag, sld, node);
    *inverse = !flag;
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

static void
read_text(void *member, mc_sld *sld, const mc_node *node)
{
    const mc_expression **label = member;
    *label = read_label(sld, node);
}

/* A colour; letters have no patterns. */
static void
read_fill(void *member, mc_sld *sld, const mc_node *node)
{
    mc_paint *paint = member;
    mc_sld_fill(paint, sld, node);
    if (paint->pattern != NULL)
        mc_sld_lacking(sld, node, "letters filled with a pattern");
    paint->pattern = NULL;
}

/* ---- Font ---- */

/* One family, or several with commas between them, each perhaps in quotes. */
static void
add_families(void *member, mc_sld *sld, const mc_node *node)
{
    mc_font_spec *font = member;
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
read_weight(void *member, mc_sld *sld, const mc_node *node)
{
    /* CSS Fonts 4, 2.2, and what QGIS and fonts call their faces */
    static const struct {
        const char *name;
        int weight;
    } words[] = { { "thin", 100 },    { "hairline", 100 },  { "extralight", 200 }, { "ultralight", 200 },
                  { "light", 300 },   { "lighter", 300 },   { "book", 400 },       { "normal", 400 },
                  { "regular", 400 }, { "roman", 400 },     { "plain", 400 },      { "medium", 500 },
                  { "demi", 600 },    { "demibold", 600 },  { "semibold", 600 },   { "bold", 700 },
                  { "bolder", 700 },  { "extrabold", 800 }, { "ultrabold", 800 },  { "black", 900 },
                  { "heavy", 900 } };
    mc_font_spec *font = member;
    const char *text = mc_sld_plain(sld, node);
    char word[32] = "";
    int weight;
    if (*text == '\0' && node->children != NULL)
        return; /* it has been said why */
    for (size_t i = 0, length = 0; text[i] != '\0' && length + 1 < sizeof(word); i++)
        if (strchr(" -_", text[i]) == NULL)
            word[length++] = text[i];
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasecmp(words[i].name, word) == 0) {
            font->weight = words[i].weight;
            return;
        }
    if (mc_parse_int(&weight, text, 1, 1000))
        font->weight = weight;
    else
        mc_sld_lacking(sld, node, mc_config_quote(text, sld->build->pool));
}

static void
read_font_style(void *member, mc_sld *sld, const mc_node *node)
{
    mc_font_spec *font = member;
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

/* The offset of a member, for the rows of the tables. */
#define MEMBER(name) offsetof(mc_text_symbol, name)

const mc_sld_element mc_sld_font_parameters[] = {
    MC_SLD_OPTION("font-family", add_families, MEMBER(font), INSIDE, SHOWS),
    MC_SLD_OPTION("font-size", read_label_value, MEMBER(size), INSIDE, SHOWS),
    MC_SLD_OPTION("font-weight", read_weight, MEMBER(font), INSIDE, SHOWS),
    MC_SLD_OPTION("font-style", read_font_style, MEMBER(font), INSIDE, SHOWS), MC_SLD_END
};

static void
read_font(void *member, mc_sld *sld, const mc_node *node)
{
    /* that some editors write into a font, where they have no meaning: the colour of letters is in the <Fill> */
    static const char *const beside[] = { "fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", NULL };
    mc_text_symbol *symbol = member;
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const char *name = mc_sld_parameter(child);
        if (name != NULL && mc_sld_read_named(symbol, sld, child, mc_sld_font_parameters, strcmp))
            continue;
        if (name != NULL && mc_sld_choice(name, beside, strcmp) >= 0)
            continue;
        name = name == NULL || *name == '\0' ? mc_sld_name(child) : name;
        mc_sld_lacking(sld, child,
                       apr_psprintf(sld->build->pool, "%s of a font", mc_config_quote(name, sld->build->pool)));
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
read_anchor(void *member, mc_sld *sld, const mc_node *node)
{
    mc_text_symbol *symbol = member;
    read_label_pair(&symbol->anchor_x, &symbol->anchor_y, sld, node);
    symbol->anchored = true;
}

static void
read_label_displacement(void *member, mc_sld *sld, const mc_node *node)
{
    mc_text_symbol *symbol = member;
    read_label_pair(&symbol->displacement_x, &symbol->displacement_y, sld, node);
}

const mc_sld_element mc_sld_point_placement_elements[] = {
    MC_SLD_OPTION("AnchorPoint", read_anchor, 0, INSIDE, HIDES),
    MC_SLD_OPTION("Displacement", read_label_displacement, 0, INSIDE, HIDES),
    MC_SLD_OPTION("Rotation", read_label_value, MEMBER(rotation), INSIDE, HIDES), MC_SLD_END
};

const mc_sld_element mc_sld_line_placement_elements[] = {
    MC_SLD_OPTION("PerpendicularOffset", read_label_value, MEMBER(offset), INSIDE, HIDES),
    MC_SLD_OPTION("IsRepeated", mc_sld_read_flag, MEMBER(repeated), INSIDE, HIDES),
    MC_SLD_OPTION("Repeat", mc_sld_read_flag, MEMBER(repeated), INSIDE, HIDES), /* as QGIS writes it */
    MC_SLD_OPTION("InitialGap", mc_sld_read_length, MEMBER(initial_gap), INSIDE, HIDES),
    MC_SLD_OPTION("Gap", mc_sld_read_length, MEMBER(gap), INSIDE, HIDES),
    MC_SLD_OPTION("IsAligned", mc_sld_read_flag, MEMBER(aligned), INSIDE, HIDES),
    MC_SLD_OPTION("GeneralizeLine", mc_sld_read_flag, MEMBER(generalize), INSIDE, HIDES),
    MC_SLD_END
};

static void
read_point_placement(void *symbol, mc_sld *sld, const mc_node *node)
{
    mc_sld_read_elements(symbol, sld, node, mc_sld_point_placement_elements, "a label");
}

static void
read_line_placement(void *member, mc_sld *sld, const mc_node *node)
{
    mc_text_symbol *symbol = member;
    mc_sld_read_elements(symbol, sld, node, mc_sld_line_placement_elements, "a label");
    symbol->placement = MC_LABEL_LINE;
}

const mc_sld_element mc_sld_placement_elements[] = { MC_SLD_ELEMENT("PointPlacement", read_point_placement, 0),
                                                     MC_SLD_ELEMENT("LinePlacement", read_line_placement, 0),
                                                     MC_SLD_END };

static void
read_placement(void *symbol, mc_sld *sld, const mc_node *node)
{
    mc_sld_read_elements(symbol, sld, node, mc_sld_placement_elements, "a label");
}

const mc_sld_element mc_sld_halo_elements[] = {
    MC_SLD_OPTION("Radius", read_label_value, MEMBER(halo_radius), INSIDE, HIDES),
    MC_SLD_OPTION("Fill", read_fill, MEMBER(halo), INSIDE, HIDES), MC_SLD_END
};

static void
read_halo(void *member, mc_sld *sld, const mc_node *node)
{
    mc_text_symbol *symbol = member;
    symbol->halo = (mc_paint){ .present = true, .color = { 255, 255, 255, 255 } };
    symbol->halo_radius.constant = 1;
    mc_sld_read_elements(symbol, sld, node, mc_sld_halo_elements, "a label");
}

/* ---- The graphic behind it ---- */

static bool
is_computed(const mc_graphic *pattern)
{
    return pattern != NULL && !mc_graphic_is_constant(pattern);
}

/* A label is drawn when its feature has gone: so what its graphic is painted with may not look at one. */
static void
read_graphic(void *member, mc_sld *sld, const mc_node *node)
{
    mc_text_symbol *symbol = member;
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

static void
read_resize(void *member, mc_sld *sld, const mc_node *node)
{
    static const char *const ways[] = {
        [MC_RESIZE_NONE] = "none", [MC_RESIZE_STRETCH] = "stretch", [MC_RESIZE_PROPORTIONAL] = "proportional", NULL
    };
    mc_label_resize *resize = member;
    const char *text = mc_sld_plain(sld, node);
    int way = mc_sld_choice(text, ways, strcasecmp);
    if (way >= 0)
        *resize = (mc_label_resize)way;
    else
        mc_sld_lacking(sld, node, mc_config_quote(text, sld->build->pool));
}

static void
read_graphic_margin(void *margin, mc_sld *sld, const mc_node *node)
{
    const char *text = mc_sld_plain(sld, node);
    if (!mc_sld_margin(margin, text))
        mc_sld_lacking(sld, node, mc_config_quote(text, sld->build->pool));
}

/* ---- Options ---- */

const mc_sld_element mc_sld_label_options[] = {
    MC_SLD_OPTION("graphic-margin", read_graphic_margin, MEMBER(graphic_margin), INSIDE, SHOWS),
    MC_SLD_OPTION("graphic-resize", read_resize, MEMBER(resize), INSIDE, SHOWS),
    MC_SLD_OPTION("repeat", mc_sld_read_length, MEMBER(repeat), INSIDE, HIDES),
    MC_SLD_OPTION("maxDisplacement", mc_sld_read_length, MEMBER(max_displacement), INSIDE, HIDES),
    MC_SLD_OPTION("spaceAround", mc_sld_read_length, MEMBER(space_around), INSIDE, HIDES),
    MC_SLD_OPTION("autoWrap", mc_sld_read_length, MEMBER(auto_wrap), INSIDE, HIDES),
    MC_SLD_OPTION("maxAngleDelta", mc_sld_read_length, MEMBER(max_angle), INSIDE, HIDES),
    MC_SLD_OPTION("group", mc_sld_read_flag, MEMBER(group), INSIDE, HIDES),
    MC_SLD_OPTION("labelAllGroup", mc_sld_read_flag, MEMBER(label_all), INSIDE, HIDES),
    MC_SLD_OPTION("followLine", mc_sld_read_flag, MEMBER(curved), INSIDE, HIDES),
    MC_SLD_OPTION("forceLeftToRight", read_inverse_flag, MEMBER(any_direction), INSIDE, HIDES),
    MC_SLD_OPTION("conflictResolution", read_inverse_flag, MEMBER(overlapping), INSIDE, HIDES),
    MC_SLD_OPTION("partials", mc_sld_read_flag, MEMBER(partial), INSIDE, HIDES),
    MC_SLD_OPTION("underlineText", mc_sld_read_flag, MEMBER(underlined), INSIDE, SHOWS),
    MC_SLD_END
};

static void
read_label_option(void *symbol, mc_sld *sld, const mc_node *node)
{
    if (!mc_sld_read_named(symbol, sld, node, mc_sld_label_options, strcasecmp))
        mc_sld_report_option(sld, node, " of a label");
}

const mc_sld_element mc_sld_label_elements[] = {
    MC_SLD_OPTION("Label", read_text, MEMBER(label), INSIDE, HIDES),
    MC_SLD_ELEMENT("Font", read_font, 0),
    MC_SLD_ELEMENT("LabelPlacement", read_placement, 0),
    MC_SLD_ELEMENT("Halo", read_halo, 0),
    MC_SLD_OPTION("Fill", read_fill, MEMBER(fill), INSIDE, SHOWS),
    MC_SLD_OPTION("Graphic", read_graphic, 0, INSIDE, SHOWS),
    MC_SLD_OPTION("Priority", read_label_value, MEMBER(priority), INSIDE, HIDES),
    MC_SLD_OPTION("Geometry", mc_sld_read_part, MEMBER(part), INSIDE, HIDES),
    MC_SLD_ELEMENT("VendorOption", read_label_option, 0),
    MC_SLD_SILENT("Name"),
    MC_SLD_SILENT("Description"),
    MC_SLD_END
};

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
    mc_sld_read_elements(symbol, sld, node, mc_sld_label_elements, "a label");
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
