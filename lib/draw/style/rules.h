/*
 * Which rules of a pass draw a feature. Most rules look at one attribute with few values (the class of a road): the
 * rules that such a value leads to are found once for a map.
 */
#ifndef MC_DRAW_STYLE_RULES_H
#define MC_DRAW_STYLE_RULES_H

#include "draw/style/style.h"

typedef struct mc_rules mc_rules;

/* Whether a rule draws anything on maps of one scale. */
bool mc_rule_applies(const mc_rule_style *rule, double scale);

/* Of a pass, for maps of one scale. */
mc_rules *mc_rules_create(const mc_style_pass *pass, double scale, apr_pool_t *pool);

/* Finds the rules that draw a feature; then the number of the first of these rules from `from` on, -1: none. */
int mc_rules_next(const mc_rules *rules, int from);
void mc_rules_find(mc_rules *rules, const mc_feature *feature, apr_pool_t *scratch);

/* What mc_rules_find has found, as a bit for each rule, in *words words; and the same put back. */
const uint64_t *mc_rules_found(const mc_rules *rules, int *words);
void mc_rules_restore(mc_rules *rules, const uint64_t *found);

#endif
