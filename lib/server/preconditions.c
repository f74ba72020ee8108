/* Entity tags, and what a client makes its request depend on (RFC 9110, 8.8.3 and 13). */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "server/server_private.h"
#include "service/service_base.h"
#include "text/text.h"

#define TAG_DIGITS 16

/* What compressing modules of web servers append to the tags that they pass on. */
static const char *const suffixes[] = { "", "-gzip", "-br", "-zstd", "-deflate" };

/* An item of a list of tags. */
typedef struct listed_tag {
    bool weak;
    uint64_t value;     /* 0: of another form than ours */
    const char *suffix; /* one of those above */
} listed_tag;

/* What stands between the quotes. */
static void
read_tag(listed_tag *tag, const char *text, size_t size)
{
    char digits[TAG_DIGITS + 1];
    tag->value = 0;
    if (size < TAG_DIGITS || strspn(text, "0123456789abcdef") < TAG_DIGITS)
        return;
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        if (strlen(suffixes[i]) != size - TAG_DIGITS || memcmp(text + TAG_DIGITS, suffixes[i], size - TAG_DIGITS) != 0)
            continue;
        memcpy(digits, text, TAG_DIGITS);
        digits[TAG_DIGITS] = '\0';
        tag->value = strtoull(digits, NULL, 16);
        tag->suffix = suffixes[i];
        return;
    }
}

/* The next tag of a list; false at its end, and where something stands that is no tag. */
static bool
next_tag(listed_tag *tag, const char **list)
{
    const char *at = *list + strspn(*list, " \t,");
    tag->weak = strncmp(at, "W/", 2) == 0;
    at += tag->weak ? 2 : 0;
    const char *end = *at == '"' ? strchr(at + 1, '"') : NULL;
    if (end == NULL)
        return false;
    read_tag(tag, at + 1, (size_t)(end - at - 1));
    *list = end + 1;
    return true;
}

/* Whether `wanted` is among the tags. strong: weak ones never are (RFC 9110, 8.8.3.2). *suffix as the list has it. */
static bool
lists_tag(const char **suffix, const char *list, uint64_t wanted, bool strong)
{
    listed_tag tag = { 0 };
    while (wanted != 0 && next_tag(&tag, &list))
        if (tag.value == wanted && !(strong && tag.weak)) {
            *suffix = tag.suffix;
            return true;
        }
    return false;
}

uint64_t
mc_request_tag(const mc_http_request *request)
{
    const char *list = request->headers == NULL ? NULL : apr_table_get(request->headers, "If-None-Match");
    listed_tag tag = { 0 };
    while (list != NULL && next_tag(&tag, &list))
        if (tag.value != 0)
            return tag.value;
    return 0;
}

static int64_t
read_date(const mc_call *call, const char *name)
{
    const char *text = mc_call_header(call, name);
    return text == NULL ? 0 : mc_http_date_parse(text);
}

/* If-Match, and without it If-Unmodified-Since: the first two steps of RFC 9110, 13.2.2. */
static bool
is_as_expected(const mc_result *result, const mc_call *call)
{
    const char *suffix;
    const char *match = mc_call_header(call, "If-Match");
    if (match != NULL)
        return strcmp(match, "*") == 0 || lists_tag(&suffix, match, result->tag, true);
    int64_t since = read_date(call, "If-Unmodified-Since"), modified = apr_time_sec(result->mtime);
    return since <= 0 || modified <= 0 || modified <= since;
}

/* If-None-Match, and without it If-Modified-Since: whether the client has it already. */
static bool
is_known(const char **suffix, const mc_result *result, const mc_call *call, bool reads)
{
    const char *match = mc_call_header(call, "If-None-Match");
    if (result->unmodified) { /* found out before anything was drawn */
        (void)(match != NULL && lists_tag(suffix, match, result->tag, false));
        return true;
    }
    if (match != NULL && strcmp(match, "*") == 0)
        return result->tag != 0 || result->mtime != 0;
    if (match != NULL)
        return lists_tag(suffix, match, result->tag, false);
    int64_t since = read_date(call, "If-Modified-Since"), modified = apr_time_sec(result->mtime);
    return reads && since > 0 && modified > 0 && since >= modified && since <= apr_time_sec(apr_time_now());
}

/* The tag in quotes, as read_tag takes it. */
static const char *
format_tag(uint64_t tag, const char *suffix, apr_pool_t *pool)
{
    char digits[TAG_DIGITS + 1];
    digits[TAG_DIGITS] = '\0';
    for (int i = TAG_DIGITS; i > 0; i--, tag >>= 4)
        digits[i - 1] = "0123456789abcdef"[tag & 15];
    return apr_pstrcat(pool, "\"", digits, suffix, "\"", NULL);
}

int
mc_preconditions_evaluate(const char **tag, const mc_result *result, const mc_call *call, apr_pool_t *pool)
{
    const char *suffix = "", *method = call->http->method;
    bool reads = method == NULL || strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    int status = 200;
    if (!is_as_expected(result, call))
        status = 412;
    else if (is_known(&suffix, result, call, reads))
        status = reads ? 304 : 412;
    /* a 304 names what the client holds: the form that a compressing module has made of it */
    *tag = result->tag == 0 ? NULL : format_tag(result->tag, status == 304 ? suffix : "", pool);
    return status;
}
