#include "unit.h"

#include <apr_strings.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/workers.h"
#include "mapcache/lock.h"

static const char *
new_folder(void)
{
    char *folder = apr_pstrdup(pool, "/tmp/mapcache-lock-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    return folder;
}

static void
remove_folder(const char *folder)
{
    DIR *open = opendir(folder);
    for (struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open))
        if (*entry->d_name != '.')
            unlink(apr_pstrcat(pool, folder, "/", entry->d_name, NULL));
    closedir(open);
    rmdir(folder);
}

START_TEST(a_lock_excludes_its_own_name_only)
{
    const char *folder = new_folder();
    mc_locker *locker = mc_locker_disk(folder, 0.2, pool);
    mc_lock *a;
    mc_lock *b;
    mc_lock *again;
    bool waited;
    ck_ok(mc_locker_acquire(&a, &waited, locker, "a", &ctx, pool));
    ck_assert(!waited);
    ck_ok(mc_locker_acquire(&b, &waited, locker, "b", &ctx, pool));
    ck_assert(!waited);
    apr_time_t begin = mc_clock_now();
    ck_fails(UNAVAILABLE, mc_locker_acquire(&again, &waited, locker, "a", &ctx, pool));
    ck_assert(waited);
    ck_assert_int_ge(mc_clock_now() - begin, 190000);
    ck_assert_int_lt(mc_clock_now() - begin, 15000000);
    mc_lock_release(a);
    mc_lock_release(a);
    ck_ok(mc_locker_acquire(&again, &waited, locker, "a", &ctx, pool));
    ck_assert(!waited);
    mc_lock_release(again);
    mc_lock_release(b);
    remove_folder(folder);
}
END_TEST

typedef struct meeting {
    mc_locker *locker;
    atomic_int inside;
    atomic_int total;
} meeting;

static void *
meet(void *baton)
{
    meeting *m = baton;
    apr_pool_t *own = mc_task_pool_acquire();
    mc_ctx own_ctx = { .pool = own, .process = &process };
    for (int i = 0; i < 10; i++) {
        mc_lock *lock;
        bool waited;
        ck_assert(mc_locker_acquire(&lock, &waited, m->locker, "room", &own_ctx, own) == MC_OK);
        ck_assert_int_eq(++m->inside, 1);
        m->total++;
        usleep(100);
        m->inside--;
        mc_lock_release(lock);
    }
    mc_task_pool_release(own);
    return NULL;
}

START_TEST(threads_take_turns)
{
    for (int round = 0; round < 20; round++) { /* each with a new lock file, which all of them want to make */
        const char *folder = new_folder();
        meeting m = { .locker = mc_locker_disk(folder, 30, pool) };
        pthread_t threads[8];
        for (int i = 0; i < 8; i++)
            pthread_create(&threads[i], NULL, meet, &m);
        for (int i = 0; i < 8; i++)
            pthread_join(threads[i], NULL);
        ck_assert_int_eq(m.total, 80);
        remove_folder(folder);
    }
}
END_TEST

/* A process that takes the lock, says so, and holds it until it is killed. */
static pid_t
holder(const char *folder, const char *name)
{
    int ready[2];
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        mc_lock *lock;
        bool waited;
        mc_locker *locker = mc_locker_disk(folder, 5, pool);
        if (mc_locker_acquire(&lock, &waited, locker, name, &ctx, pool) != MC_OK)
            _exit(1);
        ssize_t written = write(ready[1], "x", 1);
        (void)written;
        for (;;)
            pause();
    }
    char byte;
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void *
kill_later(void *baton)
{
    usleep(1000000); /* the other one waits by then; were it late, it would find the lock free */
    kill(*(pid_t *)baton, SIGKILL);
    return NULL;
}

START_TEST(a_dead_holder_frees_the_lock_at_once)
{
    const char *folder = new_folder();
    pid_t child = holder(folder, "a");
    pthread_t killer;
    mc_lock *lock;
    bool waited;
    mc_locker *locker = mc_locker_disk(folder, 20, pool);
    apr_time_t begin = mc_clock_now();
    pthread_create(&killer, NULL, kill_later, &child);
    ck_ok(mc_locker_acquire(&lock, &waited, locker, "a", &ctx, pool));
    ck_assert_int_lt(mc_clock_now() - begin, 15000000); /* the locker's own timeout is 20 s */
    pthread_join(killer, NULL);
    waitpid(child, NULL, 0);
    mc_lock_release(lock);
    remove_folder(folder);
}
END_TEST

