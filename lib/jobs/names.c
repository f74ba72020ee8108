/* Words of modes, states and actions: the same in the database, on the command line and in JSON. */
#include <string.h>

#include "mapcache/jobs.h"

static const char *const modes[] = { "seed", "reseed", "delete", "transfer" };
static const char *const orders[] = {
    [MC_SEED_DOWN] = "down", [MC_SEED_LEVELS] = "level", [MC_SEED_HILBERT] = "hilbert"
};
static const char *const states[] = { "open", "paused", "cancelled", "done" };
static const char *const actions[] = { "cancel", "pause", "resume", "retry" };

/* The place of a text among the words; 0, and false, where it is none of them. */
static bool
find_job_word(int *index, const char *const *words, int count, const char *text)
{
    for (*index = 0; *index < count; ++*index)
        if (text != NULL && strcmp(words[*index], text) == 0)
            return true;
    *index = 0;
    return false;
}

/* The parse functions; the type of a value is an enumeration. */
#define PARSE_WORD(function, type, words)                                                                              \
    bool function(type *value, const char *text)                                                                       \
    {                                                                                                                  \
        int index;                                                                                                     \
        bool found = find_job_word(&index, words, (int)(sizeof(words) / sizeof((words)[0])), text);                    \
        *value = (type)index;                                                                                          \
        return found;                                                                                                  \
    }
PARSE_WORD(mc_job_mode_parse, mc_job_mode, modes)
PARSE_WORD(mc_job_state_parse, mc_job_state, states)
PARSE_WORD(mc_job_action_parse, mc_job_action, actions)

bool
mc_job_order_parse(mc_seed_order *order, const char *text)
{
    int index;
    bool found = find_job_word(&index, orders, 3, text) && index != MC_SEED_DOWN;
    *order = found ? (mc_seed_order)index : MC_SEED_LEVELS;
    return found;
}

const char *
mc_job_mode_name(mc_job_mode mode)
{
    return modes[mode];
}

const char *
mc_job_order_name(mc_seed_order order)
{
    return orders[order];
}

const char *
mc_job_state_name(mc_job_state state)
{
    return states[state];
}
