/* What is remembered of files in the memory of the process: footprints, absences, facts of files. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/references.h"
#include "cache/memory.h"
#include "footprint/footprint_private.h"

/* What is looked for. The kinds keep their keys apart. */
enum kind { TILE = 1, FACTS, HOPELESS };

typedef struct memory_key {
    mc_identity identity;
    int kind, z, x, y;
} memory_key;

static struct mc_memory *
footprint_process_memory(const mc_ctx *ctx)
{
    return ctx->process == NULL ? NULL : ctx->process->memory;
}

static memory_key
footprint_memory_key(const mc_identity *identity, enum kind kind, const mc_tile_key *key)
{
    memory_key made = { *identity, (int)kind, 0, 0, 0 };
    if (key != NULL) {
        made.z = key->z;
        made.x = key->x;
        made.y = key->y;
    }
    return made;
}

mc_identity
mc_identity_first(void)
{
    uint64_t seed = mc_hash_seed();
    return (mc_identity){ seed, ~seed };
}

mc_identity
mc_identity_of(const mc_identity *base, const void *bytes, size_t size)
{
    mc_identity made = { mc_hash64(bytes, size, base->a), mc_hash64(bytes, size, base->b) };
    made.a |= 1; /* valid */
    return made;
}

/* The value of what is only a mark. */
static char mark;

static void
free_mark(void *value)
{
    MC_ASSERT(value == &mark);
}

static void
free_footprint(void *value)
{
    mc_footprint_unref(value);
}

static void
free_facts(void *value)
{
    mc_file_facts_unref(value);
}

bool
mc_footprint_find(mc_footprint **footprint, const mc_identity *identity, const mc_tile_key *key, mc_ctx *ctx)
{
    memory_key wanted = footprint_memory_key(identity, TILE, key);
    mc_clock_cache_entry *entry;
    void *found = mc_memory_find(footprint_process_memory(ctx), MC_SHARE_SMALL, &entry, &wanted, sizeof(wanted));
    if (found == NULL)
        found = mc_memory_find(footprint_process_memory(ctx), MC_SHARE_LARGE, &entry, &wanted, sizeof(wanted));
    *footprint = found == NULL || found == &mark ? NULL : mc_footprint_ref(found);
    mc_clock_cache_release(entry);
    return found != NULL;
}

void
mc_footprint_keep(const mc_identity *identity, const mc_tile_key *key, mc_footprint *footprint, mc_ctx *ctx)
{
    memory_key name = footprint_memory_key(identity, TILE, key);
    if (footprint == NULL) {
        mc_memory_keep(ctx, MC_SHARE_SMALL, &name, sizeof(name), &mark, 0, free_mark);
        return;
    }
    size_t bytes = mc_footprint_bytes(footprint);
    mc_memory_keep(ctx, bytes < MC_LARGE_FOOTPRINT ? MC_SHARE_SMALL : MC_SHARE_LARGE, &name, sizeof(name),
                   mc_footprint_ref(footprint), bytes, free_footprint);
}

mc_file_facts *
mc_file_facts_create(bool rollback, bool asked, mc_coverage *coverage)
{
    mc_file_facts *facts = calloc(1, sizeof(*facts));
    MC_ASSERT(facts != NULL);
    atomic_init(&facts->references, 1);
    facts->rollback = rollback;
    facts->asked = asked;
    facts->coverage = coverage;
    return facts;
}

static mc_file_facts *
ref_file_facts(mc_file_facts *facts)
{
    mc_references_take(&facts->references);
    return facts;
}

void
mc_file_facts_unref(mc_file_facts *facts)
{
    if (facts == NULL || !mc_references_drop(&facts->references))
        return;
    free(facts->coverage);
    free(facts);
}

mc_file_facts *
mc_file_facts_find(const mc_identity *identity, mc_ctx *ctx)
{
    memory_key wanted = footprint_memory_key(identity, FACTS, NULL);
    mc_clock_cache_entry *entry;
    mc_file_facts *found =
        mc_memory_find(footprint_process_memory(ctx), MC_SHARE_SMALL, &entry, &wanted, sizeof(wanted));
    if (found != NULL)
        ref_file_facts(found);
    mc_clock_cache_release(entry);
    return found;
}

void
mc_file_facts_keep(const mc_identity *identity, mc_file_facts *facts, mc_ctx *ctx)
{
    memory_key name = footprint_memory_key(identity, FACTS, NULL);
    size_t bytes = sizeof(*facts) + (facts->coverage == NULL ? 0 : mc_coverage_bytes(facts->coverage));
    mc_memory_keep(ctx, MC_SHARE_SMALL, &name, sizeof(name), ref_file_facts(facts), bytes, free_facts);
}

bool
mc_coverage_is_hopeless(const mc_identity *identity, mc_ctx *ctx)
{
    memory_key wanted = footprint_memory_key(identity, HOPELESS, NULL);
    mc_clock_cache_entry *entry;
    bool found = mc_memory_find(footprint_process_memory(ctx), MC_SHARE_SMALL, &entry, &wanted, sizeof(wanted)) != NULL;
    mc_clock_cache_release(entry);
    return found;
}

void
mc_coverage_give_up(const mc_identity *identity, mc_ctx *ctx)
{
    memory_key name = footprint_memory_key(identity, HOPELESS, NULL);
    mc_memory_keep(ctx, MC_SHARE_SMALL, &name, sizeof(name), &mark, 0, free_mark);
}
