/* What an answer means: a tile, no tile, or what is wrong. Only what says that there is no tile lets one be rendered.
 */
#include <apr_lib.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cache/rest/rest_base.h"
#include "cache/rest/signed_headers.h"
#include "digest/digest.h"
#include "text/secret.h"
#include "text/text.h"

#define BASE64_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="

enum { MD5_TEXT_BYTES = 24, TEXT_BYTES = 300, LOOKED_THROUGH = 16 << 10 /* bytes of an error's body */ };
enum { CLOCK_TOLERANCE = 15 * 60 }; /* seconds that clocks may differ, of all these stores */

/* Where `<element>` begins its text, or NULL. */
static const char *
find_element_text(const char *body, const char *end, const char *element)
{
    size_t length = strlen(element);
    for (const char *at = body; at < end && (at = memchr(at, '<', (size_t)(end - at))) != NULL;) {
        at++;
        if ((size_t)(end - at) > length && memcmp(at, element, length) == 0 && at[length] == '>')
            return at + length + 1;
    }
    return NULL;
}

const char *
mc_rest_xml_value(const char *body, size_t size, const char *element, apr_pool_t *pool)
{
    static const struct {
        const char *name, *value;
    } entities[] = { { "&lt;", "<" }, { "&gt;", ">" }, { "&quot;", "\"" }, { "&apos;", "'" }, { "&amp;", "&" } };
    if (size == 0) /* `body` may be NULL */
        return "";
    const char *end = body + size;
    const char *begin = find_element_text(body, end, element);
    const char *close = begin == NULL ? NULL : memchr(begin, '<', (size_t)(end - begin));
    if (close == NULL)
        return "";
    const char *text = apr_pstrmemdup(pool, begin, (size_t)(close - begin)); /* up to a zero byte */
    for (size_t i = 0; i < sizeof(entities) / sizeof(*entities); i++)
        text = mc_replace_all(text, entities[i].name, entities[i].value, pool);
    return text;
}

const char *
mc_rest_xml_text(const char *body, size_t size, const char *element, apr_pool_t *pool)
{
    const char *text = mc_rest_xml_value(body, size < LOOKED_THROUGH ? size : LOOKED_THROUGH, element, pool);
    return mc_message_text(text, TEXT_BYTES, pool);
}

/* Whether the answer says that there is no such tile. A bucket that is not there is a mistake, and so is a refusal for
 * another reason than that the key is hidden. */
static bool
is_absent(const mc_rest_ask *ask, const char *code, const mc_rest_cache *cache)
{
    static const char *const mistakes[] = { "NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted" };
    const int status = ask->reply.status;
    if ((status == 401 || status == 403) && *code != '\0' && strcmp(code, "AccessDenied") != 0 &&
        strcmp(code, "NoSuchKey") != 0)
        return false;
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++)
        if (strcmp(code, mistakes[i]) == 0)
            return false;
    for (int i = 0; i < cache->absent.count; i++)
        if ((int)cache->absent.values[i] == status)
            return true;
    return false;
}

/* Of the answers to an operation those that are no error. */
static bool
is_good_status(mc_rest_operation operation, int status)
{
    switch (operation) {
    case MC_REST_GET:
    case MC_REST_HEAD:
    case MC_REST_LIST:
        return status == 200;
    case MC_REST_PUT:
        return status == 200 || status == 201 || status == 204;
    default:
        return status == 200 || status == 202 || status == 204;
    }
}

/* A page of a gateway or a login in place of a tile. */
static bool
is_page(const mc_rest_ask *ask)
{
    const char *type = apr_table_get(ask->reply.headers, "Content-Type");
    if (type == NULL || strncasecmp(type, "text/html", 9) != 0)
        return false;
    return ask->operation == MC_REST_HEAD ||
           (ask->operation == MC_REST_GET &&
            mc_image_sniff(ask->reply.body->data, ask->reply.body->size) == MC_CODING_UNKNOWN);
}

/* The check sum that the store tells of the whole object, in base64: MD5 of Azure and Google. NULL: none. */
static const char *
told_check_sum(const mc_rest_ask *ask)
{
    const char *plain = apr_table_get(ask->reply.headers, "Content-MD5");
    const char *google = apr_table_get(ask->reply.headers, "x-goog-hash");
    const char *md5 = google == NULL ? NULL : strstr(google, "md5=");
    return plain != NULL ? plain : md5 != NULL ? md5 + 4 : NULL;
}

/* Whether the answer has one of S3's check sums, in base64, and it is another one. Of an object in parts the sum is one
 * of sums, with "-" and a number behind: not looked at. */
static bool
is_damaged_by(const mc_rest_ask *ask, const char *header, const uint8_t *digest, size_t size, apr_pool_t *pool)
{
    const char *told = apr_table_get(ask->reply.headers, header);
    const char *own = told == NULL || strchr(told, '-') != NULL ? NULL : mc_base64_text(digest, size, pool);
    return own != NULL && strcmp(told, own) != 0;
}

