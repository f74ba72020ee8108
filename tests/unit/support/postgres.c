#include "postgres.h"

#include "base/metrics.h"

database postgres_server;
static int connections_at_most;

database
database_start(const char *setting)
{
    char script[512];
    snprintf(script, sizeof(script), "%s/tests/integration/postgres.py", unit_source_folder);
    database d = { 0 };
    int input[2], output[2];
    MC_ASSERT(pipe2(input, O_CLOEXEC) == 0);
    MC_ASSERT(pipe2(output, O_CLOEXEC) == 0);
    d.pid = fork();
    MC_ASSERT(d.pid >= 0);
    if (d.pid == 0) {
        setpgid(0, 0); /* what ends a test's process group leaves the server to tidy up */
        dup2(input[0], 0);
        dup2(output[1], 1);
        unsetenv("LD_PRELOAD");
        execl("/usr/bin/python3", "python3", script, "--lifetime", "1800", setting == NULL ? NULL : "--set", setting,
              (char *)NULL);
        _exit(127);
    }
    close(input[0]);
    close(output[1]);
    d.input = input[1];
    d.output = fdopen(output[0], "r");
    char line[256];
    MC_ASSERT(fgets(line, sizeof(line), d.output) != NULL && sscanf(line, "%d %127s", &d.port, d.folder) == 2);
    return d;
}

void
database_stop(database *d)
{
    close(d->input);
    waitpid(d->pid, NULL, 0);
    fclose(d->output);
}

const char *
database_do(const database *d, const char *command)
{
    char line[1024] = "";
    if (dprintf(d->input, "%s\n", command) < 0 || fgets(line, sizeof(line), d->output) == NULL) {
        fprintf(stderr, "the database does not \"%s\"\n", command);
        abort();
    }
    line[strcspn(line, "\n")] = '\0';
    return apr_pstrdup(pool, line);
}

const char *
database_connection(const database *d)
{
    return apr_psprintf(pool,
                        "host=127.0.0.1 port=%d dbname=postgres user=mapcache password='" DATABASE_PASSWORD
                        "' sslmode=disable gssencmode=disable",
                        d->port);
}

void
postgres_set_up(int connections)
{
    unit_setup();
    process.postgres = mc_postgres_create(connections, 1, 60 * APR_USEC_PER_SEC, true);
    process.metrics = mc_metrics_create();
    ctx.deadline = mc_clock_now() + 120 * APR_USEC_PER_SEC;
}

void
postgres_tear_down(void)
{
    mc_postgres_destroy(process.postgres);
    mc_metrics_destroy(process.metrics);
    unit_teardown();
}

int
postgres_run_between(const char *name, const TTest *const *tests, int count, SFun before, SFun after)
{
    postgres_server = database_start(NULL);
    int result = unit_run_between(name, tests, count, before, after);
    database_stop(&postgres_server);
    return result;
}

static void
set_up_connections(void)
{
    postgres_set_up(connections_at_most);
}

int
postgres_run(const char *name, int connections, const TTest *const *tests, int count)
{
    connections_at_most = connections;
    return postgres_run_between(name, tests, count, set_up_connections, postgres_tear_down);
}
