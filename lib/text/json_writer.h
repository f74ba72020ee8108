/*
 * Writes JSON: separators and quotes come from the writer, texts are escaped. Inside an object every value has a key,
 * elsewhere the key is NULL. Wrong nesting is a mistake of the caller and ends the program.
 */
#ifndef MC_TEXT_JSON_WRITER_H
#define MC_TEXT_JSON_WRITER_H

#include <stdio.h>

#include "mapcache/buf.h"

typedef struct mc_json_writer mc_json_writer;

typedef enum mc_json_style {
    MC_JSON_DENSE, /* no white space */
    MC_JSON_HTML,  /* no white space; < > & as \u003c and so on: no text can end a script element */
    MC_JSON_TABS   /* each member of an object on a line of its own, indented by tabs; items after a blank */
} mc_json_style;

/* A writer whose text lives in `pool`. */
mc_json_writer *mc_json_create(mc_json_style style, apr_pool_t *pool);

void mc_json_open_object(mc_json_writer *json, const char *key);
void mc_json_open_array(mc_json_writer *json, const char *key);

/* Closes the object or array that was opened last and is open. */
void mc_json_close(mc_json_writer *json);

/* A text with quotes; characters that are no UTF-8 become U+FFFD. A NULL text is null. */
void mc_json_string(mc_json_writer *json, const char *key, const char *text);
void mc_json_integer(mc_json_writer *json, const char *key, int64_t number);
void mc_json_boolean(mc_json_writer *json, const char *key, bool value);
void mc_json_null(mc_json_writer *json, const char *key);

/* A number with a fixed count of decimals (%.*f), or with at most `digits` digits (%.*g). Infinity is null. */
void mc_json_decimals(mc_json_writer *json, const char *key, double number, int decimals);
void mc_json_digits(mc_json_writer *json, const char *key, double number, int digits);

/* Text that is JSON already: a number in its own notation, or the text of another writer. */
void mc_json_raw(mc_json_writer *json, const char *key, const char *text);

/* White space before what comes next, after its comma. At the end of a document: a last line break. */
void mc_json_space(mc_json_writer *json, const char *space);

/* The document, attached to the writer's pool, once everything is closed. MC_ERR_LIMIT when the document grew too
 * large. */
mc_error *mc_json_finish(mc_buf **document, mc_json_writer *json) MC_CHECKED;

/*
 * Writes to `out` what the writer holds, and forgets that: a document that is flushed now and then may be longer than
 * memory. A last call, once everything is closed, ends the document. MC_ERR_LIMIT: too much between two calls;
 * MC_ERR_IO: `out` does not take it.
 */
mc_error *mc_json_flush(mc_json_writer *json, FILE *out) MC_CHECKED;

/* The same as text in the writer's pool, for documents that have a bound of their own. */
const char *mc_json_finish_text(mc_json_writer *json);

#endif
