#include "shared_values.h"

#include <stdio.h>
#include <string.h>

enum { KEY_SIZE = 200 };

typedef struct value_head {
    int key, version;
    uint64_t size;
    char rest[MC_SHARED_HEAD - 16];
} value_head;

/* Not all of the same length, and all long enough to be compared in several pieces. */
static size_t
write_shared_key(char text[KEY_SIZE], int key)
{
    memset(text, 'k', KEY_SIZE);
    int begin = snprintf(text, 32, "%d", key);
    text[begin] = ':';
    return (size_t)(KEY_SIZE - key % 7);
}

static uint64_t
word_of_value(int key, int version, size_t place)
{
    return ((uint64_t)(uint32_t)key << 40 | (uint64_t)(uint32_t)version << 16 | place) * UINT64_C(0x9e3779b97f4a7c15);
}

static void
fill_shared_value(value_head *head, uint8_t *data, int key, int version, size_t size)
{
    *head = (value_head){ .key = key, .version = version, .size = size };
    memset(head->rest, key + version, sizeof(head->rest));
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = word_of_value(key, version, i / 8);
        memcpy(data + i, &word, size - i < 8 ? size - i : 8);
    }
}

uint32_t
shared_value_generation(mc_shared_cache *cache, int key)
{
    char text[KEY_SIZE];
    size_t key_size = write_shared_key(text, key);
    mc_shared_entry entry;
    value_head head;
    mc_shared_cache_find(&entry, &head, cache, text, key_size);
    return entry.generation;
}

void
shared_value_prepare(shared_value_ready *ready, int key, int version, size_t size)
{
    value_head head;
    ready->key_size = write_shared_key(ready->key, key);
    ready->size = size;
    fill_shared_value(&head, ready->data, key, version, size);
    memcpy(ready->head, &head, sizeof(head));
}

mc_shared_put
shared_value_put_ready(mc_shared_cache *cache, const shared_value_ready *ready, uint32_t generation)
{
    return mc_shared_cache_put(cache, ready->key, ready->key_size, generation, ready->head, ready->data, ready->size);
}

mc_shared_put
shared_value_put_of(mc_shared_cache *cache, int key, uint32_t generation, int version, size_t size)
{
    shared_value_ready ready;
    shared_value_prepare(&ready, key, version, size);
    return shared_value_put_ready(cache, &ready, generation);
}

mc_shared_put
shared_value_put(mc_shared_cache *cache, int key, int version, size_t size)
{
    return shared_value_put_of(cache, key, shared_value_generation(cache, key), version, size);
}

void
shared_value_forget(mc_shared_cache *cache, int key)
{
    char text[KEY_SIZE];
    size_t key_size = write_shared_key(text, key);
    mc_shared_cache_forget(cache, text, key_size);
}

int
shared_value_other(mc_shared_cache *cache, int key)
{
    for (int other = key + 1;; other++) {
        uint32_t before = shared_value_generation(cache, other);
        shared_value_forget(cache, key);
        if (shared_value_generation(cache, other) == before)
            return other;
    }
}

shared_verdict
shared_value_check(mc_shared_cache *cache, int key, int *version)
{
    char text[KEY_SIZE];
    size_t key_size = write_shared_key(text, key);
    mc_shared_entry entry;
    value_head head, expected;
    uint8_t data[SHARED_VALUE_MAX], wanted[SHARED_VALUE_MAX];
    if (!mc_shared_cache_find(&entry, &head, cache, text, key_size))
        return SHARED_ABSENT;
    if (entry.size > sizeof(data) || head.size != entry.size || head.key != key)
        return SHARED_WRONG;
    if (!mc_shared_cache_copy(data, &entry))
        return SHARED_ABSENT;
    fill_shared_value(&expected, wanted, key, head.version, entry.size);
    if (version != NULL)
        *version = head.version;
    return memcmp(&expected, &head, sizeof(head)) == 0 && memcmp(data, wanted, entry.size) == 0 ? SHARED_GOOD
                                                                                                : SHARED_WRONG;
}
