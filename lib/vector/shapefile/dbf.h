/* Tables of attributes beside shapefiles (dBASE III and IV, FoxPro), as text. */
#ifndef MC_VECTOR_SHAPEFILE_DBF_H
#define MC_VECTOR_SHAPEFILE_DBF_H

#include "vector/shapefile/codepage.h"
#include "vector/shapefile/file.h"

typedef struct mc_dbf_field {
    const char *name; /* UTF-8 */
    char type;        /* C, N, F, L, D, ... */
    int at;           /* in a record */
    int width;        /* bytes */
    int decimals;
} mc_dbf_field;

typedef struct mc_dbf {
    const mc_file *file;
    int header, record; /* bytes */
    uint32_t count;     /* of records that are really there */
    bool whole;         /* they are as many as the header says */
    mc_dbf_field *fields;
    int field_count;
    int memo_count;       /* fields that were left out, because their text lies in another file */
    const char *codepage; /* of its text, iconv's name; NULL: unknown */
} mc_dbf;

/*
 * Reads the header. `codepage`: iconv's name of a code page that is named elsewhere; NULL: the code page of the table's
 * own language driver byte, if any. Memo fields and their like are left out. MC_ERR_CORRUPT for a file that is no such
 * table, MC_ERR_NOT_BUILT for dBASE 7.
 */
mc_error *mc_dbf_open(mc_dbf **dbf, const mc_file *file, const char *codepage, apr_pool_t *pool) MC_CHECKED;

/* Index of a field by its name in any case; -1: none. */
int mc_dbf_find(const mc_dbf *dbf, const char *name);

/* Reads records of a table; of one thread. */
typedef struct mc_dbf_reader {
    const mc_dbf *dbf;
    mc_file_view view;
    size_t ahead; /* bytes to be read with the next row */
    mc_codepage codepage;
    const uint8_t *row; /* NULL: the table has none for this record */
} mc_dbf_reader;

void mc_dbf_begin(mc_dbf_reader *reader, const mc_dbf *dbf);
void mc_dbf_end(mc_dbf_reader *reader);

/* Goes to a record. False where the record has been deleted. A record that the table does not have has only nulls; so
 * has one that could not be read, of which mc_dbf_check tells. */
bool mc_dbf_row(mc_dbf_reader *reader, uint32_t record);

/* Whether all records could be read so far: MC_ERR_IO, MC_ERR_NO_MEMORY. */
mc_error *mc_dbf_check(const mc_dbf_reader *reader, apr_pool_t *pool) MC_CHECKED;

/* The value as UTF-8 text without the blanks around it; NULL where the value is null. Numbers keep their digits, dates
 * become 2026-12-31, truth values "true" or "false". */
const char *mc_dbf_value(mc_dbf_reader *reader, int field, apr_pool_t *pool);

#endif
