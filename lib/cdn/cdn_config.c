/* See cdn.h. */
#include "cdn/cdn.h"

#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "text/text.h"

/* Caches of a configuration at most, and addresses of one. */
enum { CDNS_MAX = 4, URLS_MAX = 8 };

/* What caches of a type read of an answer; NULL: nothing. */
static const struct cdn_reading {
    const char *keys, *age, *age_prefix;
} readings[] = {
    [MC_CDN_VARNISH] = { "xkey", "Surrogate-Control", "max-age=" },
    [MC_CDN_FASTLY] = { "Surrogate-Key", "Surrogate-Control", "max-age=" },
    [MC_CDN_NGINX] = { NULL, "X-Accel-Expires", "" },
};

typedef struct cdn_element {
    const char *name, *method;
    int type;
    apr_array_header_t *urls;
    const mc_node *headers;
    bool soft;
    int batch, max_age;
    double delay, timeout;
} cdn_element;

#define FIELD(member) offsetof(cdn_element, member)

const mc_key mc_cdn_keys[] = {
    MC_KEY_TEXT("@name", FIELD(name), "Name for messages.", .flags = MC_KEY_OURS | MC_KEY_REQUIRED),
    MC_KEY_CHOICE("@type", FIELD(type), "varnish|fastly|nginx",
                  "What the cache understands: `varnish`, keys in `xkey` and purges by `xkey-purge`; `fastly`, "
                  "`Surrogate-Key` and Fastly's API; `nginx`, a request for each address of a tile.",
                  .flags = MC_KEY_OURS | MC_KEY_REQUIRED),
    MC_KEY_URL(
        "url", FIELD(urls),
        "Where purges are sent; several: to each. `fastly`: https://api.fastly.com/service/ID/purge. `nginx`: the "
        "address of a tile with {tileset}, {grid}, {z}, {x} and {y} (row from the top) or {-y} (from the bottom).",
        .flags = MC_KEY_OURS | MC_KEY_REQUIRED | MC_KEY_REPEATABLE),
    MC_KEY_TREE("headers", FIELD(headers), NULL,
                "Headers of these requests, one element each: <Name>value</Name>. Tokens stand here.",
                .flags = MC_KEY_OURS),
    MC_KEY_TEXT("method", FIELD(method), "`nginx`: the method of these requests; GET asks for each tile again.",
                .flags = MC_KEY_OURS, .fallback = "PURGE"),
    MC_KEY_BOOL("soft", FIELD(soft),
                "`varnish` and `fastly`: what is purged becomes old instead of being removed, so that it may go out "
                "once more while the new one is fetched.",
                .flags = MC_KEY_OURS, .fallback = "false"),
    MC_KEY_INT("batch", FIELD(batch), "Keys or addresses that are purged together.", .flags = MC_KEY_OURS, .min = 1,
               .max = 256, .fallback = "64"),
    MC_KEY_NUMBER("delay", FIELD(delay),
                  "Seconds from a change to the purge: the other servers have seen the change by then, and do not hand "
                  "the old tile out again.",
                  .flags = MC_KEY_OURS, .min = 0, .max = 15, .fallback = "1"),
    MC_KEY_NUMBER("timeout", FIELD(timeout), "Seconds that a purge may take.", .flags = MC_KEY_OURS, .min = 0.1,
                  .max = 300, .fallback = "10"),
    MC_KEY_INT(
        "max_age", FIELD(max_age),
        "Seconds for which the cache keeps tiles and maps whose changes are followed, whatever browsers are told "
        "by <expires>. 0: as long as these.",
        .flags = MC_KEY_OURS, .min = 0, .max = 31536000, .fallback = "0"),
    MC_KEY_END,
};

#undef FIELD

static bool
is_purge_address(const char *url)
{
    return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
}

static void
read_cdn_urls(mc_cdn *cdn, const cdn_element *element, mc_build *build)
{
    cdn->urls = apr_array_make(build->pool, 2, sizeof(const char *));
    for (int i = 0; i < element->urls->nelts; i++) {
        const mc_node *node = APR_ARRAY_IDX(element->urls, i, const mc_node *);
        const char *url = mc_unwrap_url(node->text == NULL ? "" : node->text, build->pool);
        const bool placed = strstr(url, "{x}") != NULL && strstr(url, "{z}") != NULL &&
                            (strstr(url, "{y}") != NULL || strstr(url, "{-y}") != NULL);
        if (!is_purge_address(url))
            mc_complain(build->diagnostics, MC_REFUSED, node, "<url>: %s should be an address of http or https",
                        mc_config_quote(url, build->pool));
        else if (cdn->type == MC_CDN_NGINX && !placed)
            mc_complain(build->diagnostics, MC_REFUSED, node,
                        "<url>: nginx finds what to purge by the address of a tile, with {z}, {x} and {y} or {-y}");
        else if (cdn->urls->nelts == URLS_MAX)
            mc_complain(build->diagnostics, MC_REFUSED, node, "a <cdn> has at most %d <url>", URLS_MAX);
        else
            APR_ARRAY_PUSH(cdn->urls, const char *) = url;
    }
}

