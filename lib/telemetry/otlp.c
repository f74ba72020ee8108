/* See otlp.h. Numbers of fields are those of the .proto files. */
#include "telemetry/otlp.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/trace_private.h"
#include "text/text.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2 };
enum { LENGTH_SIZE = 4, URL_MAX = 1024, VALUE_MAX = 256, NAME_MAX_BYTES = 96 };
/* What a span and the head of a request take at most; each character of a value may become three bytes. */
enum { ROOM_OF_SPAN = 2048, ROOM_OF_FIRST_SPAN = 16384 };
enum { KIND_INTERNAL = 1, KIND_SERVER = 2, KIND_CLIENT = 3, STATUS_ERROR = 2 };

/* Room for so many bytes, which what follows writes without looking; false, and all is lost. */
static bool
make_otlp_room(mc_otlp_bytes *out, size_t size)
{
    if (out->lost || out->size + size > MC_OTLP_BYTES_MAX) {
        out->lost = true;
        return false;
    }
    if (out->room - out->size >= size)
        return true;
    size_t room = out->room * 2 + size;
    uint8_t *data = realloc(out->data, room);
    if (data == NULL) {
        out->lost = true;
        return false;
    }
    out->data = data;
    out->room = room;
    return true;
}

static inline void
append_varint(mc_otlp_bytes *out, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        out->data[out->size++] = (uint8_t)(number | 0x80);
    out->data[out->size++] = (uint8_t)number;
}

static inline void
append_tag(mc_otlp_bytes *out, unsigned field, unsigned type)
{
    append_varint(out, field << 3 | type);
}

static inline void
append_number(mc_otlp_bytes *out, unsigned field, uint64_t number)
{
    append_tag(out, field, VARINT);
    append_varint(out, number);
}

static inline void
append_bytes(mc_otlp_bytes *out, unsigned field, const void *bytes, size_t size)
{
    append_tag(out, field, BYTES);
    append_varint(out, size);
    memcpy(out->data + out->size, bytes, size);
    out->size += size;
}

static inline void
append_text(mc_otlp_bytes *out, unsigned field, const char *text)
{
    append_bytes(out, field, text, strlen(text));
}

/* Ids: the first byte is the highest one of the number. */
static inline void
append_id(mc_otlp_bytes *out, unsigned field, const uint64_t *numbers, size_t count)
{
    append_tag(out, field, BYTES);
    append_varint(out, count * 8);
    for (size_t i = 0; i < count; i++, out->size += 8) {
        const uint64_t number = __builtin_bswap64(numbers[i]);
        memcpy(out->data + out->size, &number, 8);
    }
}

/* Microseconds since 1970 as nanoseconds, the lowest byte first. */
static inline void
append_time(mc_otlp_bytes *out, unsigned field, apr_time_t time)
{
    const uint64_t nanoseconds = (uint64_t)time * 1000;
    append_tag(out, field, FIXED64);
    memcpy(out->data + out->size, &nanoseconds, 8);
    out->size += 8;
}

/* A message inside, whose length has room for four bytes: leading zeroes of a varint are allowed. */
static inline size_t
open_message(mc_otlp_bytes *out, unsigned field)
{
    append_tag(out, field, BYTES);
    out->size += LENGTH_SIZE;
    return out->size;
}

static inline void
close_message(mc_otlp_bytes *out, size_t start)
{
    size_t size = out->size - start;
    uint8_t *length = out->data + start - LENGTH_SIZE;
    for (int i = 0; i < LENGTH_SIZE; i++, size >>= 7)
        length[i] = (uint8_t)((size & 0x7f) | (i < LENGTH_SIZE - 1 ? 0x80 : 0));
}

/* KeyValue with a string_value. */
static void
append_attribute(mc_otlp_bytes *out, unsigned field, const char *key, const char *value)
{
    size_t pair = open_message(out, field);
    append_text(out, 1, key);
    size_t any = open_message(out, 2);
    append_text(out, 1, value);
    close_message(out, any);
    close_message(out, pair);
}

/* KeyValue with an int_value. */
static void
append_integer(mc_otlp_bytes *out, unsigned field, const char *key, int64_t value)
{
    size_t pair = open_message(out, field);
    append_text(out, 1, key);
    size_t any = open_message(out, 2);
    append_number(out, 3, (uint64_t)value);
    close_message(out, any);
    close_message(out, pair);
}

/* A value as it may stand in a message: valid UTF-8 of bounded size. Most are plain. */
static const char *
value_text(const char *text, size_t most, apr_pool_t *pool)
{
    size_t size = 0;
    while (size < most && text[size] >= ' ' && text[size] <= '~')
        size++;
    return text[size] == '\0' ? text : mc_message_text(text, most, pool);
}

typedef struct span_list {
    mc_otlp_bytes *out;
    const mc_account *account;
    const mc_telemetry_answer *answer;
    int64_t shift; /* from mc_clock_now() to the time since 1970 */
    apr_pool_t *pool;
} span_list;

static const struct {
    const char *ours, *theirs; /* by the semantic conventions for HTTP, where they have a name */
} attribute_names[] = {
    { "method", "http.request.method" }, { "url", "url.path" },       { "service", "mapcache.service" },
    { "tileset", "mapcache.tileset" },   { "tile", "mapcache.tile" }, { "size", "mapcache.size" },
};

