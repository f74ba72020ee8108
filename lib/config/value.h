/* One value of the configuration, from its text to the field of a struct. */
#ifndef MC_CONFIG_VALUE_H
#define MC_CONFIG_VALUE_H

#include "mapcache/config.h"

/*
 * Parses `text` as the key says and stores it in `field`. NULL for success; otherwise a description of what is wrong
 * with the text, for a complaint, and the field is untouched. Not for MC_TREE.
 */
const char *mc_value_store(void *field, const mc_key *key, const char *text, apr_pool_t *pool);

/* What would be right, in words: "a whole number from 0 to 10". For complaints and the reference. */
const char *mc_value_expected(const mc_key *key, apr_pool_t *pool);

#endif
