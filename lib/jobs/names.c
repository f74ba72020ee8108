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
is_job_word(const char *word, const char *text)
{
    return text != NULL && strcmp(word, text) == 0;
}

/* 0 also where the text is none of the words. */
static int
find_job_word(const char *const *words, int count, const char *text)
{
    int index = count - 1;
    while (index > 0 && !is_job_word(words[index], text))
        index--;
    return index;
}

const char *
mc_job_mode_name(mc_job_mode mode)
{
    return modes[mode];
}

bool
mc_job_mode_parse(mc_job_mode *mode, const char *text)
{
    *mode = (mc_job_mode)find_job_word(modes, 4, text);
    return *mode != 0 || is_job_word(modes[0], text);
}

const char *
mc_job_order_name(mc_seed_order order)
{
    return orders[order];
}

bool
mc_job_order_parse(mc_seed_order *order, const char *text)
{
    int index = find_job_word(orders, 3, text);
    bool found = (index != 0 || is_job_word(orders[0], text)) && index != MC_SEED_DOWN;
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
    *state = (mc_job_state)find_job_word(states, 4, text);
    return *state != 0 || is_job_word(states[0], text);
}

bool
mc_job_action_parse(mc_job_action *action, const char *text)
{
    *action = (mc_job_action)find_job_word(actions, 4, text);
    return *action != 0 || is_job_word(actions[0], text);
}
