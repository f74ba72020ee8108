/*
 * The budget of a process for large allocations: pixels, bodies, stored tiles. What would exceed it is refused before
 * it is allocated, so that a request gets 503 instead of the process being ended by the system. Small allocations are
 * not counted. Counters are atomic; any thread.
 */
#ifndef MC_BASE_BUDGET_H
#define MC_BASE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

#include "mapcache/error.h"

/* Allocations of fewer bytes are not counted. */
#define MC_BUDGET_FROM ((size_t)64 << 10)

/* What the owner of the process does when there is no room; any thread calls these, with whatever locks its request
 * holds. NULL: nothing. */
typedef struct mc_budget_hooks {
    void (*reclaim)(void); /* before a refusal: gives back what is kept for later and not in use */
    void (*refused)(void); /* a request was refused */
} mc_budget_hooks;

/* Bytes that allocations may take together; 0 (at first): any number. `hooks` are constant, or NULL. */
void mc_budget_set(size_t limit, const mc_budget_hooks *hooks);

/* Asks for bytes before they are allocated. False: refused, nothing is counted. */
bool mc_budget_take(size_t bytes);

/* The same for what is no request: false also where more than half of the budget would be in use with these bytes,
 * which requests keep. That counts as no refusal of a request. */
bool mc_budget_take_of_half(size_t bytes);

/* Counts bytes that cannot be refused any more: what belongs to something that was asked for. */
void mc_budget_charge(size_t bytes);

/* Gives back what was taken or charged. */
void mc_budget_give(size_t bytes);

size_t mc_budget_limit(void);
size_t mc_budget_used(void);

/* MC_ERR_UNAVAILABLE for an allocation of so many bytes that was refused or failed: the client may come again. */
mc_error *mc_budget_error(size_t bytes, apr_pool_t *pool) MC_CHECKED;

/* The memory that this process may have: the machine's, or the least of its control groups (versions 1 and 2). */
size_t mc_machine_memory(void);

#endif
