/*
 * Numbers from text, and text made safe for URLs, XML, JSON, headers and paths. Everything here takes input from
 * outside.
 */
#ifndef MC_TEXT_TEXT_H
#define MC_TEXT_TEXT_H

#include <apr_tables.h>
#include <stdint.h>

#include "mapcache/error.h"

/* Whole-string numbers: no blanks around, no trailing garbage, finite, inside min..max. False otherwise (out
 * untouched). Locale-independent. */
bool mc_parse_int(int *out, const char *text, int min, int max);
/* A whole number, written out in decimal digits. */
typedef struct mc_whole_text {
    char text[24];
} mc_whole_text;

/* The text lies in `into`. */
const char *mc_write_whole(mc_whole_text *into, int64_t number);

bool mc_parse_int64(int64_t *out, const char *text, int64_t min, int64_t max);
bool mc_parse_double(double *out, const char *text);

/* A number with a point, whatever the process's locale: `form` and `digits` are those of printf ('e', 'f' or 'g').
 * MC_DOUBLE_BYTES hold every number of up to 80 digits behind the point. Returns the bytes written. */
#define MC_DOUBLE_BYTES 400
size_t mc_format_double(char *out, size_t size, char form, int digits, double value);
const char *mc_double_text(char form, int digits, double value, apr_pool_t *pool);

/* Exactly `count` (or up to `count`, see *found) doubles separated by any of `separators`; empty items are refused
 * unless separators hold a blank (then runs count as one). */
bool mc_parse_doubles(double *out, int count, int *found, const char *text, const char *separators);

/* "64M" -> bytes. */
bool mc_parse_size(int64_t *out, const char *text);

/* strtol's leniency for drop-in configuration values: leading blanks allowed (docs/reference/configuration.md 1.1). */
bool mc_parse_config_int(int *out, const char *text, int min, int max);

/* %XX and '+' decoding; a bad escape stays as it is; %00 ends the value (docs/reference/services.md 1). */
char *mc_url_decode(const char *text, size_t size, bool plus_is_space, apr_pool_t *pool);

/* Whether a name or a value of a query string holds a control byte, other than those of `allowed`, once it is decoded;
 * *name is the first such pair's name, as it stands in the query. */
bool mc_query_has_controls(const char **name, const char *query, const char *allowed, apr_pool_t *pool);

/* The same of a text that is decoded already. */
bool mc_text_has_controls(const char *text);

/* "1.3.0": three numbers of at most three digits. */
bool mc_is_version(const char *text);

/* A query string as a table: keys compared without case, the first of a repeated key wins, at most `max` pairs. */
apr_table_t *mc_query_parse(const char *query, int max, apr_pool_t *pool);

/* Unreserved A-Za-z0-9-_.~ kept, space as '+', others %xx in lower case (origin requests) or %XX. `keep`: further
 * characters kept. */
char *mc_url_encode(const char *text, const char *keep, bool upper_case, bool plus_for_space, apr_pool_t *pool);

/* & < > " ' as entities; characters that XML 1.0 forbids and invalid UTF-8 become U+FFFD. */
const char *mc_xml_escape(const char *text, apr_pool_t *pool);

/* JSON string content (without quotes). */
const char *mc_json_escape(const char *text, apr_pool_t *pool);

/*
 * A message as a client may see it: one line of valid UTF-8 (control characters, U+0080 to U+009F too, are blanks, what
 * is no character is U+FFFD) of at most `most` bytes of `text`, with "..." where it is cut. What a client sent is
 * quoted in messages.
 */
const char *mc_message_text(const char *text, size_t most, apr_pool_t *pool);

/* CR, LF and other control characters as blanks: for header values. */
const char *mc_header_value(const char *text, apr_pool_t *pool);

/* A configured value as one line without blanks at its ends: line breaks, with the blanks around them, are one blank.
 */
const char *mc_unwrap_text(const char *text, apr_pool_t *pool);

/* A configured address: as mc_unwrap_text, but a wrapped address has no blanks where it was wrapped, and others are
 * %20.
 */
const char *mc_unwrap_url(const char *text, apr_pool_t *pool);

/* Whether a text can be the name of a header or of a method (RFC 9110, 5.6.2). */
bool mc_is_token(const char *text, size_t size);

/* Replaces every occurrence of `token`, in a copy; returns `text` itself when it does not occur. */
const char *mc_replace_all(const char *text, const char *token, const char *value, apr_pool_t *pool);

/* A word of a shell's command: quoted, unless all its characters stand for themselves. */
const char *mc_shell_word(const char *text, apr_pool_t *pool);

/* An identifier of SQL: the name in double quotes. */
const char *mc_sql_name(const char *name, apr_pool_t *pool);

/* The same of a table that may stand behind the name of its schema and a '.'. */
const char *mc_sql_table(const char *table, apr_pool_t *pool);

/* Edit distance, for "did you mean": letters that are changed, missing or too many, and neighbours that are swapped. */
int mc_text_distance(const char *a, const char *b);

/* RFC 9110 dates. format: "Sun, 06 Nov 1994 08:49:37 GMT". parse: 0 when it is none. */
const char *mc_http_date(int64_t unix_seconds, apr_pool_t *pool);
int64_t mc_http_date_parse(const char *text);

#endif
