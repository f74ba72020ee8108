/* See bdb_turn.h. */
#include "cache/embedded/bdb_turn.h"

#include <apr_strings.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/wait.h"
#include "cache/embedded/bdb_others.h"
#include "cache/embedded/bdb_undo.h"

/* Places, and the byte that is locked for a moment on the way to one: who wants all places keeps that byte, so that
 * nobody else comes in meanwhile. */
enum { PLACES = 256, GATE = 4096 };

/* Microseconds between two looks at a lock that another one has, at first and at most. */
static const apr_interval_time_t first_turn_look = 100, slowest_turn_look = 2000;

typedef enum turn_try { TURN_TAKEN, TURN_BUSY, TURN_WITHOUT_LOCKS } turn_try;

static turn_try
lock_turn_bytes(int file, short type, off_t begin, off_t count)
{
    struct flock bytes = { .l_type = type, .l_whence = SEEK_SET, .l_start = begin, .l_len = count };
    if (fcntl(file, F_OFD_SETLK, &bytes) == 0)
        return TURN_TAKEN;
    return errno == EAGAIN || errno == EACCES || errno == EINTR ? TURN_BUSY : TURN_WITHOUT_LOCKS;
}

/* Whether nobody has this place. */
static bool
is_place_free(int file, int place)
{
    struct flock byte = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = place, .l_len = 1 };
    return fcntl(file, F_OFD_GETLK, &byte) == 0 && byte.l_type == F_UNLCK;
}

static bool
mark_place(const mc_bdb_turn *turn, uint8_t mark)
{
    return mc_files_write_at(turn->file, (uint64_t)turn->slot, &mark, 1);
}

/* Looks at the marks with the place taken; a mark that is being taken away may look like that of a dead process, which
 * costs a turn alone and no more. */
static void
look_for_dead(mc_bdb_turn *turn)
{
    uint8_t marks[PLACES] = { 0 };
    (void)mc_files_read_at(turn->file, 0, marks, sizeof(marks)); /* a new file is empty */
    for (int i = 0; i < PLACES && !turn->died; i++)
        turn->died = marks[i] != 0 && (turn->alone || i == turn->slot || is_place_free(turn->file, i));
}

static turn_try
take_any_place(mc_bdb_turn *turn)
{
    const int first = (int)((unsigned long)syscall(SYS_gettid) % PLACES);
    turn_try tried = TURN_BUSY;
    for (int i = 0; i < PLACES && tried == TURN_BUSY; i++) {
        turn->slot = (first + i) % PLACES;
        tried = lock_turn_bytes(turn->file, F_WRLCK, turn->slot, 1);
    }
    return tried;
}

static turn_try
take_places(mc_bdb_turn *turn)
{
    turn_try tried = lock_turn_bytes(turn->file, turn->alone ? F_WRLCK : F_RDLCK, GATE, 1);
    if (tried != TURN_TAKEN)
        return tried;
    if (turn->alone) /* the gate stays shut */
        return lock_turn_bytes(turn->file, F_WRLCK, 0, PLACES);
    tried = take_any_place(turn);
    (void)lock_turn_bytes(turn->file, F_UNLCK, GATE, 1);
    return tried;
}

static bool
open_turns(mc_bdb_turn *turn, const mc_embedded_place *place, bool alone)
{
    char name[APR_PATH_MAX];
    *turn = (mc_bdb_turn){ .file = -1, .alone = alone };
    apr_snprintf(name, sizeof(name), "%s/" MC_BDB_TURNS, place->base);
    turn->file = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    return turn->file >= 0;
}

static void
give_up_turn(mc_bdb_turn *turn)
{
    if (turn->file < 0)
        return;
    (void)lock_turn_bytes(turn->file, F_UNLCK, 0, 0); /* also of copies that a child of a fork has */
    (void)close(turn->file);
    turn->file = -1;
}

/* The turn begins: with its mark, where nothing is to be made good before. */
static bool
enter_turn(mc_bdb_turn *turn)
{
    look_for_dead(turn);
    return turn->died || mark_place(turn, 1);
}

