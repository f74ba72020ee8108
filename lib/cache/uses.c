/* See uses.h. A slot is found by the hash of its block alone: two blocks of one hash are as good as one, since all that
 * depends on it is which tiles go first. */
#include "cache/uses.h"

#include <apr_strings.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum {
    SLOTS = 1 << 15,      /* a power of two: two million tiles in use between two looks */
    FULL = SLOTS / 4 * 3, /* slots in use: what is more is not noted until the next look */
    PROBES = 64,          /* slots that are tried for a block */
    INTEND_AGAIN = 3,     /* seconds for which an intention to store holds */
    BLOCKS_AT_ONCE = 64   /* of one question to `intend` */
};

typedef struct use_slot {
    _Atomic uint64_t hash; /* 0: empty */
    _Atomic uint32_t used; /* seconds; 0: not */
    _Atomic bool changed;  /* tiles were stored or removed */
    uint32_t taken;        /* `used` when it was taken last */
    _Atomic uint32_t put;  /* seconds: when the last intention was noted */
    mc_tile_key block;     /* by the lock; its texts are of `pool` */
} use_slot;

struct mc_uses {
    mc_uses_hooks hooks;
    int shift;
    apr_array_header_t *tilesets; /* of mc_cache_use */
    uint64_t seed;
    _Atomic uint32_t now; /* seconds; 0: nobody has said it yet */
    _Atomic bool waiting;
    pthread_mutex_t lock;      /* of all that is not atomic */
    use_slot *slots;           /* NULL until the first use */
    _Atomic(use_slot *) ready; /* the same, once it may be looked at */
    int count;
    int cursor;        /* the first slot that has not been looked through */
    apr_pool_t *texts; /* of the keys */
};

static apr_status_t
free_uses(void *data)
{
    mc_uses *uses = data;
    free(uses->slots);
    pthread_mutex_destroy(&uses->lock);
    return APR_SUCCESS;
}

mc_uses *
mc_uses_create(const mc_uses_hooks *hooks, int shift, apr_pool_t *pool)
{
    mc_uses *uses = apr_pcalloc(pool, sizeof(*uses));
    uses->hooks = *hooks;
    uses->shift = shift;
    uses->tilesets = apr_array_make(pool, 4, sizeof(mc_cache_use));
    uses->seed = mc_hash_seed();
    /* With memory of its own, as the pool of the configuration is no thread's; it goes with that pool. */
    apr_allocator_t *allocator;
    MC_ASSERT(apr_allocator_create(&allocator) == APR_SUCCESS);
    MC_ASSERT(apr_pool_create_ex(&uses->texts, pool, mc_memory_exhausted, allocator) == APR_SUCCESS);
    apr_allocator_owner_set(allocator, uses->texts);
    pthread_mutex_init(&uses->lock, NULL);
    apr_pool_cleanup_register(pool, uses, free_uses, apr_pool_cleanup_null);
    return uses;
}

int
mc_uses_shift(const mc_uses *uses)
{
    return uses->shift;
}

void
mc_uses_add_tileset(mc_uses *uses, const mc_cache_use *use)
{
    APR_ARRAY_PUSH(uses->tilesets, mc_cache_use) = *use;
}

const apr_array_header_t *
mc_uses_tilesets(const mc_uses *uses)
{
    return uses->tilesets;
}

void
mc_uses_set_time(mc_uses *uses, apr_int64_t now)
{
    atomic_store_explicit(&uses->now, (uint32_t)now, memory_order_relaxed);
}

bool
mc_uses_waiting(const mc_uses *uses)
{
    return atomic_load_explicit(&uses->waiting, memory_order_relaxed);
}

/* Names that the configuration has stand where they stand as long as it lives: their address is as good as the text. */
static inline uint64_t
hash_use_block(const mc_uses *uses, const mc_tile_key *key)
{
    static const uint64_t odd = 0x9e3779b97f4a7c15u, other = 0xd6e8feb86659fd93u;
    const uint64_t column = (uint64_t)((unsigned)key->x >> uses->shift), row = (unsigned)key->y >> uses->shift;
    uint64_t hash = uses->seed ^ (uint64_t)(uintptr_t)key->grid;
    for (int i = 0; i < key->dimension_count; i++)
        hash = mc_hash64(key->dimensions[i].value, strlen(key->dimensions[i].value), hash);
    hash = key->client_named ? mc_hash64(key->tileset, strlen(key->tileset), hash)
                             : (hash ^ (uint64_t)(uintptr_t)key->tileset) * odd;
    hash = (hash ^ hash >> 32 ^ (uint64_t)key->z << 56 ^ column << 28 ^ row) * other;
    return (hash ^ hash >> 32) | 1;
}

