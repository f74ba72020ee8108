/* Functions of Symbology Encoding that are elements of their own (OGC 05-077r4, 11.6). */
#include <apr_strings.h>
#include <string.h>

#include "draw/sld/sld_private.h"

/* How many arguments a function may have where they come in pairs. */
typedef enum argument_count { ANY_COUNT, ODD_COUNT, EVEN_COUNT } argument_count;

/* Options are attributes; as arguments they stand behind the others, at least at the place `from`. */
typedef struct function_element {
    const char *name;
    const char *options[3];
    int from;
    argument_count count;
} function_element;

static const function_element functions[] = {
    { "Categorize", { NULL }, 0, EVEN_COUNT },
    { "Recode", { NULL }, 0, ODD_COUNT },
    { "Interpolate", { NULL }, 0, ODD_COUNT },
    { "FormatNumber", { "decimalPoint", "groupingSeparator" }, 3, ANY_COUNT },
    { "FormatDate", { NULL }, 0, ANY_COUNT },
    { "Substring", { NULL }, 0, ANY_COUNT },
    { "Concatenate", { NULL }, 0, ANY_COUNT },
    { "ChangeCase", { "direction" }, 1, ANY_COUNT },
    { "Trim", { "stripOffPosition", "stripOffChar" }, 1, ANY_COUNT },
    { "StringPosition", { "searchDirection" }, 2, ANY_COUNT },
    { "StringLength", { NULL }, 0, ANY_COUNT },
};

bool
mc_sld_is_function(const mc_node *node)
{
    return MC_SLD_FIND(functions, mc_sld_name(node), strcmp) != NULL;
}

/* What an attribute may say without changing what is done anyway. */
static bool
is_default_attribute(const mc_node *node, const mc_attr *attr)
{
    static const struct {
        const char *function, *name, *value;
    } usual[] = { { "Interpolate", "mode", "linear" },
                  { "Interpolate", "method", "numeric" },
                  { "Interpolate", "method", "color" },
                  { "Categorize", "thresholdsBelongTo", "succeeding" },
                  { "Categorize", "threshholdsBelongTo", "succeeding" } };
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        if (mc_sld_is(node, usual[i].function) && strcmp(attr->name, usual[i].name) == 0 &&
            strcmp(attr->value, usual[i].value) == 0)
            return true;
    return strcmp(attr->name, "fallbackValue") == 0 || strncmp(attr->name, "xmlns", 5) == 0;
}

/* False after a complaint: an attribute that would change the result is never passed over. */
static bool
check_function_attributes(mc_sld *sld, const mc_node *node, const function_element *row)
{
    for (const mc_attr *attr = node->attrs; attr != NULL; attr = attr->next) {
        bool known = is_default_attribute(node, attr);
        for (int i = 0; i < 3 && row->options[i] != NULL; i++)
            known |= strcmp(attr->name, row->options[i]) == 0;
        if (known)
            continue;
        mc_sld_lacking(sld, node,
                       apr_psprintf(sld->build->pool, "%s=%s of <%s>", attr->name,
                                    mc_config_quote(attr->value, sld->build->pool), mc_sld_name(node)));
        return false;
    }
    return true;
}

/* The children in order; pairs of Recode and Interpolate count as two. False after a complaint. */
static bool
read_arguments(mc_expression *made, const mc_expression **list, mc_sld *sld, const mc_node *node, int depth,
               mc_sld_value_reader *read_value)
{
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        bool pair = mc_sld_is(child, "InterpolationPoint") || mc_sld_is(child, "MapItem");
        const mc_node *parts[2] = { pair ? child->children : child,
                                    pair && child->children != NULL ? child->children->next : NULL };
        for (int i = 0; i < 2 && parts[i] != NULL; i++) {
            const mc_expression *value = made->argument_count == MC_ARGUMENTS_MAX || depth > MC_EXPRESSION_DEPTH
                                             ? NULL
                                             : read_value(sld, parts[i], depth + 1);
            if (value == NULL) {
                mc_sld_lacking(sld, child, "this argument");
                return false;
            }
            list[made->argument_count++] = value;
        }
    }
    return true;
}

