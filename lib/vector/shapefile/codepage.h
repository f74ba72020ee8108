/* Code pages of tables beside shapefiles. */
#ifndef MC_VECTOR_SHAPEFILE_CODEPAGE_H
#define MC_VECTOR_SHAPEFILE_CODEPAGE_H

#include <apr_pools.h>
#include <stddef.h>
#include <stdint.h>

/*
 * iconv's name of the code page that a .cpg file or an option gives ("UTF-8", "1252", "ANSI 1252", "OEM 850", "88591",
 * "LDID/87"); NULL where iconv does not know the code page.
 */
const char *mc_codepage_name(const char *text, apr_pool_t *pool);

/* iconv's name of the code page of a table's language driver byte (LDID); NULL where the byte names no code page. */
const char *mc_codepage_of_driver(uint8_t driver);

/* Turns text of one code page into UTF-8; of one thread. */
typedef struct mc_codepage {
    const char *name; /* NULL: unknown: UTF-8 where it is valid as such, else Windows-1252 */
    void *state;      /* iconv's; NULL before its first use */
} mc_codepage;

/* A value as UTF-8. Bytes that mean nothing become U+FFFD. */
const char *mc_codepage_text(mc_codepage *page, const char *bytes, size_t size, apr_pool_t *pool);
void mc_codepage_close(mc_codepage *page);

#endif
