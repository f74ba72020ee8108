/* See rules.h. */
#include "draw/style/rules.h"

#include <string.h>

#include "draw/style/expression.h"

enum { KNOWN = 64, KEY = 16, ANY = -1, SEVERAL = -2 };

/* A value, with the bytes behind it 0, and the rules that it leads to. */
typedef struct known {
    char key[KEY];
    bool used;
    uint64_t rules;
} known;

struct mc_rules {
    const mc_style_pass *pass;
    double scale;
    int property; /* the only one that filters look at; ANY: none does; SEVERAL: what they find cannot be kept */
    known *table;
    int words;
    uint64_t *found; /* a bit for each rule */
};

bool
mc_rule_applies(const mc_rule_style *rule, double scale)
{
    return rule->inclusion != MC_INCLUSION_LEGEND_ONLY && scale >= rule->min_scale && scale < rule->max_scale;
}

static int
common_property(int a, int b)
{
    return a == ANY || a == b ? b : b == ANY ? a : SEVERAL;
}

static int
property_of(const mc_expression *expression)
{
    if (expression->kind == MC_FUNCTION)
        return SEVERAL; /* it may look at the geometry */
    int property = expression->kind == MC_PROPERTY ? expression->property : ANY;
    for (int i = 0; i < expression->argument_count; i++)
        property = common_property(property, property_of(expression->arguments[i]));
    return property;
}

static int
property_of_filter(const mc_filter *filter)
{
    int property = ANY;
    if (filter == NULL)
        return ANY;
    if (filter->kind == MC_FILTER_ID || filter->kind == MC_FILTER_SPATIAL)
        return SEVERAL;
    for (int i = 0; i < filter->member_count; i++)
        property = common_property(property, property_of_filter(filter->members[i]));
    for (int i = 0; i < 3; i++)
        if (filter->operands[i] != NULL)
            property = common_property(property, property_of(filter->operands[i]));
    return property;
}

mc_rules *
mc_rules_create(const mc_style_pass *pass, double scale, apr_pool_t *pool)
{
    mc_rules *made = apr_pcalloc(pool, sizeof(*made));
    *made = (mc_rules){ .pass = pass, .scale = scale, .property = ANY, .words = pass->rule_count / 64 + 1 };
    made->found = apr_pcalloc(pool, sizeof(*made->found) * (size_t)made->words);
    for (int i = 0; i < pass->rule_count; i++)
        if (mc_rule_applies(&pass->rules[i], scale))
            made->property = common_property(made->property, property_of_filter(pass->rules[i].filter));
    if (made->property >= 0 && made->words == 1)
        made->table = apr_pcalloc(pool, sizeof(*made->table) * KNOWN);
    return made;
}

/* A rule for the rest draws what no rule before it has drawn. */
static void
find_matching_rules(mc_rules *rules, const mc_feature *feature, apr_pool_t *scratch)
{
    const mc_style_pass *pass = rules->pass;
    bool any = false;
    memset(rules->found, 0, sizeof(*rules->found) * (size_t)rules->words);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < pass->rule_count; i++) {
            const mc_rule_style *rule = &pass->rules[i];
            if (rule->is_else != (round == 1) || ((rule->is_else || pass->first_only) && any) ||
                !mc_rule_applies(rule, rules->scale) || !mc_filter_matches(rule->filter, feature, scratch))
                continue;
            any |= !rule->is_else;
            rules->found[i / 64] |= UINT64_C(1) << i % 64;
        }
}

/* Where a short value stands in the table; NULL where it is none. */
static known *
find_known_slot(const mc_rules *rules, char key[KEY], const mc_feature *feature)
{
    const char *value = feature->values == NULL ? NULL : feature->values[rules->property];
    uint64_t halves[2];
    if (value == NULL)
        return NULL;
    memset(key, 0, KEY);
    for (int i = 0; value[i] != '\0'; i++) {
        if (i == KEY)
            return NULL;
        key[i] = value[i];
    }
    memcpy(halves, key, KEY);
    return &rules->table[((halves[0] ^ halves[1] * 31) * UINT64_C(0x9E3779B97F4A7C15)) >> 58];
}

void
mc_rules_find(mc_rules *rules, const mc_feature *feature, apr_pool_t *scratch)
{
    char key[KEY];
    known *at = rules->table != NULL ? find_known_slot(rules, key, feature) : NULL;
    if (at != NULL && at->used && memcmp(at->key, key, KEY) == 0) {
        rules->found[0] = at->rules;
        return;
    }
    find_matching_rules(rules, feature, scratch);
    if (at == NULL)
        return;
    *at = (known){ .used = true, .rules = rules->found[0] };
    memcpy(at->key, key, KEY);
}

int
mc_rules_next(const mc_rules *rules, int from)
{
    for (int word = from / 64; word < rules->words; word++) {
        uint64_t bits = rules->found[word];
        if (word == from / 64)
            bits &= UINT64_MAX << from % 64;
        if (bits != 0)
            return word * 64 + __builtin_ctzll(bits);
    }
    return -1;
}

const uint64_t *
mc_rules_found(const mc_rules *rules, int *words)
{
    *words = rules->words;
    return rules->found;
}

void
mc_rules_restore(mc_rules *rules, const uint64_t *found)
{
    memcpy(rules->found, found, sizeof(*found) * (size_t)rules->words);
}
