/* Keys of tiles: MapCache's where they are good, others where two tiles would share one. */
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "cache/keyvalue/keyvalue.h"
#include "digest/digest.h"

/* A name that ends at the next '/', so that what is behind it begins in one place only. */
static bool
is_plain_key_name(const char *name)
{
    return *name != '\0' && strchr(name, '/') == NULL;
}

static bool
has_blanks(const char *key)
{
    for (const char *at = key; *at != '\0'; at++)
        if ((unsigned char)*at <= ' ' || *at == 0x7f)
            return true;
    return false;
}

/* Whether MapCache's key is this tile's alone: the four last parts are numbers and a word, the two first ones names;
 * between them is all that the dimensions say, whose values are parted by '#'. */
static bool
key_tells_all(const mc_tile_key *tile)
{
    if (!is_plain_key_name(tile->tileset) || !is_plain_key_name(tile->grid->name) ||
        !is_plain_key_name(tile->extension) || tile->tileset[0] == '%')
        return false;
    for (int i = 0; i < tile->dimension_count; i++)
        if (strchr(tile->dimensions[i].value, '#') != NULL)
            return false;
    return true;
}

static const char *
escape_key_part(const char *part, apr_pool_t *pool)
{
    char *escaped = apr_palloc(pool, 3 * strlen(part) + 1);
    char *out = escaped;
    for (const char *at = part; *at != '\0'; at++) {
        const unsigned char byte = (unsigned char)*at;
        if (byte <= ' ' || byte == 0x7f || byte == '/' || byte == '%')
            out += snprintf(out, 4, "%%%02X", byte);
        else
            *out++ = *at;
    }
    *out = '\0';
    return escaped;
}

/* Each dimension is a part of its own: how many there are tells what each part is. */
static const char *
escape_key(const mc_tile_key *tile, apr_pool_t *pool)
{
    const char *key = apr_pstrcat(pool, "%/", escape_key_part(tile->tileset, pool), "/",
                                  escape_key_part(tile->grid->name, pool), NULL);
    for (int i = tile->dimension_count - 1; i >= 0; i--)
        key = apr_pstrcat(pool, key, "/", escape_key_part(tile->dimensions[i].value, pool), NULL);
    return apr_psprintf(pool, "%s/%d/%d/%d/%s", key, tile->z, tile->y, tile->x, escape_key_part(tile->extension, pool));
}

static const char *
hash_long_key(const char *key, apr_pool_t *pool)
{
    uint8_t digest[MC_SHA256_BYTES];
    char text[2 * MC_SHA256_BYTES + 1];
    mc_sha256(digest, key, strlen(key));
    for (int i = 0; i < MC_SHA256_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return apr_pstrcat(pool, "%#", text, NULL);
}

const char *
mc_keyvalue_key(const mc_tile_key *tile, const mc_keyvalue_rules *rules, apr_pool_t *pool)
{
    if (key_tells_all(tile)) {
        const char *dimensions =
            tile->dimension_count == 0 ? "" : apr_pstrcat(pool, mc_cache_dimension_key(tile, pool), "/", NULL);
        const char *key = apr_psprintf(pool, "%s/%s/%s%d/%d/%d/%s", tile->tileset, tile->grid->name, dimensions,
                                       tile->z, tile->y, tile->x, tile->extension);
        if (strlen(key) <= rules->longest && (rules->blanks || !has_blanks(key)))
            return key;
    }
    const char *key = escape_key(tile, pool);
    return strlen(key) <= rules->longest ? key : hash_long_key(key, pool);
}
