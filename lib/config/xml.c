/*
 * From XML to a tree of nodes. The file is somebody's text, perhaps an attacker's: its size, depth, number of elements
 * and what its entities expand to are bounded, and nothing outside of it is ever loaded.
 */
#include <apr_file_io.h>
#include <apr_strings.h>
#include <expat.h>
#include <string.h>

#include "config/xml_repair.h"
#include "mapcache/buf.h"
#include "mapcache/config.h"

enum {
    MAX_FILE = 64 * 1024 * 1024,
    MAX_EXPANSION = 16 * 1024 * 1024, /* bytes of text and attributes beyond the size of the file itself */
    MAX_DEPTH = 100,
    MAX_NODES = 1000 * 1000,        /* elements and attributes */
    MAX_REPAIRED = 8 * 1024 * 1024, /* bytes of a file that is looked through once more */
    CHUNK = 64 * 1024,
};

/* An element that is still open. Its text buffer is used again by the next element of that depth. */
typedef struct open_element {
    mc_node *node;
    mc_node *last_child, *last_comment;
    char *text;
    size_t size;
    size_t capacity;
} open_element;

typedef struct builder {
    XML_Parser parser;
    apr_pool_t *pool;
    apr_pool_t *scratch;
    const char *file;
    mc_node *root;
    open_element open[MAX_DEPTH];
    int depth;
    int nodes;
    size_t read;
    size_t produced;
    mc_error *error;
    bool malformed;                  /* the error is the XML's */
    const mc_xml_repaired *repaired; /* what is read; NULL: the file as it stands */
} builder;

static void
stop_xml_parser(builder *builder, mc_error *error)
{
    if (builder->error == MC_OK)
        builder->error = error;
    XML_StopParser(builder->parser, XML_FALSE);
}

static int
xml_line_number(const builder *builder)
{
    return (int)XML_GetCurrentLineNumber(builder->parser);
}

static int
xml_column_number(const builder *builder)
{
    int column = (int)XML_GetCurrentColumnNumber(builder->parser) + 1;
    return builder->repaired == NULL ? column
                                     : mc_xml_repaired_column(builder->repaired, xml_line_number(builder), column);
}

static void
refuse_xml(builder *builder, const char *why)
{
    stop_xml_parser(builder, mc_error_create(builder->pool, MC_ERR_CONFIG, "%s:%d:%d: %s", builder->file,
                                             xml_line_number(builder), xml_column_number(builder), why));
}

/* Counts what the tree takes, so that entities cannot blow it up. */
static bool
account_tree_bytes(builder *builder, size_t bytes)
{
    builder->produced += bytes;
    if (builder->produced <= builder->read + MAX_EXPANSION)
        return true;
    refuse_xml(builder, "the entities of this file expand to more than 16 MB");
    return false;
}

static bool
account_node(builder *builder)
{
    if (++builder->nodes <= MAX_NODES)
        return true;
    refuse_xml(builder, "more than a million elements and attributes");
    return false;
}

static void
add_attributes(builder *builder, mc_node *node, const XML_Char **attributes)
{
    mc_attr **last = &node->attrs;
    for (; *attributes != NULL; attributes += 2) {
        if (!account_node(builder) || !account_tree_bytes(builder, strlen(attributes[0]) + strlen(attributes[1])))
            return;
        mc_attr *attr = apr_pcalloc(builder->pool, sizeof(*attr));
        attr->name = apr_pstrdup(builder->pool, attributes[0]);
        attr->value = apr_pstrdup(builder->pool, attributes[1]);
        *last = attr;
        last = &attr->next;
    }
}

static mc_node *
create_node(const builder *builder, const char *name)
{
    mc_node *node = apr_pcalloc(builder->pool, sizeof(*node));
    node->file = builder->file;
    node->line = xml_line_number(builder);
    node->column = xml_column_number(builder);
    node->name = name;
    node->text = "";
    return node;
}

static void
append_node(mc_node **first, mc_node **last, mc_node *node)
{
    *(*last == NULL ? first : &(*last)->next) = node;
    *last = node;
}

static void XMLCALL
start_element(void *baton, const XML_Char *name, const XML_Char **attributes)
{
    builder *builder = baton;
    if (builder->error != MC_OK || !account_node(builder) || !account_tree_bytes(builder, strlen(name)))
        return;
    if (builder->depth == MAX_DEPTH) {
        refuse_xml(builder, "elements are nested more than 100 deep");
        return;
    }
    mc_node *node = create_node(builder, apr_pstrdup(builder->pool, name));
    add_attributes(builder, node, attributes);
    if (builder->depth == 0) {
        builder->root = node;
    } else {
        open_element *parent = &builder->open[builder->depth - 1];
        node->parent = parent->node;
        node->text_before = parent->size;
        append_node(&parent->node->children, &parent->last_child, node);
    }
    open_element *opened = &builder->open[builder->depth++];
    opened->node = node;
    opened->last_child = opened->last_comment = NULL;
    opened->size = 0;
}

