/*
 * A SQLite file read page by page, without SQLite's machine: opening a connection, reading the schema and preparing a
 * statement cost ten times what the pages of a small file do. The file is opened, locked and read by the functions of
 * SQLite's own file system, so that all that holds between readers and writers of a process and of several does here.
 */
#ifndef MC_DB_SQLITE_PAGE_FILE_H
#define MC_DB_SQLITE_PAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mc_page_file mc_page_file;

/*
 * Opens the file of an absolute path in a read transaction: with SQLite's shared lock. The caller has seen that there
 * is no -wal beside the file. NULL where the file is not there or is not plain: only SQLite may then read it, and says
 * what is wrong. Plain is a file in rollback mode, with text in UTF-8, without a -journal beside it, that nobody is
 * about to write at this moment. Never waits.
 */
mc_page_file *mc_page_file_open(const char *path);
void mc_page_file_close(mc_page_file *file); /* NULL is ignored */

/* Bytes of a page that the tree may use; at least 480. */
uint32_t mc_page_file_usable(const mc_page_file *file);

/* The page of that number, from 1 on, until the next call; NULL where it is not in the file or cannot be read. */
const uint8_t *mc_page_file_read(mc_page_file *file, uint32_t number);

#endif
