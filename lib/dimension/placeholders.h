/* Names of bind parameters in statements that cannot be bound by name. */
#ifndef MC_DIMENSION_PLACEHOLDERS_H
#define MC_DIMENSION_PLACEHOLDERS_H

#include "dimension/query.h"

/* A statement with $1, $2, ... in place of :names. */
typedef struct mc_placeholders {
    const char *sql;
    mc_query_parameter parameters[MC_QUERY_PARAMETER_COUNT]; /* what $1, $2, ... stand for */
    int count;
} mc_placeholders;

/*
 * PostgreSQL's way (lexical structure, manual 4.1): names inside string constants, quoted identifiers, dollar-quoted
 * texts and comments are left alone, so are casts (::), assignments (:=) and names that only begin like a parameter's.
 * Any bytes are taken; what never ends is left as it is from there on. Results in `pool`.
 */
mc_placeholders mc_placeholders_number(const char *sql, apr_pool_t *pool);

/*
 * Each occurrence of a parameter's name replaced by its text, wherever it stands; NULL is the empty text. What is put
 * in is never looked into again.
 */
const char *mc_placeholders_fill(const char *text, const char *const texts[MC_QUERY_PARAMETER_COUNT], apr_pool_t *pool);

#endif
