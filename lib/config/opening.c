/* See opening.h. The child writes records of a letter and a text, each ended by a NUL, and a last one of "-". */
#include "config/opening.h"

#include <apr_strings.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"

enum { SAID_MAX = 8192, TEXT_MAX = 2000 };

/* Microseconds for the opening of one piece of data, and of all data of a configuration. */
static const apr_interval_time_t one_opening = 10 * APR_USEC_PER_SEC, all_openings = 60 * APR_USEC_PER_SEC;

struct mc_findings {
    char said[SAID_MAX];
    size_t size;
};

static void
say_finding(mc_findings *findings, char kind, const char *text)
{
    size_t size = strnlen(text, TEXT_MAX);
    if (size + 2 > SAID_MAX - findings->size)
        return;
    findings->said[findings->size++] = kind;
    memcpy(findings->said + findings->size, text, size);
    findings->size += size;
    findings->said[findings->size++] = '\0';
}

void
mc_findings_refuse(mc_findings *findings, const char *text)
{
    say_finding(findings, 'e', text);
}

void
mc_findings_warn(mc_findings *findings, const char *text)
{
    say_finding(findings, 'w', text);
}

/* In the child. */
static void
look_and_say(int to, const mc_opening *opening, apr_pool_t *pool)
{
    mc_findings *findings = apr_pcalloc(pool, sizeof(*findings));
    opening->look(findings, opening->data, pool);
    bool written = mc_files_write(to, findings->said, findings->size) && mc_files_write(to, "-", sizeof("-"));
    _exit(written ? 0 : 1);
}

/* What comes out of the pipe until its end; false: that took too long. */
static bool
read_findings(mc_findings *findings, int from, apr_time_t until)
{
    for (;;) {
        apr_time_t left = until - mc_clock_now();
        struct pollfd ready = { .fd = from, .events = POLLIN };
        int polled = left <= 0 ? 0 : poll(&ready, 1, (int)(left / 1000) + 1);
        if (polled < 0 && errno == EINTR)
            continue;
        if (polled <= 0)
            return false;
        ssize_t got =
            findings->size < SAID_MAX ? read(from, findings->said + findings->size, SAID_MAX - findings->size) : 0;
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return true;
        findings->size += (size_t)got;
    }
}

static void
end_child(int *status, pid_t child, bool answered)
{
    if (!answered)
        kill(child, SIGKILL);
    while (waitpid(child, status, 0) < 0 && errno == EINTR)
        continue;
}

/* False: the records have no end, as the child has broken down. */
static bool
complain_of_findings(mc_diagnostics *diagnostics, const mc_node *at, const mc_opening *opening,
                     const mc_findings *findings)
{
    const char *record = findings->said, *end = findings->said + findings->size;
    while (record < end && *record != '-') {
        const char *behind = memchr(record, '\0', (size_t)(end - record));
        if (behind == NULL)
            return false;
        mc_complain(diagnostics, *record == 'e' ? opening->severity : MC_WARNING, at, "%s: %s", opening->subject,
                    record + 1);
        record = behind + 1;
    }
    return record < end;
}

/* False: there is no child. */
static bool
ask_child(bool *answered, int *status, mc_findings *findings, const mc_opening *opening, apr_interval_time_t within,
          apr_pool_t *pool)
{
    int ends[2];
    fflush(NULL);
    if (pipe(ends) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        alarm((unsigned)(within / APR_USEC_PER_SEC) + 2); /* where nobody is left to end it */
        look_and_say(ends[1], opening, pool);
    }
    close(ends[1]);
    *answered = child > 0 && read_findings(findings, ends[0], mc_clock_now() + within);
    close(ends[0]);
    if (child > 0)
        end_child(status, child, *answered);
    return child > 0;
}

void
mc_config_look(mc_diagnostics *diagnostics, const mc_node *at, const mc_opening *opening, apr_pool_t *pool)
{
    mc_findings *findings = apr_pcalloc(pool, sizeof(*findings));
    bool answered = false;
    int status = 0;
    apr_interval_time_t left = all_openings - diagnostics->opening, within = left < one_opening ? left : one_opening;
    if (left <= 0) {
        mc_complain(diagnostics, MC_WARNING, at, "%s: %s was not looked at: others took all of the time",
                    opening->subject, opening->what);
        return;
    }
    apr_time_t began = mc_clock_now();
    if (!ask_child(&answered, &status, findings, opening, within, pool)) {
        mc_complain(diagnostics, MC_WARNING, at, "%s: %s was not looked at: no process could be started for that",
                    opening->subject, opening->what);
        return;
    }
    diagnostics->opening += mc_clock_now() - began;
    if (!answered)
        mc_complain(diagnostics, MC_WARNING, at, "%s: %s was not open after %.0f seconds: nothing is known of it",
                    opening->subject, opening->what, (double)within / APR_USEC_PER_SEC);
    else if (!complain_of_findings(diagnostics, at, opening, findings))
        mc_complain(diagnostics, opening->severity, at, "%s: the process that opens %s breaks down (%s %d)",
                    opening->subject, opening->what, WIFSIGNALED(status) ? "signal" : "status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}
