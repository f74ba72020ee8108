/* Writing manual pages: man(7). */
#ifndef MC_CLI_ROFF_H
#define MC_CLI_ROFF_H

#include <apr_pools.h>
#include <stdio.h>

/* .TH and the section NAME. `name` in lower case: "mapcache-seed". */
void mc_roff_begin(FILE *out, const char *name, int section, const char *summary);

/* A text none of whose characters is a command of the formatter, between two strings that are written as they are. */
void mc_roff_text(FILE *out, const char *before, const char *text, const char *after);

/* "mapcache.xml(5) mapcache-seed(1)" as the section SEE ALSO, behind `first`; `page` of docs or NULL. */
void mc_roff_also(FILE *out, const char *first, const char *others, const char *page, apr_pool_t *pool);

/* The headings, paragraphs and tables of Markdown that references are written in (lib/server/reference.c). */
void mc_roff_markdown(FILE *out, const char *markdown, apr_pool_t *pool);

/* A text without the marks of code and emphasis, and with the characters that cells spell out. */
const char *mc_strip_markdown(const char *text, apr_pool_t *pool);

/* The text of the next cell of a table, stripped; *at: behind its bar. */
const char *mc_take_markdown_cell(const char **at, apr_pool_t *pool);

#endif
