#include "origin.h"

origin
origin_start(void)
{
    const char *script = apr_pstrcat(pool, unit_source_folder, "/tests/integration/origin.py", (char *)NULL);
    origin o = { .log = "/tmp/mapcache-origin-XXXXXX" };
    int log = mkstemp(o.log);
    ck_assert_int_ge(log, 0);
    close(log);
    int input[2], output[2];
    ck_assert_int_eq(pipe2(input, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(output, O_CLOEXEC), 0);
    o.pid = fork();
    ck_assert_int_ge(o.pid, 0);
    if (o.pid == 0) {
        dup2(input[0], 0);
        dup2(output[1], 1);
        unsetenv("LD_PRELOAD");
        execl("/usr/bin/python3", "python3", script, "--log", o.log, "--lifetime", "1800", (char *)NULL);
        _exit(127);
    }
    close(input[0]);
    close(output[1]);
    o.input = input[1];
    FILE *lines = fdopen(output[0], "r");
    ck_assert_int_eq(fscanf(lines, "%d", &o.port), 1);
    fclose(lines);
    /* A proxy of the environment must not come between. */
    setenv("no_proxy", "127.0.0.1", 1);
    process.http = mc_http_create(4);
    return o;
}

void
origin_stop(origin *o)
{
    mc_http_destroy(process.http);
    process.http = NULL;
    close(o->input);
    waitpid(o->pid, NULL, 0);
    unlink(o->log);
}

const char *
origin_url(const origin *o, const char *path)
{
    return apr_psprintf(pool, "http://127.0.0.1:%d%s", o->port, path);
}

/* What the origin has logged so far: lines of JSON. */
static const char *
origin_log(const origin *o)
{
    int file = open(o->log, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(file, 0);
    off_t size = lseek(file, 0, SEEK_END);
    char *text = apr_pcalloc(pool, (size_t)size + 1);
    ck_assert_int_eq(pread(file, text, (size_t)size, 0), size);
    close(file);
    return text;
}

int
origin_count(const origin *o)
{
    int count = 0;
    for (const char *c = origin_log(o); *c != '\0'; c++)
        count += *c == '\n';
    return count;
}

const char *
origin_last(const origin *o, const char *name)
{
    const char *text = origin_log(o), *last = text;
    for (const char *c = text; *c != '\0'; c++)
        if (*c == '\n' && c[1] != '\0')
            last = c + 1;
    const char *key = apr_psprintf(pool, "\"%s\": \"", name);
    const char *found = strstr(last, key);
    if (found == NULL)
        return NULL;
    found += strlen(key);
    return apr_pstrmemdup(pool, found, strcspn(found, "\""));
}

double
seconds_since(apr_time_t begin)
{
    return (double)(mc_clock_now() - begin) / APR_USEC_PER_SEC;
}
