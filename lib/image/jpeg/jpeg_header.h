/*
 * Headers that differ only in codes that were left out. A Huffman table's codes are given out in the order of its
 * symbols (ITU-T T.81, annex C): without its last symbols it has the same codes for the others. So a file needs no
 * table beyond the last symbol that occurs in it, and files of one table, each without other last symbols, are coded
 * alike.
 */
#ifndef MC_IMAGE_JPEG_HEADER_H
#define MC_IMAGE_JPEG_HEADER_H

#include "image/jpeg/jpeg.h"

enum { MC_JPEG_TABLES = 4 };

/* A table as it stands in a file: its class and number, 16 counts of codes, and so many symbols. */
typedef struct mc_jpeg_codes {
    const uint8_t *at;
    unsigned count;
} mc_jpeg_codes;

/* What stands before, between and behind a file's tables. */
typedef struct mc_jpeg_header {
    const uint8_t *data;
    size_t tables, rest, scan; /* offsets: the first table's marker, what follows the last table, the coded data */
    mc_jpeg_codes codes[MC_JPEG_TABLES];
    int count; /* of tables */
} mc_jpeg_header;

/* False where the tables do not stand together behind the frame's header. It keeps pointers into the file. */
bool mc_jpeg_header_read(mc_jpeg_header *header, const mc_jpeg_parts *parts);

/* Whether the files are the same but for codes that one of them lacks: then `header` has the codes of both. */
bool mc_jpeg_header_unite(mc_jpeg_header *header, const mc_jpeg_header *other);

/* The same for the tables alone. */
bool mc_jpeg_tables_unite(mc_jpeg_header *header, const mc_jpeg_header *other);

/* A header with the tables in one segment; mc_jpeg_header_size() bytes, at most. Returns how many. */
size_t mc_jpeg_header_size(const mc_jpeg_header *header);
size_t mc_jpeg_header_write(uint8_t *out, const mc_jpeg_header *header);

/* Leaves out what a file that was coded with trained tables does not need: in place. Any other file stays as it is. */
void mc_jpeg_leave_out(mc_jpeg_sink *file);

#endif
