/* See level_data.h. */
#include "vector/levels/level_data.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"

/* What is worth reading: 64 maps read their parts of it. */
#define COMPARED_MOST ((int64_t)8 << 30)

enum { TIME_PART = 4 /* of what is left */, TRIES_MOST = 8 };
#define TIME_MOST (1 * APR_USEC_PER_SEC)

/* Of all digests that are being made: only one thread reads data for that. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

void
mc_level_data_look(mc_level_data *data, const int files[MC_LEVEL_ORIGINS], uint64_t definition)
{
    memcpy(data->files, files, sizeof(data->files));
    data->origin = mc_level_origin_of(data->files, definition);
    data->digest = (mc_level_digest){ 0 };
    data->tries = 0;
    atomic_init(&data->content, 0);
    atomic_init(&data->unreadable, false);
}

static bool
is_too_large(const mc_level_origin *origin)
{
    int64_t left = COMPARED_MOST;
    for (int i = 0; left >= 0 && i < MC_LEVEL_ORIGINS; i++)
        left = origin->files[i].size > left ? -1 : left - (origin->files[i].size > 0 ? origin->files[i].size : 0);
    return left < 0;
}

/* From the beginning, some times. */
static void
begin_digest_anew(mc_level_data *data)
{
    data->digest = (mc_level_digest){ 0 };
    if (++data->tries == TRIES_MOST)
        atomic_store(&data->unreadable, true);
}

/* The bytes are those of one moment only where nobody has written to the files meanwhile. */
static void
settle_level_data(mc_level_data *data)
{
    const mc_level_origin now = mc_level_origin_of(data->files, data->origin.definition);
    if (mc_level_origin_untouched(&now, &data->begun))
        atomic_store(&data->content, mc_level_digest_value(&data->digest));
    else
        begin_digest_anew(data);
}

/* By the thread that has the lock. */
static void
read_level_data(mc_level_data *data, mc_ctx *ctx, apr_pool_t *pool)
{
    const apr_time_t until = mc_clock_now() + mc_ctx_remaining(ctx, TIME_PART * TIME_MOST) / TIME_PART;
    if (data->digest.file == 0 && data->digest.at == 0)
        data->begun = mc_level_origin_of(data->files, data->origin.definition);
    mc_error *error = mc_level_digest_go_on(&data->digest, &data->origin, data->files,
                                            MC_LEVEL_DATA_SHARE / MC_LEVEL_PIECE, until, ctx, pool);
    if (error != MC_OK && error->kind == MC_ERR_IO)
        begin_digest_anew(data); /* what is away for a moment, as files of other machines, comes back */
    else if (error == MC_OK && mc_level_digest_whole(&data->digest))
        settle_level_data(data);
    mc_error_ignore(error);
}

static bool
is_content_settled(mc_level_data *data)
{
    return atomic_load(&data->content) != 0 || atomic_load(&data->unreadable);
}

mc_level_kinship
mc_level_data_compare(mc_level_data *data, const mc_level_origin *built, mc_ctx *ctx, apr_pool_t *pool)
{
    if (mc_level_origin_untouched(built, &data->origin))
        return MC_LEVEL_OF_THESE;
    if (!mc_level_origin_alike(built, &data->origin))
        return MC_LEVEL_OF_OTHERS;
    if (!is_content_settled(data) && is_too_large(&data->origin))
        atomic_store(&data->unreadable, true);
    if (!is_content_settled(data) && pthread_mutex_trylock(&reading) == 0) {
        if (!is_content_settled(data))
            read_level_data(data, ctx, pool);
        pthread_mutex_unlock(&reading);
    }
    const uint64_t content = atomic_load(&data->content);
    if (content != 0)
        return built->content == content ? MC_LEVEL_OF_THESE : MC_LEVEL_OF_OTHERS;
    return atomic_load(&data->unreadable) ? MC_LEVEL_UNREADABLE : MC_LEVEL_UNREAD;
}

const char *
mc_level_kinship_fault(mc_level_kinship kinship)
{
    switch (kinship) {
    case MC_LEVEL_OF_OTHERS:
        return "the shapefile is another one than they were built from: build them again";
    case MC_LEVEL_UNREADABLE:
        return "the shapefile is another file than the one that they were built from, and cannot be compared with it: "
               "build them again";
    case MC_LEVEL_OF_THESE:
    case MC_LEVEL_UNREAD:
        break;
    }
    return NULL;
}
