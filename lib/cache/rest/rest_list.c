/*
 * Listing a store: the names that begin as those of a series of tiles do, a page after the other. A name is told apart
 * by the template with marks in place of its numbers, and counts only if the numbers give that very name again.
 */
#include <apr_lib.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "cache/rest/rest_base.h"
#include "text/text.h"

enum { DIGITS_MOST = 9, EMPTY_PAGES_MOST = 1000 /* in a row; stores send some behind what was removed */ };

/* What a list goes through. */
typedef struct rest_listing {
    mc_rest_cache *cache;
    mc_tile_key key; /* of the series; its level, unless there are all levels */
    bool levels;
    const char *url, *path;       /* that are asked, without a query */
    const char *pattern;          /* name of an object, with marks */
    const char *prefix;           /* of it, up to the first mark */
    char after[MC_PATH_MAX];      /* where the next page begins */
    char checkpoint[MC_PATH_MAX]; /* where a page before it began, of the number 1, 2, 4, 8, ... */
    int64_t pages;
    int empty_pages;           /* in a row */
    const mc_tile_range *area; /* or NULL */
    mc_tile_visit *visit;      /* or NULL */
    void *baton;
    bool ended;
    int64_t bytes, tiles;
} rest_listing;

/* The path behind `count` of its parts; NULL where it has not so many. */
static const char *
behind_parts(const char *path, int count)
{
    for (int i = 0; i < count; i++) {
        path = strchr(path + 1, '/');
        if (path == NULL)
            return NULL;
    }
    return path;
}

/* Where the names stand, and how they look. *possible is false where they cannot be told from the template. */
static mc_error *
begin_listing(rest_listing *listing, bool *possible, apr_pool_t *pool)
{
    char text[MC_PATH_MAX];
    const char *url, *path;
    const mc_rest_cache *cache = listing->cache;
    *possible = false;
    MC_TRY(mc_template_expand_marked(text, cache->template, &listing->key, listing->levels, pool));
    MC_TRY(mc_rest_encode_url(&url, &path, cache, text, &listing->key, pool));
    const char *name = behind_parts(path, cache->lister->leading(cache));
    if (name == NULL)
        return MC_OK;
    const char *decoded = mc_url_decode(name + 1, strlen(name + 1), false, pool);
    const char *mark = strchr(decoded, MC_TEMPLATE_MARK);
    const char *early = memchr(text, MC_TEMPLATE_MARK, strlen(text));
    size_t before = strlen(mc_url_decode(url, (size_t)(name - url), false, pool));
    *possible = mark != NULL && early != NULL && (size_t)(early - text) >= before &&
                (strstr(decoded, "\x01x") != NULL || strstr(decoded, "\x01X") != NULL) &&
                (strstr(decoded, "\x01y") != NULL || strstr(decoded, "\x01Y") != NULL);
    for (const char *at = decoded; (at = strchr(at, MC_TEMPLATE_MARK)) != NULL; at += 2)
        *possible = *possible && at[2] != MC_TEMPLATE_MARK && !apr_isdigit(at[2]);
    if (!*possible)
        return MC_OK;
    listing->pattern = decoded;
    listing->prefix = apr_pstrmemdup(pool, decoded, (size_t)(mark - decoded));
    size_t end = (size_t)(name - url) + (name == path); /* "/" of a bucket in the host */
    listing->url = apr_pstrmemdup(pool, url, end);
    listing->path = listing->url + (path - url);
    return MC_OK;
}

/* Column and row of what is counted from the other side. */
static void
set_listed_number(mc_tile_key *key, char mark, int number, int inverted[2])
{
    switch (mark) {
    case 'z':
        key->z = number;
        break;
    case 'x':
        key->x = number;
        break;
    case 'y':
        key->y = number;
        break;
    default:
        inverted[mark == 'Y'] = number;
    }
}

/* Whether the name is that of a tile of the series; *key is the tile's then. */
static bool
tell_listed_tile(mc_tile_key *key, const rest_listing *listing, const char *name)
{
    int inverted[2] = { -1, -1 };
    const char *at = name;
    *key = listing->key;
    for (const char *want = listing->pattern; *want != '\0'; want++) {
        if (*want != MC_TEMPLATE_MARK) {
            if (*at++ != *want)
                return false;
            continue;
        }
        size_t digits = strspn(at, "0123456789");
        if (digits == 0 || digits > DIGITS_MOST || (digits > 1 && *at == '0'))
            return false;
        set_listed_number(key, *++want, (int)strtol(at, NULL, 10), inverted);
        at += digits;
    }
    if (*at != '\0' || key->z >= key->grid->level_count)
        return false;
    const mc_level *level = &key->grid->levels[key->z];
    if (inverted[0] >= 0)
        key->x = level->columns - 1 - inverted[0];
    if (inverted[1] >= 0)
        key->y = level->rows - 1 - inverted[1];
    return key->x >= 0 && key->y >= 0 && key->x < level->columns && key->y < level->rows;
}

