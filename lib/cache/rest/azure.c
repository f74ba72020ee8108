/*
 * The cache "azure": blobs of Azure's Blob service. Requests are signed with the account's key (Shared Key), or carry a
 * shared access signature (SAS), which somebody else has made.
 */
#include <apr_base64.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "cache/rest/rest_base.h"
#include "cache/rest/signed_headers.h"
#include "digest/digest.h"
#include "text/text.h"

/* The version of the service that is asked for: the rules of its signature are those since 2015-02-21. */
#define AZURE_VERSION "2020-10-02"

enum { AZURE_KEY_BYTES = 512 };

typedef struct azure_cache {
    mc_rest_cache rest;
    const char *id, *secret, *container, *sas;
    uint8_t key[AZURE_KEY_BYTES];
    size_t key_size;
} azure_cache;

#define AZURE_FIELD(field) offsetof(azure_cache, field)
static const mc_key azure_keys[] = {
    MC_REST_KEYS,
    MC_KEY_LINE("id", AZURE_FIELD(id), "Name of the storage account; without it AZURE_STORAGE_ACCOUNT says it."),
    MC_KEY_LINE("secret", AZURE_FIELD(secret),
                "Key of the account, in base64; without it AZURE_STORAGE_KEY says it. Not needed with <sas>."),
    MC_KEY_LINE("container", AZURE_FIELD(container), "Not used: the address of a tile names the container."),
    MC_KEY_LINE("sas", AZURE_FIELD(sas),
                "Shared access signature, as sv=2022-11-02&sp=rcwd&...&sig=..., in place of the account's key.",
                .flags = MC_KEY_OURS),
    MC_KEY_END,
};

/* The rules of 2015-02-21 and later: learn.microsoft.com, "Authorize with Shared Key", Blob service. */
static const char *
azure_string_to_sign(const mc_rest_request *request, const azure_cache *cache, apr_pool_t *pool)
{
    static const char *const before[] = { "Content-Encoding", "Content-Language" };
    static const char *const after[] = { "Content-MD5",         "Content-Type", NULL /* Date: x-ms-date is sent */,
                                         "If-Modified-Since",   "If-Match",     "If-None-Match",
                                         "If-Unmodified-Since", "Range" };
    const char *text = apr_pstrcat(pool, request->method, "\n", NULL);
    for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++)
        text = apr_pstrcat(pool, text, mc_signed_value(request->headers, before[i]), "\n", NULL);
    const char *length = request->body_size == 0 ? "" : apr_psprintf(pool, "%lu", (unsigned long)request->body_size);
    text = apr_pstrcat(pool, text, length, "\n", NULL);
    for (size_t i = 0; i < sizeof(after) / sizeof(*after); i++)
        text = apr_pstrcat(pool, text, after[i] == NULL ? "" : mc_signed_value(request->headers, after[i]), "\n", NULL);
    text = apr_pstrcat(pool, text, mc_signed_lines(request->headers, "x-ms-", NULL, pool), "/", cache->id,
                       request->path, NULL);
    /* The query: decoded, a line for each name. */
    for (const char *at = request->query; *at != '\0';) {
        size_t size = strcspn(at, "&"), name = strcspn(at, "=");
        text = apr_pstrcat(pool, text, "\n", apr_pstrmemdup(pool, at, name), ":",
                           mc_url_decode(at + name + 1, size - name - 1, false, pool), NULL);
        at += size + (at[size] == '&');
    }
    return text;
}

static mc_error *
sign_azure(mc_rest_request *request, const mc_rest_cache *rest, const void *secret, apr_pool_t *pool)
{
    const azure_cache *cache = (const azure_cache *)rest;
    (void)secret;
    if (strcmp(request->method, "PUT") == 0 && apr_table_get(request->headers, "x-ms-blob-type") == NULL)
        apr_table_setn(request->headers, "x-ms-blob-type", "BlockBlob");
    if (apr_table_get(request->headers, "x-ms-version") == NULL)
        apr_table_setn(request->headers, "x-ms-version", AZURE_VERSION);
    if (cache->sas != NULL) {
        request->url = apr_pstrcat(pool, request->url, *request->query == '\0' ? "?" : "&", cache->sas, NULL);
        return MC_OK;
    }
    uint8_t digest[MC_SHA256_BYTES];
    apr_table_setn(request->headers, "x-ms-date", mc_http_date(apr_time_sec(request->now), pool));
    const char *text = azure_string_to_sign(request, cache, pool);
    mc_hmac_sha256(digest, cache->key, cache->key_size, text, strlen(text));
    apr_table_setn(request->headers, "Authorization",
                   apr_pstrcat(pool, "SharedKey ", cache->id, ":", mc_base64_text(digest, sizeof(digest), pool), NULL));
    return MC_OK;
}

