/* See level_blocks.h. */
#include "vector/levels/level_blocks.h"

#include <apr_strings.h>
#include <apr_tables.h>
#include <string.h>

/* Of a window: thirty times the bytes that builders put into one, and as many tuples as features. */
#define WINDOW_MOST ((uint64_t)1 << 30)
enum { TUPLES_MOST = MC_LEVEL_PLACES };

/* Places are sorted by these bits, in two passes. */
enum { PLACE_BITS = 11, PLACE_BUCKETS = 1 << PLACE_BITS };
_Static_assert((1 << 2 * PLACE_BITS) == MC_LEVEL_PLACES, "two passes sort all places");

struct mc_level_window {
    int attributes;
    apr_pool_t *pool;            /* of the blocks */
    apr_array_header_t *entries; /* mc_level_feature */
    uint32_t *order;             /* of the entries, in drawing order; NULL: they are not sorted so far */
    int at;                      /* how many of them were taken */
    uint64_t bytes, tuples;      /* of the blocks */
};

typedef struct block_reader {
    uint8_t *at, *end; /* a byte more has room */
    uint8_t *open;     /* the byte behind the last text, which is to be its zero once it has been read; NULL: it is */
    apr_pool_t *pool;
    int attributes;
    const char *const **tuples;
    uint64_t tuple_count, tuples_most;
} block_reader;

mc_level_window *
mc_level_window_create(int attributes, apr_pool_t *pool)
{
    mc_level_window *made = apr_pcalloc(pool, sizeof(*made));
    made->attributes = attributes;
    made->entries = apr_array_make(pool, 1024, sizeof(mc_level_feature));
    apr_pool_create(&made->pool, pool);
    return made;
}

void
mc_level_window_clear(mc_level_window *window)
{
    apr_array_clear(window->entries);
    apr_pool_clear(window->pool);
    window->order = NULL;
    window->at = 0;
    window->bytes = window->tuples = 0;
}

static void
end_block_text(block_reader *r)
{
    if (r->open != NULL)
        *r->open = '\0';
    r->open = NULL;
}

static bool
read_block_number(uint64_t *number, block_reader *r)
{
    *number = 0;
    for (int shift = 0; shift < 63 && r->at < r->end; shift += 7) {
        uint8_t byte = *r->at++;
        *number |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            end_block_text(r);
            return true;
        }
    }
    return false;
}

/* A text, where it lies; NULL for null. */
static bool
read_block_text(const char **text, block_reader *r)
{
    uint64_t length;
    *text = NULL;
    if (!read_block_number(&length, r))
        return false;
    if (length-- == 0)
        return true;
    if (length > (uint64_t)(r->end - r->at))
        return false;
    *text = (const char *)r->at;
    r->open = r->at += length;
    return true;
}

static bool
read_block_tuples(block_reader *r)
{
    uint64_t attributes;
    if (!read_block_number(&attributes, r) || attributes != (uint64_t)r->attributes ||
        !read_block_number(&r->tuple_count, r) || r->tuple_count > (uint64_t)(r->end - r->at) + 1 ||
        r->tuple_count > r->tuples_most || r->tuple_count * attributes > (uint64_t)(r->end - r->at))
        return false;
    r->tuples = apr_palloc(r->pool, sizeof(*r->tuples) * (size_t)(r->tuple_count + 1));
    const char **values = apr_palloc(r->pool, sizeof(*values) * (size_t)(r->tuple_count * attributes + 1));
    for (uint64_t i = 0; i < r->tuple_count; i++, values += attributes) {
        for (int k = 0; k < r->attributes; k++)
            if (!read_block_text(&values[k], r))
                return false;
        r->tuples[i] = values;
    }
    return true;
}

