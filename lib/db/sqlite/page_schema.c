/*
 * The schema is text (sqlite.org/fileformat2.html, 2.6): the statements by which tables and indexes were made. A wrong
 * guess would show a wrong tile, so a statement is taken apart word by word, and anything that is not expected ends it.
 */
#include "db/sqlite/page_schema.h"

#include <string.h>
#include <strings.h>

enum { SCHEMA_PAGES = 16, SCHEMA_ROOT = 1, SCHEMA_FIELDS = 5 };

/* The fields of a row of the schema. */
enum { ROW_TYPE, ROW_NAME, ROW_TABLE, ROW_ROOT, ROW_SQL };

typedef struct schema_reading {
    mc_page_schema *schema;
    const char *table;
    mc_schema_columns key; /* of the one constraint; count 0: none */
} schema_reading;

typedef struct schema_text {
    const char *at, *end;
    const char *token;
    size_t size; /* of the token; 0 at the end */
} schema_text;

static bool
is_word_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '_';
}

static void
advance_schema_token(schema_text *text)
{
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\t' || *text->at == '\r' || *text->at == '\n'))
        text->at++;
    text->token = text->at;
    while (text->at < text->end && is_word_byte(*text->at))
        text->at++;
    if (text->at == text->token && text->at < text->end)
        text->at++;
    text->size = (size_t)(text->at - text->token);
}

static bool
accept_schema_word(schema_text *text, const char *word)
{
    if (strlen(word) != text->size || strncasecmp(text->token, word, text->size) != 0)
        return false;
    advance_schema_token(text);
    return true;
}

/* Of a column or an index. */
static bool
take_schema_name(schema_text *text, char name[MC_SCHEMA_NAME])
{
    if (text->size == 0 || !is_word_byte(*text->token))
        return false;
    size_t size = text->size < MC_SCHEMA_NAME ? text->size : 0;
    memcpy(name, text->token, size);
    name[size] = '\0';
    advance_schema_token(text);
    return true;
}

static bool
add_schema_column(mc_schema_columns *columns, schema_text *text)
{
    return columns->count < MC_SCHEMA_COLUMNS && take_schema_name(text, columns->names[columns->count++]);
}

/* "(a, b, c)": neither orders nor collations. */
static bool
take_schema_columns(mc_schema_columns *columns, schema_text *text)
{
    if (!accept_schema_word(text, "("))
        return false;
    do {
        if (!add_schema_column(columns, text))
            return false;
    } while (accept_schema_word(text, ","));
    return accept_schema_word(text, ")");
}

/* What may stand behind the name of a column. */
static void
pass_type(schema_text *text)
{
    static const char *const words[] = { "text",     "integer",   "int",     "bigint", "smallint", "blob",
                                         "datetime", "timestamp", "varchar", "char",   "not",      "null" };
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (accept_schema_word(text, words[i]))
            i = (size_t)-1;
}

/* "PRIMARY KEY(a, b)" or "UNIQUE(a, b)"; SQLite makes an index of each, whose order is that of these. */
static bool
take_key(schema_reading *reading, schema_text *text)
{
    if (reading->key.count > 0 || (accept_schema_word(text, "primary") && !accept_schema_word(text, "key")))
        return false;
    return take_schema_columns(&reading->key, text);
}

static bool
take_table(schema_reading *reading, schema_text *text)
{
    char name[MC_SCHEMA_NAME];
    advance_schema_token(text);
    if (!accept_schema_word(text, "create") || !accept_schema_word(text, "table") || !take_schema_name(text, name) ||
        strcasecmp(name, reading->table) != 0 || !accept_schema_word(text, "("))
        return false;
    do {
        schema_text ahead = *text;
        if (accept_schema_word(&ahead, "primary") || accept_schema_word(&ahead, "unique")) {
            (void)accept_schema_word(text, "unique");
            if (!take_key(reading, text))
                return false;
            continue;
        }
        if (reading->key.count > 0 || !add_schema_column(&reading->schema->columns, text))
            return false;
        pass_type(text);
    } while (accept_schema_word(text, ","));
    return accept_schema_word(text, ")") && text->size == 0;
}

static bool
take_index(mc_schema_columns *columns, const schema_reading *reading, schema_text *text)
{
    char name[MC_SCHEMA_NAME];
    advance_schema_token(text);
    if (!accept_schema_word(text, "create"))
        return false;
    (void)accept_schema_word(text, "unique");
    if (!accept_schema_word(text, "index") || !take_schema_name(text, name) || !accept_schema_word(text, "on") ||
        !take_schema_name(text, name) || strcasecmp(name, reading->table) != 0)
        return false;
    return take_schema_columns(columns, text) && text->size == 0;
}

static bool
is_field_text(const uint8_t *record, const mc_record_field *field, const char *text)
{
    return field->kind == MC_FIELD_TEXT && field->size == strlen(text) &&
           strncasecmp((const char *)record + field->at, text, field->size) == 0;
}

static void
note_index(schema_reading *reading, uint32_t root, const mc_record_field *sql, schema_text *text)
{
    mc_page_schema *schema = reading->schema;
    if (schema->index_count == MC_SCHEMA_INDEXES)
        return;
    struct mc_page_index *index = &schema->indexes[schema->index_count];
    *index = (struct mc_page_index){ .root = root };
    if (sql->kind == MC_FIELD_NULL)
        index->columns = reading->key;
    else if (sql->kind != MC_FIELD_TEXT || !take_index(&index->columns, reading, text))
        return;
    schema->index_count += index->columns.count > 0;
}

static bool
visit_schema_row(void *baton, const uint8_t *record, size_t size)
{
    schema_reading *reading = baton;
    mc_record_field fields[SCHEMA_FIELDS];
    if (mc_record_read(fields, SCHEMA_FIELDS, record, size, size) != SCHEMA_FIELDS)
        return false;
    if (!is_field_text(record, &fields[ROW_TABLE], reading->table) ||
        is_field_text(record, &fields[ROW_TYPE], "trigger"))
        return true;
    const mc_record_field *root = &fields[ROW_ROOT], *sql = &fields[ROW_SQL];
    if (root->kind != MC_FIELD_INTEGER || root->integer <= SCHEMA_ROOT || root->integer > UINT32_MAX)
        return false;
    const char *begin = (const char *)record + sql->at;
    schema_text text = { .at = begin, .end = begin + sql->size };
    if (is_field_text(record, &fields[ROW_TYPE], "index")) {
        note_index(reading, (uint32_t)root->integer, sql, &text);
        return true;
    }
    if (!is_field_text(record, &fields[ROW_TYPE], "table") || sql->kind != MC_FIELD_TEXT || reading->schema->root != 0)
        return false;
    reading->schema->root = (uint32_t)root->integer;
    return take_table(reading, &text);
}

bool
mc_page_schema_read(mc_page_schema *schema, mc_page_file *file, const char *table)
{
    schema_reading reading = { .schema = schema, .table = table };
    schema->root = 0;
    schema->columns.count = schema->index_count = 0;
    return mc_tree_walk(file, SCHEMA_ROOT, true, SCHEMA_PAGES, visit_schema_row, &reading) && schema->root != 0;
}

int
mc_schema_find_column(const mc_schema_columns *columns, const char *name)
{
    for (int i = 0; i < columns->count; i++)
        if (strcasecmp(columns->names[i], name) == 0)
            return i;
    return -1;
}