/* Whether the tile has this name: a number that stands twice in a name may differ. */
static bool
has_listed_name(const mc_tile_key *key, const rest_listing *listing, const char *name, apr_pool_t *pool)
{
    const char *url, *path;
    mc_error *error = mc_rest_url(&url, &path, listing->cache, key, pool);
    const char *own = error != MC_OK ? NULL : behind_parts(path, listing->cache->lister->leading(listing->cache));
    return own != NULL && strcmp(mc_url_decode(own + 1, strlen(own + 1), false, pool), name) == 0;
}

static void
take_listed_object(rest_listing *listing, const char *name, const char *size, apr_pool_t *pool)
{
    mc_tile_key key;
    int64_t bytes = 0;
    const mc_tile_range *area = listing->area;
    if (!tell_listed_tile(&key, listing, name) || !has_listed_name(&key, listing, name, pool))
        return;
    if (area != NULL && (key.x < area->minx || key.x >= area->maxx || key.y < area->miny || key.y >= area->maxy))
        return;
    (void)mc_parse_int64(&bytes, size, 0, INT64_MAX / 2);
    listing->bytes += bytes;
    listing->tiles++;
    if (listing->visit != NULL && !listing->visit(listing->baton, key.x, key.y))
        listing->ended = true;
}

/* Whether the answer is a page to its end: behind a part of one the list would seem to have ended. */
static bool
is_whole_page(const char *body, size_t size, const char *page)
{
    while (size > 0 && apr_isspace(body[size - 1]))
        size--;
    const char *last = size == 0 ? NULL : memrchr(body, '<', size);
    const size_t tag = last == NULL ? 0 : size - (size_t)(last - body), length = strlen(page);
    if (tag < length + 3 || last[tag - 1] != '>')
        return false;
    if (last[1] == '/')
        return tag == length + 3 && memcmp(last + 2, page, length) == 0;
    return last[tag - 2] == '/' && memcmp(last + 1, page, length) == 0; /* a page without anything in it */
}

static mc_error *
refuse_page(const rest_listing *listing, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_UPSTREAM, "cache \"%s\": the store's list is no list, or a part of one",
                           listing->cache->base.cache.name);
}

/* The objects of a page; *last is the name of its last one, "" where there is none. */
static mc_error *
take_listed_page(rest_listing *listing, const char **last, const char *body, size_t size, apr_pool_t *pool)
{
    const mc_rest_lister *lister = listing->cache->lister;
    const char *open = apr_pstrcat(pool, "<", lister->object, ">", NULL);
    const char *close = apr_pstrcat(pool, "</", lister->object, ">", NULL);
    const char *end = body + size;
    apr_pool_t *scratch;
    *last = "";
    if (!is_whole_page(body, size, lister->page))
        return refuse_page(listing, pool);
    apr_pool_create(&scratch, pool);
    bool whole = true;
    while (whole && !listing->ended) {
        apr_pool_clear(scratch);
        const char *begin = body == end ? NULL : memmem(body, (size_t)(end - body), open, strlen(open));
        const char *stop = begin == NULL ? NULL : memmem(begin, (size_t)(end - begin), close, strlen(close));
        whole = begin == NULL || stop != NULL;
        if (stop == NULL)
            break;
        const size_t length = (size_t)(stop - begin);
        const char *name = mc_rest_xml_value(begin, length, lister->name, scratch);
        *last = apr_pstrdup(pool, name);
        take_listed_object(listing, name, mc_rest_xml_value(begin, length, lister->size, scratch), scratch);
        body = stop;
    }
    apr_pool_destroy(scratch);
    return whole ? MC_OK : refuse_page(listing, pool);
}

/* How many tiles the series can have at most. */
static double
count_series_tiles(const rest_listing *listing)
{
    const mc_grid *grid = listing->key.grid;
    double count = 0;
    for (int z = 0; z < grid->level_count; z++)
        if (listing->levels || z == listing->key.z)
            count += (double)grid->levels[z].columns * grid->levels[z].rows;
    return count;
}

