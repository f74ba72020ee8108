/* A JSON writer onto a buffer: documents are written with it, so that no separator is missing and nothing goes out
 * unescaped. */
#include "text/json_writer.h"

#include <apr_strings.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/text.h"

#define DOCUMENT_MAX ((size_t)1 << 30)

enum { DEPTH_MAX = 32 };

typedef struct json_level {
    bool is_object;
    bool has_items;
} json_level;

struct mc_json_writer {
    mc_json_style style;
    apr_pool_t *pool;
    apr_pool_t *scratch; /* cleared after each text */
    mc_buf *buf;
    mc_error *error; /* the first one; handed out by mc_json_finish */
    const char *space;
    json_level levels[DEPTH_MAX];
    int depth;
    bool has_root;
};

static void
put_json_bytes(mc_json_writer *json, const char *text)
{
    if (json->error == MC_OK)
        json->error = mc_buf_append(json->buf, text, strlen(text), json->pool);
}

/* A line break and as many tabs as there are levels open. */
static void
put_json_line(mc_json_writer *json)
{
    put_json_bytes(json, "\n");
    for (int i = 0; i < json->depth; i++)
        put_json_bytes(json, "\t");
}

static void
put_json_space(mc_json_writer *json)
{
    if (json->space != NULL)
        put_json_bytes(json, json->space);
    json->space = NULL;
}

static void
put_json_text(mc_json_writer *json, const char *text)
{
    const char *escaped = mc_json_escape(text, json->scratch);
    if (json->style == MC_JSON_HTML) {
        escaped = mc_replace_all(escaped, "<", "\\u003c", json->scratch);
        escaped = mc_replace_all(escaped, ">", "\\u003e", json->scratch);
        escaped = mc_replace_all(escaped, "&", "\\u0026", json->scratch);
    }
    put_json_bytes(json, "\"");
    put_json_bytes(json, escaped);
    put_json_bytes(json, "\"");
    apr_pool_clear(json->scratch);
}

/* What stands before a value: comma, white space, key. */
static void
begin_json_value(mc_json_writer *json, const char *key)
{
    bool tabs = json->style == MC_JSON_TABS;
    if (json->depth == 0) {
        MC_ASSERT(key == NULL && !json->has_root);
        json->has_root = true;
        put_json_space(json);
        return;
    }
    json_level *level = &json->levels[json->depth - 1];
    MC_ASSERT(level->is_object == (key != NULL));
    if (level->has_items)
        put_json_bytes(json, ",");
    if (tabs && level->is_object)
        put_json_line(json);
    else if (tabs && level->has_items)
        put_json_bytes(json, " ");
    level->has_items = true;
    put_json_space(json);
    if (key == NULL)
        return;
    put_json_text(json, key);
    put_json_bytes(json, tabs ? ":\t" : ":");
}

static void
open_json_level(mc_json_writer *json, const char *key, bool is_object)
{
    begin_json_value(json, key);
    MC_ASSERT(json->depth < DEPTH_MAX);
    put_json_bytes(json, is_object ? "{" : "[");
    json->levels[json->depth++] = (json_level){ .is_object = is_object };
}

mc_json_writer *
mc_json_create(mc_json_style style, apr_pool_t *pool)
{
    mc_json_writer *json = apr_pcalloc(pool, sizeof(*json));
    json->style = style;
    json->pool = pool;
    apr_pool_create(&json->scratch, pool);
    json->buf = mc_buf_attach(mc_buf_create(1024, DOCUMENT_MAX), pool);
    return json;
}

void
mc_json_open_object(mc_json_writer *json, const char *key)
{
    open_json_level(json, key, true);
}

void
mc_json_open_array(mc_json_writer *json, const char *key)
{
    open_json_level(json, key, false);
}

void
mc_json_close(mc_json_writer *json)
{
    MC_ASSERT(json->depth > 0);
    const json_level *level = &json->levels[--json->depth];
    if (json->style == MC_JSON_TABS && level->is_object)
        put_json_line(json);
    put_json_space(json);
    put_json_bytes(json, level->is_object ? "}" : "]");
}

void
mc_json_string(mc_json_writer *json, const char *key, const char *text)
{
    begin_json_value(json, key);
    if (text == NULL)
        put_json_bytes(json, "null");
    else
        put_json_text(json, text);
}

void
mc_json_integer(mc_json_writer *json, const char *key, int64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRId64, number);
    mc_json_raw(json, key, text);
}

void
mc_json_boolean(mc_json_writer *json, const char *key, bool value)
{
    mc_json_raw(json, key, value ? "true" : "false");
}

void
mc_json_null(mc_json_writer *json, const char *key)
{
    mc_json_raw(json, key, "null");
}

static void
put_json_number(mc_json_writer *json, const char *key, char form, int digits, double number)
{
    char text[MC_DOUBLE_BYTES];
    mc_format_double(text, sizeof(text), form, digits, number);
    mc_json_raw(json, key, isfinite(number) ? text : "null");
}

void
mc_json_decimals(mc_json_writer *json, const char *key, double number, int decimals)
{
    put_json_number(json, key, 'f', decimals, number);
}

void
mc_json_digits(mc_json_writer *json, const char *key, double number, int digits)
{
    put_json_number(json, key, 'g', digits, number);
}

void
mc_json_raw(mc_json_writer *json, const char *key, const char *text)
{
    begin_json_value(json, key);
    put_json_bytes(json, text);
}

void
mc_json_space(mc_json_writer *json, const char *space)
{
    MC_ASSERT(space[strspn(space, " \t\n")] == '\0');
    json->space = space;
}

mc_error *
mc_json_finish(mc_buf **document, mc_json_writer *json)
{
    MC_ASSERT(json->depth == 0 && json->has_root);
    put_json_space(json);
    if (json->error != MC_OK)
        return json->error;
    *document = json->buf;
    return MC_OK;
}

mc_error *
mc_json_flush(mc_json_writer *json, FILE *out)
{
    if (json->depth == 0 && json->has_root)
        put_json_space(json);
    if (json->error != MC_OK)
        return json->error;
    if (fwrite(json->buf->data, 1, json->buf->size, out) != json->buf->size)
        return mc_error_create(json->pool, MC_ERR_IO, "JSON cannot be written: %s", strerror(errno));
    json->buf->size = 0;
    return MC_OK;
}

const char *
mc_json_finish_text(mc_json_writer *json)
{
    mc_buf *document = NULL;
    mc_error *error = mc_json_finish(&document, json);
    MC_ASSERT(error == MC_OK);
    return apr_pstrmemdup(json->pool, (const char *)document->data, document->size);
}
