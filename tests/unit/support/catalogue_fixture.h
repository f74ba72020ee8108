/* A catalogue in an SQLite file, dimensions that ask it, and requests that follow each other. */
#ifndef MC_CATALOGUE_FIXTURE_H
#define MC_CATALOGUE_FIXTURE_H

#include "config_text.h"

#include <apr_strings.h>
#include <float.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include "base/metrics.h"
#include "db/sqlite/handles.h"
#include "dimension/query.h"
#include "memory/clock_cache.h"

extern char catalogue_folder[64];
extern const char *catalogue_file;
extern mc_build catalogue_build;
extern mc_grid catalogue_grid;

void sql_in(const char *path, const char *statements);
void catalogue_sql(const char *text);

/* The next request: a context of its own. */
void next_request(void);

/* Until what was written last may be remembered. */
void settle_catalogue(void);
mc_dimension *declare_dimension(const char *type, const char *attributes, const char *inner);

/* A dimension with a validate_query; `inner`: further children. */
mc_dimension *asking_dimension(const char *type, const char *validate, const char *inner);
const char *joined_values(const apr_array_header_t *values);
const char *resolve_in(mc_dimension *dimension, const char *value, const mc_extent *extent);
const char *resolve_value(mc_dimension *dimension, const char *value);
mc_error *refuse_value(mc_dimension *dimension, const char *value);

/* How often the back end has been asked since the last look. */
int count_queries(void);

#define LIKE "SELECT name FROM catalog WHERE keywords LIKE '%' || :dim || '%'"
#define HERE " AND minx <= :maxx AND maxx >= :minx AND miny <= :maxy AND maxy >= :miny"

/* What a client may read of a failure names the dimension, not the file and not the statement. */
void check_message(const mc_error *error);

/* Runs the tests as a suite and returns main()'s value. */
int catalogue_run(const char *name, const TTest *const *tests, int count);

#define CATALOGUE_MAIN(name, ...)                                                                                      \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const TTest *const tests[] = { __VA_ARGS__ };                                                                  \
        return catalogue_run(name, tests, (int)(sizeof(tests) / sizeof(tests[0])));                                    \
    }

#endif
