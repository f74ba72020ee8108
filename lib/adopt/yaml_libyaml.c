/* The module mapcache-yaml.so: YAML by libyaml's events. */
#include <apr_hash.h>
#include <apr_strings.h>
#include <string.h>
#include <yaml.h>

#include "adopt/yaml.h"

typedef struct yaml_reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the one that is looked at */
    const char *file;
    apr_hash_t *anchors; /* name -> mc_branch *, once it is complete */
    int *room;           /* how many branches there may be yet */
    apr_pool_t *pool;
} yaml_reader;

static int
event_line(const yaml_reader *reader)
{
    return (int)reader->event.start_mark.line + 1;
}

static mc_error *
refuse_yaml(const yaml_reader *reader, int line, const char *why)
{
    return mc_error_create(reader->pool, MC_ERR_CONFIG, "%s:%d: %s", reader->file, line, why);
}

static mc_error *
next_event(yaml_reader *reader)
{
    yaml_event_delete(&reader->event);
    if (yaml_parser_parse(&reader->parser, &reader->event))
        return MC_OK;
    const yaml_parser_t *parser = &reader->parser;
    int line = (int)(parser->error == YAML_READER_ERROR ? parser->mark.line : parser->problem_mark.line) + 1;
    return refuse_yaml(reader, line,
                       apr_psprintf(reader->pool, "this is no YAML: %s",
                                    parser->problem == NULL ? "it cannot be read" : parser->problem));
}

/* Texts without quotes that mean nothing (yaml.org/type/null). */
static bool
is_null_text(const char *text)
{
    return *text == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0 || strcmp(text, "Null") == 0 ||
           strcmp(text, "NULL") == 0;
}

static mc_error *
create_counted(mc_branch **branch, yaml_reader *reader, mc_branch_kind kind)
{
    if (--*reader->room < 0)
        return refuse_yaml(reader, event_line(reader), "there are too many values");
    *branch = mc_branch_create(kind, reader->file, event_line(reader), reader->pool);
    return MC_OK;
}

static mc_error *
read_scalar(mc_branch **branch, yaml_reader *reader)
{
    const char *text = (const char *)reader->event.data.scalar.value;
    size_t size = reader->event.data.scalar.length;
    MC_TRY(create_counted(branch, reader, MC_BRANCH_TEXT));
    if (memchr(text, '\0', size) != NULL)
        return refuse_yaml(reader, event_line(reader), "a value holds a zero byte");
    bool plain = reader->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (!plain || !is_null_text(text))
        (*branch)->text = apr_pstrmemdup(reader->pool, text, size);
    return MC_OK;
}

static mc_error *
read_alias(mc_branch **branch, yaml_reader *reader)
{
    const char *name = (const char *)reader->event.data.alias.anchor;
    const mc_branch *meant = apr_hash_get(reader->anchors, name, APR_HASH_KEY_STRING);
    if (meant == NULL)
        return refuse_yaml(
            reader, event_line(reader),
            apr_psprintf(reader->pool, "the alias *%s stands for nothing that is complete before it", name));
    *branch = mc_branch_copy(meant, reader->room, reader->pool);
    return *branch == NULL ? refuse_yaml(reader, event_line(reader), "aliases stand for too many values") : MC_OK;
}

/* The maps that a merge key names, below what the map says itself. `keys`: those that it has. */
static void
merge_maps(mc_branch *map, mc_branch *merged, apr_hash_t *keys)
{
    for (mc_branch *child = merged->kind == MC_BRANCH_TEXT ? NULL : merged->children, *next; child != NULL;
         child = next) {
        next = child->next;
        if (merged->kind == MC_BRANCH_LIST) {
            merge_maps(map, child, keys);
        } else if (apr_hash_get(keys, child->key, APR_HASH_KEY_STRING) == NULL) {
            apr_hash_set(keys, child->key, APR_HASH_KEY_STRING, child);
            mc_branch_add(map, child);
        }
    }
}

static mc_error *read_value(mc_branch **branch, yaml_reader *reader, int depth);

