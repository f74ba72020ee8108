/*
 * When something that was made is too old: after a time (<auto_expire>21600, PT6H), at a date (2027-01-01T00:00Z), or
 * at moments that come again and again (cron: 15 0-23/6 * * *). UTC.
 */
#ifndef MC_TEXT_EXPIRY_H
#define MC_TEXT_EXPIRY_H

#include <apr_pools.h>
#include <stdbool.h>
#include <stdint.h>

#define MC_EXPIRY_NEVER INT64_MAX

typedef struct mc_expiry mc_expiry;

/*
 * Whole seconds (0 and less: never), a duration of ISO 8601 without years and months, a date or an instant of
 * ISO 8601, or "cron:" and a cron expression (text/cron.h). Blanks around do not count. *expiry is NULL for what never
 * expires. NULL, or what is wrong (a string constant).
 */
const char *mc_expiry_parse(mc_expiry **expiry, const char *text, apr_pool_t *pool);

/* When what was made at a time is too old, in microseconds since 1970; MC_EXPIRY_NEVER. What is made at the moment
 * itself is new. `expiry` may be NULL. */
int64_t mc_expiry_end(mc_expiry *expiry, int64_t made_us);

/* Seconds from making to the end, where they are the same for all that is made; else 0. */
int mc_expiry_age(const mc_expiry *expiry);

#endif
