/* Elements read by their tables: the one place where the configuration's values are typed and its mistakes are named.
 */
#include <apr_file_info.h>
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "config/value.h"

enum { MOST_UNKNOWN = 20 /* unknown things of one element that are worth a line each */ };

typedef struct keys_reader {
    void *out;
    const mc_node *node;
    const mc_key *keys;
    int key_count;
    const mc_node **first; /* for each key: the first child of its name */
    mc_diagnostics *diagnostics;
    apr_pool_t *pool;
    int unknown;
} keys_reader;

static void *
config_field_of(const keys_reader *reader, const mc_key *key)
{
    return (char *)reader->out + key->offset;
}

static void
set_default(const keys_reader *reader, const mc_key *key)
{
    if (key->flags & MC_KEY_REPEATABLE) {
        *(apr_array_header_t **)config_field_of(reader, key) = apr_array_make(reader->pool, 1, sizeof(const mc_node *));
    } else if (key->fallback != NULL && key->kind == MC_PRESENT) {
        *(bool *)config_field_of(reader, key) = strcasecmp(key->fallback, "true") == 0;
    } else if (key->fallback != NULL) {
        const char *wrong = mc_value_store(config_field_of(reader, key), key, key->fallback, reader->pool);
        MC_ASSERT(wrong == NULL);
    }
}

/* `name` is as in the table: "@x" for attributes. */
static int
key_index(const mc_key *keys, const char *name, bool attribute)
{
    for (int i = 0; keys[i].name != NULL; i++) {
        bool is_attribute = keys[i].name[0] == '@';
        if (is_attribute == attribute && strcmp(keys[i].name + is_attribute, name) == 0)
            return i;
    }
    return -1;
}

static const char *
nearest_name(const mc_key *keys, const char *name, bool attribute, apr_pool_t *pool)
{
    apr_array_header_t *known = apr_array_make(pool, 32, sizeof(const char *));
    for (const mc_key *key = keys; key->name != NULL; key++)
        if (*key->name != '\0' && (*key->name == '@') == attribute)
            APR_ARRAY_PUSH(known, const char *) = key->name + attribute;
    return mc_config_nearest(name, (const char *const *)known->elts, known->nelts);
}

/* A warning: MapCache reads over what it does not know, and so do we; but it is mostly a slip. */
static void
report_unknown(keys_reader *reader, const mc_node *at, const mc_key *keys, const char *name, bool attribute)
{
    if (++reader->unknown > MOST_UNKNOWN) {
        if (reader->unknown == MOST_UNKNOWN + 1)
            mc_complain(reader->diagnostics, MC_WARNING, reader->node,
                        "further unknown elements and attributes in it are not listed");
        return;
    }
    const char *noun = attribute ? "attribute" : "element";
    const char *quoted = mc_config_quote(name, reader->pool);
    const char *nearest = nearest_name(keys, name, attribute, reader->pool);
    bool other = key_index(keys, name, !attribute) >= 0;
    if (other)
        mc_complain(reader->diagnostics, MC_WARNING, at, "%s %s is ignored: it must be written as %s", noun, quoted,
                    attribute ? "an element" : "an attribute");
    else if (nearest != NULL)
        mc_complain(reader->diagnostics, MC_WARNING, at, "unknown %s %s is ignored; did you mean \"%s\"?", noun, quoted,
                    nearest);
    else
        mc_complain(reader->diagnostics, MC_WARNING, at, "unknown %s %s is ignored", noun, quoted);
}

static void
check_known_attributes(keys_reader *reader, const mc_node *node, const mc_key *keys)
{
    for (const mc_attr *attr = node->attrs; attr != NULL; attr = attr->next)
        if (key_index(keys, attr->name, true) < 0)
            report_unknown(reader, node, keys, attr->name, true);
}

static bool
has_text(const mc_node *node)
{
    return node->text[strspn(node->text, " \t\r\n")] != '\0';
}

/* An element that holds a value: nothing else may stand in it. */
static void
check_leaf(keys_reader *reader, const mc_node *leaf, const mc_key *key)
{
    static const mc_key none[] = { MC_KEY_END };
    const mc_key *keys = key->children == NULL ? none : key->children;
    check_known_attributes(reader, leaf, keys);
    for (const mc_node *child = leaf->children; child != NULL; child = child->next)
        if (key_index(keys, child->name, false) < 0)
            report_unknown(reader, child, keys, child->name, false);
}

static bool
check_present(keys_reader *reader, const mc_node *at, const mc_key *key, const char *text)
{
    bool line = key->kind == MC_LINE || key->kind == MC_URL;
    if (!(key->flags & MC_KEY_REQUIRED) || (!line && key->kind != MC_TEXT))
        return true;
    if (text[line ? strspn(text, " \t\r\n") : 0] != '\0')
        return true;
    bool allowed = (key->flags & MC_KEY_MAY_BE_EMPTY) != 0;
    mc_severity severity = allowed ? MC_WARNING : MC_REFUSED;
    if (*key->name == '@')
        mc_complain(reader->diagnostics, severity, at, "attribute \"%s\" is empty. %s", key->name + 1, key->help);
    else
        mc_complain(reader->diagnostics, severity, at, "it is empty. %s", key->help);
    return allowed;
}

const char *
mc_config_path(const char *file, const char *path, apr_pool_t *pool)
{
    char *folder = apr_pstrdup(pool, file == NULL ? "" : file), *slash = strrchr(folder, '/');
    char *merged, *absolute;
    folder[slash == NULL ? 0 : slash == folder ? 1 : slash - folder] = '\0';
    if (*path == '/' || *path == '\0' ||
        apr_filepath_merge(&merged, *folder == '\0' ? NULL : folder, path, 0, pool) != APR_SUCCESS ||
        apr_filepath_merge(&absolute, NULL, merged, APR_FILEPATH_NOTRELATIVE, pool) != APR_SUCCESS)
        return path;
    return absolute;
}

