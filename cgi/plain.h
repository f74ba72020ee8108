/* Plain CGI: one request from the environment, answered on standard output. */
#ifndef MC_CGI_PLAIN_H
#define MC_CGI_PLAIN_H

#include "generation.h"

/* Returns the process's exit status. */
int mc_plain_run(mc_generations *generations, apr_pool_t *pool);

#endif
