/* FastCGI records: see records.h. The numbers are those of the FastCGI specification 1.0, section 8. */
#include "records.h"
#include "base/bytes.h"

#include <apr_strings.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { VERSION = 1, ROLE_RESPONDER = 1, KEEP_CONNECTION = 1, RECORD_CONTENT_MAX = 65528, REPLIES_MAX = 16384 };
enum {
    BEGIN_REQUEST = 1,
    END_REQUEST = 3,
    PARAMS = 4,
    STDIN = 5,
    STDOUT = 6,
    GET_VALUES = 9,
    GET_VALUES_RESULT = 10,
    UNKNOWN_TYPE = 11
};
enum { REQUEST_COMPLETE = 0, CANT_MULTIPLEX = 1, UNKNOWN_ROLE = 3 };

void
mc_fcgi_init(mc_fcgi_parser *parser, mc_fcgi_bodies *bodies, apr_pool_t *pool)
{
    *parser = (mc_fcgi_parser){ .pool = pool, .bodies = bodies };
    parser->params = mc_buf_create(2048, MC_FCGI_PARAMS_MAX);
    parser->replies = mc_buf_create(0, REPLIES_MAX);
}

static void
drop_body(mc_fcgi_parser *parser, mc_fcgi_loss loss)
{
    mc_buf_unref(parser->body);
    parser->body = NULL;
    parser->body_loss = loss;
    atomic_fetch_sub(&parser->bodies->bytes, parser->body_counted);
    parser->body_counted = 0;
}

void
mc_fcgi_destroy(mc_fcgi_parser *parser)
{
    mc_buf_unref(parser->params);
    mc_buf_unref(parser->replies);
    drop_body(parser, MC_FCGI_KEPT);
}

void
mc_fcgi_finish(mc_fcgi_parser *parser)
{
    parser->active = false;
    parser->params_ended = false;
    parser->params_too_long = false;
    parser->params->size = 0;
    drop_body(parser, MC_FCGI_KEPT);
    parser->body_limit = 0;
    parser->body_asked = false;
}

static void
write_header(uint8_t *out, uint8_t type, uint16_t id, size_t content)
{
    const uint8_t header[MC_FCGI_HEADER_SIZE] = {
        VERSION, type, (uint8_t)(id >> 8), (uint8_t)id, (uint8_t)(content >> 8), (uint8_t)content, 0, 0
    };
    memcpy(out, header, sizeof(header));
}

/* False beyond the buffer's maximum. */
static bool
append_record_bytes(mc_fcgi_parser *parser, mc_buf *buf, const void *data, size_t size)
{
    if (size > buf->maximum - buf->size)
        return false;
    return mc_buf_append(buf, data, size, parser->pool) == MC_OK;
}

static bool
reply_end(mc_fcgi_parser *parser, uint16_t id, uint8_t protocol_status)
{
    uint8_t record[MC_FCGI_HEADER_SIZE + 8] = { 0 };
    write_header(record, END_REQUEST, id, 8);
    record[MC_FCGI_HEADER_SIZE + 4] = protocol_status;
    return append_record_bytes(parser, parser->replies, record, sizeof(record));
}

static bool
reply_unknown_type(mc_fcgi_parser *parser, uint8_t type)
{
    uint8_t record[MC_FCGI_HEADER_SIZE + 8] = { 0 };
    write_header(record, UNKNOWN_TYPE, 0, 8);
    record[MC_FCGI_HEADER_SIZE] = type;
    return append_record_bytes(parser, parser->replies, record, sizeof(record));
}

/* Reads a length of one or four bytes. False when the data ends before it does. */
static bool
read_fcgi_length(size_t *length, const uint8_t **data, const uint8_t *end)
{
    const uint8_t *at = *data;
    if (at == end)
        return false;
    if (*at < 0x80) {
        *length = *at;
        *data = at + 1;
        return true;
    }
    if (end - at < 4)
        return false;
    *length = mc_big32(at) & 0x7fffffffU;
    *data = at + 4;
    return true;
}