/* Whether a text is a path that depends on the working directory. What GDAL opens may be no path at all: DRIVER:name,
 * XML. */
static bool
is_relative_path(const char *text)
{
    return *text != '/' && *text != '\0' && *text != '<' && strchr(text, ':') == NULL;
}

static void
apply_path_flags(keys_reader *reader, const mc_node *at, const mc_key *key, const char *text, void *field)
{
    if (key->flags & MC_KEY_FILE) {
        const char *path = mc_config_path(at->file, text, reader->pool);
        *(const char **)field = path;
        if (*path == '/')
            APR_ARRAY_PUSH(reader->diagnostics->files, const char *) = apr_pstrdup(reader->diagnostics->pool, path);
    }
    if ((key->flags & MC_KEY_WORKDIR) && reader->diagnostics->thorough && is_relative_path(text))
        mc_complain(reader->diagnostics, MC_WARNING, at,
                    "the path %s depends on the folder in which a program is started: write an absolute one",
                    mc_config_quote(text, reader->pool));
}

/* Stores the text of an attribute or element in `field`. */
static void
read_key_value(keys_reader *reader, const mc_node *at, const mc_key *key, const char *text, void *field)
{
    if (!check_present(reader, at, key, text))
        return;
    apr_pool_t *pool = reader->pool;
    const char *wrong = mc_value_store(field, key, text, pool);
    const char *subject = *key->name == '@' ? apr_pstrcat(pool, "attribute \"", key->name + 1, "\": ", NULL) : "";
    if (wrong != NULL)
        mc_complain(reader->diagnostics, MC_REFUSED, at, "%s%s %s", subject, mc_config_quote(text, pool), wrong);
    else if (key->flags & (MC_KEY_FILE | MC_KEY_WORKDIR))
        apply_path_flags(reader, at, key, text, field);
    else if (key->kind == MC_TRUE_ONLY && strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        mc_complain(reader->diagnostics, MC_WARNING, at, "%s%s counts as false; only \"true\" switches it on", subject,
                    mc_config_quote(text, pool));
}

static void
read_child(keys_reader *reader, const mc_node *child, const mc_key *key)
{
    union {
        const char *text;
        int number;
        double real;
        apr_int64_t size;
        bool boolean;
        mc_number_list list;
    } checked_only;
    if (key->kind != MC_TREE)
        check_leaf(reader, child, key);
    if (key->flags & MC_KEY_REPEATABLE) {
        apr_array_header_t *all = *(apr_array_header_t **)config_field_of(reader, key);
        APR_ARRAY_PUSH(all, const mc_node *) = child;
        if (key->kind != MC_TREE)
            read_key_value(reader, child, key, child->text, &checked_only);
    } else if (key->kind == MC_TREE) {
        *(const mc_node **)config_field_of(reader, key) = child;
    } else {
        read_key_value(reader, child, key, child->text, config_field_of(reader, key));
    }
}

static void
read_children(keys_reader *reader)
{
    for (const mc_node *child = reader->node->children; child != NULL; child = child->next) {
        int index = key_index(reader->keys, child->name, false);
        if (index < 0) {
            report_unknown(reader, child, reader->keys, child->name, false);
            continue;
        }
        const mc_key *key = &reader->keys[index];
        const mc_node *first = reader->first[index];
        if (first == NULL)
            reader->first[index] = child;
        if (first == NULL || (key->flags & MC_KEY_REPEATABLE))
            read_child(reader, child, key);
        else if (++reader->unknown <= MOST_UNKNOWN)
            mc_complain(reader->diagnostics, MC_WARNING, child, "is ignored: the one on line %d counts", first->line);
    }
}

static void
report_missing(const keys_reader *reader, const mc_key *key)
{
    if (*key->name == '@')
        mc_complain(reader->diagnostics, MC_REFUSED, reader->node, "attribute \"%s\" is missing. %s", key->name + 1,
                    key->help);
    else
        mc_complain(reader->diagnostics, MC_REFUSED, reader->node, "<%s> is missing. %s", key->name, key->help);
}

bool
mc_config_read(void *out, const mc_node *node, const mc_key *keys, mc_diagnostics *diagnostics)
{
    keys_reader reader = {
        .out = out, .node = node, .keys = keys, .diagnostics = diagnostics, .pool = diagnostics->pool
    };
    int refused = diagnostics->refused;
    bool own_text = false;
    for (const mc_key *key = keys; key->name != NULL; key++) {
        reader.key_count++;
        set_default(&reader, key);
        own_text |= *key->name == '\0';
    }
    if (node == NULL)
        return true;
    reader.first = apr_pcalloc(reader.pool, sizeof(const mc_node *) * (size_t)(reader.key_count + 1));
    check_known_attributes(&reader, node, keys);
    read_children(&reader);
    if (!own_text && has_text(node))
        mc_complain(diagnostics, MC_WARNING, node, "its text %s is ignored", mc_config_quote(node->text, reader.pool));
    for (int i = 0; i < reader.key_count; i++) {
        const mc_key *key = &keys[i];
        const char *attribute = *key->name == '@' ? mc_node_attr(node, key->name + 1) : NULL;
        if (attribute != NULL)
            read_key_value(&reader, node, key, attribute, config_field_of(&reader, key));
        else if (*key->name == '\0')
            read_key_value(&reader, node, key, node->text, config_field_of(&reader, key));
        else if ((key->flags & MC_KEY_REQUIRED) && (*key->name == '@' || reader.first[i] == NULL))
            report_missing(&reader, key);
    }
    return diagnostics->refused == refused;
}
