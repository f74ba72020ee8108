/* The scripted origin of tests/integration/origin.py for C tests: one process for each test, gone with it. */
#ifndef MC_UNIT_ORIGIN_H
#define MC_UNIT_ORIGIN_H

#include <apr_strings.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http/http.h"
#include "unit.h"

typedef struct origin {
    int port;
    char log[64];
    pid_t pid;
    int input; /* the origin ends when this is closed, also when the test dies */
} origin;

origin origin_start(void);
void origin_stop(origin *o);
const char *origin_url(const origin *o, const char *path);

/* How many requests the origin has logged. */
int origin_count(const origin *o);

/* The text of member `name` of the last request. */
const char *origin_last(const origin *o, const char *name);
double seconds_since(apr_time_t begin);

#endif
