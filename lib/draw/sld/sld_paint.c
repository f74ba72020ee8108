/* Parameters of fills and strokes in SLD and SE documents (OGC 05-077r4, 11.1.3 and 11.2.2), and numbers. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "draw/raster/stroker.h"
#include "draw/sld/sld_elements.h"
#include "draw/symbol/mark.h"
#include "text/text.h"

enum { DASHES_MAX = 32 };

void
mc_sld_number(double *constant, const mc_expression **value, mc_sld *sld, const mc_node *node)
{
    const mc_expression *expression = mc_sld_value(sld, node);
    *value = NULL;
    if (expression == NULL)
        return;
    if (expression->kind != MC_LITERAL)
        *value = expression;
    else if (isfinite(expression->number))
        *constant = expression->number;
    else
        mc_sld_lacking(
            sld, node,
            apr_psprintf(sld->build->pool, "the number %s", mc_config_quote(expression->literal, sld->build->pool)));
}

void
mc_sld_read_flag(void *member, mc_sld *sld, const mc_node *node)
{
    static const char *const yes[] = { "true", "1", "yes", "on", NULL }, *const no[] = { "false", "0", "no", "off",
                                                                                         NULL };
    bool *flag = member;
    const char *text = mc_sld_text(node, sld->build->pool);
    if (mc_sld_choice(text, yes, strcasecmp) >= 0)
        *flag = true;
    else if (mc_sld_choice(text, no, strcasecmp) >= 0)
        *flag = false;
    else
        mc_sld_lacking(sld, node, mc_config_quote(text, sld->build->pool));
}

void
mc_sld_read_length(void *length, mc_sld *sld, const mc_node *node)
{
    const mc_expression *value;
    mc_sld_number(length, &value, sld, node);
    if (value != NULL)
        mc_sld_lacking(sld, node,
                       apr_psprintf(sld->build->pool, "<%s> that differs between features", mc_sld_name(node)));
}

static void
read_opacity(void *member, mc_sld *sld, const mc_node *node)
{
    mc_paint *paint = member;
    double opacity = 1;
    mc_sld_number(&opacity, &paint->opacity, sld, node);
    paint->color.alpha = (uint8_t)lrint(255 * fmin(1, fmax(0, opacity)));
}

static void
read_color(void *member, mc_sld *sld, const mc_node *node)
{
    mc_paint *paint = member;
    const mc_expression *expression = mc_sld_value(sld, node);
    if (expression == NULL)
        return;
    if (expression->kind != MC_LITERAL)
        paint->color_value = expression;
    else if (!mc_color_parse(&paint->color, expression->literal))
        mc_sld_lacking(
            sld, node,
            apr_psprintf(sld->build->pool, "the colour %s", mc_config_quote(expression->literal, sld->build->pool)));
}

static int
read_listed_choice(mc_sld *sld, const mc_node *node, const char *const *names)
{
    const char *text = mc_sld_plain(sld, node);
    int choice = mc_sld_choice(text, names, strcmp);
    if (choice >= 0)
        return choice;
    if (*text != '\0' || node->children == NULL) /* else it has been said */
        mc_sld_lacking(sld, node, mc_config_quote(text, sld->build->pool));
    return 0;
}

/* Lengths of dashes and gaps; an odd number of them is repeated once (as SVG does). */
static void
read_dashes(void *member, mc_sld *sld, const mc_node *node)
{
    mc_stroke *stroke = member;
    double *dashes = apr_pcalloc(sld->build->pool, sizeof(double) * DASHES_MAX * 2);
    int count = 0;
    double sum = 0;
    const char *text = mc_sld_plain(sld, node);
    if (!mc_parse_doubles(dashes, DASHES_MAX, &count, text, " ,") || count == 0) {
        if (*text != '\0' || node->children == NULL) /* else it has been said */
            mc_sld_lacking(sld, node, "these dashes");
        return;
    }
    for (int i = 0; i < count; i++) {
        if (dashes[i] < 0) {
            mc_sld_lacking(sld, node, "dashes below 0");
            return;
        }
        sum += dashes[i];
        dashes[count + i] = dashes[i];
    }
    if (sum <= 0)
        return;
    stroke->dashes = dashes;
    stroke->dash_count = count % 2 == 0 ? count : count * 2;
}

static void
read_stroke_width(void *member, mc_sld *sld, const mc_node *node)
{
    mc_stroke *stroke = member;
    mc_sld_number(&stroke->width, &stroke->width_value, sld, node);
}

static void
read_join(void *member, mc_sld *sld, const mc_node *node)
{
    static const char *const joins[] = { "mitre", "round", "bevel", "miter", NULL };
    mc_line_join *join = member;
    *join = (mc_line_join)(read_listed_choice(sld, node, joins) % 3);
}

static void
read_cap(void *member, mc_sld *sld, const mc_node *node)
{
    static const char *const caps[] = { "butt", "round", "square", NULL };
    mc_line_cap *cap = member;
    *cap = (mc_line_cap)read_listed_choice(sld, node, caps);
}

const mc_sld_element mc_sld_stroke_parameters[] = {
    MC_SLD_OPTION("stroke", read_color, offsetof(mc_stroke, paint), INSIDE, SHOWS),
    MC_SLD_OPTION("stroke-opacity", read_opacity, offsetof(mc_stroke, paint), INSIDE, SHOWS),
    MC_SLD_OPTION("stroke-width", read_stroke_width, 0, BEYOND, SHOWS),
    MC_SLD_OPTION("stroke-linejoin", read_join, offsetof(mc_stroke, join), INSIDE, SHOWS),
    MC_SLD_OPTION("stroke-linecap", read_cap, offsetof(mc_stroke, cap), INSIDE, SHOWS),
    MC_SLD_OPTION("stroke-dasharray", read_dashes, 0, INSIDE, SHOWS),
    MC_SLD_OPTION("stroke-dashoffset", mc_sld_read_length, offsetof(mc_stroke, dash_offset), INSIDE, SHOWS),
    MC_SLD_END
};

const char *
mc_sld_parameter(const mc_node *node)
{
    if (!mc_sld_is(node, "CssParameter") && !mc_sld_is(node, "SvgParameter"))
        return NULL;
    const char *name = mc_node_attr(node, "name");
    return name == NULL ? "" : name;
}

const mc_sld_element mc_sld_fill_parameters[] = { MC_SLD_OPTION("fill", read_color, 0, INSIDE, SHOWS),
                                                  MC_SLD_OPTION("fill-opacity", read_opacity, 0, INSIDE, SHOWS),
                                                  MC_SLD_END };
