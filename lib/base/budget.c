/* See budget.h. */
#include "base/budget.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_size_t used, most;
static const mc_budget_hooks no_hooks;
static _Atomic(const mc_budget_hooks *) current_hooks = &no_hooks;

void
mc_budget_set(size_t limit, const mc_budget_hooks *hooks)
{
    atomic_store(&current_hooks, hooks == NULL ? &no_hooks : hooks);
    atomic_store(&most, limit);
}

static bool
try_to_take(size_t bytes, size_t limit)
{
    size_t before = atomic_load_explicit(&used, memory_order_relaxed);
    do
        if (limit != 0 && (before > limit || bytes > limit - before))
            return false;
    while (!atomic_compare_exchange_weak_explicit(&used, &before, before + bytes, memory_order_relaxed,
                                                  memory_order_relaxed));
    return true;
}

static bool
take_or_reclaim(size_t bytes, size_t limit)
{
    if (try_to_take(bytes, limit))
        return true;
    const mc_budget_hooks *hooks = atomic_load(&current_hooks);
    if (hooks->reclaim == NULL)
        return false;
    hooks->reclaim();
    return try_to_take(bytes, limit);
}

bool
mc_budget_take(size_t bytes)
{
    if (take_or_reclaim(bytes, mc_budget_limit()))
        return true;
    const mc_budget_hooks *hooks = atomic_load(&current_hooks);
    if (hooks->refused != NULL)
        hooks->refused();
    return false;
}

bool
mc_budget_take_of_half(size_t bytes)
{
    const size_t limit = mc_budget_limit();
    return take_or_reclaim(bytes, limit / 2 + limit % 2);
}

void
mc_budget_charge(size_t bytes)
{
    atomic_fetch_add_explicit(&used, bytes, memory_order_relaxed);
}

void
mc_budget_give(size_t bytes)
{
    atomic_fetch_sub_explicit(&used, bytes, memory_order_relaxed);
}

size_t
mc_budget_limit(void)
{
    return atomic_load(&most);
}

size_t
mc_budget_used(void)
{
    return atomic_load(&used);
}

mc_error *
mc_budget_error(size_t bytes, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for %lu bytes: <memory_budget> is %lu, %lu are in use",
                           (unsigned long)bytes, (unsigned long)mc_budget_limit(), (unsigned long)mc_budget_used());
}

/* The number that a file begins with; SIZE_MAX for "max" and where there is none. */
static size_t
read_group_limit(const char *path)
{
    char text[64];
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return SIZE_MAX;
    size_t length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    return end == text || number > SIZE_MAX ? SIZE_MAX : (size_t)number;
}

/* The least limit of a control group and those above it. `group` is changed. */
static size_t
group_memory(const char *root, char *group, const char *name)
{
    size_t least = SIZE_MAX;
    for (;;) {
        char path[1024];
        snprintf(path, sizeof(path), "%s%s/%s", root, group, name);
        size_t limit = read_group_limit(path);
        least = limit < least ? limit : least;
        char *slash = strrchr(group, '/');
        if (slash == NULL)
            return least;
        *slash = '\0';
    }
}

/* Lines of /proc/self/cgroup: number, controllers (none: version 2), path. */
static size_t
groups_memory(void)
{
    size_t least = SIZE_MAX;
    char line[512];
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        char *controllers = strchr(line, ':'), *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (group == NULL)
            continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        size_t limit = SIZE_MAX;
        if (controllers[1] == '\0')
            limit = group_memory("/sys/fs/cgroup", group, "memory.max");
        else if (strstr(controllers, "memory") != NULL)
            limit = group_memory("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
        least = limit < least ? limit : least;
    }
    if (file != NULL)
        fclose(file);
    return least;
}

size_t
mc_machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t machine = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : SIZE_MAX;
    size_t group = groups_memory();
    return group < machine ? group : machine;
}