/* The slot of a hash; NULL: there is none. */
static inline use_slot *
find_use_slot(use_slot *slots, uint64_t hash)
{
    for (uint64_t i = 0; slots != NULL && i < PROBES; i++) {
        use_slot *slot = &slots[((hash >> 1) + i) & (SLOTS - 1)];
        uint64_t found = atomic_load_explicit(&slot->hash, memory_order_acquire);
        if (found == hash)
            return slot;
        if (found == 0)
            return NULL;
    }
    return NULL;
}

/* The key of the block, with texts that stay. */
static mc_tile_key
copy_block_key(const mc_tile_key *key, int shift, apr_pool_t *pool)
{
    mc_tile_key block = *key;
    mc_dimension_value *values = apr_palloc(pool, sizeof(*values) * (size_t)(key->dimension_count + 1));
    for (int i = 0; i < key->dimension_count; i++) {
        values[i] = key->dimensions[i];
        values[i].name = apr_pstrdup(pool, values[i].name);
        values[i].value = apr_pstrdup(pool, values[i].value);
    }
    block.dimensions = values;
    block.tileset = apr_pstrdup(pool, key->tileset);
    block.extension = apr_pstrdup(pool, key->extension);
    block.mime = NULL;
    block.x = mc_uses_first(key->x, shift);
    block.y = mc_uses_first(key->y, shift);
    return block;
}

/* With the lock held. */
static void
make_use_slots(mc_uses *uses)
{
    uses->slots = calloc(SLOTS, sizeof(*uses->slots));
    MC_ASSERT(uses->slots != NULL);
    atomic_store_explicit(&uses->ready, uses->slots, memory_order_release);
}

/* The slot of a block, made where there is none; NULL: there is no room before the next look. */
static use_slot *
add_use_slot(mc_uses *uses, const mc_tile_key *key, uint64_t hash)
{
    use_slot *slot = NULL;
    pthread_mutex_lock(&uses->lock);
    if (uses->slots == NULL)
        make_use_slots(uses);
    for (uint64_t i = 0; i < PROBES && uses->count < FULL; i++) {
        use_slot *at = &uses->slots[((hash >> 1) + i) & (SLOTS - 1)];
        uint64_t found = atomic_load_explicit(&at->hash, memory_order_relaxed);
        if (found != 0 && found != hash)
            continue;
        slot = at;
        if (found == hash)
            break;
        slot->block = copy_block_key(key, uses->shift, uses->texts);
        slot->taken = 0;
        atomic_store(&slot->used, 0);
        atomic_store(&slot->put, 0);
        atomic_store(&slot->changed, false);
        atomic_store_explicit(&slot->hash, hash, memory_order_release);
        uses->count++;
        break;
    }
    if (slot == NULL) /* the table is emptied with the next look */
        atomic_store(&uses->waiting, true);
    pthread_mutex_unlock(&uses->lock);
    return slot;
}

static inline use_slot *
slot_of_block(mc_uses *uses, const mc_tile_key *key, mc_ctx *ctx)
{
    const uint64_t hash = hash_use_block(uses, key);
    use_slot *slot = find_use_slot(atomic_load_explicit(&uses->ready, memory_order_acquire), hash);
    if (atomic_load_explicit(&uses->now, memory_order_relaxed) == 0)
        uses->hooks.begin(uses->hooks.baton, ctx);
    return slot != NULL ? slot : add_use_slot(uses, key, hash);
}

static inline void
mark_slot_used(mc_uses *uses, use_slot *slot)
{
    uint32_t now = atomic_load_explicit(&uses->now, memory_order_relaxed);
    if (atomic_load_explicit(&slot->used, memory_order_relaxed) == now)
        return;
    atomic_store_explicit(&slot->used, now, memory_order_relaxed);
    atomic_store_explicit(&uses->waiting, true, memory_order_relaxed);
}

void
mc_uses_note(mc_uses *uses, const mc_tile_key *key, mc_ctx *ctx)
{
    use_slot *slot = slot_of_block(uses, key, ctx);
    if (slot != NULL)
        mark_slot_used(uses, slot);
}

/* The blocks that are asked for together, each once. */
typedef struct use_intents {
    mc_tile_key blocks[BLOCKS_AT_ONCE];
    use_slot *slots[BLOCKS_AT_ONCE];
    uint32_t before[BLOCKS_AT_ONCE];
    int count;
} use_intents;

static void
ask_intents(mc_uses *uses, use_intents *intents, uint32_t now, mc_ctx *ctx)
{
    if (intents->count == 0)
        return;
    bool noted = uses->hooks.intend(uses->hooks.baton, intents->blocks, intents->count, ctx);
    for (int i = 0; i < intents->count && noted; i++)
        if (intents->slots[i] != NULL)
            atomic_store_explicit(&intents->slots[i]->put, now, memory_order_relaxed);
    intents->count = 0;
}

