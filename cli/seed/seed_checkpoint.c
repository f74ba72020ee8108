/* The place of a run in a file of lines: head, plan, how many metatiles are done, those that failed, end. */
#include "seed_checkpoint.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "text/text.h"

static const char head[] = "mapcache checkpoint 1";
static const apr_interval_time_t INTERVAL = APR_USEC_PER_SEC / 2;

static void
add_failure(mc_seed_checkpoint *checkpoint, const mc_seed_place *place)
{
    if (apr_hash_get(checkpoint->failures, place, sizeof(*place)) != NULL)
        return;
    mc_seed_place *kept = apr_pmemdup(checkpoint->pool, place, sizeof(*place));
    apr_hash_set(checkpoint->failures, kept, sizeof(*kept), kept);
}

/* "plan HEX" and "done N" */
static bool
read_checkpoint_head(mc_seed_checkpoint *checkpoint, uint64_t *plan, FILE *in)
{
    char line[128], *end;
    if (fgets(line, sizeof(line), in) == NULL || strncmp(line, head, sizeof(head) - 1) != 0)
        return false;
    if (fgets(line, sizeof(line), in) == NULL || strncmp(line, "plan ", 5) != 0)
        return false;
    *plan = strtoull(line + 5, &end, 16);
    if (*end != '\n' || fgets(line, sizeof(line), in) == NULL || strncmp(line, "done ", 5) != 0)
        return false;
    line[strcspn(line, "\n")] = '\0';
    return mc_parse_int64(&checkpoint->done, line + 5, 0, INT64_MAX);
}

/* "failed X,Y,Z" */
static bool
read_failure(mc_seed_place *place, char *line)
{
    char *rest;
    int *const numbers[] = { &place->x, &place->y, &place->z };
    if (strncmp(line, "failed ", 7) != 0)
        return false;
    for (int i = 0; i < 3; i++) {
        const char *word = strtok_r(i == 0 ? line + 7 : NULL, ",\n", &rest);
        if (word == NULL || !mc_parse_int(numbers[i], word, 0, INT_MAX))
            return false;
    }
    return true;
}

/* Whether it names a metatile of the run's levels. */
static bool
is_checkpoint_place_valid(const mc_seed_place *place, const mc_seed_area *area)
{
    if (place->z < area->minzoom || place->z > area->maxzoom)
        return false;
    const mc_level *level = &area->grid->levels[place->z];
    return place->x < level->columns && place->y < level->rows && place->x % area->columns == 0 &&
           place->y % area->rows == 0;
}

/* False where the file is not one of ours, whole. What another plan has failed with is of no interest. */
static bool
read_checkpoint_lines(mc_seed_checkpoint *checkpoint, uint64_t *plan, const mc_seed_area *area, FILE *in)
{
    char line[128];
    bool ended = false;
    if (!read_checkpoint_head(checkpoint, plan, in))
        return false;
    while (!ended && fgets(line, sizeof(line), in) != NULL) {
        mc_seed_place place;
        ended = strncmp(line, "end", 3) == 0;
        if (ended)
            break;
        if (!read_failure(&place, line) || (*plan == checkpoint->plan && !is_checkpoint_place_valid(&place, area)))
            return false;
        add_failure(checkpoint, &place);
        if (apr_hash_count(checkpoint->failures) > MC_SEED_FAILURES_KEPT)
            return false;
    }
    return ended;
}

/* A lock of the process: worker processes that outlive it for a moment do not have it. Where files cannot be locked
 * nobody is kept out. */
static bool
lock_checkpoint_file(FILE *file)
{
    struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    return fcntl(fileno(file), F_SETLK, &all) == 0 || (errno != EAGAIN && errno != EACCES);
}

/* Opens the file and locks it; who had it may just have put another one in its place. */
static const char *
hold_file(mc_seed_checkpoint *checkpoint)
{
    struct stat held, there;
    const char *path = checkpoint->path;
    while ((checkpoint->held = fopen(path, "r+e")) != NULL) {
        if (!lock_checkpoint_file(checkpoint->held))
            return apr_psprintf(checkpoint->pool, "another run is at the place that %s keeps", path);
        if (fstat(fileno(checkpoint->held), &held) == 0 && stat(path, &there) == 0 && held.st_ino == there.st_ino &&
            held.st_dev == there.st_dev)
            return NULL;
        fclose(checkpoint->held);
    }
    return errno == ENOENT ? NULL : apr_psprintf(checkpoint->pool, "%s cannot be used: %s", path, strerror(errno));
}

static const char *
read_checkpoint_file(mc_seed_checkpoint *checkpoint, const mc_seed_area *area, bool resume)
{
    const char *path = checkpoint->path;
    apr_pool_t *pool = checkpoint->pool;
    uint64_t found = 0;
    const char *problem = hold_file(checkpoint);
    if (problem != NULL || checkpoint->held == NULL)
        return problem;
    bool whole = resume && read_checkpoint_lines(checkpoint, &found, area, checkpoint->held);
    if (!resume)
        return apr_psprintf(pool,
                            "%s is the place of a run that has not ended: --resume goes on there, removing the file"
                            " begins anew",
                            path);
    if (!whole)
        return apr_psprintf(pool, "%s is no checkpoint of this program", path);
    if (found != checkpoint->plan)
        return apr_psprintf(pool,
                            "%s belongs to a run with other tiles: resume with the same tileset, grid, zooms,"
                            " extent, area, list, metatiles, order and dimensions",
                            path);
    checkpoint->begun = checkpoint->done;
    return NULL;
}

