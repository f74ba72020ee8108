/* See level_blocks.h. */
#include "vector/levels/level_blocks.h"

#include <apr_strings.h>
#include <apr_tables.h>
#include <string.h>

/* A feature of a block that was read. */
typedef struct window_entry {
    mc_level_feature feature;
    uint32_t beside; /* another entry of the same place, plus one; only broken blocks have any */
} window_entry;

struct mc_level_window {
    int attributes;
    apr_pool_t *pool;            /* of the blocks */
    apr_array_header_t *entries; /* window_entry */
    uint32_t *places;            /* the entry at a place, plus one */
    uint32_t at, beside;         /* the place that is next; the entry that is next there, plus one */
};

typedef struct block_reader {
    const uint8_t *at, *end;
    apr_pool_t *pool;
    int attributes;
    const char *const **tuples;
    uint64_t tuple_count;
} block_reader;

mc_level_window *
mc_level_window_create(int attributes, apr_pool_t *pool)
{
    mc_level_window *made = apr_pcalloc(pool, sizeof(*made));
    made->attributes = attributes;
    made->places = apr_pcalloc(pool, sizeof(*made->places) * MC_LEVEL_WINDOW);
    made->entries = apr_array_make(pool, 1024, sizeof(window_entry));
    apr_pool_create(&made->pool, pool);
    return made;
}

void
mc_level_window_clear(mc_level_window *window)
{
    memset(window->places, 0, sizeof(*window->places) * MC_LEVEL_WINDOW);
    apr_array_clear(window->entries);
    apr_pool_clear(window->pool);
    window->at = window->beside = 0;
}

static bool
read_block_number(uint64_t *number, block_reader *r)
{
    *number = 0;
    for (int shift = 0; shift < 63 && r->at < r->end; shift += 7) {
        uint8_t byte = *r->at++;
        *number |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* A text, NULL for null. */
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
    *text = apr_pstrmemdup(r->pool, (const char *)r->at, (apr_size_t)length);
    r->at += length;
    return true;
}

static bool
read_block_tuples(block_reader *r)
{
    uint64_t attributes;
    if (!read_block_number(&attributes, r) || attributes != (uint64_t)r->attributes ||
        !read_block_number(&r->tuple_count, r) || r->tuple_count > (uint64_t)(r->end - r->at) + 1)
        return false;
    r->tuples = apr_palloc(r->pool, sizeof(*r->tuples) * (size_t)(r->tuple_count + 1));
    for (uint64_t i = 0; i < r->tuple_count; i++) {
        const char **values = apr_palloc(r->pool, sizeof(*values) * (size_t)(r->attributes + 1));
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
        step >= MC_LEVEL_WINDOW - *place || tuple >= r->tuple_count || size / 2 > (uint64_t)(r->end - r->at))
        return false;
    *place += step;
    *feature = (mc_level_feature){
        .geometry = r->at, .size = (size_t)(size / 2), .packed = size % 2 != 0, .values = r->tuples[tuple]
    };
    r->at += size / 2;
    return true;
}

static bool
read_level_block(mc_level_window *window, block_reader *r)
{
    const int first = window->entries->nelts;
    uint64_t place = 0;
    if (!read_block_tuples(r))
        return false;
    while (r->at < r->end) {
        mc_level_feature feature;
        if (!read_block_feature(&feature, &place, r)) {
            while (window->entries->nelts > first) /* the block's own entries are the first of their places */
                apr_array_pop(window->entries);
            return false;
        }
        APR_ARRAY_PUSH(window->entries, window_entry) = (window_entry){ feature, (uint32_t)place };
    }
    for (int i = first; i < window->entries->nelts; i++) {
        window_entry *entry = &APR_ARRAY_IDX(window->entries, i, window_entry);
        uint32_t *head = &window->places[entry->beside];
        entry->beside = *head;
        *head = (uint32_t)i + 1;
    }
    return true;
}

mc_error *
mc_level_window_add(mc_level_window *window, const void *block, size_t size)
{
    const uint8_t *bytes = apr_pmemdup(window->pool, block, size);
    block_reader r = { .at = bytes, .end = bytes + size, .pool = window->pool, .attributes = window->attributes };
    if (read_level_block(window, &r))
        return MC_OK;
    return mc_error_create(window->pool, MC_ERR_CORRUPT, "a block of an overview is broken");
}

bool
mc_level_window_next(mc_level_feature *feature, mc_level_window *window)
{
    while (window->beside == 0) {
        if (window->at == MC_LEVEL_WINDOW)
            return false;
        window->beside = window->places[window->at++];
    }
    const window_entry *entry = &APR_ARRAY_IDX(window->entries, window->beside - 1, window_entry);
    *feature = entry->feature;
    window->beside = entry->beside;
    return true;
}
