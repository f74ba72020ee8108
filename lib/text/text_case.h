/* Capitals and small letters of all scripts (Unicode's simple mappings, and the German sharp s), in whatever locale the
 * process runs. Text is UTF-8; bytes that are none stay as they are. */
#ifndef MC_TEXT_TEXT_CASE_H
#define MC_TEXT_TEXT_CASE_H

#include <apr_pools.h>
#include <stddef.h>
#include <stdint.h>

typedef enum mc_text_case {
    MC_UPPER_CASE,
    MC_LOWER_CASE,
    MC_TITLE_CASE /* each word begins with a capital */
} mc_text_case;

const char *mc_text_case_change(const char *text, mc_text_case wanted, apr_pool_t *pool);

/* For comparisons in which capitals do not count: letters beyond ASCII become small ones, the others stay for
 * strcasecmp(). The text itself where there are none. */
const char *mc_text_case_fold(const char *text, apr_pool_t *pool);

#endif
