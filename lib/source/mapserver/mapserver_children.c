/* See mapserver_children.h. */
#include "source/mapserver/mapserver_children.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/wait.h"
#include "base/workers.h"
#include "source/mapserver/mapserver_counters.h"
#include "source/mapserver/mapserver_process.h"
#include "text/secret.h"

enum {
    CHILDREN_MAX = 64,
    MAPS_MAX = 2000, /* of one child, which then goes: what MapServer leaks goes with it */
    FILE_SIZE = 256
};

/* Microseconds that a map which nobody waits for any more has left: it is nearly there, and a new child costs more. */
static const apr_interval_time_t grace = APR_USEC_PER_SEC;

/* Microseconds: no deadline is later. */
static const apr_interval_time_t longest_map = 100000 * APR_USEC_PER_SEC;

typedef struct child {
    mc_mapserver_process process;
    int maps;             /* that it has drawn */
    char file[FILE_SIZE]; /* the map file of the last one, which it has open; its end where it is longer */
    struct child *next;
} child;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the five below */
static pid_t owner;                                      /* whose children they are: not those of a fork of it */
static pthread_cond_t changed;                           /* a child waits, or there is room for one more */
static child *idle;                                      /* the one that was used last is first */
static child *ending;                                    /* killed, and not gone yet */
static int children;                                     /* all of them: those that draw, too */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
make_condition(void)
{
    mc_clock_condition(&changed);
}

/* --- which child ------------------------------------------------------------------------------------------------ */

static const char *
file_mark(const char *mapfile)
{
    size_t length = strlen(mapfile);
    return length < FILE_SIZE ? mapfile : mapfile + length - (FILE_SIZE - 1);
}

/* With the lock held: those that were killed are gone by now, perhaps. */
static void
forget_ended(void)
{
    for (child **at = &ending; *at != NULL;) {
        child *one = *at;
        if (mc_mapserver_reap(&one->process)) {
            *at = one->next;
            free(one);
            children--;
        } else {
            at = &one->next;
        }
    }
}

/* Without the lock: kills a child that nobody uses. */
static void
end_child_process(child *one)
{
    bool gone = mc_mapserver_end(&one->process);
    pthread_mutex_lock(&lock);
    if (gone) {
        children--;
    } else {
        one->next = ending;
        ending = one;
    }
    pthread_cond_broadcast(&changed); /* who may start one differs from source to source */
    pthread_mutex_unlock(&lock);
    if (gone)
        free(one);
}

/* With the lock held: an idle child that has the map file open, else the one that was used last; or NULL. */
static child *
take_idle(const char *mapfile)
{
    child **best = &idle;
    for (child **at = &idle; *at != NULL; at = &(*at)->next)
        if (strcmp((*at)->file, file_mark(mapfile)) == 0) {
            best = at;
            break;
        }
    child *one = *best;
    if (one != NULL)
        *best = one->next;
    return one;
}

/* With the lock held: a process that was forked begins with none. */
static void
leave_children_of_parent(void)
{
    if (owner == getpid())
        return;
    owner = getpid();
    for (child *one = idle, *next; one != NULL; one = next) {
        next = one->next;
        close(one->process.socket);
        close(one->process.errors);
        free(one);
    }
    idle = ending = NULL;
    children = 0;
}

int
mc_mapserver_most(int processes, const mc_ctx *ctx)
{
    int workers = ctx->process == NULL || ctx->process->workers == NULL ? 1 : mc_workers_count(ctx->process->workers);
    int most = processes > 0 ? processes : workers;
    return most < 1 ? 1 : most > CHILDREN_MAX ? CHILDREN_MAX : most;
}

