/* Keys by templates, as MapCache makes them (docs/reference/configuration.md 5.2): token after token, the first one of
 * each, in the template as the tokens before have left it. */
#include <apr_strings.h>
#include <string.h>

#include "cache/embedded/embedded.h"

static const char *
replace_first(const char *text, const char *token, const char *value, apr_pool_t *pool)
{
    const char *at = strstr(text, token);
    if (at == NULL)
        return text;
    return apr_pstrcat(pool, apr_pstrmemdup(pool, text, (size_t)(at - text)), value, at + strlen(token), NULL);
}

/* {x}, or where there is none {inv_x}. */
static const char *
replace_number(const char *text, const char *name, const char *number, const char *inverted, apr_pool_t *pool)
{
    const char *token = apr_pstrcat(pool, "{", name, "}", NULL);
    if (strstr(text, token) != NULL)
        return replace_first(text, token, number, pool);
    return replace_first(text, apr_pstrcat(pool, "{inv_", name, "}", NULL), inverted, pool);
}

static const char *
quadkey_of(const mc_tile_key *key, apr_pool_t *pool)
{
    char *digits = apr_pcalloc(pool, (size_t)key->z + 1);
    for (int i = 0; i < key->z; i++)
        digits[i] = (char)('0' + (key->x >> (key->z - 1 - i) & 1) + 2 * (key->y >> (key->z - 1 - i) & 1));
    return digits;
}

/* `text` with column and row in it. */
static const char *
expand_embedded_key(const char *text, const mc_tile_key *key, apr_pool_t *pool)
{
    const mc_grid *grid = key->grid;
    text = replace_number(text, "z", apr_itoa(pool, key->z), apr_itoa(pool, grid->level_count - key->z - 1), pool);
    if (strstr(text, "{quadkey}") != NULL && key->z < 31)
        text = replace_first(text, "{quadkey}", quadkey_of(key, pool), pool);
    for (int i = 0; i < key->dimension_count; i++)
        text = replace_first(text, apr_pstrcat(pool, "{dim:", key->dimensions[i].name, "}", NULL),
                             key->dimensions[i].value, pool);
    if (key->dimension_count > 0)
        text = replace_first(text, "{dim}", mc_cache_dimension_key(key, pool), pool);
    text = replace_first(text, "{tileset}", key->tileset, pool);
    text = replace_first(text, "{grid}", grid->name, pool);
    return replace_first(text, "{ext}", key->extension, pool);
}

const char *
mc_embedded_key(const char *template, const mc_tile_key *key, apr_pool_t *pool)
{
    const mc_level *level = &key->grid->levels[key->z];
    const char *text =
        replace_number(template, "x", apr_itoa(pool, key->x), apr_itoa(pool, level->columns - key->x - 1), pool);
    text = replace_number(text, "y", apr_itoa(pool, key->y), apr_itoa(pool, level->rows - key->y - 1), pool);
    return expand_embedded_key(text, key, pool);
}

const char *
mc_embedded_pattern(const char *template, const mc_tile_key *key, apr_pool_t *pool)
{
    const char *text = replace_number(template, "x", "\x01x", "\x01X", pool);
    return expand_embedded_key(replace_number(text, "y", "\x01y", "\x01Y", pool), key, pool);
}
