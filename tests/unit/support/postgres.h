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

#endif