/* *one is NULL where a new one may be started, which is counted already. */
static mc_error *
wait_for_child(child **one, const mc_mapserver_question *question, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_error *error = MC_OK;
    int most = mc_mapserver_most(question->processes, ctx);
    pthread_mutex_lock(&lock);
    leave_children_of_parent();
    for (;;) {
        *one = take_idle(question->mapfile);
        if (*one != NULL)
            break;
        forget_ended();
        if (children < most) {
            children++;
            break;
        }
        mc_wait_end end = mc_wait_condition(&changed, &lock, ctx->deadline, ctx);
        if (end != MC_WAIT_READY) {
            error = mc_error_create(pool, MC_ERR_UNAVAILABLE, "source \"%s\": %s", question->source,
                                    end == MC_WAIT_GONE ? "the client has gone"
                                                        : "all processes of MapServer were busy until the deadline");
            pthread_cond_signal(&changed); /* a signal that was meant for this one is another's */
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return error;
}

/* Returns what it has said, or NULL. */
static const char *
log_child_complaints(const child *one, const mc_mapserver_question *question, mc_log_level level, mc_ctx *ctx)
{
    const char *said = mc_mapserver_complaints(&one->process, ctx->pool);
    if (said != NULL)
        mc_log_write(ctx, level, "source \"%s\": MapServer's process %ld says: %s", question->source,
                     (long)one->process.pid, mc_hide_passwords(said, NULL, ctx->pool));
    return said;
}

/* Of a child that has ended before it had said anything: whether it could not begin, by the words of ld.so(8). */
static mc_error *
explain_lost_child(mc_error *error, const char *said, const mc_mapserver_question *question, apr_pool_t *pool)
{
    if (said == NULL || strstr(said, "error while loading shared libraries") == NULL)
        return error;
    mc_error *cause = mc_error_create(pool, MC_ERR_UNAVAILABLE, "%s", said);
    return mc_error_wrap(
        pool, cause, MC_ERR_UNAVAILABLE,
        "source \"%s\": a library that MapServer needs is not installed; where it cannot be, reach the "
        "map file through a source of type \"wms\"",
        question->source);
}

static void
count_for_mapserver(const mc_ctx *ctx, mc_counter counter)
{
    if (ctx->process != NULL)
        mc_count(ctx->process->metrics, counter, 1);
}

static mc_error *
start_child(child **one, mc_ctx *ctx, apr_pool_t *pool)
{
    *one = calloc(1, sizeof(**one));
    mc_error *error = *one == NULL ? mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for a process of MapServer")
                                   : mc_mapserver_start(&(*one)->process, pool);
    if (error == MC_OK) {
        count_for_mapserver(ctx, MC_COUNT_mapserver_started_total);
        mc_log_write(ctx, MC_LOG_INFO, "process %ld of MapServer has begun", (long)(*one)->process.pid);
        return MC_OK;
    }
    free(*one);
    pthread_mutex_lock(&lock);
    children--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return error;
}

static mc_error *
acquire_child(child **one, const mc_mapserver_question *question, mc_ctx *ctx, apr_pool_t *pool)
{
    pthread_once(&once, make_condition);
    for (;;) {
        MC_TRY(wait_for_child(one, question, ctx, pool));
        if (*one == NULL)
            return start_child(one, ctx, pool);
        if (mc_mapserver_idle_well(&(*one)->process))
            return MC_OK;
        (void)log_child_complaints(*one, question, MC_LOG_INFO, ctx);
        end_child_process(*one); /* it had nothing to do for long, or somebody has ended it */
    }
}

static void
release_child(child *one, const mc_mapserver_question *question)
{
    if (++one->maps >= MAPS_MAX) {
        end_child_process(one);
        return;
    }
    apr_cpystrn(one->file, file_mark(question->mapfile), FILE_SIZE);
    pthread_mutex_lock(&lock);
    one->next = idle;
    idle = one;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

/* --- one map ---------------------------------------------------------------------------------------------------- */

/* A call that waits for the child: `until` comes nearer once the client has gone, and then nobody looks for the client
 * any more. */
typedef struct talk_time {
    mc_ctx ctx; /* a copy */
    apr_time_t until;
    bool gone, heard; /* heard: the first byte of an answer */
} talk_time;

static bool
may_go_on(talk_time *time, mc_mapserver_talk talk)
{
    if (talk != MC_MAPSERVER_GONE || time->gone)
        return false;
    apr_time_t end = mc_clock_now() + grace;
    time->gone = true;
    time->until = end < time->until ? end : time->until;
    time->ctx.abandoned = NULL;
    return true;
}

/* Bytes that a first attempt has received are lost where the client goes between them: so the wait for the first byte
 * is a call of its own, and all bytes behind it come without a look at the client. */
static mc_mapserver_talk
hear_answer(mc_mapserver_answer *answer, const child *one, talk_time *time)
{
    mc_mapserver_talk talk;
    do
        talk = mc_mapserver_receive(&one->process, answer, 1, time->until, &time->ctx);
    while (may_go_on(time, talk));
    time->ctx.abandoned = NULL;
    time->heard = talk == MC_MAPSERVER_SAID;
    if (time->heard)
        talk = mc_mapserver_receive(&one->process, (char *)answer + 1, sizeof(*answer) - 1, time->until, &time->ctx);
    return talk;
}

/* What cannot come from a child that is well. */
static bool
is_sound(const mc_mapserver_answer *answer, const mc_mapserver_ask *ask)
{
    bool drawn = answer->outcome == MC_MAPSERVER_DRAWN;
    return answer->magic == MC_MAPSERVER_MAGIC && answer->outcome <= MC_MAPSERVER_NOT_DRAWN &&
           answer->text_size <= MC_MAPSERVER_SAID_MAX && answer->width == (drawn ? ask->width : 0) &&
           answer->height == (drawn ? ask->height : 0);
}

static mc_error *
error_of_answer(const mc_mapserver_answer *answer, const char *said, const mc_mapserver_question *question,
                apr_pool_t *pool)
{
    mc_error *cause = mc_error_create(pool, MC_ERR_UPSTREAM, "MapServer says: %s",
                                      *said == '\0' ? "nothing" : mc_hide_passwords(said, NULL, pool));
    switch (answer->outcome) {
    case MC_MAPSERVER_BAD_MAPFILE:
        return mc_error_wrap(pool, cause, MC_ERR_CONFIG, "source \"%s\": the map file cannot be used",
                             question->source);
    case MC_MAPSERVER_BAD_PARAMETER:
        return mc_error_wrap(pool, cause, MC_ERR_INVALID_DIMENSION,
                             "source \"%s\": the map file does not allow the value of a dimension", question->source);
    default:
        return mc_error_wrap(pool, cause, MC_ERR_UPSTREAM, "source \"%s\": MapServer has not drawn the map",
                             question->source);
    }
}

/* A colour is never more than its alpha, also where a broken child says so. The alpha of opaque maps is anything. */
static void
bound_colours(mc_pixels *pixels, bool opaque)
{
    for (int y = 0; y < pixels->height; y++) {
        uint8_t *row = pixels->data + (size_t)y * pixels->stride;
        for (int x = 0; x < pixels->width; x++, row += 4) {
            uint8_t alpha = opaque ? 255 : row[3];
            row[0] = row[0] < alpha ? row[0] : alpha;
            row[1] = row[1] < alpha ? row[1] : alpha;
            row[2] = row[2] < alpha ? row[2] : alpha;
            row[3] = alpha;
        }
    }
    pixels->opacity = opaque ? MC_OPAQUE : MC_OPACITY_UNKNOWN;
}

static mc_mapserver_talk
receive_pixels(mc_pixels *pixels, const child *one, talk_time *time)
{
    size_t row = (size_t)pixels->width * 4;
    int rows = pixels->stride == row ? 1 : pixels->height;
    size_t size = rows == 1 ? row * (size_t)pixels->height : row;
    mc_mapserver_talk talk = MC_MAPSERVER_SAID;
    for (int y = 0; y < rows && talk == MC_MAPSERVER_SAID; y++)
        talk = mc_mapserver_receive(&one->process, pixels->data + (size_t)y * pixels->stride, size, time->until,
                                    &time->ctx);
    return talk;
}

/* What the map's request gets for a child that has not answered as it should, and is killed. */
static mc_error *
error_of_talk(mc_mapserver_talk talk, const mc_mapserver_question *question, const talk_time *time, apr_pool_t *pool)
{
    if (time->gone || talk == MC_MAPSERVER_GONE)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "source \"%s\": the client has gone", question->source);
    if (talk == MC_MAPSERVER_LATE)
        return mc_error_create(pool, MC_ERR_TIMEOUT, "source \"%s\": MapServer had not drawn the map by the deadline",
                               question->source);
    return mc_error_create(pool, MC_ERR_UPSTREAM, "source \"%s\": the process of MapServer %s", question->source,
                           talk == MC_MAPSERVER_ENDED ? "has ended" : "talks nonsense");
}

/* *talk other than MC_MAPSERVER_SAID, or *sound false: the child is of no use any more. An error with both well is the
 * child's answer. */
static mc_error *
talk_with_child(mc_pixels **pixels, mc_mapserver_talk *talk, bool *sound, const child *one,
                const mc_mapserver_question *question, talk_time *time, apr_pool_t *pool)
{
    mc_mapserver_ask ask = question->ask;
    mc_mapserver_answer answer = { 0 };
    char said[MC_MAPSERVER_SAID_MAX + 1] = "";
    ask.magic = MC_MAPSERVER_MAGIC;
    ask.seconds = (uint32_t)(mc_ctx_remaining(&time->ctx, longest_map) / APR_USEC_PER_SEC) + 2;
    *sound = true;
    *talk = mc_mapserver_send(&one->process, &ask, sizeof(ask), time->until, &time->ctx);
    if (*talk == MC_MAPSERVER_SAID)
        *talk = mc_mapserver_send(&one->process, question->texts, ask.text_size, time->until, &time->ctx);
    if (*talk == MC_MAPSERVER_SAID)
        *talk = hear_answer(&answer, one, time);
    *sound = *talk != MC_MAPSERVER_SAID || is_sound(&answer, &ask);
    if (*talk == MC_MAPSERVER_SAID && *sound)
        *talk = mc_mapserver_receive(&one->process, said, answer.text_size, time->until, &time->ctx);
    if (*talk != MC_MAPSERVER_SAID || !*sound)
        return error_of_talk(*talk, question, time, pool);
    if (answer.outcome != MC_MAPSERVER_DRAWN)
        return error_of_answer(&answer, said, question, pool);
    if (answer.width == 0)
        return MC_OK;
    mc_error *error = mc_pixels_create(pixels, answer.width, answer.height, false, pool);
    if (error != MC_OK) {
        *sound = false; /* its pixels are still to come */
        return error;
    }
    mc_pixels_attach(*pixels, pool);
    *talk = receive_pixels(*pixels, one, time);
    if (*talk != MC_MAPSERVER_SAID)
        return error_of_talk(*talk, question, time, pool);
    bound_colours(*pixels, answer.opaque != 0);
    return MC_OK;
}

/* *again: a child that had been waiting was gone before it had said anything, so that another one may draw the map. */
static mc_error *
draw_by_child(mc_pixels **pixels, bool *again, const mc_mapserver_question *question, mc_ctx *ctx, apr_pool_t *pool)
{
    talk_time time = { .ctx = *ctx, .until = ctx->deadline };
    mc_mapserver_talk talk;
    bool sound;
    child *one;
    *pixels = NULL;
    *again = false;
    MC_TRY(acquire_child(&one, question, ctx, pool));
    mc_error *error = talk_with_child(pixels, &talk, &sound, one, question, &time, pool);
    bool well = talk == MC_MAPSERVER_SAID && sound;
    *again = talk == MC_MAPSERVER_ENDED && one->maps > 0 && !time.heard && !time.gone;
    if (!well || error == MC_OK)
        count_for_mapserver(ctx, well ? MC_COUNT_mapserver_maps_total : MC_COUNT_mapserver_lost_total);
    const char *said = log_child_complaints(one, question, well ? MC_LOG_DEBUG : MC_LOG_WARN, ctx);
    if (talk == MC_MAPSERVER_ENDED && !time.heard && !time.gone)
        error = explain_lost_child(error, said, question, pool);
    if (well)
        release_child(one, question);
    else
        end_child_process(one);
    if (error != MC_OK)
        *pixels = NULL;
    return error;
}

mc_error *
mc_mapserver_draw(mc_pixels **pixels, const mc_mapserver_question *question, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SLOW(ctx);
    MC_ASSERT(ctx->deadline != 0);
    bool again;
    mc_error *error = draw_by_child(pixels, &again, question, ctx, pool);
    return again ? draw_by_child(pixels, &again, question, ctx, pool) : error;
}
