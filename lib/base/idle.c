/* See idle.h. Nothing is destroyed while the lock is held. */
#include "base/idle.h"

#include <string.h>

mc_idle_key
mc_idle_key_of(const char *text, const mc_stamp *stamp)
{
    return (mc_idle_key){ text, *stamp, mc_stamp_settled(stamp, apr_time_now()) };
}

/* Moves a thing from the list to another one. */
static void
unlink_idle_thing(mc_idle *idle, mc_idle_thing **at, mc_idle_thing **to)
{
    mc_idle_thing *thing = *at;
    *at = thing->next;
    idle->count--;
    idle->bytes -= thing->bytes;
    thing->next = *to;
    *to = thing;
}

static void
destroy_idle_things(const mc_idle *idle, mc_idle_thing *things)
{
    while (things != NULL) {
        mc_idle_thing *next = things->next;
        idle->destroy(things);
        things = next;
    }
}

mc_idle_thing *
mc_idle_take(mc_idle *idle, const mc_idle_key *key)
{
    mc_idle_thing *taken = NULL, *outdated = NULL;
    pthread_mutex_lock(&idle->lock);
    for (mc_idle_thing **at = &idle->latest; *at != NULL && taken == NULL;) {
        const mc_idle_key *other = &(*at)->key;
        if (strcmp(other->text, key->text) != 0)
            at = &(*at)->next;
        else
            unlink_idle_thing(idle, at, mc_stamp_equal(&other->stamp, &key->stamp) ? &taken : &outdated);
    }
    pthread_mutex_unlock(&idle->lock);
    destroy_idle_things(idle, outdated);
    return taken;
}

void
mc_idle_give(mc_idle *idle, mc_idle_thing *thing, bool keep)
{
    mc_idle_thing *dropped = NULL;
    if (!keep || !thing->key.settled || thing->bytes > idle->most_bytes) {
        idle->destroy(thing);
        return;
    }
    pthread_mutex_lock(&idle->lock);
    thing->next = idle->latest;
    idle->latest = thing;
    idle->count++;
    idle->bytes += thing->bytes;
    while (idle->count > idle->most || idle->bytes > idle->most_bytes) {
        mc_idle_thing **last = &idle->latest;
        while ((*last)->next != NULL)
            last = &(*last)->next;
        unlink_idle_thing(idle, last, &dropped);
    }
    pthread_mutex_unlock(&idle->lock);
    destroy_idle_things(idle, dropped);
}
