/*
 * <metadata>: keys without regard to case, several values for each, one nested level
 * (docs/reference/configuration.md 1.3). Many threads read it at once, so nothing is built on reading.
 */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "mapcache/config.h"
#include "text/text.h"

enum { LONGEST_KEY = 255 }; /* what differs only beyond that is one key */

typedef struct metadata_entry {
    apr_array_header_t *values; /* of const char *, in file order */
    mc_metadata *nested;        /* the first nested table of that name, or NULL */
} metadata_entry;

struct mc_metadata {
    apr_pool_t *pool;
    apr_hash_t *entries; /* key in lower case -> entry */
};

mc_metadata *
mc_metadata_create(apr_pool_t *pool)
{
    mc_metadata *metadata = apr_pcalloc(pool, sizeof(*metadata));
    metadata->pool = pool;
    metadata->entries = apr_hash_make(pool);
    return metadata;
}

static size_t
lowercase_key(char to[LONGEST_KEY + 1], const char *key)
{
    size_t size = 0;
    for (; key[size] != '\0' && size < LONGEST_KEY; size++)
        to[size] = (char)(key[size] >= 'A' && key[size] <= 'Z' ? key[size] + ('a' - 'A') : key[size]);
    return size;
}

static metadata_entry *
find_metadata_entry(const mc_metadata *metadata, const char *key)
{
    char folded[LONGEST_KEY + 1];
    return metadata == NULL ? NULL : apr_hash_get(metadata->entries, folded, (apr_ssize_t)lowercase_key(folded, key));
}

static metadata_entry *
find_or_add(mc_metadata *metadata, const char *key)
{
    char folded[LONGEST_KEY + 1];
    size_t size = lowercase_key(folded, key);
    metadata_entry *found = apr_hash_get(metadata->entries, folded, (apr_ssize_t)size);
    if (found == NULL) {
        found = apr_pcalloc(metadata->pool, sizeof(*found));
        found->values = apr_array_make(metadata->pool, 1, sizeof(const char *));
        apr_hash_set(metadata->entries, apr_pmemdup(metadata->pool, folded, size), (apr_ssize_t)size, found);
    }
    return found;
}

void
mc_metadata_set(mc_metadata *metadata, const char *key, const char *value)
{
    APR_ARRAY_PUSH(find_or_add(metadata, key)->values, const char *) = apr_pstrdup(metadata->pool, value);
}

/* Whether a key's values are addresses: url, providerurl, href and so on. */
static bool
names_address(const char *key)
{
    size_t size = strlen(key);
    return (size >= 3 && strcasecmp(key + size - 3, "url") == 0) || strcasecmp(key, "href") == 0 ||
           strcasecmp(key, "onlineresource") == 0;
}

static void
add_metadata_value(mc_metadata *metadata, const mc_node *node)
{
    mc_metadata_set(metadata, node->name,
                    names_address(node->name) ? mc_unwrap_url(node->text, metadata->pool) : node->text);
}

void
mc_metadata_add(mc_metadata *metadata, const mc_node *node)
{
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        if (child->children == NULL) {
            add_metadata_value(metadata, child);
            continue;
        }
        mc_metadata *nested = mc_metadata_create(metadata->pool);
        for (const mc_node *leaf = child->children; leaf != NULL; leaf = leaf->next)
            add_metadata_value(nested, leaf);
        metadata_entry *parent = find_or_add(metadata, child->name);
        if (parent->nested == NULL)
            parent->nested = nested;
    }
}

const char *
mc_metadata_get(const mc_metadata *metadata, const char *key)
{
    const metadata_entry *found = find_metadata_entry(metadata, key);
    return found == NULL || found->values->nelts == 0 ? NULL : APR_ARRAY_IDX(found->values, 0, const char *);
}

const apr_array_header_t *
mc_metadata_all(const mc_metadata *metadata, const char *key)
{
    static const apr_array_header_t none = { .elt_size = sizeof(const char *) };
    const metadata_entry *found = find_metadata_entry(metadata, key);
    return found == NULL ? &none : found->values;
}

const mc_metadata *
mc_metadata_nested(const mc_metadata *metadata, const char *key)
{
    const metadata_entry *found = find_metadata_entry(metadata, key);
    return found == NULL ? NULL : found->nested;
}
