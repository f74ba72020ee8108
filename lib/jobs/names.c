/* Words of modes, states and actions: the same in the database, on the command line and in JSON. */
#include <string.h>

#include "mapcache/jobs.h"

static const char *const modes[] = { "seed", "reseed", "delete", "transfer" };
static const char *const orders[] = {
    [MC_SEED_DOWN] = "down", [MC_SEED_LEVELS] = "level", [MC_SEED_HILBERT] = "hilbert"
};
static const char *const states[] = { "open", "paused", "cancelled", "done" };
static const char *const actions[] = { "cancel", "pause", "resume", "retry" };

static bool
find_job_word(int *index, const char *const *words, int count, const char *text)
{
    for (int i = 0; text != NULL && i < count; i++)
        if (strcmp(words[i], text) == 0) {
            *index = i;
            return true;
        }
    return false;
}

const char *
mc_job_mode_name(mc_job_mode mode)
{
    return modes[mode];
}

bool
mc_job_mode_parse(mc_job_mode *mode, const char *text)
{
    int index = 0;
    bool found = find_job_word(&index, modes, 4, text);
    *mode = (mc_job_mode)index;
    return found;
}

const char *
mc_job_order_name(mc_seed_order order)
{
    return orders[order];
}

bool
mc_job_order_parse(mc_seed_order *order, const char *text)
{
    int index = 0;
    bool found = find_job_word(&index, orders, 3, text) && index != MC_SEED_DOWN;
    *order = found ? (mc_seed_order)index : MC_SEED_LEVELS;
    return found;
}

const char *
mc_job_state_name(mc_job_state state)
{
    return states[state];
}

bool
mc_job_state_parse(mc_job_state *state, const char *text)
{
    int index = 0;
    bool found = find_job_word(&index, states, 4, text);
    *state = (mc_job_state)index;
    return found;
}

bool
mc_job_action_parse(mc_job_action *action, const char *text)
{
    int index = 0;
    bool found = find_job_word(&index, actions, 4, text);
    *action = (mc_job_action)index;
    return found;
}