START_TEST(the_deadline_of_the_request_bounds_the_wait)
{
    const char *folder = new_folder();
    pid_t child = holder(folder, "a");
    mc_lock *lock;
    bool waited;
    ctx.deadline = mc_clock_now() + 150000;
    ck_fails(UNAVAILABLE, mc_locker_acquire(&lock, &waited, mc_locker_disk(folder, 20, pool), "a", &ctx, pool));
    ck_assert_int_lt(mc_clock_now() - ctx.deadline, 15000000);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    remove_folder(folder);
}
END_TEST

START_TEST(a_deleted_file_is_made_anew)
{
    const char *folder = new_folder();
    mc_locker *locker = mc_locker_disk(folder, 5, pool);
    mc_lock *lock;
    bool waited;
    for (int i = 0; i < 2; i++) {
        ck_ok(mc_locker_acquire(&lock, &waited, locker, "a", &ctx, pool));
        ck_assert_int_eq(unlink(apr_pstrcat(pool, folder, "/mapcache.lock", NULL)), 0);
        mc_lock_release(lock);
    }
    remove_folder(folder);
}
END_TEST

/* How many descriptors of the process are of the lock file of the folder. */
static int
count_open_lock_files(const char *folder)
{
    int count = 0;
    DIR *descriptors = opendir("/proc/self/fd");
    for (struct dirent *entry = readdir(descriptors); entry != NULL; entry = readdir(descriptors)) {
        char target[4096] = "";
        if (readlinkat(dirfd(descriptors), entry->d_name, target, sizeof(target) - 1) > 0)
            count += strncmp(target, folder, strlen(folder)) == 0;
    }
    closedir(descriptors);
    return count;
}

START_TEST(a_file_stays_open_for_the_next_lock)
{
    const char *folder = new_folder();
    apr_pool_t *own;
    apr_pool_create(&own, pool);
    mc_locker *locker = mc_locker_disk(folder, 5, own);
    mc_lock *locks[20];
    bool waited;
    for (int i = 0; i < 20; i++)
        ck_ok(mc_locker_acquire(&locks[i], &waited, locker, apr_psprintf(pool, "%d", i), &ctx, pool));
    ck_assert_int_eq(count_open_lock_files(folder), 20);
    for (int i = 0; i < 20; i++)
        mc_lock_release(locks[i]);
    const int idle = count_open_lock_files(folder);
    ck_assert(idle > 0 && idle < 20);
    for (int i = 0; i < 3; i++) {
        ck_ok(mc_locker_acquire(&locks[0], &waited, locker, "0", &ctx, pool));
        ck_assert_int_eq(count_open_lock_files(folder), idle);
        pid_t other = holder(folder, "1"); /* nothing is held of a file that is open only */
        ck_fails(UNAVAILABLE,
                 mc_locker_acquire(&locks[1], &waited, mc_locker_disk(folder, 0.05, pool), "1", &ctx, pool));
        kill(other, SIGKILL);
        waitpid(other, NULL, 0);
        mc_lock_release(locks[0]);
    }
    apr_pool_destroy(own);
    ck_assert_int_eq(count_open_lock_files(folder), 0);
    remove_folder(folder);
}
END_TEST

/* Whoever locked a file that is not at its place any more would lock for himself alone. */
START_TEST(a_file_that_was_replaced_is_not_locked)
{
    const char *folder = new_folder(), *path = apr_pstrcat(pool, folder, "/mapcache.lock", NULL);
    mc_locker *locker = mc_locker_disk(folder, 0.05, pool);
    mc_lock *lock;
    bool waited;
    ck_ok(mc_locker_acquire(&lock, &waited, locker, "a", &ctx, pool));
    mc_lock_release(lock);
    ck_assert_int_eq(rename(path, apr_pstrcat(pool, folder, "/moved", NULL)), 0);
    pid_t other = holder(folder, "a"); /* makes a new one */
    ck_fails(UNAVAILABLE, mc_locker_acquire(&lock, &waited, locker, "a", &ctx, pool));
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    ck_ok(mc_locker_acquire(&lock, &waited, locker, "a", &ctx, pool));
    mc_lock_release(lock);
    remove_folder(folder);
}
END_TEST

