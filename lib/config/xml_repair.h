/*
 * What MapCache's parser reads and XML 1.0 forbids: made well-formed before expat sees the text. Each repair is a
 * warning that says where it stands and how to mend the file. Nothing is guessed about the structure: an element that
 * is not closed stays an error.
 */
#ifndef MC_CONFIG_XML_REPAIR_H
#define MC_CONFIG_XML_REPAIR_H

#include <apr_tables.h>
#include <stddef.h>

#include "mapcache/config.h"

/* A place of the text that grew: the '&' of an entity that was put in. Lines count from 1, columns in characters
 * from 1, both in the repaired text. */
typedef struct mc_xml_insertion {
    int line, column;
} mc_xml_insertion;

typedef struct mc_xml_repaired {
    const char *text; /* UTF-8 */
    size_t size;
    apr_array_header_t *insertions; /* of mc_xml_insertion, in the order of the text */
} mc_xml_repaired;

/*
 * Repairs a text of `size` bytes that a zero byte follows. False: there was nothing to repair. Warnings go to
 * `diagnostics`; after the first twenty only their number.
 */
bool mc_xml_repair(mc_xml_repaired *repaired, const char *file, const char *text, size_t size,
                   mc_diagnostics *diagnostics, apr_pool_t *pool);

/* The column in the file of a place in the repaired text. */
int mc_xml_repaired_column(const mc_xml_repaired *repaired, int line, int column);

#endif