static bool
is_damaged_object(const mc_rest_ask *ask, apr_pool_t *pool)
{
    uint8_t sum[4], digest[MC_SHA256_BYTES];
    const mc_buf *body = ask->reply.body;
    if (apr_table_get(ask->reply.headers, MC_REST_CRC32C) != NULL) {
        (void)mc_store_big32(sum, mc_crc32c(body->data, body->size));
        return is_damaged_by(ask, MC_REST_CRC32C, sum, sizeof(sum), pool);
    }
    if (apr_table_get(ask->reply.headers, MC_REST_SHA256) == NULL)
        return false;
    mc_sha256(digest, body->data, body->size);
    return is_damaged_by(ask, MC_REST_SHA256, digest, sizeof(digest), pool);
}

/* Whether the tile is another one than its check sum says: damaged in the store, or on its way. */
static bool
is_damaged(const mc_rest_ask *ask, apr_pool_t *pool)
{
    uint8_t digest[MC_MD5_BYTES];
    const char *told = ask->operation == MC_REST_GET && !ask->reply.decoded ? told_check_sum(ask) : NULL;
    if (ask->operation == MC_REST_GET && !ask->reply.decoded && is_damaged_object(ask, pool))
        return true;
    if (told == NULL || strspn(told, BASE64_LETTERS) != MD5_TEXT_BYTES)
        return false; /* not in a form that is known */
    mc_md5(digest, ask->reply.body->data, ask->reply.body->size);
    return strncmp(told, mc_base64_text(digest, sizeof(digest), pool), MD5_TEXT_BYTES) != 0;
}

static mc_error *
judge_good_answer(const mc_rest_ask *ask, const char *name, apr_pool_t *pool)
{
    if ((ask->operation == MC_REST_GET || ask->operation == MC_REST_LIST) && !ask->reply.framed) /* RFC 9112 6.3, 8 */
        return mc_error_create(pool, MC_ERR_UPSTREAM,
                               "cache \"%s\": the store does not say how long the tile is: it may be half of one",
                               name);
    if (is_damaged(ask, pool))
        return mc_error_create(pool, MC_ERR_UPSTREAM, "cache \"%s\": the tile is not the one of its check sum", name);
    if (is_page(ask))
        return mc_error_create(pool, MC_ERR_UPSTREAM, "cache \"%s\": the store answers with a page in place of a tile",
                               name);
    return MC_OK;
}

/* Seconds that our clock is ahead of the store's, by the answer's Date; false: the answer does not say the time. */
static bool
read_clock_lead(int64_t *seconds, const mc_rest_ask *ask)
{
    const char *date = apr_table_get(ask->reply.headers, "Date");
    int64_t theirs = date == NULL ? 0 : mc_http_date_parse(date);
    *seconds = apr_time_sec(apr_time_now()) - theirs;
    return theirs != 0;
}

/* How far the clocks are apart, in words for the log. */
static const char *
clock_difference(const mc_rest_ask *ask, apr_pool_t *pool)
{
    int64_t lead;
    if (!read_clock_lead(&lead, ask))
        return "the clocks of this machine and of the store differ too much";
    return apr_psprintf(pool, "the clock of this machine is %ld seconds %s that of the store", labs((long)lead),
                        lead < 0 ? "behind" : "ahead of");
}

/* Which of the codes of the stores mean that requests are signed for another time. */
static bool
is_clock_code(const char *code)
{
    return strcmp(code, "RequestTimeTooSkewed") == 0 || strcmp(code, "RequestExpired") == 0 ||
           strcmp(code, "InvalidSignatureTime") == 0;
}

/* Whether a request was refused for its time. Azure says no more than that it does not know who asks. */
static bool
is_clock_refusal(const mc_rest_ask *ask, const char *code)
{
    int64_t lead;
    return is_clock_code(code) || (ask->reply.status == 403 && strcmp(code, "AuthenticationFailed") == 0 &&
                                   read_clock_lead(&lead, ask) && llabs(lead) > CLOCK_TOLERANCE);
}

static const char *
code_of_answer(const mc_rest_ask *ask, apr_pool_t *pool)
{
    const char *azure = apr_table_get(ask->reply.headers, "x-ms-error-code");
    if (azure != NULL)
        return mc_message_text(azure, TEXT_BYTES, pool);
    return mc_rest_xml_text((const char *)ask->reply.body->data, ask->reply.body->size, "Code", pool);
}

/* The address for the log. */
static const char *
loggable_address(const char *url, apr_pool_t *pool)
{
    url = mc_hide_address_password(url, pool);
    return apr_pstrmemdup(pool, url, strcspn(url, "?")); /* behind it may stand a signature */
}

