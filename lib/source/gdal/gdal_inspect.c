/*
 * Looking at a raster before maps are drawn of it. A driver may wait for a network, or crash on a broken file: so a
 * child process opens the raster, and says what it found.
 */
#include <apr_strings.h>
#include <cpl_error.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "source/gdal/gdal_bands.h"
#include "source/gdal/gdal_inspect.h"

enum { SAID_MAX = 4096 };

static void CPL_STDCALL
keep_last_failure(CPLErr level, CPLErrorNum number, const char *text)
{
    (void)number;
    char *kept = CPLGetErrorHandlerUserData();
    if (level >= CE_Failure)
        snprintf(kept, SAID_MAX / 2, "%s", text);
}

static void
look_at_gdal_raster(mc_gdal_findings *findings, const mc_gdal_raster *raster, apr_pool_t *pool)
{
    char *reason = apr_pcalloc(pool, SAID_MAX / 2);
    mc_gdal_picture picture;
    CPLPushErrorHandlerEx(keep_last_failure, reason);
    mc_gdal_dataset *dataset = mc_gdal_open(raster->data, false);
    if (dataset == NULL) {
        findings->error =
            apr_psprintf(pool, "the raster cannot be opened: %s", *reason == '\0' ? raster->data : reason);
        return;
    }
    findings->error = mc_gdal_place_missing(mc_gdal_raster_of(dataset));
    if (findings->error == NULL)
        findings->error = mc_gdal_picture_find(&picture, mc_gdal_raster_of(dataset), raster, pool);
    if (findings->error != NULL || !picture.estimated)
        return;
    findings->error = mc_gdal_picture_scale(&picture, dataset, pool);
    if (findings->error == NULL && !mc_gdal_has_statistics(mc_gdal_raster_of(dataset), picture.numbers[0]))
        findings->warning =
            apr_psprintf(pool,
                         "the raster has no statistics: black and white are estimated (%.6g and %.6g) each time that "
                         "it is opened; <scale> says them, or gdalinfo -stats writes them beside the raster",
                         picture.scale[0][0], picture.scale[0][1]);
}

/* In the child. The first letter says what kind of text follows. */
static void
say_findings(int to, const mc_gdal_raster *raster, apr_pool_t *pool)
{
    mc_gdal_findings findings = { 0 };
    look_at_gdal_raster(&findings, raster, pool);
    const char *said = findings.error != NULL     ? apr_pstrcat(pool, "e", findings.error, NULL)
                       : findings.warning != NULL ? apr_pstrcat(pool, "w", findings.warning, NULL)
                                                  : "-";
    size_t size = strlen(said);
    ssize_t written = write(to, said, size < SAID_MAX ? size : SAID_MAX);
    _exit(written > 0 ? 0 : 1);
}

/* What comes out of the pipe until its end; false: that took too long. */
static bool
read_findings(char said[SAID_MAX + 1], int from, apr_time_t until)
{
    size_t size = 0;
    for (;;) {
        apr_time_t left = until - mc_clock_now();
        struct pollfd ready = { .fd = from, .events = POLLIN };
        int polled = left <= 0 ? 0 : poll(&ready, 1, (int)(left / 1000) + 1);
        if (polled < 0 && errno == EINTR)
            continue;
        said[size] = '\0';
        if (polled <= 0)
            return false;
        ssize_t got = size < SAID_MAX ? read(from, said + size, SAID_MAX - size) : 0;
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return true;
        size += (size_t)got;
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

void
mc_gdal_inspect(mc_gdal_findings *findings, const mc_gdal_raster *raster, apr_interval_time_t within, apr_pool_t *pool)
{
    int ends[2], status = 0;
    mc_gdal_start();
    fflush(NULL);
    if (pipe(ends) != 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        alarm((unsigned)(within / APR_USEC_PER_SEC) + 2); /* where nobody is left to end it */
        say_findings(ends[1], raster, pool);
    }
    close(ends[1]);
    char said[SAID_MAX + 1] = "";
    bool answered = child > 0 && read_findings(said, ends[0], mc_clock_now() + within);
    close(ends[0]);
    if (child < 0)
        return;
    end_child(&status, child, answered);
    if (!answered)
        findings->warning = apr_psprintf(pool, "the raster was not open after %.0f seconds: nothing is known of it",
                                         (double)within / APR_USEC_PER_SEC);
    else if (said[0] == 'e')
        findings->error = apr_pstrdup(pool, said + 1);
    else if (said[0] == 'w')
        findings->warning = apr_pstrdup(pool, said + 1);
    else if (said[0] != '-')
        findings->error = apr_psprintf(pool, "GDAL breaks down when it opens the raster (%s %d)",
                                       WIFSIGNALED(status) ? "signal" : "status",
                                       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}
