/*
 * Trees of a SQLite file: tables by number of row, indexes as a whole. Files are not trusted: every offset, number and
 * depth is checked. What is not as expected is "not known", and SQLite has to be asked.
 */
#ifndef MC_DB_SQLITE_PAGE_TREE_H
#define MC_DB_SQLITE_PAGE_TREE_H

#include "db/sqlite/page_file.h"

/* A value of a record (sqlite.org/fileformat2.html, 2.1). */
typedef enum mc_field_kind {
    MC_FIELD_NULL,
    MC_FIELD_INTEGER,
    MC_FIELD_REAL,
    MC_FIELD_BLOB,
    MC_FIELD_TEXT
} mc_field_kind;

typedef struct mc_record_field {
    mc_field_kind kind;
    size_t at, size; /* in the record; of an integer that needs no bytes, size 0 */
    int64_t integer; /* of MC_FIELD_INTEGER, where the bytes were there */
} mc_record_field;

/*
 * Takes a record apart of which the first `there` bytes are in memory, `size` in all. Returns how many of the first
 * `most` fields it has, or -1 where it is no record or its header, or an integer, is not all in memory.
 */
int mc_record_read(mc_record_field *fields, int most, const uint8_t *record, size_t there, size_t size);

/* A record that is whole in memory. False ends the walk, which is then not known. */
typedef bool mc_tree_visit(void *baton, const uint8_t *record, size_t size);

/* Visits all records of a table (in no order that is promised), or of an index, of at most `most_pages` pages. False:
 * not known, also where a record does not fit into its page. */
bool mc_tree_walk(mc_page_file *file, uint32_t root, bool table, int most_pages, mc_tree_visit *visit, void *baton);

/* The record of a row in a table. */
typedef struct mc_tree_row {
    const uint8_t *record; /* its first `there` bytes, until the next call of mc_page_file_read */
    size_t there, size;
    uint32_t overflow; /* the page where the rest begins */
} mc_tree_row;

/* False: there is no such row, or not known. */
bool mc_tree_find(mc_tree_row *row, mc_page_file *file, uint32_t root, int64_t number);

/* Copies bytes [at, at + size) of the record to `out`, from pages that follow where they are not in memory. The row is
 * of no use afterwards. False: not known. */
bool mc_tree_copy(uint8_t *out, const mc_tree_row *row, mc_page_file *file, size_t at, size_t size);

#endif