apr_array_header_t *
mc_seed_checkpoint_failures(const mc_seed_checkpoint *checkpoint, apr_pool_t *pool)
{
    apr_array_header_t *list = apr_array_make(pool, 4, sizeof(mc_seed_place));
    for (apr_hash_index_t *at = apr_hash_first(pool, checkpoint->failures); at != NULL; at = apr_hash_next(at))
        APR_ARRAY_PUSH(list, mc_seed_place) = *(const mc_seed_place *)apr_hash_this_val(at);
    return list;
}

static bool
write_lines(const mc_seed_checkpoint *checkpoint, FILE *out)
{
    fprintf(out, "%s\nplan %" PRIx64 "\ndone %" PRId64 "\n", head, checkpoint->plan, checkpoint->done);
    for (apr_hash_index_t *at = apr_hash_first(NULL, checkpoint->failures); at != NULL; at = apr_hash_next(at)) {
        const mc_seed_place *place = apr_hash_this_val(at);
        fprintf(out, "failed %d,%d,%d\n", place->x, place->y, place->z);
    }
    fputs("end\n", out);
    return fflush(out) == 0 && fsync(fileno(out)) == 0;
}

/* The old file stays until the new one is whole. */
static bool
replace_file(mc_seed_checkpoint *checkpoint)
{
    char temporary[PATH_MAX];
    if (snprintf(temporary, sizeof(temporary), "%s.new", checkpoint->path) >= (int)sizeof(temporary)) {
        errno = ENAMETOOLONG;
        return false;
    }
    FILE *out = fopen(temporary, "ae"); /* not emptied before it is ours */
    bool written = out != NULL && lock_checkpoint_file(out) && ftruncate(fileno(out), 0) == 0 &&
                   write_lines(checkpoint, out) && rename(temporary, checkpoint->path) == 0;
    int reason = errno;
    FILE *old = written ? checkpoint->held : out;
    if (written)
        checkpoint->held = out;
    if (old != NULL)
        fclose(old);
    errno = reason;
    return written;
}

/* A failure is told once, until it has been written again. */
static void
write_checkpoint_file(mc_seed_checkpoint *checkpoint)
{
    bool written = replace_file(checkpoint);
    if (!written && !checkpoint->unwritten)
        fprintf(stderr, "the checkpoint %s cannot be written: %s\n", checkpoint->path, strerror(errno));
    checkpoint->unwritten = !written;
    checkpoint->written = mc_clock_now();
}

const char *
mc_seed_checkpoint_open(mc_seed_checkpoint *checkpoint, const char *path, uint64_t plan, const mc_seed_area *area,
                        bool resume, apr_pool_t *pool)
{
    *checkpoint = (mc_seed_checkpoint){ .path = path, .pool = pool, .plan = plan };
    checkpoint->failures = apr_hash_make(pool);
    if (path == NULL)
        return NULL;
    const char *problem = read_checkpoint_file(checkpoint, area, resume);
    if (problem == NULL && !replace_file(checkpoint))
        problem = apr_psprintf(pool, "the checkpoint %s cannot be written: %s", path, strerror(errno));
    return problem;
}

/* False where there is no room for another failure: the place then stays before it. */
static bool
note_metatile_outcome(mc_seed_checkpoint *checkpoint, const mc_seed_result *result)
{
    mc_seed_place place = { result->z, result->x, result->y };
    if (result->outcome != MC_SEED_FAILED) {
        if (apr_hash_count(checkpoint->failures) > 0)
            apr_hash_set(checkpoint->failures, &place, sizeof(place), NULL);
        return true;
    }
    if (apr_hash_count(checkpoint->failures) >= MC_SEED_FAILURES_KEPT)
        return false;
    add_failure(checkpoint, &place);
    return true;
}

void
mc_seed_checkpoint_take(mc_seed_checkpoint *checkpoint, const mc_seed_result *result)
{
    if (checkpoint->path == NULL)
        return;
    int64_t next = checkpoint->done - checkpoint->begun;
    if (note_metatile_outcome(checkpoint, result) && result->number >= next && result->number - next < MC_SEED_WINDOW)
        checkpoint->known[result->number % MC_SEED_WINDOW] = true;
    while (checkpoint->known[next % MC_SEED_WINDOW])
        checkpoint->known[next++ % MC_SEED_WINDOW] = false;
    checkpoint->done = checkpoint->begun + next;
    if (mc_clock_now() - checkpoint->written >= INTERVAL)
        write_checkpoint_file(checkpoint);
}

void
mc_seed_checkpoint_close(mc_seed_checkpoint *checkpoint, bool finished)
{
    if (checkpoint->path == NULL)
        return;
    if (!finished || apr_hash_count(checkpoint->failures) > 0)
        write_checkpoint_file(checkpoint);
    else if (remove(checkpoint->path) != 0 && errno != ENOENT)
        fprintf(stderr, "the checkpoint %s cannot be removed: %s\n", checkpoint->path, strerror(errno));
    fclose(checkpoint->held);
}
