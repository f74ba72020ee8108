/*
 * Which tiles a database has, by its keys in their order, a page after the other. A key is told apart by the template
 * with marks in place of column and row, and counts only if it is the very key of the tile.
 */
#include <apr_lib.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "cache/embedded/embedded.h"

enum { KEYS_OF_A_PAGE = 1000, DIGITS_MOST = 9 };

bool
mc_embedded_tells_tiles(const char *template)
{
    static const char *const tokens[] = { "{x}", "{inv_x}", "{y}", "{inv_y}" };
    int found = 0;
    for (size_t i = 0; i < sizeof(tokens) / sizeof(*tokens); i++) {
        const char *at = strstr(template, tokens[i]);
        const char *end = at == NULL ? NULL : at + strlen(tokens[i]);
        if (end == NULL)
            continue;
        if (*end == '{' || apr_isdigit(*end)) /* nobody knows where the number ends */
            return false;
        found++;
    }
    return found == 2 && strstr(template, "{quadkey}") == NULL;
}

/* Whether `name` is like the pattern; *key gets column and row. */
static bool
match_embedded_name(mc_tile_key *key, const char *pattern, const char *name)
{
    const mc_level *level = &key->grid->levels[key->z];
    for (; *pattern != '\0'; pattern++) {
        if (*pattern != MC_TEMPLATE_MARK) {
            if (*name++ != *pattern)
                return false;
            continue;
        }
        size_t digits = strspn(name, "0123456789");
        if (digits == 0 || digits > DIGITS_MOST)
            return false;
        int number = (int)strtol(name, NULL, 10);
        switch (*++pattern) {
        case 'x':
            key->x = number;
            break;
        case 'X':
            key->x = level->columns - 1 - number;
            break;
        case 'y':
            key->y = number;
            break;
        default:
            key->y = level->rows - 1 - number;
        }
        name += digits;
    }
    return *name == '\0';
}

/* Whether the tile of a name is one of the area. */
static bool
is_listed_name(mc_tile_key *key, const char *template, const char *pattern, const char *name, const mc_tile_range *area,
               apr_pool_t *pool)
{
    return match_embedded_name(key, pattern, name) && key->x >= area->minx && key->x < area->maxx &&
           key->y >= area->miny && key->y < area->maxy && strcmp(mc_embedded_key(template, key, pool), name) == 0;
}

mc_error *
mc_embedded_list(const mc_embedded_engine *engine, const mc_embedded_place *place, const char *template,
                 const mc_tile_key *series, const mc_tile_range *area, mc_tile_visit *visit, void *baton, mc_ctx *ctx)
{
    const char *pattern = mc_embedded_pattern(template, series, ctx->pool);
    const char *prefix = apr_pstrmemdup(ctx->pool, pattern, strcspn(pattern, "\x01"));
    const char *after = "";
    apr_pool_t *pools[2]; /* of a page, and of the one before, whose last key is `after` */
    mc_error *error = MC_OK;
    bool more = true;
    apr_pool_create(&pools[0], ctx->pool);
    apr_pool_create(&pools[1], ctx->pool);
    for (int turn = 0; more && error == MC_OK; turn = 1 - turn) {
        apr_pool_t *pool = pools[turn];
        apr_pool_clear(pool);
        mc_embedded_page page = { .most = KEYS_OF_A_PAGE };
        page.keys = apr_palloc(pool, sizeof(*page.keys) * KEYS_OF_A_PAGE);
        error = engine->list(&page, place, prefix, after, ctx, pool);
        for (int i = 0; error == MC_OK && more && i < page.count; i++) {
            mc_tile_key key = *series;
            if (is_listed_name(&key, template, pattern, page.keys[i], area, pool))
                more = visit(baton, key.x, key.y);
        }
        more = more && error == MC_OK && page.count == page.most;
        after = page.count > 0 ? page.keys[page.count - 1] : after;
    }
    error = mc_error_copy(error, ctx->pool);
    apr_pool_destroy(pools[0]);
    apr_pool_destroy(pools[1]);
    return error;
}