static void XMLCALL
end_element(void *baton, const XML_Char *name)
{
    (void)name;
    builder *builder = baton;
    if (builder->error != MC_OK)
        return;
    open_element *closed = &builder->open[--builder->depth];
    if (closed->size > 0)
        closed->node->text = apr_pstrmemdup(builder->pool, closed->text, closed->size);
}

static void XMLCALL
character_data(void *baton, const XML_Char *text, int size)
{
    builder *builder = baton;
    if (builder->error != MC_OK || builder->depth == 0 || size <= 0 || !account_tree_bytes(builder, (size_t)size))
        return;
    open_element *element = &builder->open[builder->depth - 1];
    size_t needed = element->size + (size_t)size;
    if (needed > element->capacity) {
        size_t capacity = element->capacity == 0 ? 256 : element->capacity;
        while (capacity < needed)
            capacity *= 2;
        char *larger = apr_palloc(builder->scratch, capacity);
        if (element->size > 0)
            memcpy(larger, element->text, element->size);
        element->text = larger;
        element->capacity = capacity;
    }
    memcpy(element->text + element->size, text, (size_t)size);
    element->size = needed;
}

static void XMLCALL
on_xml_comment(void *baton, const XML_Char *text)
{
    builder *builder = baton;
    if (builder->error != MC_OK || builder->depth == 0 || !account_node(builder) ||
        !account_tree_bytes(builder, strlen(text)))
        return;
    open_element *element = &builder->open[builder->depth - 1];
    mc_node *node = create_node(builder, "!--");
    node->text = apr_pstrdup(builder->pool, text);
    node->parent = element->node;
    append_node(&element->node->comments, &element->last_comment, node);
}

static mc_error *
syntax_error(builder *builder, apr_pool_t *pool)
{
    builder->malformed = true;
    return mc_error_create(pool, MC_ERR_CONFIG, "%s:%d:%d: not well-formed XML: %s", builder->file,
                           xml_line_number(builder), xml_column_number(builder),
                           XML_ErrorString(XML_GetErrorCode(builder->parser)));
}

/* Hands `size` bytes to the parser. */
static mc_error *
feed_xml_parser(builder *builder, const char *bytes, size_t size, bool last)
{
    builder->read += size;
    if (builder->read > MAX_FILE)
        return mc_error_create(builder->pool, MC_ERR_CONFIG, "%s: larger than 64 MB", builder->file);
    enum XML_Status status = XML_Parse(builder->parser, bytes, (int)size, last);
    if (builder->error != MC_OK)
        return builder->error;
    return status == XML_STATUS_OK ? MC_OK : syntax_error(builder, builder->pool);
}

static builder *
create_builder(const char *file, apr_pool_t *scratch, apr_pool_t *pool)
{
    builder *builder = apr_pcalloc(scratch, sizeof(*builder));
    builder->parser = XML_ParserCreate(NULL);
    MC_ASSERT(builder->parser != NULL);
    builder->pool = pool;
    builder->scratch = scratch;
    builder->file = apr_pstrdup(pool, file);
    XML_SetUserData(builder->parser, builder);
    XML_SetElementHandler(builder->parser, start_element, end_element);
    XML_SetCharacterDataHandler(builder->parser, character_data);
    XML_SetCommentHandler(builder->parser, on_xml_comment);
    /* No handler for external entities is set: references to them are skipped, nothing is opened. */
    return builder;
}

static mc_error *
check_config_root(const mc_node *root, apr_pool_t *pool)
{
    if (strcmp(root->name, "mapcache") == 0)
        return MC_OK;
    return mc_error_create(pool, MC_ERR_CONFIG, "%s:%d:%d: the first element is <%.60s>, not <mapcache>", root->file,
                           root->line, root->column, root->name);
}

static mc_error *
parse_chunks(builder *builder, const char *text, size_t size)
{
    while (size > CHUNK) {
        MC_TRY(feed_xml_parser(builder, text, CHUNK, false));
        text += CHUNK;
        size -= CHUNK;
    }
    return feed_xml_parser(builder, text, size, true);
}

