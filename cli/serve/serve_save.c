/* See serve_save.h. */
#include "serve_save.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char saving_word = 's';

/* 0, or errno. */
static int
place_draft(const char *draft, const char *name, bool force)
{
    if (force)
        return rename(draft, name) == 0 ? 0 : errno;
    if (renameat2(AT_FDCWD, draft, AT_FDCWD, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    /* a file system that cannot say so; the file was not there a moment ago */
    return access(name, F_OK) == 0 ? EEXIST : rename(draft, name) == 0 ? 0 : errno;
}

/* The finisher's life: until it gets its word, or nobody is left who could say it. */
static _Noreturn void
finish_draft(const char *draft, const char *name, bool force, int line)
{
    char word = 0;
    setsid(); /* the interrupt of the terminal is not for it */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (dup2(line, STDIN_FILENO) < 0)
        _exit(1);
    close_range(STDIN_FILENO + 1, ~0U, 0);
    while (read(STDIN_FILENO, &word, 1) < 0 && errno == EINTR)
        continue;
    int code = word == saving_word ? place_draft(draft, name, force) : ECANCELED;
    if (code != 0)
        unlink(draft);
    if (word == saving_word && write(STDIN_FILENO, &code, sizeof(code)) < 0)
        _exit(1);
    _exit(0);
}

static mc_error *
refuse_saving(const char *name, int code, apr_pool_t *pool)
{
    if (code == EEXIST)
        return mc_error_create(pool, MC_ERR_CONFIG, "--save %s: the file is there already; --force writes over it",
                               name);
    return mc_error_create(pool, MC_ERR_IO, "--save %s: %s", name, strerror(code));
}

static mc_error *
start_finisher(mc_serve_save *save, const char *draft, bool force, apr_pool_t *pool)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return refuse_saving(save->name, errno, pool);
    pid_t finisher = fork();
    if (finisher == 0)
        finish_draft(draft, save->name, force, ends[1]);
    int code = errno;
    close(ends[1]);
    if (finisher < 0) {
        close(ends[0]);
        return refuse_saving(save->name, code, pool);
    }
    save->line = ends[0];
    save->finisher = finisher;
    return MC_OK;
}

mc_error *
mc_serve_save_open(mc_serve_save *save, const char *name, bool force, apr_pool_t *pool)
{
    struct stat about;
    *save = (mc_serve_save){ .draft = -1, .line = -1, .finisher = -1 };
    if (name == NULL)
        return MC_OK;
    bool there = lstat(name, &about) == 0;
    if (there && !force)
        return refuse_saving(name, EEXIST, pool);
    if (there && !S_ISREG(about.st_mode))
        return mc_error_create(pool, MC_ERR_CONFIG, "--save %s: this is no plain file, and is not written over", name);
    char *draft = apr_pstrcat(pool, name, ".XXXXXX", NULL);
    save->draft = mkostemp(draft, O_CLOEXEC); /* for its owner alone: it may hold passwords */
    if (save->draft < 0)
        return refuse_saving(name, errno, pool);
    save->name = name;
    mc_error *error = start_finisher(save, draft, force, pool);
    if (error != MC_OK) {
        unlink(draft);
        mc_serve_save_drop(save);
    }
    return error;
}

mc_error *
mc_serve_save_finish(mc_serve_save *save, apr_pool_t *pool)
{
    int code = 0, told = EIO;
    if (save->name == NULL)
        return MC_OK;
    if (fsync(save->draft) != 0)
        code = errno;
    if (code == 0 && (send(save->line, &saving_word, 1, MSG_NOSIGNAL) != 1 ||
                      recv(save->line, &told, sizeof(told), MSG_WAITALL) != (ssize_t)sizeof(told)))
        code = EIO;
    const char *name = save->name;
    mc_serve_save_drop(save);
    if (code == 0)
        code = told;
    return code == 0 ? MC_OK : refuse_saving(name, code, pool);
}

void
mc_serve_save_drop(mc_serve_save *save)
{
    if (save->name == NULL)
        return;
    close(save->draft);
    if (save->line >= 0)
        close(save->line);
    while (save->finisher > 0 && waitpid(save->finisher, NULL, 0) < 0 && errno == EINTR)
        continue;
    *save = (mc_serve_save){ .draft = -1, .line = -1, .finisher = -1 };
}