/* The container; of an emulator, whose host is not named by the account, the account before. */
static int
leading_parts_azure(const mc_rest_cache *rest)
{
    const azure_cache *cache = (const azure_cache *)rest;
    const char *host = strstr(rest->url, "://") + 3;
    const char *path = strchr(host, '/');
    size_t size = cache->id == NULL ? 0 : strlen(cache->id);
    bool first = size > 0 && strncmp(path + 1, cache->id, size) == 0 && path[1 + size] == '/';
    bool named = size > 0 && strncmp(host, cache->id, size) == 0 && host[size] == '.';
    return first && !named ? 2 : 1;
}

static const char *
list_query_azure(const char *prefix, const char *after, apr_pool_t *pool)
{
    const char *more =
        *after == '\0' ? "" : apr_pstrcat(pool, "marker=", mc_url_encode(after, NULL, true, false, pool), "&", NULL);
    return apr_pstrcat(pool, "comp=list&", more,
                       "maxresults=5000&prefix=", mc_url_encode(prefix, NULL, true, false, pool), "&restype=container",
                       NULL);
}

static const mc_rest_lister azure_lister = {
    leading_parts_azure, list_query_azure, "EnumerationResults", "Blob", "Name", "Content-Length", "NextMarker"
};

static const mc_rest_signer azure_signer = { NULL, sign_azure, NULL };

static const char *
azure_environment(const char *configured, const char *name, apr_pool_t *pool)
{
    const char *value = configured == NULL ? getenv(name) : configured;
    return value == NULL || *value == '\0' ? NULL : apr_pstrdup(pool, value);
}

/* Decodes the account's key. False: it is no base64. */
static bool
decode_azure_key(azure_cache *cache)
{
    size_t size = strlen(cache->secret);
    size_t coded = strspn(cache->secret, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
    size_t padding = strspn(cache->secret + coded, "=");
    if (size == 0 || size % 4 != 0 || coded + padding != size || padding > 2 ||
        (size_t)apr_base64_decode_len(cache->secret) > sizeof(cache->key))
        return false;
    int decoded = apr_base64_decode_binary(cache->key, cache->secret);
    cache->key_size = decoded < 0 ? 0 : (size_t)decoded;
    return true;
}

static bool
check_azure(azure_cache *cache, const mc_node *node, mc_build *build)
{
    cache->id = azure_environment(cache->id, "AZURE_STORAGE_ACCOUNT", build->pool);
    if (cache->sas == NULL && cache->secret == NULL)
        cache->sas = azure_environment(NULL, "AZURE_STORAGE_SAS_TOKEN", build->pool);
    if (cache->sas != NULL && *cache->sas == '?')
        cache->sas++;
    if (cache->sas != NULL) {
        if (strstr(cache->sas, "sig=") != NULL && strpbrk(cache->sas, " #<>\"") == NULL)
            return true;
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "sas"),
                    "a shared access signature is name=value&...&sig=..., as the portal shows it");
        return false;
    }
    cache->secret = azure_environment(cache->secret, "AZURE_STORAGE_KEY", build->pool);
    if (cache->id == NULL || cache->secret == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "an azure cache needs <id> and <secret>, or <sas>");
        return false;
    }
    if (!decode_azure_key(cache)) {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "secret"),
                    "the account's key is not in base64");
        return false;
    }
    return true;
}

static mc_cache *
azure_from_config(const mc_node *node, mc_build *build)
{
    azure_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    cache->rest.signer = &azure_signer;
    cache->rest.lister = &azure_lister;
    return mc_rest_read(&cache->rest, &mc_cache_azure, node, build) && check_azure(cache, node, build)
               ? &cache->rest.base.cache
               : NULL;
}

const mc_cache_ops mc_cache_azure = {
    MC_KIND("azure", azure_keys, azure_from_config, "Tiles as blobs of Azure's Blob service."),
    MC_REST_LISTING_OPS,
};