/* One reading of a text. *malformed: the error is one of the XML. */
static mc_error *
parse_text_once(mc_node **root, bool *malformed, const char *name, const char *text, size_t size,
                const mc_xml_repaired *repaired, apr_pool_t *pool)
{
    apr_pool_t *scratch;
    apr_pool_create(&scratch, pool);
    builder *builder = create_builder(name, scratch, pool);
    builder->repaired = repaired;
    mc_error *error = parse_chunks(builder, text, size);
    *root = builder->root;
    *malformed = builder->malformed;
    XML_ParserFree(builder->parser);
    apr_pool_destroy(scratch);
    return error;
}

/* Reads once more what MapCache reads and expat does not; the error is then the one of the repaired text. */
static mc_error *
parse_repaired(mc_node **root, mc_error *error, const char *name, const char *text, size_t size,
               mc_diagnostics *diagnostics, apr_pool_t *pool)
{
    apr_pool_t *scratch;
    mc_xml_repaired repaired;
    bool malformed;
    apr_pool_create(&scratch, pool);
    const char *copy = apr_pstrmemdup(scratch, text, size);
    if (mc_xml_repair(&repaired, name, copy, size, diagnostics, scratch))
        error = parse_text_once(root, &malformed, name, repaired.text, repaired.size, &repaired, pool);
    apr_pool_destroy(scratch);
    return error;
}

static mc_error *
parse_text(mc_node **root, const char *name, const char *text, size_t size, mc_diagnostics *diagnostics,
           apr_pool_t *pool)
{
    bool malformed;
    mc_error *error = parse_text_once(root, &malformed, name, text, size, NULL, pool);
    if (malformed && diagnostics != NULL && size <= MAX_REPAIRED)
        error = parse_repaired(root, error, name, text, size, diagnostics, pool);
    return error;
}

mc_error *
mc_config_parse_text(mc_node **root, const char *name, const char *text, size_t size, mc_diagnostics *diagnostics,
                     apr_pool_t *pool)
{
    MC_TRY(parse_text(root, name, text, size, diagnostics, pool));
    return check_config_root(*root, pool);
}

/* The whole file, in a buffer that ends with `pool`. */
static mc_error *
read_xml_file(mc_buf **text, const char *name, apr_pool_t *pool)
{
    apr_file_t *file;
    char reason[120], *chunk = apr_palloc(pool, CHUNK);
    apr_status_t status = apr_file_open(&file, name, APR_READ | APR_BINARY, APR_OS_DEFAULT, pool);
    if (status != APR_SUCCESS)
        return mc_error_create(pool, MC_ERR_CONFIG, "%s: cannot be opened: %s", name,
                               apr_strerror(status, reason, sizeof(reason)));
    *text = mc_buf_attach(mc_buf_create(CHUNK, MAX_FILE), pool);
    while (status == APR_SUCCESS) {
        apr_size_t size = 0;
        status = apr_file_read_full(file, chunk, CHUNK, &size);
        if (status != APR_SUCCESS && !APR_STATUS_IS_EOF(status))
            return mc_error_create(pool, MC_ERR_CONFIG, "%s: cannot be read: %s", name,
                                   apr_strerror(status, reason, sizeof(reason)));
        if ((*text)->size + size > MAX_FILE)
            return mc_error_create(pool, MC_ERR_CONFIG, "%s: larger than 64 MB", name);
        MC_TRY(mc_buf_append(*text, chunk, size, pool));
    }
    return MC_OK;
}

/* Any root; repaired where there are `diagnostics`. */
static mc_error *
parse_xml_file(mc_node **root, const char *file, mc_diagnostics *diagnostics, apr_pool_t *pool)
{
    apr_pool_t *scratch;
    mc_buf *text = NULL;
    apr_pool_create(&scratch, pool);
    mc_error *error = read_xml_file(&text, file, scratch);
    if (error == MC_OK)
        error = parse_text(root, file, (const char *)text->data, text->size, diagnostics, pool);
    else
        error = mc_error_copy(error, pool);
    apr_pool_destroy(scratch);
    return error;
}

mc_error *
mc_xml_parse_file(mc_node **root, const char *file, apr_pool_t *pool)
{
    return parse_xml_file(root, file, NULL, pool);
}

mc_error *
mc_xml_parse_text(mc_node **root, const char *name, const char *text, size_t size, apr_pool_t *pool)
{
    return parse_text(root, name, text, size, NULL, pool);
}

mc_error *
mc_config_parse_file(mc_node **root, const char *file, mc_diagnostics *diagnostics, apr_pool_t *pool)
{
    MC_TRY(parse_xml_file(root, file, diagnostics, pool));
    return check_config_root(*root, pool);
}