/* Moves past one name-value pair. False when it is cut off. */
static bool
read_fcgi_pair(const uint8_t **name, size_t *name_size, size_t *value_size, const uint8_t **data, const uint8_t *end)
{
    if (!read_fcgi_length(name_size, data, end) || !read_fcgi_length(value_size, data, end))
        return false;
    size_t left = (size_t)(end - *data);
    if (*name_size > left || *value_size > left - *name_size)
        return false;
    *name = *data;
    *data += *name_size + *value_size;
    return true;
}

static bool
reply_values(mc_fcgi_parser *parser)
{
    char connections[12];
    snprintf(connections, sizeof(connections), "%d", MC_FCGI_CONNECTIONS_MAX);
    const struct {
        const char *name;
        const char *value;
    } known[] = { { "FCGI_MAX_CONNS", connections }, { "FCGI_MAX_REQS", connections }, { "FCGI_MPXS_CONNS", "0" } };

    uint8_t record[MC_FCGI_HEADER_SIZE + 128];
    size_t size = MC_FCGI_HEADER_SIZE;
    bool said[3] = { false };
    const uint8_t *data = parser->small;
    const uint8_t *end = data + parser->small_size;
    const uint8_t *name;
    size_t name_size;
    size_t value_size;
    while (data < end && read_fcgi_pair(&name, &name_size, &value_size, &data, end))
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
            if (said[i] || name_size != strlen(known[i].name) || memcmp(name, known[i].name, name_size) != 0)
                continue;
            said[i] = true;
            size_t length = strlen(known[i].value);
            record[size++] = (uint8_t)name_size;
            record[size++] = (uint8_t)length;
            memcpy(record + size, name, name_size);
            memcpy(record + size + name_size, known[i].value, length);
            size += name_size + length;
        }
    write_header(record, GET_VALUES_RESULT, 0, size - MC_FCGI_HEADER_SIZE);
    return append_record_bytes(parser, parser->replies, record, size);
}

static uint8_t
record_type(const mc_fcgi_parser *parser)
{
    return parser->header[1];
}

static uint16_t
record_id(const mc_fcgi_parser *parser)
{
    return mc_big16(parser->header + 2);
}

static bool
record_is_ours(const mc_fcgi_parser *parser)
{
    return parser->active && record_id(parser) == parser->request_id;
}

/* Keeps what somebody reads, as long as there is room for it among the bodies of all requests. */
static void
take_body_content(mc_fcgi_parser *parser, const uint8_t *data, size_t size)
{
    if (parser->body_loss != MC_FCGI_KEPT)
        return;
    if (size > parser->body_limit - (parser->body == NULL ? 0 : parser->body->size)) {
        drop_body(parser, MC_FCGI_TOO_LONG);
        return;
    }
    if (parser->body == NULL)
        parser->body = mc_buf_create(0, parser->body_limit);
    if (!append_record_bytes(parser, parser->body, data, size)) {
        drop_body(parser, MC_FCGI_NO_ROOM);
        return;
    }
    size_t more = parser->body->capacity - parser->body_counted;
    parser->body_counted += more;
    if (atomic_fetch_add(&parser->bodies->bytes, more) + more > MC_FCGI_BODIES_MAX)
        drop_body(parser, MC_FCGI_NO_ROOM);
}

static void
take_content(mc_fcgi_parser *parser, const uint8_t *data, size_t size)
{
    uint8_t type = record_type(parser);
    if (type == BEGIN_REQUEST || record_id(parser) == 0) {
        size_t room = sizeof(parser->small) - parser->small_size;
        size_t part = size < room ? size : room;
        memcpy(parser->small + parser->small_size, data, part);
        parser->small_size += (unsigned)part;
    } else if (type == PARAMS && record_is_ours(parser) && !parser->params_ended) {
        if (!parser->params_too_long && !append_record_bytes(parser, parser->params, data, size))
            parser->params_too_long = true;
    } else if (type == STDIN && record_is_ours(parser)) {
        take_body_content(parser, data, size);
    }
}