static bool
read_block_feature(mc_level_feature *feature, uint64_t *place, block_reader *r)
{
    uint64_t step, tuple, size;
    if (!read_block_number(&step, r) || !read_block_number(&tuple, r) || !read_block_number(&size, r) ||
        step >= MC_LEVEL_PLACES - *place || tuple >= r->tuple_count || size / 2 > (uint64_t)(r->end - r->at))
        return false;
    *place += step;
    *feature = (mc_level_feature){ .geometry = r->at,
                                   .size = (size_t)(size / 2),
                                   .packed = size % 2 != 0,
                                   .values = r->tuples[tuple],
                                   .place = (uint32_t)*place };
    r->at += size / 2;
    return true;
}

/* *tuples: how many there may be; then, how many there are. */
static mc_error *
read_level_block(apr_array_header_t *features, uint64_t *tuples, const void *block, size_t size, int attributes,
                 apr_pool_t *pool)
{
    const int first = features->nelts;
    uint8_t *bytes = apr_palloc(pool, size + 1);
    block_reader r = {
        .at = bytes, .end = bytes + size, .pool = pool, .attributes = attributes, .tuples_most = *tuples
    };
    uint64_t place = 0;
    memcpy(bytes, block, size);
    bool sound = read_block_tuples(&r);
    while (sound && r.at < r.end) {
        mc_level_feature feature;
        sound = features->nelts < MC_LEVEL_PLACES && read_block_feature(&feature, &place, &r);
        if (sound)
            APR_ARRAY_PUSH(features, mc_level_feature) = feature;
    }
    end_block_text(&r);
    *tuples = r.tuple_count;
    if (sound)
        return MC_OK;
    features->nelts = first;
    return mc_error_create(pool, MC_ERR_CORRUPT, "a block of an overview is broken");
}

mc_error *
mc_level_read_block(apr_array_header_t *features, const void *block, size_t size, int attributes, apr_pool_t *pool)
{
    uint64_t tuples = TUPLES_MOST;
    return read_level_block(features, &tuples, block, size, attributes, pool);
}

mc_error *
mc_level_window_add(mc_level_window *window, const void *block, size_t size)
{
    uint64_t tuples = TUPLES_MOST - window->tuples;
    if (size > WINDOW_MOST - window->bytes)
        return mc_error_create(window->pool, MC_ERR_CORRUPT, "the blocks of an overview are too large together");
    MC_TRY(read_level_block(window->entries, &tuples, block, size, window->attributes, window->pool));
    window->bytes += size;
    window->tuples += tuples;
    return MC_OK;
}

/* One pass of a radix sort of entries by their places; what comes first among equals stays first. */
static void
sort_by_bits(uint32_t *to, const uint32_t *from, const mc_level_feature *entries, int count, int shift)
{
    uint32_t starts[PLACE_BUCKETS] = { 0 }, sum = 0;
    for (int i = 0; i < count; i++)
        starts[entries[i].place >> shift & (PLACE_BUCKETS - 1)]++;
    for (int i = 0; i < PLACE_BUCKETS; i++) {
        const uint32_t many = starts[i];
        starts[i] = sum;
        sum += many;
    }
    for (int i = 0; i < count; i++) {
        const uint32_t entry = from == NULL ? (uint32_t)i : from[i];
        to[starts[entries[entry].place >> shift & (PLACE_BUCKETS - 1)]++] = entry;
    }
}

static void
sort_window(mc_level_window *window)
{
    const int count = window->entries->nelts;
    const mc_level_feature *entries = (const mc_level_feature *)window->entries->elts;
    uint32_t *low = apr_palloc(window->pool, sizeof(*low) * (size_t)(count + 1));
    window->order = apr_palloc(window->pool, sizeof(*low) * (size_t)(count + 1));
    sort_by_bits(low, NULL, entries, count, 0);
    sort_by_bits(window->order, low, entries, count, PLACE_BITS);
}

bool
mc_level_window_next(mc_level_feature *feature, mc_level_window *window)
{
    if (window->at == window->entries->nelts)
        return false;
    if (window->order == NULL)
        sort_window(window);
    *feature = APR_ARRAY_IDX(window->entries, (int)window->order[window->at++], mc_level_feature);
    return true;
}
