/*
 * Where the messages and traces of a request go: httpd's request log, and for traces, whose volume is another, straight
 * into the error log's file with one write for a request or job.
 */
#include "mod_mapcache.h"

#include <apr_portable.h>
#include <apr_strings.h>
#include <http_core.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

APLOG_USE_MODULE(mapcache);

/* httpd's levels up to debug have our numbers (those of syslog); its trace levels are debug to us. */
mc_log_level
frontend_log_level(int httpd_level)
{
    return httpd_level > APLOG_DEBUG ? MC_LOG_DEBUG : (mc_log_level)httpd_level;
}

static void
write_message(void *baton, mc_log_level level, const char *message)
{
    frontend_log *log = baton;
    request_rec *r = log->r;
    if (apr_os_thread_equal(apr_os_thread_current(), log->thread))
        ap_log_rerror(APLOG_MARK, (int)level, 0, r, "%s", message);
    else /* the request log may write the request's log id into its pool, which is not this thread's */
        ap_log_error(APLOG_MARK, (int)level, 0, r->server, "[client %s] %s", r->useragent_ip, message);
}

void
frontend_log_init(frontend_log *log, request_rec *r)
{
    log->log.level = frontend_log_level(ap_get_request_module_loglevel(r, APLOG_MODULE_INDEX));
    log->log.write = write_message;
    log->log.baton = log;
    log->r = r;
    log->thread = apr_os_thread_current();
}

/* Without a log file of httpd's own (syslog, another provider) each line takes the ordinary way, without our prefix. */
static void
log_lines(server_rec *s, const char *lines, size_t size)
{
    const char *end = lines + size;
    while (lines < end) {
        const char *newline = memchr(lines, '\n', (size_t)(end - lines));
        const char *line_end = newline == NULL ? end : newline;
        const char *message = memmem(lines, (size_t)(line_end - lines), "MOCKUP ", 7);
        if (message != NULL)
            ap_log_error(APLOG_MARK, APLOG_DEBUG, 0, s, "%.*s", (int)(line_end - message), message);
        lines = line_end + 1;
    }
}

/* A pipe keeps writes of up to PIPE_BUF bytes whole: as many lines as fit go with each. */
static void
write_to_pipe(int descriptor, const char *lines, size_t size)
{
    while (size > 0) {
        size_t part = size;
        if (part > PIPE_BUF) {
            const char *newline = memrchr(lines, '\n', PIPE_BUF);
            part = newline == NULL ? PIPE_BUF : (size_t)(newline - lines) + 1;
        }
        if (write(descriptor, lines, part) < 0)
            return; /* the error log is where this would have been reported */
        lines += part;
        size -= part;
    }
}

static void
write_trace_to_error_log(void *baton, const char *lines, size_t size)
{
    server_rec *s = ((request_rec *)baton)->server;
    apr_os_file_t descriptor;
    struct stat about;
    if (s->error_log == NULL || apr_os_file_get(&descriptor, s->error_log) != APR_SUCCESS ||
        fstat(descriptor, &about) != 0) {
        log_lines(s, lines, size);
    } else if (S_ISFIFO(about.st_mode)) {
        write_to_pipe(descriptor, lines, size);
    } else {
        ssize_t written = write(descriptor, lines, size);
        (void)written; /* as above */
    }
}

mc_trace *
frontend_trace_create(request_rec *r)
{
    if (!APLOGrdebug(r))
        return NULL;
    const char *client = apr_psprintf(r->pool, "%s:%d", r->useragent_ip, (int)r->useragent_addr->port);
    static const char location[] = "mod_mapcache.c(" APR_STRINGIFY(__LINE__) ")";
    return mc_trace_create(write_trace_to_error_log, r, client, location, r->pool);
}
