/* A PostgreSQL server for C tests (tests/integration/postgres.py): started once for a program, before its tests. */
#ifndef MC_UNIT_POSTGRES_H
#define MC_UNIT_POSTGRES_H

#include <apr_strings.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/postgres/postgres.h"
#include "unit.h"

#define DATABASE_PASSWORD "swordfish of glass"

typedef struct database {
    int port;
    char folder[128];
    pid_t pid;
    int input; /* the server ends when this is closed, also when the test dies */
    FILE *output;
} database;

/* Also outside of tests, where Check's assertions may not be used. */
database database_start(const char *setting);
void database_stop(database *d);

/* "stop", "start", "restart", "sql ..."; the answer's line. */
const char *database_do(const database *d, const char *command);
const char *database_connection(const database *d);

/* The server of a program's tests, which these functions start before the tests and stop behind them. */
extern database postgres_server;

/* Before a test: what unit_setup does, connections to the server, at most that many, counters, two minutes of time. */
void postgres_set_up(int connections);
void postgres_tear_down(void);

/* Runs a suite with that before and after each test. */
int postgres_run(const char *name, int connections, const TTest *const *tests, int count);

/* The same with what is done before and after each test. */
int postgres_run_between(const char *name, const TTest *const *tests, int count, SFun before, SFun after);

#define POSTGRES_MAIN(name, connections, ...)                                                                          \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const TTest *const tests[] = { __VA_ARGS__ };                                                                  \
        return postgres_run(name, connections, tests, (int)(sizeof(tests) / sizeof(tests[0])));                        \
    }

#define POSTGRES_MAIN_BETWEEN(name, before, after, ...)                                                                \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const TTest *const tests[] = { __VA_ARGS__ };                                                                  \
        return postgres_run_between(name, tests, (int)(sizeof(tests) / sizeof(tests[0])), before, after);              \
    }

#endif
