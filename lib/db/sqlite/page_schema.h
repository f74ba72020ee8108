/* What a SQLite file says of one of its tables, read without SQLite: columns and indexes, where they are plain. */
#ifndef MC_DB_SQLITE_PAGE_SCHEMA_H
#define MC_DB_SQLITE_PAGE_SCHEMA_H

#include "db/sqlite/page_tree.h"

enum { MC_SCHEMA_COLUMNS = 32, MC_SCHEMA_INDEXES = 8, MC_SCHEMA_NAME = 16 };

/* Names of columns in their order, as they were written; "" for one that is too long. */
typedef struct mc_schema_columns {
    int count;
    char names[MC_SCHEMA_COLUMNS][MC_SCHEMA_NAME];
} mc_schema_columns;

/* Without its indexes that are not plain, as those of a part of the rows. */
typedef struct mc_page_schema {
    uint32_t root;
    mc_schema_columns columns;
    int index_count;
    struct mc_page_index {
        uint32_t root;
        mc_schema_columns columns;
    } indexes[MC_SCHEMA_INDEXES];
} mc_page_schema;

/*
 * False: not known, or there is no such table. Known is only a table whose rows have numbers and whose columns have a
 * name, a common type and nothing else, with at most one key of several columns: nothing then changes what stands in
 * the file, or how it compares.
 */
bool mc_page_schema_read(mc_page_schema *schema, mc_page_file *file, const char *table);

/* The place of a column; -1: it is not there. Case does not matter. */
int mc_schema_find_column(const mc_schema_columns *columns, const char *name);

#endif
