/* Addresses and origins of redirects: see http_target.h. */
#include "http/http_target.h"

#include <apr_strings.h>
#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* RFC 6890 and its registry, but for the ranges of documentation, where nobody is. */
static bool
is_public_ipv4(uint32_t address)
{
    static const struct {
        uint32_t net;
        int bits;
    } others[] = {
        { 0x00000000, 8 },  /* 0.0.0.0: this host */
        { 0x0a000000, 8 },  /* 10 */
        { 0x64400000, 10 }, /* 100.64: a provider's own */
        { 0x7f000000, 8 },  /* 127: loopback */
        { 0xa9fe0000, 16 }, /* 169.254: link-local, and what clouds tell their machines */
        { 0xac100000, 12 }, /* 172.16 */
        { 0xc0000000, 24 }, /* 192.0.0 */
        { 0xc0a80000, 16 }, /* 192.168 */
        { 0xc6120000, 15 }, /* 198.18: for measurements */
        { 0xe0000000, 3 },  /* 224 and above: multicast, reserved, broadcast */
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if ((address ^ others[i].net) >> (32 - others[i].bits) == 0)
            return false;
    return true;
}

static uint32_t
ipv4_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static bool
is_public_ipv6(const uint8_t *bytes)
{
    static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
    static const uint8_t translated[12] = { 0, 0x64, 0xff, 0x9b };
    if (memcmp(bytes, mapped, 12) == 0 || memcmp(bytes, translated, 12) == 0)
        return is_public_ipv4(ipv4_at(bytes + 12));
    if (bytes[0] == 0x20 && bytes[1] == 0x02) /* 6to4 */
        return is_public_ipv4(ipv4_at(bytes + 2));
    return (bytes[0] & 0xe0) == 0x20; /* 2000::/3 is all that is given to anybody */
}

bool
mc_address_is_public(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof(v4));
        return is_public_ipv4(ntohl(v4.sin_addr.s_addr));
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, address, sizeof(v6));
        return is_public_ipv6(v6.sin6_addr.s6_addr);
    }
    return false;
}

bool
mc_address_text_is_public(const char *text)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    if (text == NULL)
        return false;
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return mc_address_is_public((const struct sockaddr *)&v4);
    return inet_pton(AF_INET6, text, &v6.sin6_addr) == 1 && mc_address_is_public((const struct sockaddr *)&v6);
}

static bool
has_same_part(CURLU *one, CURLU *other, CURLUPart part)
{
    char *a = NULL, *b = NULL;
    bool same = curl_url_get(one, part, &a, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                curl_url_get(other, part, &b, CURLU_DEFAULT_PORT) == CURLUE_OK && strcasecmp(a, b) == 0;
    curl_free(a);
    curl_free(b);
    return same;
}

bool
mc_url_has_same_origin(const char *one, const char *other)
{
    CURLU *a = curl_url(), *b = curl_url();
    bool same = a != NULL && b != NULL && curl_url_set(a, CURLUPART_URL, one, 0) == CURLUE_OK &&
                curl_url_set(b, CURLUPART_URL, other, 0) == CURLUE_OK && has_same_part(a, b, CURLUPART_SCHEME) &&
                has_same_part(a, b, CURLUPART_HOST) && has_same_part(a, b, CURLUPART_PORT);
    curl_url_cleanup(a);
    curl_url_cleanup(b);
    return same;
}

mc_http_hop
mc_http_first_hop(const mc_http_call *call)
{
    return (mc_http_hop){
        .url = call->url,
        .method = call->method,
        .headers = call->headers,
        .body = call->body,
        .body_size = call->body_size,
    };
}

bool
mc_http_is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static const apr_table_t *
keep_type_of_body(const mc_http_hop *hop, apr_pool_t *pool)
{
    const char *type = hop->body == NULL || hop->headers == NULL ? NULL : apr_table_get(hop->headers, "Content-Type");
    apr_table_t *kept = apr_table_make(pool, 1);
    if (type != NULL)
        apr_table_setn(kept, "Content-Type", type);
    return kept;
}

/* `target` with the user and the password of `from`, where it names none. */
static const char *
keep_user(const char *from, const char *target, apr_pool_t *pool)
{
    static const CURLUPart parts[] = { CURLUPART_USER, CURLUPART_PASSWORD };
    CURLU *old = curl_url(), *url = curl_url();
    char *named = NULL, *whole = NULL;
    bool known = old != NULL && url != NULL && curl_url_set(old, CURLUPART_URL, from, 0) == CURLUE_OK &&
                 curl_url_set(url, CURLUPART_URL, target, 0) == CURLUE_OK &&
                 curl_url_get(url, CURLUPART_USER, &named, 0) == CURLUE_NO_USER;
    for (int i = 0; known && i < 2; i++) {
        char *part = NULL;
        if (curl_url_get(old, parts[i], &part, 0) == CURLUE_OK)
            curl_url_set(url, parts[i], part, 0);
        curl_free(part);
    }
    if (known && curl_url_get(url, CURLUPART_URL, &whole, 0) == CURLUE_OK)
        target = apr_pstrdup(pool, whole);
    curl_free(named);
    curl_free(whole);
    curl_url_cleanup(old);
    curl_url_cleanup(url);
    return target;
}

void
mc_http_next_hop(mc_http_hop *hop, int status, const char *target, const char *address, apr_pool_t *pool)
{
    bool post = strcmp(hop->method, "POST") == 0, head = strcmp(hop->method, "HEAD") == 0;
    if ((status == 303 && !head) || ((status == 301 || status == 302) && post)) {
        hop->method = "GET";
        hop->body = NULL;
        hop->body_size = 0;
    }
    if (mc_url_has_same_origin(hop->url, target))
        target = keep_user(hop->url, target, pool);
    else
        hop->headers = keep_type_of_body(hop, pool);
    hop->guarded = hop->guarded || mc_address_text_is_public(address);
    hop->url = target;
}

static curl_socket_t
open_public_socket(void *refused, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    if (mc_address_is_public(&address->addr))
        return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    *(bool *)refused = true;
    return CURL_SOCKET_BAD;
}

static int
check_connection(void *refused, char *remote, char *local, int remote_port, int local_port)
{
    (void)local;
    (void)remote_port;
    (void)local_port;
    if (mc_address_text_is_public(remote))
        return CURL_PREREQFUNC_OK;
    *(bool *)refused = true;
    return CURL_PREREQFUNC_ABORT;
}

void
mc_http_guard(CURL *easy, bool *refused)
{
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_public_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, refused);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, check_connection);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, refused);
}