static mc_fcgi_event
begin_request(mc_fcgi_parser *parser)
{
    uint16_t id = record_id(parser);
    if (parser->small_size < 8 || id == 0 || record_is_ours(parser))
        return MC_FCGI_BROKEN;
    if (parser->active)
        return reply_end(parser, id, CANT_MULTIPLEX) ? MC_FCGI_MORE : MC_FCGI_BROKEN;
    int role = mc_big16(parser->small);
    if (role != ROLE_RESPONDER)
        return reply_end(parser, id, UNKNOWN_ROLE) ? MC_FCGI_MORE : MC_FCGI_BROKEN;
    parser->active = true;
    parser->request_id = id;
    parser->keep = (parser->small[2] & KEEP_CONNECTION) != 0;
    return MC_FCGI_MORE;
}

static mc_fcgi_event
end_record(mc_fcgi_parser *parser, unsigned content_size)
{
    uint8_t type = record_type(parser);
    if (type == BEGIN_REQUEST)
        return begin_request(parser);
    if (record_id(parser) == 0) {
        bool answered = type == GET_VALUES ? reply_values(parser) : reply_unknown_type(parser, type);
        return answered ? MC_FCGI_MORE : MC_FCGI_BROKEN;
    }
    if (!record_is_ours(parser))
        return MC_FCGI_MORE; /* of a request that has ended or was refused */
    if (type == MC_FCGI_ABORT_REQUEST)
        return MC_FCGI_ABORT;
    if (type == PARAMS && content_size == 0)
        parser->params_ended = true;
    if (type == STDIN && content_size == 0)
        return parser->params_ended ? MC_FCGI_REQUEST : MC_FCGI_BROKEN;
    return MC_FCGI_MORE;
}

/* Whether the header that has just been read is that of a body's first bytes. */
static bool
begins_body(const mc_fcgi_parser *parser)
{
    return record_type(parser) == STDIN && record_is_ours(parser) && parser->content_left > 0 && !parser->body_asked;
}

static size_t
choose_smaller_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

mc_fcgi_event
mc_fcgi_feed(mc_fcgi_parser *parser, const uint8_t **data, size_t *size)
{
    while (*size > 0) {
        size_t part;
        if (parser->header_size < MC_FCGI_HEADER_SIZE) {
            part = choose_smaller_size(*size, MC_FCGI_HEADER_SIZE - parser->header_size);
            memcpy(parser->header + parser->header_size, *data, part);
            parser->header_size += (unsigned)part;
            if (parser->header_size == MC_FCGI_HEADER_SIZE) {
                if (parser->header[0] != VERSION)
                    return MC_FCGI_BROKEN;
                parser->content_left = mc_big16(parser->header + 4);
                parser->padding_left = parser->header[6];
                parser->small_size = 0;
            }
        } else if (parser->content_left > 0) {
            part = choose_smaller_size(*size, parser->content_left);
            take_content(parser, *data, part);
            parser->content_left -= (unsigned)part;
        } else {
            part = choose_smaller_size(*size, parser->padding_left);
            parser->padding_left -= (unsigned)part;
        }
        *data += part;
        *size -= part;
        if (parser->header_size == MC_FCGI_HEADER_SIZE && begins_body(parser)) {
            parser->body_asked = true;
            return parser->params_ended ? MC_FCGI_BODY : MC_FCGI_BROKEN;
        }
        if (parser->header_size < MC_FCGI_HEADER_SIZE || parser->content_left > 0 || parser->padding_left > 0)
            continue;
        parser->header_size = 0;
        mc_fcgi_event event = end_record(parser, mc_big16(parser->header + 4));
        if (event != MC_FCGI_MORE)
            return event;
    }
    return MC_FCGI_MORE;
}

/* Two headers of a client whose names differ in a dash and an underscore become one variable (X_User beside the X-User
 * of a proxy), and so does one that is sent twice: where the values differ nobody knows which one to believe. */
static const char contradicted[] = "";

static void
add_variable(apr_table_t *table, const char *name, const char *value)
{
    const char *before = strncasecmp(name, "HTTP_", 5) == 0 ? apr_table_get(table, name) : NULL;
    bool contradicts = before != NULL && (before == contradicted || strcmp(before, value) != 0);
    apr_table_setn(table, name,
                   contradicts ? contradicted : value); /* of others the last counts, as in nginx's files */
}

