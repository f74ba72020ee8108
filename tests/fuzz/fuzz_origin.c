/* Any answers of origins, through libcurl and our callbacks, redirects followed: an answer within its bounds or an
 * error, and of its headers for a client only such that give no orders. Answers are parted by a byte of 0xff. */
#include <curl/curl.h>
#include <sys/socket.h>

/* The transfers of http_curl.c run on sockets that have been told what the input says. */
static CURLMcode add_told_handle(CURLM *multi, CURL *easy);
#define curl_multi_add_handle add_told_handle
#include "../../lib/http/http_curl.c"
#include "../../lib/http/http_target.c"
#include "../../lib/http/http_transfer.c"
#include "../../lib/server/forward.c"
#undef curl_multi_add_handle

#include "fuzz_support.h"

enum { CONNECTIONS_MAX = 16, BODY_MAX = 100000 };

static const uint8_t *answers; /* what is left of the input */
static size_t answers_size;
static int peers[CONNECTIONS_MAX];
static int peer_count;
static struct curl_slist *everywhere; /* no name is looked up */

static curl_socket_t
open_told_socket(void *baton, curlsocktype purpose, struct curl_sockaddr *address)
{
    int ends[2];
    (void)baton;
    (void)purpose;
    (void)address;
    if (peer_count == CONNECTIONS_MAX || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
        return CURL_SOCKET_BAD;
    const uint8_t *end = answers_size == 0 ? NULL : memchr(answers, 0xff, answers_size);
    size_t size = end == NULL ? answers_size : (size_t)(end - answers);
    (void)!send(ends[1], answers, size, MSG_NOSIGNAL);
    shutdown(ends[1], SHUT_WR);
    answers += size + (end != NULL);
    answers_size -= size + (end != NULL);
    peers[peer_count++] = ends[1];
    return ends[0];
}

/* In place of the system's, for libcurl: its sockets have both ends already. */
int
connect(int socket, const struct sockaddr *address, socklen_t size)
{
    (void)socket;
    (void)address;
    (void)size;
    return 0;
}

static CURLMcode
add_told_handle(CURLM *multi, CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_told_socket);
    curl_easy_setopt(easy, CURLOPT_CONNECT_TO, everywhere);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    return curl_multi_add_handle(multi, easy);
}

static int
check_header(void *baton, const char *name, const char *value)
{
    (void)baton;
    MC_ASSERT(mc_is_token(name, strlen(name)) && strpbrk(value, "\r\n") == NULL);
    MC_ASSERT(strcasecmp(name, "Location") != 0 && strcasecmp(name, "Status") != 0 &&
              strcasecmp(name, "Set-Cookie") != 0 && strncasecmp(name, "X-Accel-", 8) != 0 &&
              strncasecmp(name, "X-Sendfile", 10) != 0);
    return 1;
}

static void
ask(mc_http_engine *engine, const char *method, const char *body, int count, apr_pool_t *pool)
{
    mc_ctx ctx = { .pool = pool };
    mc_http_exchange asked[2] = { 0 };
    for (int i = 0; i < 2; i++)
        asked[i].call = (mc_http_call){ .method = method,
                                        .url = "http://origin.example/wms?a=b",
                                        .headers = apr_table_make(pool, 1),
                                        .body = body,
                                        .body_size = body == NULL ? 0 : strlen(body),
                                        .connect_timeout = 1,
                                        .timeout = 1,
                                        .max_response = BODY_MAX };
    mc_http_curl_ops.send_all(engine, asked, count, 2, &ctx, pool);
    for (int i = 0; i < count; i++) {
        const mc_http_reply *reply = &asked[i].reply;
        if (asked[i].error != MC_OK)
            continue;
        MC_ASSERT(reply->status >= 100 && reply->status <= 599 && reply->body->size <= BODY_MAX);
        apr_table_do(check_header, NULL, end_to_end(reply->headers, pool), NULL);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static mc_http_engine *engine;
    if (engine == NULL) {
        engine = mc_http_curl_ops.create(0);
        everywhere = curl_slist_append(NULL, "::127.0.0.1:80");
    }
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    answers = data;
    answers_size = size;
    if (size % 2 == 0)
        ask(engine, "GET", NULL, 1 + (int)(size % 3 == 0), pool);
    else
        ask(engine, "POST", "<body/>", 1, pool);
    while (peer_count > 0)
        close(peers[--peer_count]);
    apr_pool_destroy(pool);
    return 0;
}
