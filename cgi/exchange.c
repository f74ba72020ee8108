/* Requests and responses in terms of CGI: see exchange.h. */
#include "exchange.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "text/text.h"

static const char *
find_reason_phrase(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {
        { 204, "No Content" },
        { 302, "Found" },
        { 304, "Not Modified" },
        { 400, "Bad Request" },
        { 403, "Forbidden" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 406, "Not Acceptable" },
        { 412, "Precondition Failed" },
        { 413, "Content Too Large" },
        { 431, "Request Header Fields Too Large" },
        { 500, "Internal Server Error" },
        { 501, "Not Implemented" },
        { 502, "Bad Gateway" },
        { 503, "Service Unavailable" },
        { 504, "Gateway Timeout" },
    };
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (reasons[i].status == status)
            return reasons[i].text;
    return "No Description";
}

/* Copies text into a header line; what would end the line becomes a blank. */
static uint8_t *
append_header_value(uint8_t *at, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        *at++ = c < ' ' || c == 0x7f ? ' ' : c;
    }
    return at;
}

static uint8_t *
append_header_literal(uint8_t *at, const char *text)
{
    while (*text != '\0')
        *at++ = (uint8_t)*text++;
    return at;
}

enum { FIXED_LINES = 160, HEAD_MAX = 60000 }; /* room for Status and Content-Length; one FastCGI record */

/* Bytes of the headers; without warnings, where `bare`. */
static size_t
measure_headers(const apr_table_entry_t *entries, int count, bool bare)
{
    size_t bytes = FIXED_LINES;
    for (int i = 0; i < count; i++)
        if (!bare || strcasecmp(entries[i].key, "Warning") != 0)
            bytes += strlen(entries[i].key) + strlen(entries[i].val) + 4;
    return bytes;
}

/* Where there is no room for all headers the warnings are left out, which are said for people; false: there is none for
 * the others either, and a part of them would mean something else. */
static bool
write_head(mc_reply *reply, int status, const apr_table_t *headers, bool has_length, size_t reserve, apr_pool_t *pool)
{
    const apr_array_header_t *list = apr_table_elts(headers);
    const apr_table_entry_t *entry = (const apr_table_entry_t *)(const void *)list->elts;
    const bool bare = measure_headers(entry, list->nelts, false) > HEAD_MAX;
    const size_t room = measure_headers(entry, list->nelts, bare);
    if (room > HEAD_MAX)
        return false;
    uint8_t *start = (uint8_t *)apr_palloc(pool, reserve + room) + reserve;
    uint8_t *at = start;
    if (status != 200)
        at += snprintf((char *)at, 80, "Status: %d %s\r\n", status, find_reason_phrase(status));
    for (int i = 0; i < list->nelts; i++) {
        if (bare && strcasecmp(entry[i].key, "Warning") == 0)
            continue;
        at = append_header_value(at, entry[i].key, strlen(entry[i].key));
        at = append_header_literal(at, ": ");
        at = append_header_value(at, entry[i].val, strlen(entry[i].val));
        at = append_header_literal(at, "\r\n");
    }
    if (has_length)
        at += snprintf((char *)at, 60, "Content-Length: %lu\r\n", (unsigned long)reply->body_size);
    at = append_header_literal(at, "\r\n");
    reply->head = start;
    reply->head_size = (size_t)(at - start);
    return true;
}

void
mc_exchange_refuse(mc_reply *reply, int status, const char *text, size_t reserve, apr_pool_t *pool)
{
    apr_table_t *headers = apr_table_make(pool, 2);
    apr_table_setn(headers, "Content-Type", "text/plain");
    reply->body = (const uint8_t *)apr_pstrcat(pool, text, "\n", NULL);
    reply->body_size = strlen(text) + 1;
    (void)write_head(reply, status, headers, true, reserve, pool);
}

/* Names that are the web server's to say (RFC 3875 4.1, mod_ssl), also in requests of which it says nothing: a client
 * that sends "Remote-User" has not logged in. */
