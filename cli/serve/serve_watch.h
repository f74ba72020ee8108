/* Whether files have changed: asked again and again, without keeping any of them open. */
#ifndef MC_CLI_SERVE_WATCH_H
#define MC_CLI_SERVE_WATCH_H

#include <apr_tables.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct mc_serve_watch {
    uint64_t known; /* what has been acted on */
    uint64_t last;  /* what the look before has seen */
} mc_serve_watch;

/* From now on what the files are like counts as known. `paths`: of const char *; folders are looked through, and of
 * files those beside them that have the same name with other endings. */
void mc_serve_watch_begin(mc_serve_watch *watch, const apr_array_header_t *paths, apr_pool_t *scratch);

/* Whether something is different, and has stayed so since the look before: nobody is still writing. It is known
 * then. */
bool mc_serve_watch_changed(mc_serve_watch *watch, const apr_array_header_t *paths, apr_pool_t *scratch);

#endif
