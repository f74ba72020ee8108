/* References, written from the tables that configurations and requests are read by. */
#ifndef MC_SERVER_REFERENCE_H
#define MC_SERVER_REFERENCE_H

#include <apr_pools.h>

/* All elements and attributes of this build as Markdown. */
const char *mc_reference_markdown(apr_pool_t *pool);

/* All parameters of requests as Markdown. */
const char *mc_parameters_markdown(apr_pool_t *pool);

/* An example of each kind of address as Markdown, with what a server answers to it. */
const char *mc_urls_markdown(apr_pool_t *pool);

/* A text as a cell of a table of Markdown. */
const char *mc_reference_cell(const char *text, apr_pool_t *pool);

#endif