/* Takes out what is contradicted. */
static apr_table_t *
keep_agreed(const apr_table_t *variables, apr_pool_t *pool)
{
    const apr_array_header_t *list = apr_table_elts(variables);
    const apr_table_entry_t *entry = (const apr_table_entry_t *)(const void *)list->elts;
    apr_table_t *agreed = apr_table_make(pool, list->nelts);
    for (int i = 0; i < list->nelts; i++)
        if (entry[i].val != contradicted)
            apr_table_addn(agreed, entry[i].key, entry[i].val);
    return agreed;
}

bool
mc_fcgi_variables(apr_table_t **variables, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    apr_table_t *table = apr_table_make(pool, 40);
    const uint8_t *end = data + size;
    int count = 0;
    while (data < end) {
        const uint8_t *name;
        size_t name_size;
        size_t value_size;
        if (!read_fcgi_pair(&name, &name_size, &value_size, &data, end) || ++count > MC_FCGI_VARIABLES_MAX)
            return false;
        char *text = apr_palloc(pool, name_size + value_size + 2);
        memcpy(text, name, name_size);
        text[name_size] = '\0';
        memcpy(text + name_size + 1, name + name_size, value_size);
        text[name_size + 1 + value_size] = '\0';
        add_variable(table, text, text + name_size + 1);
    }
    *variables = keep_agreed(table, pool);
    return true;
}

void
mc_fcgi_respond(mc_fcgi_output *output, uint16_t request_id, uint8_t *head, size_t head_size, const void *body,
                size_t body_size, apr_pool_t *pool)
{
    MC_ASSERT(head_size <= RECORD_CONTENT_MAX);
    size_t first = choose_smaller_size(body_size, RECORD_CONTENT_MAX - head_size);
    size_t further = (body_size - first + RECORD_CONTENT_MAX - 1) / RECORD_CONTENT_MAX;
    struct iovec *vector = apr_palloc(pool, (3 + 2 * further) * sizeof(*vector));
    output->vectors = vector;
    output->next = 0;

    write_header(head - MC_FCGI_HEADER_SIZE, STDOUT, request_id, head_size + first);
    *vector++ = (struct iovec){ head - MC_FCGI_HEADER_SIZE, MC_FCGI_HEADER_SIZE + head_size };
    uint8_t *at = (uint8_t *)(uintptr_t)body; /* iovec has no const; it is only read */
    if (first > 0)
        *vector++ = (struct iovec){ at, first };
    size_t left = body_size - first;
    at = left > 0 ? at + first : at; /* NULL where there is no body */
    while (left > 0) {
        size_t part = choose_smaller_size(left, RECORD_CONTENT_MAX);
        uint8_t *header = apr_palloc(pool, MC_FCGI_HEADER_SIZE);
        write_header(header, STDOUT, request_id, part);
        *vector++ = (struct iovec){ header, MC_FCGI_HEADER_SIZE };
        *vector++ = (struct iovec){ at, part };
        at += part;
        left -= part;
    }
    /* the end of standard output, and of the request with application status 0 */
    uint8_t *trailer = apr_pcalloc(pool, 3 * MC_FCGI_HEADER_SIZE);
    write_header(trailer, STDOUT, request_id, 0);
    write_header(trailer + MC_FCGI_HEADER_SIZE, END_REQUEST, request_id, 8);
    *vector++ = (struct iovec){ trailer, 3 * MC_FCGI_HEADER_SIZE };
    output->count = (int)(vector - output->vectors);
}

bool
mc_fcgi_output_sent(mc_fcgi_output *output, size_t sent)
{
    while (output->next < output->count) {
        struct iovec *vector = &output->vectors[output->next];
        if (sent < vector->iov_len) {
            vector->iov_base = (uint8_t *)vector->iov_base + sent;
            vector->iov_len -= sent;
            return true;
        }
        sent -= vector->iov_len;
        output->next++;
    }
    return false;
}
