/* <ruleset> from the configuration: which areas show at which levels (docs/reference/configuration.md 6.2). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grid/grid_private.h"

typedef struct ruleset_config {
    const char *name;
    apr_array_header_t *rules;
} ruleset_config;

typedef struct rule_config {
    mc_number_list levels;
    const mc_node *visibility;
} rule_config;

typedef struct visibility_config {
    const char *hidden_color;
    apr_array_header_t *extents;
} visibility_config;

static const mc_key visibility_keys[] = {
    MC_KEY_TEXT("@hidden_color", offsetof(visibility_config, hidden_color),
                "Colour of hidden tiles, AARRGGBB or RRGGBB in hexadecimal digits.", .fallback = "00FFFFFF"),
    MC_KEY_NUMBERS("extent", offsetof(visibility_config, extents), "minx miny maxx maxy: an area that shows.",
                   .flags = MC_KEY_REPEATABLE, .min = 4, .max = 4),
    MC_KEY_END,
};

static const mc_key rule_keys[] = {
    MC_KEY_NUMBERS("@zoom_level", offsetof(rule_config, levels), "Levels that the rule is for.",
                   .flags = MC_KEY_REQUIRED, .min = 1, .max = MC_MAX_LEVELS),
    MC_KEY_TREE("visibility", offsetof(rule_config, visibility), visibility_keys,
                "What shows at these levels; everything else is hidden."),
    MC_KEY_END,
};

const mc_key mc_ruleset_keys[] = {
    MC_KEY_TEXT("@name", offsetof(ruleset_config, name), "Unique name.", .flags = MC_KEY_REQUIRED),
    MC_KEY_TREE("rule", offsetof(ruleset_config, rules), rule_keys,
                "A rule for some levels; no level may stand in two of them.", .flags = MC_KEY_REPEATABLE),
    MC_KEY_END,
};

static bool
parse_color(uint8_t bgra[4], const char *text)
{
    size_t size = strlen(text);
    if (size == 0 || size > 8 || text[strspn(text, "0123456789abcdefABCDEF")] != '\0')
        return false;
    unsigned long color = strtoul(text, NULL, 16);
    unsigned alpha = size <= 6 ? 255 : (unsigned)(color >> 24) & 255;
    for (int i = 0; i < 3; i++)
        bgra[i] = (uint8_t)((((color >> (8 * i)) & 255) * alpha + 127) / 255);
    bgra[3] = (uint8_t)alpha;
    return true;
}

static bool
read_visibility(mc_rule *rule, const mc_node *node, mc_build *build)
{
    visibility_config config = { 0 };
    if (!mc_config_read(&config, node, visibility_keys, build->diagnostics))
        return false;
    if (!parse_color(rule->hidden_bgra, config.hidden_color)) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "attribute \"hidden_color\": %s is not AARRGGBB or RRGGBB in hexadecimal digits",
                    mc_config_quote(config.hidden_color, build->pool));
        return false;
    }
    if (config.extents->nelts == 0)
        mc_complain(build->diagnostics, MC_WARNING, node, "hides nothing, as it has no <extent>");
    rule->extents = apr_pcalloc(build->pool, sizeof(mc_extent) * (size_t)(config.extents->nelts + 1));
    for (int i = 0; i < config.extents->nelts; i++) {
        const mc_node *extent = APR_ARRAY_IDX(config.extents, i, const mc_node *);
        static const mc_key keys[] = {
            MC_KEY_NUMBERS("", 0, "", .min = 4, .max = 4),
            MC_KEY_END,
        };
        mc_number_list numbers;
        if (!mc_config_read(&numbers, extent, keys, build->diagnostics) ||
            !mc_extent_read(&rule->extents[rule->extent_count], &numbers, extent, build->diagnostics))
            return false;
        rule->extent_count++;
    }
    rule->present = rule->extent_count > 0;
    return true;
}

/* Puts a rule to each of its levels. `taken` remembers which ones have had one. */
static void
add_zoom_rule(mc_ruleset *ruleset, bool taken[MC_MAX_LEVELS], const mc_node *node, mc_build *build)
{
    rule_config config = { 0 };
    if (!mc_config_read(&config, node, rule_keys, build->diagnostics))
        return;
    mc_rule rule = { 0 };
    if (config.visibility != NULL && !read_visibility(&rule, config.visibility, build))
        return;
    for (int i = 0; i < config.levels.count; i++) {
        double level = config.levels.values[i];
        if (!(level >= 0 && level < MC_MAX_LEVELS && level == floor(level))) {
            mc_complain(build->diagnostics, MC_REFUSED, node,
                        "attribute \"zoom_level\": %.15g is not a level from 0 to %d", level, MC_MAX_LEVELS - 1);
            return;
        }
        int z = (int)level;
        if (taken[z]) {
            mc_complain(build->diagnostics, MC_REFUSED, node, "level %d has a rule already", z);
            return;
        }
        taken[z] = true;
        ruleset->levels[z] = rule;
        if (rule.present && z >= ruleset->level_count)
            ruleset->level_count = z + 1;
    }
}

mc_ruleset *
mc_ruleset_from_config(const mc_node *node, mc_build *build)
{
    ruleset_config config = { 0 };
    if (!mc_config_read(&config, node, mc_ruleset_keys, build->diagnostics))
        return NULL;
    int refused = build->diagnostics->refused;
    bool taken[MC_MAX_LEVELS] = { false };
    mc_ruleset *ruleset = apr_pcalloc(build->pool, sizeof(*ruleset));
    ruleset->name = config.name;
    ruleset->levels = apr_pcalloc(build->pool, sizeof(mc_rule) * MC_MAX_LEVELS);
    for (int i = 0; i < config.rules->nelts; i++)
        add_zoom_rule(ruleset, taken, APR_ARRAY_IDX(config.rules, i, const mc_node *), build);
    return build->diagnostics->refused == refused ? ruleset : NULL;
}
