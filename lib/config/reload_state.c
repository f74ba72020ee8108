/* See reload_state.h. */
#include "config/reload_state.h"

#include <apr_strings.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "text/text.h"

enum { FILES_MAX = 64, ERROR_MAX = 4096 };

/* Texts are of malloc: what is told of a file every second for years must not grow a pool. */
typedef struct file_state {
    char *file, *error;
    mc_reload_state state; /* without texts */
} file_state;

struct mc_reload_states {
    pthread_mutex_t lock;
    int count;
    file_state files[FILES_MAX];
};

mc_reload_states *
mc_reload_states_create(void)
{
    mc_reload_states *states = calloc(1, sizeof(*states));
    MC_ASSERT(states != NULL);
    pthread_mutex_init(&states->lock, NULL);
    return states;
}

void
mc_reload_states_destroy(mc_reload_states *states)
{
    if (states == NULL)
        return;
    for (int i = 0; i < states->count; i++) {
        free(states->files[i].file);
        free(states->files[i].error);
    }
    pthread_mutex_destroy(&states->lock);
    free(states);
}

/* With the lock held. NULL: no such file, and no room for it where it is wanted. */
static file_state *
find_file_state(mc_reload_states *states, const char *file, bool wanted)
{
    for (int i = 0; i < states->count; i++)
        if (strcmp(states->files[i].file, file) == 0)
            return &states->files[i];
    if (!wanted || states->count == FILES_MAX)
        return NULL;
    file_state *made = &states->files[states->count++];
    made->file = strdup(file);
    MC_ASSERT(made->file != NULL);
    return made;
}

void
mc_reload_states_tell_text(mc_reload_states *states, const char *file, const char *error, apr_time_t now)
{
    if (states == NULL)
        return;
    pthread_mutex_lock(&states->lock);
    file_state *known = find_file_state(states, file, true);
    if (known != NULL) {
        mc_reload_state *state = &known->state;
        free(known->error);
        known->error = error == NULL ? NULL : strndup(error, ERROR_MAX);
        state->failed = error != NULL;
        state->known = true;
        state->tried = now;
        if (error == NULL)
            state->loaded = now;
    }
    pthread_mutex_unlock(&states->lock);
}

void
mc_reload_states_tell(mc_reload_states *states, const char *file, const mc_error *error, apr_time_t now)
{
    apr_pool_t *scratch;
    if (states == NULL)
        return;
    apr_pool_create_unmanaged_ex(&scratch, mc_memory_exhausted, NULL);
    mc_reload_states_tell_text(states, file, error == NULL ? NULL : mc_error_chain(error, scratch), now);
    apr_pool_destroy(scratch);
}

/* How many bytes of `text` are ":LINE:COLUMN". */
static size_t
position_size(const char *text)
{
    size_t size = 0;
    for (int part = 0; part < 2; part++) {
        size_t digits = text[size] == ':' ? strspn(text + size + 1, "0123456789") : 0;
        if (digits == 0)
            return 0;
        size += digits + 1;
    }
    return size;
}

/* "FILE:LINE:COLUMN" of what an error begins with, the file without its folder; else the name of `file`. What cannot be
 * the path of a file before a position is not taken for one. */
static const char *
place_of_error(const char *error, const char *file, apr_pool_t *pool)
{
    const char *end = error + strcspn(error, "\n\"@=?");
    for (const char *at = error; at < end; at++) {
        const size_t size = *at == ':' ? position_size(at) : 0;
        if (size > 0 && at[size] == ':') {
            const char *name = at;
            while (name > error && name[-1] != '/')
                name--;
            return apr_pstrndup(pool, name, (size_t)(at - name) + size);
        }
    }
    const char *slash = strrchr(file, '/');
    return apr_pstrdup(pool, slash == NULL ? file : slash + 1);
}

mc_reload_state
mc_reload_states_find(mc_reload_states *states, const char *file, apr_pool_t *pool)
{
    mc_reload_state found = { 0 };
    if (states == NULL || file == NULL)
        return found;
    pthread_mutex_lock(&states->lock);
    const file_state *known = find_file_state(states, file, false);
    if (known != NULL) {
        found = known->state;
        found.error = known->error == NULL ? NULL : apr_pstrdup(pool, known->error);
    }
    pthread_mutex_unlock(&states->lock);
    if (found.error != NULL)
        found.where = place_of_error(found.error, file, pool);
    return found;
}

bool
mc_reload_states_any_failed(mc_reload_states *states)
{
    bool failed = false;
    if (states == NULL)
        return false;
    pthread_mutex_lock(&states->lock);
    for (int i = 0; i < states->count; i++)
        failed = failed || states->files[i].state.failed;
    pthread_mutex_unlock(&states->lock);
    return failed;
}