/*
 * Whether a list that never ends is met: a place to go on at that was there before (of a circle of any length one place
 * is compared with all others between two powers of two), pages without names, or more tiles than there are.
 */
static bool
goes_in_circles(rest_listing *listing, const char *next, const char *last)
{
    listing->pages++;
    listing->empty_pages = *last == '\0' ? listing->empty_pages + 1 : 0;
    if (strcmp(next, listing->after) == 0 || strcmp(next, listing->checkpoint) == 0 ||
        listing->empty_pages > EMPTY_PAGES_MOST || (double)listing->tiles > count_series_tiles(listing))
        return true;
    if ((listing->pages & (listing->pages - 1)) == 0)
        apr_cpystrn(listing->checkpoint, next, sizeof(listing->checkpoint));
    return false;
}

/* Where the next page begins; the list has ended where there is none. */
static mc_error *
find_next_page(rest_listing *listing, const char *last, const char *body, size_t size, apr_pool_t *pool)
{
    const char *next = mc_rest_xml_value(body, size, listing->cache->lister->next, pool);
    const bool more = *next != '\0' || strcmp(mc_rest_xml_value(body, size, "IsTruncated", pool), "true") == 0;
    next = *next == '\0' ? last : next;
    if (!more || listing->ended) {
        listing->ended = true;
        return MC_OK;
    }
    if (*next == '\0' || strlen(next) >= sizeof(listing->after) || goes_in_circles(listing, next, last))
        return mc_error_create(pool, MC_ERR_UPSTREAM, "cache \"%s\": the list of the store does not go on",
                               listing->cache->base.cache.name);
    apr_cpystrn(listing->after, next, sizeof(listing->after));
    return MC_OK;
}

static mc_error *
list_next_page(rest_listing *listing, mc_ctx *ctx)
{
    mc_rest_ask ask = {
        .operation = MC_REST_LIST,
        .key = &listing->key,
        .list_url = listing->url,
        .list_path = listing->path,
        .list_query = listing->cache->lister->query(listing->prefix, listing->after, ctx->pool),
    };
    const char *last;
    MC_TRY(mc_rest_send(listing->cache, &ask, 1, ctx, ctx->pool));
    const char *body = (const char *)ask.reply.body->data;
    MC_TRY(take_listed_page(listing, &last, body, ask.reply.body->size, ctx->pool));
    return find_next_page(listing, last, body, ask.reply.body->size, ctx->pool);
}

/* All pages, each in memory of its own. */
static mc_error *
run_listing(rest_listing *listing, mc_ctx *ctx)
{
    bool possible;
    mc_error *error = MC_OK;
    mc_ctx own = *ctx;
    MC_TRY(begin_listing(listing, &possible, ctx->pool));
    apr_pool_create(&own.pool, ctx->pool);
    while (possible && !listing->ended && error == MC_OK) {
        apr_pool_clear(own.pool);
        error = mc_ctx_check(&own, own.pool);
        if (error == MC_OK)
            error = list_next_page(listing, &own);
    }
    error = mc_error_copy(error, ctx->pool);
    apr_pool_destroy(own.pool);
    return error;
}

bool
mc_rest_lists(const mc_cache *cache, const mc_tile_key *key)
{
    bool possible = false;
    apr_pool_t *scratch;
    rest_listing listing = { .cache = (mc_rest_cache *)(uintptr_t)cache, .key = *key };
    apr_pool_create(&scratch, NULL);
    if (begin_listing(&listing, &possible, scratch) != MC_OK)
        possible = false;
    apr_pool_destroy(scratch);
    return possible;
}

mc_error *
mc_rest_list(mc_cache *cache, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit, void *baton,
             mc_ctx *ctx)
{
    rest_listing listing = {
        .cache = (mc_rest_cache *)cache, .key = *key, .area = area, .visit = visit, .baton = baton
    };
    return run_listing(&listing, ctx);
}

mc_error *
mc_rest_measure(int64_t *bytes, int64_t *tiles, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    rest_listing listing = { .cache = (mc_rest_cache *)cache, .key = *key, .levels = true, .bytes = -1 };
    if (listing.cache->lister != NULL) { /* a plain web server does not tell */
        listing.bytes = 0;
        MC_TRY(run_listing(&listing, ctx));
    }
    *bytes = listing.bytes;
    *tiles = listing.tiles;
    return MC_OK;
}