mc_error *
mc_bdb_take_turn(mc_bdb_turn *turn, const mc_embedded_place *place, bool alone, mc_ctx *ctx, apr_pool_t *pool)
{
    const apr_time_t until = mc_clock_now() + mc_ctx_remaining(ctx, (apr_interval_time_t)3600 * APR_USEC_PER_SEC);
    if (!open_turns(turn, place, alone))
        return MC_OK;
    turn_try tried = take_places(turn);
    for (apr_interval_time_t pause = first_turn_look; tried == TURN_BUSY; tried = take_places(turn)) {
        if (mc_clock_now() >= until || !mc_wait_pause(pause, ctx)) {
            give_up_turn(turn);
            return mc_error_create(pool, MC_ERR_UNAVAILABLE, "cache \"%s\" is being written to by others", place->name);
        }
        pause = pause < slowest_turn_look ? 2 * pause : pause;
    }
    if (tried == TURN_WITHOUT_LOCKS) {
        give_up_turn(turn);
        return MC_OK;
    }
    if (enter_turn(turn))
        return MC_OK;
    const int reason = errno;
    give_up_turn(turn);
    return mc_error_create(pool, MC_ERR_IO, "cache \"%s\" cannot be used: %s/" MC_BDB_TURNS ": %s", place->name,
                           place->base, strerror(reason));
}

bool
mc_bdb_try_turn(mc_bdb_turn *turn, const mc_embedded_place *place, bool alone)
{
    if (open_turns(turn, place, alone) && take_places(turn) == TURN_TAKEN && enter_turn(turn) && !turn->died)
        return true;
    give_up_turn(turn);
    return false;
}

void
mc_bdb_end_turn(mc_bdb_turn *turn, bool sound)
{
    if (turn->file >= 0 && sound && !turn->died)
        (void)mark_place(turn, 0);
    give_up_turn(turn);
}

/* Whether a name is that of a file of the environment's memory: __db.001 and so on. */
static bool
is_region_name(const char *name)
{
    return strncmp(name, "__db.", 5) == 0 && strlen(name) == 8 && isdigit((unsigned char)name[5]) &&
           isdigit((unsigned char)name[6]) && isdigit((unsigned char)name[7]);
}

/* 0, or errno of the first one that stays. */
static int
remove_regions(const mc_embedded_place *place, apr_pool_t *pool)
{
    int reason = 0;
    DIR *folder = opendir(place->base);
    if (folder == NULL)
        return errno;
    for (const struct dirent *found; (found = readdir(folder)) != NULL;)
        if (is_region_name(found->d_name) && unlink(apr_pstrcat(pool, place->base, "/", found->d_name, NULL)) != 0 &&
            errno != ENOENT && reason == 0)
            reason = errno;
    (void)closedir(folder);
    return reason;
}

mc_error *
mc_bdb_mend(mc_bdb_turn *turn, const mc_embedded_place *place, mc_ctx *ctx, apr_pool_t *pool)
{
    static const uint8_t none[PLACES];
    mc_bdb_other other;
    bool undone = false;
    if (mc_bdb_find_other(&other, place, pool))
        return mc_error_create(pool, MC_ERR_UNAVAILABLE,
                               "cache \"%s\" was left by a process that was killed, and cannot be mended while process"
                               " %ld (%s) has it open: end that one",
                               place->name, other.process, other.program);
    int reason = remove_regions(place, pool);
    if (reason == 0)
        reason = mc_bdb_undo_rest(&undone, place, pool);
    if (reason == 0 && !mc_files_write_at(turn->file, 0, none, sizeof(none)))
        reason = errno;
    turn->died = reason != 0;
    turn->slot = 0;
    if (reason == 0 && !mark_place(turn, 1))
        reason = errno;
    if (reason != 0)
        return mc_error_create(pool, MC_ERR_IO, "cache \"%s\" cannot be mended: %s: %s", place->name, place->base,
                               strerror(reason));
    mc_log_write(ctx, MC_LOG_WARN,
                 "cache \"%s\": a process was killed while it used the database; its locks are freed%s", place->name,
                 undone ? ", its last write is undone" : "");
    return MC_OK;
}
