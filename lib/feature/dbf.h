/* Tables of attributes beside shapefiles (dBASE III), as text. */
#ifndef MC_FEATURE_DBF_H
#define MC_FEATURE_DBF_H

#include "feature/mapped.h"

typedef struct mc_dbf_field {
    const char *name;
    char type; /* C, N, F, L, D, ... */
    int at;    /* in a record */
    int width; /* bytes */
    int decimals;
} mc_dbf_field;

typedef struct mc_dbf {
    const mc_mapped *file;
    int header, record; /* bytes */
    uint32_t count;     /* of records that are really there */
    mc_dbf_field *fields;
    int field_count;
    bool latin1; /* text is ISO 8859-1 (or Windows-1252), else it is taken for UTF-8 */
} mc_dbf;

/* Reads the header. `codepage`: what the .cpg file says, or NULL. MC_ERR_CORRUPT for what is no such table. */
mc_error *mc_dbf_open(mc_dbf **dbf, const mc_mapped *file, const char *codepage, apr_pool_t *pool) MC_CHECKED;

/* Index of a field by its name in any case; -1: none. */
int mc_dbf_find(const mc_dbf *dbf, const char *name);

/* The value as UTF-8 text without the blanks around it; NULL where there is none. */
const char *mc_dbf_value(const mc_dbf *dbf, uint32_t record, int field, apr_pool_t *pool);

#endif
