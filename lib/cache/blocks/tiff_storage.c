/* <storage> of the cache "tiff": its files are behind HTTP, and only read (docs/reference/configuration.md 5.10). */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "cache/blocks/tiff_cache.h"

enum { STORAGE_REST, STORAGE_GOOGLE };
#define GOOGLE_STORE "https://storage.googleapis.com/"
#define GOOGLE_OF_GDAL "/vsigs/"

typedef struct tiff_storage {
    int type;
    int connection_timeout, timeout; /* seconds */
    double revalidate;
    const char *header_file, *access, *secret, *endpoint;
} tiff_storage;

#define FIELD(field) offsetof(tiff_storage, field)
const mc_key mc_tiff_storage_keys[] = {
    MC_KEY_CHOICE("@type", FIELD(type), "rest|google",
                  "rest: any web server; google: Google's Cloud Storage by its interoperable interface.",
                  .flags = MC_KEY_REQUIRED),
    MC_KEY_INT("connection_timeout", FIELD(connection_timeout), "Seconds to wait for a connection.", .min = 1,
               .max = 86400, .fallback = "30"),
    MC_KEY_INT("timeout", FIELD(timeout), "Seconds to wait for a part of a file.", .min = 1, .max = 86400,
               .fallback = "120"),
    MC_KEY_TEXT("header_file", FIELD(header_file),
                "File with further headers, a line `Name: value` each; read with every request.",
                .flags = MC_KEY_WORKDIR),
    MC_KEY_LINE("access", FIELD(access), "Access key of google (HMAC key) [GS_ACCESS_KEY_ID]."),
    MC_KEY_LINE("secret", FIELD(secret), "Secret of the access key [GS_SECRET_ACCESS_KEY]."),
    MC_KEY_URL("endpoint", FIELD(endpoint), "Address of the store that stands for " GOOGLE_STORE ".",
               .flags = MC_KEY_OURS),
    MC_KEY_NUMBER(
        "revalidate", FIELD(revalidate),
        "Seconds for which a file is taken for unchanged; a file that was replaced is seen at once where a part"
        " of it has to be fetched.",
        .max = 1e6, .fallback = "60", .flags = MC_KEY_OURS),
    MC_KEY_END,
};

static bool
begins_as(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static bool
refuse_storage(const mc_node *node, mc_build *build, const char *why)
{
    mc_complain(build->diagnostics, MC_REFUSED, node, "%s", why);
    return false;
}

/* Keys of the environment stand for those that are missing. */
static bool
read_google_keys(tiff_cache *cache, const tiff_storage *storage, mc_build *build)
{
    const char *access = getenv("GS_ACCESS_KEY_ID"), *secret = getenv("GS_SECRET_ACCESS_KEY");
    cache->remote.access =
        storage->access != NULL || access == NULL ? storage->access : apr_pstrdup(build->pool, access);
    cache->remote.secret =
        storage->secret != NULL || secret == NULL ? storage->secret : apr_pstrdup(build->pool, secret);
    return (cache->remote.access != NULL && cache->remote.secret != NULL) ||
           refuse_storage(cache->storage, build,
                          "<storage type=\"google\"> needs <access> and <secret>, which GS_ACCESS_KEY_ID and"
                          " GS_SECRET_ACCESS_KEY do not say either");
}

static bool
is_web_template(const char *text)
{
    return begins_as(text, "http://") || begins_as(text, "https://");
}

/* The address that the template says; NULL: it is none of the storage. */
static const char *
address_of_template(const char *template, const tiff_storage *storage, apr_pool_t *pool)
{
    if (storage->type == STORAGE_REST)
        return is_web_template(template) ? template : NULL;
    const char *beginning = begins_as(template, GOOGLE_OF_GDAL) ? GOOGLE_OF_GDAL : GOOGLE_STORE;
    if (!begins_as(template, beginning))
        return NULL;
    const char *store = storage->endpoint == NULL ? GOOGLE_STORE : storage->endpoint;
    bool ends = store[strlen(store) - 1] == '/';
    return apr_pstrcat(pool, store, ends ? "" : "/", template + strlen(beginning), NULL);
}

bool
mc_tiff_storage_read(tiff_cache *cache, const char **url, mc_build *build)
{
    tiff_storage *storage = apr_pcalloc(build->pool, sizeof(*storage));
    if (!mc_config_read(storage, cache->storage, mc_tiff_storage_keys, build->diagnostics))
        return false;
    *url = address_of_template(*url, storage, build->pool);
    if (*url == NULL)
        return refuse_storage(cache->named, build,
                              storage->type == STORAGE_GOOGLE
                                  ? "with <storage type=\"google\"> the <template> begins with " GOOGLE_STORE
                                    " or " GOOGLE_OF_GDAL
                                  : "with <storage type=\"rest\"> the <template> begins with http:// or https://");
    if (!is_web_template(*url))
        return refuse_storage(cache->storage, build, "<endpoint> is an address of http or https");
    const char *path = strchr(strstr(*url, "://") + 3, '/');
    if (path == NULL || memchr(*url, '{', (size_t)(path - *url)) != NULL || strpbrk(path, "?#") != NULL)
        return refuse_storage(cache->named, build,
                              "the address of a file is that of a host without tokens, with a path and no query");
    cache->remote = (mc_ranges_remote){ .name = cache->block.base.cache.name,
                                        .connect_timeout = storage->connection_timeout,
                                        .timeout = storage->timeout,
                                        .revalidate = storage->revalidate,
                                        .header_file = storage->header_file };
    cache->block.remote = &cache->remote;
    return storage->type != STORAGE_GOOGLE || read_google_keys(cache, storage, build);
}