static mc_error *
read_map(mc_branch *map, yaml_reader *reader, int depth)
{
    mc_branch *merges = mc_branch_create(MC_BRANCH_LIST, reader->file, map->line, reader->pool);
    for (;;) {
        mc_branch *key, *value;
        MC_TRY(next_event(reader));
        if (reader->event.type == YAML_MAPPING_END_EVENT)
            break;
        int line = event_line(reader);
        MC_TRY(read_value(&key, reader, depth));
        if (key->kind != MC_BRANCH_TEXT)
            return refuse_yaml(reader, line, "a key is no text");
        MC_TRY(next_event(reader));
        MC_TRY(read_value(&value, reader, depth));
        value->key = key->text == NULL ? "" : key->text;
        value->line = line;
        mc_branch_add(strcmp(value->key, "<<") == 0 ? merges : map, value);
    }
    if (merges->children != NULL) {
        apr_hash_t *keys = apr_hash_make(reader->pool);
        for (mc_branch *child = map->children; child != NULL; child = child->next)
            apr_hash_set(keys, child->key, APR_HASH_KEY_STRING, child);
        merge_maps(map, merges, keys);
    }
    return MC_OK;
}

static mc_error *
read_list(mc_branch *list, yaml_reader *reader, int depth)
{
    for (;;) {
        mc_branch *item;
        MC_TRY(next_event(reader));
        if (reader->event.type == YAML_SEQUENCE_END_EVENT)
            return MC_OK;
        MC_TRY(read_value(&item, reader, depth));
        item->key = NULL;
        mc_branch_add(list, item);
    }
}

/* The value that the present event begins. */
static mc_error *
read_value(mc_branch **branch, yaml_reader *reader, int depth)
{
    const char *anchor = NULL;
    yaml_event_type_t type = reader->event.type;
    if (depth >= MC_BRANCH_DEPTH)
        return refuse_yaml(reader, event_line(reader), "values are nested too deeply");
    if (type == YAML_ALIAS_EVENT)
        return read_alias(branch, reader);
    if (type == YAML_SCALAR_EVENT) {
        anchor = apr_pstrdup(reader->pool, (const char *)reader->event.data.scalar.anchor);
        MC_TRY(read_scalar(branch, reader));
    } else if (type == YAML_MAPPING_START_EVENT) {
        anchor = apr_pstrdup(reader->pool, (const char *)reader->event.data.mapping_start.anchor);
        MC_TRY(create_counted(branch, reader, MC_BRANCH_MAP));
        MC_TRY(read_map(*branch, reader, depth + 1));
    } else if (type == YAML_SEQUENCE_START_EVENT) {
        anchor = apr_pstrdup(reader->pool, (const char *)reader->event.data.sequence_start.anchor);
        MC_TRY(create_counted(branch, reader, MC_BRANCH_LIST));
        MC_TRY(read_list(*branch, reader, depth + 1));
    } else {
        return refuse_yaml(reader, event_line(reader), "a value is missing");
    }
    if (anchor != NULL)
        apr_hash_set(reader->anchors, anchor, APR_HASH_KEY_STRING, *branch);
    return MC_OK;
}

static mc_error *
read_document(mc_branch **root, yaml_reader *reader)
{
    do {
        MC_TRY(next_event(reader));
        if (reader->event.type == YAML_STREAM_END_EVENT) {
            *root = mc_branch_create(MC_BRANCH_MAP, reader->file, 1, reader->pool);
            return MC_OK;
        }
    } while (reader->event.type != YAML_DOCUMENT_START_EVENT);
    MC_TRY(next_event(reader));
    return read_value(root, reader, 0);
}

static mc_error *
parse_yaml(mc_branch **root, const char *file, const char *bytes, size_t size, int *room, apr_pool_t *pool)
{
    yaml_reader *reader = apr_pcalloc(pool, sizeof(*reader));
    reader->file = file;
    reader->anchors = apr_hash_make(pool);
    reader->room = room;
    reader->pool = pool;
    if (!yaml_parser_initialize(&reader->parser))
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "there is no memory for reading YAML");
    yaml_parser_set_input_string(&reader->parser, (const unsigned char *)bytes, size);
    mc_error *error = read_document(root, reader);
    yaml_event_delete(&reader->event);
    yaml_parser_delete(&reader->parser);
    return error;
}

const mc_yaml_ops mc_yaml_libyaml_ops = { parse_yaml };