/* An open file description is one for parent and child: its locks would not keep them from each other. */
START_TEST(a_forked_process_opens_the_file_itself)
{
    const char *folder = new_folder();
    mc_locker *locker = mc_locker_disk(folder, 0.05, pool);
    mc_lock *lock;
    bool waited;
    ck_ok(mc_locker_acquire(&lock, &waited, locker, "a", &ctx, pool));
    mc_lock_release(lock);
    ck_ok(mc_locker_acquire(&lock, &waited, locker, "b", &ctx, pool));
    mc_lock_release(lock);
    pid_t child = fork();
    if (child == 0) { /* holds both, by what its parent has left open and by what it has not */
        mc_lock *own;
        bool taken = mc_locker_acquire(&own, &waited, locker, "a", &ctx, pool) == MC_OK &&
                     mc_locker_acquire(&own, &waited, locker, "b", &ctx, pool) == MC_OK;
        raise(taken ? SIGSTOP : SIGKILL);
        _exit(0);
    }
    int status;
    ck_assert(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    ck_fails(UNAVAILABLE, mc_locker_acquire(&lock, &waited, locker, "a", &ctx, pool));
    ck_fails(UNAVAILABLE, mc_locker_acquire(&lock, &waited, locker, "b", &ctx, pool));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    ck_ok(mc_locker_acquire(&lock, &waited, locker, "a", &ctx, pool));
    mc_lock_release(lock);
    remove_folder(folder);
}
END_TEST

START_TEST(links_are_not_followed_and_paths_are_not_told)
{
    const char *folder = new_folder();
    const char *victim = apr_pstrcat(pool, folder, "/victim", NULL);
    mc_locker *locker = mc_locker_disk(folder, 1, pool);
    ck_assert_int_eq(symlink(victim, apr_pstrcat(pool, folder, "/mapcache.lock", NULL)), 0);
    ck_assert_int_eq(symlink(victim, apr_psprintf(pool, "%s/mapcache.lock.%u", folder, geteuid())), 0);
    mc_lock *lock;
    bool waited;
    mc_error *error = mc_locker_acquire(&lock, &waited, locker, "a", &ctx, pool);
    ck_assert(error != MC_OK && error->kind == MC_ERR_IO);
    ck_assert_ptr_null(strstr(error->message, folder));
    ck_assert_int_ne(access(victim, F_OK), 0);
    remove_folder(folder);
    error = mc_locker_acquire(&lock, &waited, mc_locker_disk(folder, 1, pool), "a", &ctx, pool); /* it is gone */
    ck_assert(error != MC_OK && error->kind == MC_ERR_IO);
    ck_assert_ptr_null(strstr(error->message, folder));
}
END_TEST

START_TEST(a_squatted_file_in_an_open_folder_is_passed_over)
{
    const char *folder = new_folder();
    const char *path = apr_pstrcat(pool, folder, "/mapcache.lock", NULL);
    ck_assert_int_eq(chmod(folder, 01777), 0);
    ck_assert_int_eq(mkfifo(path, 0666), 0);
    mc_lock *lock;
    bool waited;
    ck_ok(mc_locker_acquire(&lock, &waited, mc_locker_disk(folder, 1, pool), "a", &ctx, pool));
    ck_assert_int_eq(access(apr_psprintf(pool, "%s.%u", path, geteuid()), F_OK), 0);
    mc_lock_release(lock);
    remove_folder(folder);
}
END_TEST

typedef struct told {
    int lines;
    char last[1000];
} told;

static void
keep_log_line(void *baton, mc_log_level level, const char *message)
{
    told *t = baton;
    ck_assert_int_eq(level, MC_LOG_WARN);
    t->lines++;
    snprintf(t->last, sizeof(t->last), "%s", message);
}

/* What `mapcache check` says of a folder: the text of the only complaint, "" without one. */
static const char *
inspect_folder(const char *folder)
{
    mc_diagnostics *diagnostics = mc_diagnostics_create(pool);
    mc_locker_inspect(mc_locker_disk(folder, 1, pool), NULL, diagnostics, pool);
    if (diagnostics->complaints->nelts == 0)
        return "";
    ck_assert_int_eq(diagnostics->complaints->nelts, 1);
    const mc_complaint *one = &APR_ARRAY_IDX(diagnostics->complaints, 0, mc_complaint);
    ck_assert_int_eq(one->severity, MC_WARNING);
    return one->text;
}

static void
expect_words(const char *text, const char *const words[3])
{
    for (int i = 0; i < 3; i++)
        ck_assert_msg(strstr(text, words[i]) != NULL, "\"%s\" without \"%s\"", text, words[i]);
}

/* The log says once which file it is and what is locked instead; so does the check. */
START_TEST(foreign_lock_files_are_named)
{
    enum { OTHER = 65534 };
    if (geteuid() != 0)
        return; /* only root can make another user's file */
    const char *folder = new_folder();
    const char *path = apr_pstrcat(pool, folder, "/mapcache.lock", NULL);
    const char *own = apr_pstrcat(pool, path, ".0", NULL);
    ck_assert_int_eq(chmod(folder, 01777), 0);
    ck_assert_str_eq(inspect_folder(folder), "");
    FILE *made = fopen(path, "w");
    ck_assert(made != NULL && fclose(made) == 0);
    ck_assert_str_eq(inspect_folder(folder), "");
    ck_assert_int_eq(chown(path, OTHER, OTHER), 0);
    told t = { 0 };
    const mc_log log = { MC_LOG_WARN, keep_log_line, &t };
    mc_ctx own_ctx = ctx;
    own_ctx.log = &log;
    mc_locker *locker = mc_locker_disk(folder, 1, pool);
    mc_lock *lock;
    bool waited;
    for (int i = 0; i < 2; i++) {
        ck_ok(mc_locker_acquire(&lock, &waited, locker, "a", &own_ctx, pool));
        mc_lock_release(lock);
    }
    ck_assert_int_eq(t.lines, 1);
    expect_words(t.last, (const char *const[]){ path, "nobody", own });
    expect_words(inspect_folder(folder), (const char *const[]){ path, "nobody", "<directory>" });
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(chown(own, OTHER, OTHER), 0); /* the last way out of this user */
    expect_words(inspect_folder(folder), (const char *const[]){ own, "nobody", "root cannot lock" });
    ck_assert_int_eq(mkfifo(path, 0666), 0);
    mc_error *error = mc_locker_acquire(&lock, &waited, locker, "a", &own_ctx, pool);
    ck_assert(error != MC_OK && strstr(error->message, folder) == NULL);
    expect_words(mc_error_chain(error, pool), (const char *const[]){ path, own, "nobody" });
    remove_folder(folder);
}
END_TEST

START_TEST(to_try_is_not_to_wait)
{
    const char *folder = new_folder();
    mc_locker *locker = mc_locker_disk(folder, 30, pool);
    mc_lock *a;
    mc_lock *again;
    ck_ok(mc_locker_try(&a, locker, "a", &ctx, pool));
    ck_assert_ptr_nonnull(a);
    apr_time_t begin = mc_clock_now();
    ck_ok(mc_locker_try(&again, locker, "a", &ctx, pool));
    ck_assert_ptr_null(again);
    ck_assert_int_lt(mc_clock_now() - begin, 15000000);
    mc_lock_release(again);
    mc_lock_release(a);
    ck_ok(mc_locker_try(&again, locker, "a", &ctx, pool));
    ck_assert_ptr_nonnull(again);
    mc_lock_release(again);
    remove_folder(folder);
    ck_fails(IO, mc_locker_try(&again, mc_locker_disk(folder, 1, pool), "a", &ctx, pool));
}
END_TEST

/* Whoever of the two comes first: root's seeder and the server's user lock the same file. */
START_TEST(root_and_the_owner_of_the_folder_exclude_each_other)
{
    enum { SERVER = 65534 };
    if (geteuid() != 0)
        return; /* only root can act for both */
    for (int root_first = 0; root_first < 2; root_first++) {
        const char *folder = new_folder();
        ck_assert_int_eq(chown(folder, SERVER, SERVER), 0);
        mc_lock *lock;
        bool waited;
        if (root_first) {
            ck_ok(mc_locker_acquire(&lock, &waited, mc_locker_disk(folder, 5, pool), "a", &ctx, pool));
        } else {
            ck_assert_int_eq(seteuid(SERVER), 0);
            mc_error *error = mc_locker_acquire(&lock, &waited, mc_locker_disk(folder, 5, pool), "a", &ctx, pool);
            ck_assert_int_eq(seteuid(0), 0);
            ck_ok(error);
        }
        ck_assert_int_eq(seteuid(root_first ? SERVER : 0), 0);
        mc_lock *other;
        mc_error *error = mc_locker_acquire(&other, &waited, mc_locker_disk(folder, 0.1, pool), "a", &ctx, pool);
        ck_assert_int_eq(seteuid(0), 0);
        ck_fails(UNAVAILABLE, error);
        mc_lock_release(lock);
        remove_folder(folder);
    }
}
END_TEST

UNIT_MAIN("locker", to_try_is_not_to_wait, a_lock_excludes_its_own_name_only, threads_take_turns,
          a_dead_holder_frees_the_lock_at_once, the_deadline_of_the_request_bounds_the_wait,
          a_deleted_file_is_made_anew, a_file_stays_open_for_the_next_lock, a_file_that_was_replaced_is_not_locked,
          a_forked_process_opens_the_file_itself, links_are_not_followed_and_paths_are_not_told,
          a_squatted_file_in_an_open_folder_is_passed_over, foreign_lock_files_are_named,
          root_and_the_owner_of_the_folder_exclude_each_other)