static void
append_account_attribute(void *baton, const char *key, const char *value)
{
    const span_list *list = baton;
    for (size_t i = 0; i < sizeof(attribute_names) / sizeof(attribute_names[0]); i++)
        if (strcmp(attribute_names[i].ours, key) == 0)
            append_attribute(list->out, 9, attribute_names[i].theirs,
                             value_text(value, strcmp(key, "url") == 0 ? URL_MAX : VALUE_MAX, list->pool));
}

static void
append_request_attributes(const span_list *list)
{
    const mc_account *account = list->account;
    mc_account_visit(account, append_account_attribute, (void *)(uintptr_t)list, list->pool);
    append_integer(list->out, 9, "http.response.status_code", account->status);
    append_integer(list->out, 9, "http.response.body.size", (int64_t)list->answer->bytes);
    append_attribute(list->out, 9, "mapcache.result", list->answer->result);
    if (account->client != NULL)
        append_attribute(list->out, 9, "client.address", value_text(account->client, VALUE_MAX, list->pool));
}

static void
append_span_attributes(const span_list *list, const mc_span_record *span)
{
    if (*span->subject != '\0')
        append_attribute(list->out, 9, "mapcache.about", value_text(span->subject, VALUE_MAX, list->pool));
    if (span->note != NULL)
        append_attribute(list->out, 9, "mapcache.note", span->note);
    if (span->thread != mc_trace_thread())
        append_integer(list->out, 9, "thread.id", span->thread);
}

static void
append_parent(const span_list *list, const mc_span_record *span, bool first)
{
    const mc_trace_context *context = &list->account->context;
    uint64_t parent = first ? context->parent : mc_trace_context_span(context, span->parent);
    if (first && context->vendors != NULL)
        append_text(list->out, 3, context->vendors);
    if (parent != 0)
        append_id(list->out, 4, &parent, 1);
}

static void
append_span(void *baton, const mc_span_record *span)
{
    const span_list *list = baton;
    mc_otlp_bytes *out = list->out;
    const mc_trace_context *context = &list->account->context;
    const bool first = span->number == 1;
    if (!make_otlp_room(out, first ? ROOM_OF_FIRST_SPAN : ROOM_OF_SPAN))
        return;
    const bool calls = strcmp(span->name, "mapcache_http_request") == 0;
    const bool failed = first ? list->account->status >= 500 : span->note != NULL && strcmp(span->note, "ERROR") == 0;
    const uint64_t id = mc_trace_context_span(context, span->number);
    size_t message = open_message(out, 2);
    append_id(out, 1, context->trace, 2);
    append_id(out, 2, &id, 1);
    append_parent(list, span, first);
    append_bytes(out, 5, span->name, strnlen(span->name, NAME_MAX_BYTES));
    append_number(out, 6, first ? KIND_SERVER : calls ? KIND_CLIENT : KIND_INTERNAL);
    append_time(out, 7, span->begin + list->shift);
    append_time(out, 8, span->begin + span->duration + list->shift);
    if (first)
        append_request_attributes(list);
    append_span_attributes(list, span);
    if (failed) {
        size_t status = open_message(out, 15);
        append_number(out, 3, STATUS_ERROR);
        close_message(out, status);
    }
    close_message(out, message);
}

void
mc_otlp_append_spans(mc_otlp_bytes *out, const mc_account *account, const mc_telemetry_answer *answer, mc_trace *trace,
                     apr_pool_t *pool)
{
    span_list list = { out, account, answer, apr_time_now() - mc_clock_now(), pool };
    mc_trace_visit(trace, append_span, &list);
}

void
mc_otlp_request_begin(mc_otlp_request *request, const char *service_name)
{
    char host[256];
    mc_otlp_bytes *out = &request->bytes;
    *request = (mc_otlp_request){ .resource = 0 };
    if (gethostname(host, sizeof(host)) != 0)
        host[0] = '\0';
    host[sizeof(host) - 1] = '\0';
    if (!make_otlp_room(out, ROOM_OF_FIRST_SPAN + strlen(service_name)))
        return;
    request->resource = open_message(out, 1);
    size_t resource = open_message(out, 1);
    append_attribute(out, 1, "service.name", service_name);
    append_attribute(out, 1, "service.version", MC_PROJECT_VERSION);
    append_attribute(out, 1, "host.name", host);
    append_integer(out, 1, "process.pid", getpid());
    close_message(out, resource);
    request->scope = open_message(out, 2);
    size_t scope = open_message(out, 1);
    append_text(out, 1, "mapcache");
    append_text(out, 2, MC_PROJECT_VERSION);
    close_message(out, scope);
}

void
mc_otlp_request_append(mc_otlp_request *request, const void *spans, size_t size)
{
    mc_otlp_bytes *out = &request->bytes;
    if (!make_otlp_room(out, size))
        return;
    memcpy(out->data + out->size, spans, size);
    out->size += size;
}

void
mc_otlp_request_end(mc_otlp_request *request)
{
    if (request->bytes.lost)
        return;
    close_message(&request->bytes, request->scope);
    close_message(&request->bytes, request->resource);
}