static bool
same_block(const mc_tile_key *a, const mc_tile_key *b)
{
    bool same = a->x == b->x && a->y == b->y && a->z == b->z && a->grid == b->grid &&
                a->dimension_count == b->dimension_count && strcmp(a->tileset, b->tileset) == 0;
    for (int i = 0; i < a->dimension_count && same; i++)
        same = strcmp(a->dimensions[i].value, b->dimensions[i].value) == 0;
    return same;
}

static bool
is_intent_new(const use_intents *intents, const mc_tile_key *block)
{
    for (int i = intents->count - 1; i >= 0; i--)
        if (same_block(&intents->blocks[i], block))
            return false;
    return true;
}

void
mc_uses_put(mc_uses *uses, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    const uint32_t now = (uint32_t)apr_time_sec(apr_time_now());
    use_intents intents;
    intents.count = 0;
    for (int i = 0; i < count; i++) {
        use_slot *slot = slot_of_block(uses, &tiles[i].key, ctx);
        mc_tile_key block = tiles[i].key;
        if (slot != NULL)
            mark_slot_used(uses, slot);
        if (slot != NULL && now - atomic_load_explicit(&slot->put, memory_order_relaxed) < INTEND_AGAIN)
            continue;
        block.x = mc_uses_first(block.x, uses->shift);
        block.y = mc_uses_first(block.y, uses->shift);
        if (!is_intent_new(&intents, &block))
            continue;
        if (intents.count == BLOCKS_AT_ONCE)
            ask_intents(uses, &intents, now, ctx);
        intents.blocks[intents.count] = block;
        intents.slots[intents.count++] = slot;
    }
    ask_intents(uses, &intents, now, ctx);
}

void
mc_uses_change(mc_uses *uses, const mc_tile_key *key, mc_ctx *ctx)
{
    use_slot *slot = slot_of_block(uses, key, ctx);
    if (slot != NULL)
        atomic_store_explicit(&slot->changed, true, memory_order_relaxed);
    atomic_store_explicit(&uses->waiting, true, memory_order_relaxed);
}

void
mc_uses_begin(mc_uses *uses, mc_ctx *ctx)
{
    if (atomic_load_explicit(&uses->now, memory_order_relaxed) == 0)
        uses->hooks.begin(uses->hooks.baton, ctx);
}

/* With the lock held. */
static bool
take_slot(mc_use *taken, use_slot *slot, apr_pool_t *pool)
{
    const uint32_t used = atomic_load_explicit(&slot->used, memory_order_relaxed);
    const bool changed = atomic_exchange(&slot->changed, false);
    if (used == slot->taken && !changed)
        return false;
    *taken = (mc_use){ copy_block_key(&slot->block, 0, pool), used, changed, atomic_load(&slot->hash) };
    slot->taken = used;
    return true;
}

/* With the lock held. Who has just found a slot may note a use there still: another block's is a little younger then.
 */
static void
empty_use_slots(mc_uses *uses)
{
    for (int i = 0; i < SLOTS; i++)
        atomic_store_explicit(&uses->slots[i].hash, 0, memory_order_relaxed);
    uses->count = 0;
    apr_pool_clear(uses->texts);
}

int
mc_uses_take(mc_uses *uses, mc_use *taken, int most, apr_pool_t *pool)
{
    int count = 0;
    pthread_mutex_lock(&uses->lock);
    if (uses->cursor == 0)
        atomic_store(&uses->waiting, false);
    for (; uses->cursor < SLOTS && uses->count > 0 && count < most; uses->cursor++)
        if (atomic_load_explicit(&uses->slots[uses->cursor].hash, memory_order_relaxed) != 0)
            count += take_slot(&taken[count], &uses->slots[uses->cursor], pool);
    if (count < most) {
        uses->cursor = 0;
        if (uses->count > FULL / 2)
            empty_use_slots(uses);
    }
    pthread_mutex_unlock(&uses->lock);
    return count;
}

void
mc_uses_give_back(mc_uses *uses, const mc_use *taken, int count)
{
    pthread_mutex_lock(&uses->lock);
    for (int i = 0; i < count; i++) {
        use_slot *slot = find_use_slot(uses->slots, taken[i].hash);
        if (slot == NULL)
            continue;
        slot->taken = 0;
        if (taken[i].changed)
            atomic_store(&slot->changed, true);
    }
    atomic_store(&uses->waiting, true);
    pthread_mutex_unlock(&uses->lock);
}