static void
read_function_options(mc_expression *made, const mc_expression **list, mc_sld *sld, const mc_node *node,
                      const function_element *row)
{
    bool any = false;
    for (int i = 0; i < 3 && row->options[i] != NULL; i++)
        any |= mc_node_attr(node, row->options[i]) != NULL;
    while (any && made->argument_count < row->from)
        list[made->argument_count++] = mc_sld_literal("", sld->build->pool);
    for (int i = 0; any && i < 3 && row->options[i] != NULL; i++) {
        const char *value = mc_node_attr(node, row->options[i]);
        if (made->argument_count < MC_ARGUMENTS_MAX)
            list[made->argument_count++] = mc_sld_literal(value == NULL ? "" : value, sld->build->pool);
    }
}

/* What GeoServer's functions have behind their pairs, as the elements have attributes: taken off where it says what is
 * done anyway. False after a complaint. */
static bool
take_settings(mc_expression *made, mc_sld *sld, const mc_node *node)
{
    static const struct {
        const char *function, *value;
        bool usual;
    } settings[] = { { "Interpolate", "numeric", true },  { "Interpolate", "color", true },
                     { "Interpolate", "linear", true },   { "Interpolate", "cosine", false },
                     { "Interpolate", "cubic", false },   { "Categorize", "succeeding", true },
                     { "Categorize", "preceding", false } };
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]) && made->argument_count > 1; i++) {
        const mc_expression *last = made->arguments[made->argument_count - 1];
        if (strcmp(made->function->name, settings[i].function) != 0 || last->kind != MC_LITERAL ||
            strcmp(last->literal, settings[i].value) != 0)
            continue;
        if (!settings[i].usual) {
            mc_sld_lacking(sld, node, apr_psprintf(sld->build->pool, "%s %s", settings[i].function, last->literal));
            return false;
        }
        made->argument_count--;
        i = (size_t)-1; /* there may be another before it */
    }
    return true;
}

bool
mc_sld_fit_arguments(mc_expression *made, mc_sld *sld, const mc_node *node)
{
    const mc_function *function = made->function;
    if (!take_settings(made, sld, node))
        return false;
    const function_element *row = MC_SLD_FIND(functions, function->name, strcmp);
    bool odd = made->argument_count % 2 == 1;
    if ((row == NULL || row->count == ANY_COUNT || odd == (row->count == ODD_COUNT)) &&
        made->argument_count >= function->least && made->argument_count <= function->most)
        return true;
    mc_sld_lacking(sld, node,
                   apr_psprintf(sld->build->pool, "%s of %d arguments", function->name, made->argument_count));
    return false;
}

const mc_expression *
mc_sld_function(mc_sld *sld, const mc_node *node, int depth, mc_sld_value_reader *read_value)
{
    apr_pool_t *pool = sld->build->pool;
    mc_expression *made = apr_pcalloc(pool, sizeof(*made));
    const mc_expression **list = apr_pcalloc(pool, sizeof(*list) * MC_ARGUMENTS_MAX);
    const function_element *row = MC_SLD_FIND(functions, mc_sld_name(node), strcmp);
    *made = (mc_expression){ .kind = MC_FUNCTION, .arguments = list };
    made->function = mc_function_find(row->name);
    if (!check_function_attributes(sld, node, row) || !read_arguments(made, list, sld, node, depth, read_value))
        return NULL;
    read_function_options(made, list, sld, node, row);
    if (!mc_sld_fit_arguments(made, sld, node))
        return NULL;
    const char *fallback = mc_node_attr(node, "fallbackValue");
    if (fallback == NULL || *fallback == '\0')
        return made;
    mc_expression *either = apr_pcalloc(pool, sizeof(*either));
    const mc_expression **both = apr_pcalloc(pool, sizeof(*both) * 2);
    both[0] = made;
    both[1] = mc_sld_literal(fallback, pool);
    *either = (mc_expression){ .kind = MC_FUNCTION, .arguments = both, .argument_count = 2 };
    either->function = mc_function_find("Coalesce");
    return either;
}