static bool
is_variable_of_server(const char *name)
{
    static const char *const names[] = {
        "AUTH_TYPE",         "CONTENT_LENGTH", "CONTENT_TYPE", "DOCUMENT_ROOT",   "DOCUMENT_URI",
        "GATEWAY_INTERFACE", "HTTPS",          "PATH_INFO",    "PATH_TRANSLATED", "QUERY_STRING",
        "REMOTE_ADDR",       "REMOTE_HOST",    "REMOTE_IDENT", "REMOTE_PORT",     "REMOTE_USER",
        "REQUEST_METHOD",    "REQUEST_SCHEME", "REQUEST_URI",  "SCRIPT_FILENAME", "SCRIPT_NAME",
        "SERVER_ADDR",       "SERVER_NAME",    "SERVER_PORT",  "SERVER_PROTOCOL", "SERVER_SOFTWARE",
    };
    if (strncasecmp(name, "SSL_", 4) == 0)
        return true;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

static const char *
header_name_of(const char *variable, apr_pool_t *pool)
{
    char *name = apr_pstrdup(pool, variable);
    for (char *c = name; *c != '\0'; c++)
        if (*c == '_')
            *c = '-';
    return name;
}

/* The web server's variables under their own names, for {Name} in the headers of origins, and the client's headers
 * (HTTP_IF_NONE_MATCH is "IF-NONE-MATCH"; tables do not mind the case), which never take the place of a variable. */
static apr_table_t *
headers_of(const apr_table_t *variables, apr_pool_t *pool)
{
    const apr_array_header_t *list = apr_table_elts(variables);
    const apr_table_entry_t *entry = (const apr_table_entry_t *)(const void *)list->elts;
    apr_table_t *headers = apr_table_make(pool, list->nelts);
    for (int i = 0; i < list->nelts; i++)
        if (strncmp(entry[i].key, "HTTP_", 5) != 0)
            apr_table_setn(headers, header_name_of(entry[i].key, pool), entry[i].val);
    for (int i = 0; i < list->nelts; i++) {
        if (strncmp(entry[i].key, "HTTP_", 5) != 0 || is_variable_of_server(entry[i].key + 5))
            continue;
        const char *name = header_name_of(entry[i].key + 5, pool);
        if (apr_table_get(headers, name) == NULL)
            apr_table_setn(headers, name, entry[i].val);
    }
    return headers;
}

/* A host and port as a client may have written it: what could leave the place of a host in a URL is refused. */
static bool
is_host(const char *text)
{
    if (text == NULL || *text == '\0' || strlen(text) > 255)
        return false;
    return text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:[]")] == '\0';
}

/* Some web servers' files set HTTP_HOST to the host alone; SERVER_PORT says the rest then. */
static bool
has_port(const char *host)
{
    const char *colon = strrchr(host, ':');
    return colon != NULL && colon[1] != '\0' && colon[1 + strspn(colon + 1, "0123456789")] == '\0' &&
           (strchr(host, ':') == colon || colon[-1] == ']');
}

static const char *
build_cgi_base_url(const apr_table_t *variables, apr_pool_t *pool)
{
    const char *https = apr_table_get(variables, "HTTPS");
    bool secure = https != NULL && *https != '\0' && strcasecmp(https, "off") != 0;
    const char *host = apr_table_get(variables, "HTTP_HOST");
    if (!is_host(host))
        host = apr_table_get(variables, "SERVER_NAME");
    if (!is_host(host))
        host = "localhost";
    const char *colon = "";
    const char *port = "";
    const char *given = apr_table_get(variables, "SERVER_PORT");
    int number;
    if (!has_port(host) && given != NULL && mc_parse_int(&number, given, 1, 65535) && number != (secure ? 443 : 80)) {
        colon = ":";
        port = given;
    }
    const char *script = apr_table_get(variables, "SCRIPT_NAME");
    size_t length = script == NULL ? 0 : strlen(script);
    while (length > 0 && script[length - 1] == '/')
        length--;
    return apr_pstrcat(pool, secure ? "https://" : "http://", host, colon, port,
                       length == 0 ? "" : apr_pstrmemdup(pool, script, length), NULL);
}

static const char *
path_of(const apr_table_t *variables, apr_pool_t *pool)
{
    const char *path = apr_table_get(variables, "PATH_INFO");
    if (path == NULL || *path == '\0')
        return "";
    return *path == '/' ? path : apr_pstrcat(pool, "/", path, NULL);
}

static void
write_trace_to_stderr(void *unused, const char *lines, size_t size)
{
    (void)unused;
    ssize_t written = write(STDERR_FILENO, lines, size);
    (void)written; /* standard error is where this would have been reported */
}

static mc_trace *
create_trace(const mc_generation *generation, const apr_table_t *variables, apr_pool_t *pool)
{
    if (generation->log.level < MC_LOG_DEBUG)
        return NULL;
    const char *address = apr_table_get(variables, "REMOTE_ADDR");
    const char *port = apr_table_get(variables, "REMOTE_PORT");
    const char *client = address == NULL ? NULL : apr_pstrcat(pool, address, ":", port == NULL ? "0" : port, NULL);
    static const char location[] = "exchange.c(" APR_STRINGIFY(__LINE__) ")";
    return mc_trace_create(write_trace_to_stderr, NULL, client, location, pool);
}

static mc_http_request
describe_request(const apr_table_t *variables, const char *method, const apr_table_t *headers, apr_pool_t *pool)
{
    return (mc_http_request){
        .method = method,
        .path = path_of(variables, pool),
        .query = apr_table_get(variables, "QUERY_STRING"),
        .base_url = build_cgi_base_url(variables, pool),
        .headers = headers,
        .client = apr_table_get(variables, "REMOTE_ADDR"),
    };
}

static void
handle_cgi_request(mc_http_response **response, const mc_generation *generation, mc_runtime *runtime,
                   const mc_exchange *exchange, const char *method, apr_pool_t *pool)
{
    const apr_table_t *variables = exchange->variables;
    const mc_config *config = mc_server_config(generation->server);
    apr_table_t *headers = headers_of(variables, pool);
    mc_ctx ctx = {
        .pool = pool,
        .process = mc_runtime_process(runtime),
        .log = &generation->log,
        .trace = create_trace(generation, variables, pool),
        .deadline = config->deadline > 0 ? mc_clock_now() + (apr_time_t)(config->deadline * 1e6) : 0,
        .headers = headers,
        .abandoned = exchange->abandoned,
        .abandoned_baton = exchange->abandoned_baton,
        .slow = exchange->slow,
        .slow_baton = exchange->slow_baton,
    };
    mc_http_request request = describe_request(variables, method, headers, pool);
    request.read_body = strcmp(method, "POST") == 0 ? exchange->read_body : NULL;
    request.read_body_baton = exchange->read_body_baton;
    mc_server_handle(response, generation->server, &request, &ctx, pool);
    if (ctx.trace != NULL)
        mc_trace_flush(ctx.trace);
}

size_t
mc_exchange_body_limit(mc_generations *generations, const apr_table_t *variables, apr_pool_t *pool)
{
    const char *method = apr_table_get(variables, "REQUEST_METHOD");
    mc_generation *generation =
        method == NULL || strcmp(method, "POST") != 0 ? NULL : mc_generation_acquire(generations);
    if (generation == NULL)
        return 0;
    const mc_http_request request = describe_request(variables, method, headers_of(variables, pool), pool);
    size_t limit = mc_server_body_limit(generation->server, &request, pool);
    mc_generation_release(generation);
    return limit;
}

void
mc_exchange_respond(mc_reply *reply, mc_generations *generations, const mc_exchange *exchange, size_t reserve,
                    apr_pool_t *pool)
{
    const char *method = apr_table_get(exchange->variables, "REQUEST_METHOD");
    if (method == NULL)
        method = "GET";
    bool head = strcmp(method, "HEAD") == 0;
    mc_generation *generation = mc_generation_acquire(generations);
    if (generation == NULL) {
        mc_exchange_refuse(reply, 500, "the configuration cannot be used", reserve, pool);
    } else {
        mc_http_response *response;
        handle_cgi_request(&response, generation, mc_generations_runtime(generations), exchange, method, pool);
        reply->body = response->body == NULL ? NULL : response->body->data;
        reply->body_size = response->body == NULL ? 0 : response->body->size;
        if (!write_head(reply, response->status, response->headers, response->status != 304 && response->status != 204,
                        reserve, pool))
            mc_exchange_refuse(reply, 502, "the answer has more headers than there is room for", reserve, pool);
        mc_generation_release(generation);
    }
    if (head) {
        reply->body = NULL; /* the head says its length */
        reply->body_size = 0;
    }
}