/* What the store says, for the log. */
static mc_error *
answer_cause(const mc_rest_ask *ask, const char *code, apr_pool_t *pool)
{
    static const char *const methods[MC_REST_OPERATIONS] = { "GET", "HEAD", "PUT", "DELETE", "GET" };
    const char *body = (const char *)ask->reply.body->data;
    const size_t size = ask->reply.body->size;
    const char *words = mc_rest_xml_text(body, size, "Message", pool);
    const char *region = apr_table_get(ask->reply.headers, "x-amz-bucket-region");
    region = region == NULL ? mc_rest_xml_text(body, size, "Region", pool) : mc_message_text(region, TEXT_BYTES, pool);
    const char *address = mc_rest_xml_text(body, size, "Endpoint", pool);
    return mc_error_create(pool, MC_ERR_UPSTREAM, "%s %s: status %d%s%s%s%s%s%s%s%s", methods[ask->operation],
                           loggable_address(ask->url, pool), ask->reply.status, *code == '\0' ? "" : " ", code,
                           *words == '\0' ? "" : ": ", words, *region == '\0' ? "" : "; the region of the bucket is ",
                           region, *address == '\0' ? "" : "; the bucket is at ", address);
}

/* Whether the bucket lies elsewhere: requests are signed for one region and one host, and never sent on. */
static bool
is_other_region(const mc_rest_ask *ask, const char *code)
{
    static const char *const codes[] = { "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed",
                                         "IllegalLocationConstraintException", "Redirect" };
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
        if (strcmp(code, codes[i]) == 0)
            return true;
    const int status = ask->reply.status; /* an answer to HEAD has no words */
    return (status == 301 || status == 307 || status == 400) &&
           apr_table_get(ask->reply.headers, "x-amz-bucket-region") != NULL;
}

static void
judge_bad_status(mc_rest_ask *ask, const char *code, const char *name, apr_pool_t *pool)
{
    const int status = ask->reply.status;
    mc_error *cause = answer_cause(ask, code, pool);
    ask->again = status == 429 || status == 500 || status == 502 || status == 503 || status == 504 ||
                 (status == 400 && strcmp(code, "RequestTimeout") == 0);
    if (is_clock_refusal(ask, code))
        ask->error = mc_error_wrap(pool, cause, MC_ERR_UPSTREAM, "cache \"%s\": the store refuses: %s", name,
                                   clock_difference(ask, pool));
    else if (is_other_region(ask, code))
        ask->error = mc_error_wrap(pool, cause, MC_ERR_UPSTREAM,
                                   "cache \"%s\": the bucket lies in another region, or at another address, than the "
                                   "configuration says",
                                   name);
    else if (status == 401 || status == 403)
        ask->error = mc_error_wrap(pool, cause, MC_ERR_UPSTREAM, "cache \"%s\": the store refuses access", name);
    else if (status == 429 || status == 503)
        ask->error = mc_error_wrap(pool, cause, MC_ERR_UNAVAILABLE, "cache \"%s\": the store is asked too much", name);
    else if (ask->again)
        ask->error = mc_error_wrap(pool, cause, MC_ERR_UNAVAILABLE, "cache \"%s\": the store fails", name);
    else
        ask->error =
            mc_error_wrap(pool, cause, MC_ERR_UPSTREAM, "cache \"%s\": the store answers with status %d", name, status);
}

/* What went wrong on the way. A tile that is too large stays so; what came too late took all the time. */
static void
judge_broken_exchange(mc_rest_ask *ask, const char *name, apr_pool_t *pool)
{
    mc_error *error = ask->error;
    if (ask->reply.too_large)
        ask->error = mc_error_wrap(pool, error, MC_ERR_UPSTREAM, "cache \"%s\": the tile has more than %d bytes", name,
                                   MC_TILE_BYTES_MAX);
    else if (error->kind == MC_ERR_TIMEOUT)
        ask->error = mc_error_wrap(pool, error, MC_ERR_TIMEOUT, "cache \"%s\": the store did not answer in time", name);
    else if (error->kind == MC_ERR_UPSTREAM) {
        ask->again = true;
        ask->error = mc_error_wrap(pool, error, MC_ERR_UNAVAILABLE, "cache \"%s\": the store cannot be reached", name);
    }
}

void
mc_rest_judge(mc_rest_ask *ask, const char **code, const mc_rest_cache *cache, apr_pool_t *pool)
{
    const char *name = cache->base.cache.name;
    *code = "";
    ask->again = ask->absent = false;
    if (ask->error != MC_OK)
        judge_broken_exchange(ask, name, pool);
    else if (is_good_status(ask->operation, ask->reply.status))
        ask->error = judge_good_answer(ask, name, pool);
    else {
        *code = code_of_answer(ask, pool);
        ask->absent = ask->operation != MC_REST_PUT && ask->operation != MC_REST_LIST && is_absent(ask, *code, cache);
        if (!ask->absent)
            judge_bad_status(ask, *code, name, pool);
    }
}