static void
read_cdn_headers(mc_cdn *cdn, const cdn_element *element, const mc_node *node, mc_build *build)
{
    cdn->headers = apr_table_make(build->pool, 4);
    for (const mc_node *header = element->headers == NULL ? NULL : element->headers->children; header != NULL;
         header = header->next) {
        if (!mc_is_token(header->name, strlen(header->name)))
            mc_complain(build->diagnostics, MC_REFUSED, header, "\"%s\" cannot be the name of a header", header->name);
        else
            apr_table_setn(cdn->headers, header->name,
                           header->text == NULL ? "" : mc_unwrap_text(header->text, build->pool));
    }
    if (cdn->type == MC_CDN_FASTLY && apr_table_get(cdn->headers, "Fastly-Key") == NULL)
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "cdn \"%s\": Fastly takes purges by key only with a token, in <headers><Fastly-Key>", cdn->name);
}

/* NULL after a complaint. */
static mc_cdn *
read_cdn(const mc_node *node, mc_build *build)
{
    cdn_element element = { 0 };
    const int refused = build->diagnostics->refused;
    if (!mc_config_read(&element, node, mc_cdn_keys, build->diagnostics))
        return NULL;
    mc_cdn *cdn = apr_pcalloc(build->pool, sizeof(*cdn));
    *cdn = (mc_cdn){ .name = element.name,
                     .type = (mc_cdn_type)element.type,
                     .method = element.method,
                     .soft = element.soft,
                     .batch = element.batch,
                     .delay = element.delay,
                     .timeout = element.timeout,
                     .max_age = element.max_age,
                     .definition = mc_node_hash(node) };
    if (!mc_is_token(cdn->method, strlen(cdn->method)))
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "method"), "%s cannot be a method",
                    mc_config_quote(cdn->method, build->pool));
    read_cdn_urls(cdn, &element, build);
    read_cdn_headers(cdn, &element, node, build);
    return build->diagnostics->refused == refused ? cdn : NULL;
}

static bool
has_header(const apr_array_header_t *texts, const char *wanted)
{
    for (int i = 0; i < texts->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(texts, i, const char *), wanted) == 0)
            return true;
    return false;
}

/* Two caches that read the same header are told the shorter time. */
static void
add_age_header(mc_cdns *cdns, const struct cdn_reading *reading, int max_age)
{
    for (int i = 0; i < cdns->age_headers->nelts; i++) {
        mc_cdn_age *known = &APR_ARRAY_IDX(cdns->age_headers, i, mc_cdn_age);
        if (strcmp(known->header, reading->age) != 0)
            continue;
        known->max_age = max_age < known->max_age ? max_age : known->max_age;
        return;
    }
    APR_ARRAY_PUSH(cdns->age_headers, mc_cdn_age) = (mc_cdn_age){ reading->age, reading->age_prefix, NULL, max_age };
}

static void
add_cdn(mc_cdns *cdns, mc_cdn *cdn)
{
    const struct cdn_reading *reading = &readings[cdn->type];
    APR_ARRAY_PUSH(cdns->all, mc_cdn *) = cdn;
    if (reading->keys != NULL && !has_header(cdns->key_headers, reading->keys))
        APR_ARRAY_PUSH(cdns->key_headers, const char *) = reading->keys;
    if (cdn->max_age > 0)
        add_age_header(cdns, reading, cdn->max_age);
}

const mc_cdns *
mc_cdns_from_config(const apr_array_header_t *nodes, mc_build *build)
{
    mc_cdns *cdns = apr_pcalloc(build->pool, sizeof(*cdns));
    cdns->all = apr_array_make(build->pool, 2, sizeof(mc_cdn *));
    cdns->key_headers = apr_array_make(build->pool, 2, sizeof(const char *));
    cdns->age_headers = apr_array_make(build->pool, 2, sizeof(mc_cdn_age));
    for (int i = 0; nodes != NULL && i < nodes->nelts; i++) {
        const mc_node *node = APR_ARRAY_IDX(nodes, i, const mc_node *);
        mc_cdn *cdn = read_cdn(node, build);
        if (cdn != NULL && i >= CDNS_MAX)
            mc_complain(build->diagnostics, MC_REFUSED, node, "there are at most %d <cdn>", CDNS_MAX);
        else if (cdn != NULL)
            add_cdn(cdns, cdn);
    }
    for (int i = 0; i < cdns->age_headers->nelts; i++) {
        mc_cdn_age *age = &APR_ARRAY_IDX(cdns->age_headers, i, mc_cdn_age);
        age->value = apr_psprintf(build->pool, "%s%d", age->prefix, age->max_age);
    }
    return cdns->all->nelts == 0 ? NULL : cdns;
}
