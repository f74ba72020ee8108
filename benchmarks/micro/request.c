/* Microseconds of one request, from its path to its response, on one thread:
 * `micro_request CONFIGURATION FILE_OF_PATHS [rounds [alias [threads]]]`. With TRACE=FILE in the environment, traced
 * into that file. */
#include <apr_general.h>
#include <apr_strings.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mapcache/server.h"
#include "measure.h"

enum { PATHS_MAX = 100000, THREADS_MAX = 64 };

typedef struct runner {
    pthread_t thread;
    mc_server *server;
    mc_runtime *runtime;
    char **paths;
    int count, first, rounds;
    double microseconds; /* of processor time, a request, best round */
    int bad;
} runner;

/* As a front end's: one write for a request. */
static void
trace_sink(void *unused, const char *lines, size_t size)
{
    (void)unused;
    static int file = -1;
    if (file < 0)
        file = open(getenv("TRACE"), O_WRONLY | O_APPEND | O_CREAT, 0600);
    ssize_t written = write(file, lines, size);
    (void)written;
}

static void
ask_path(runner *self, const char *path, apr_pool_t *pool)
{
    mc_ctx ctx = { .pool = pool, .process = mc_runtime_process(self->runtime), .log = &mc_log_stderr };
    if (getenv("TRACE") != NULL)
        ctx.trace = mc_trace_create(trace_sink, NULL, "127.0.0.1:1234", "mod_mapcache.c(346)", pool);
    apr_table_t *headers = apr_table_make(pool, 4);
    apr_table_setn(headers, "Host", "localhost");
    mc_http_request request = {
        .method = "GET", .path = path, .base_url = "http://localhost/mc", .headers = headers, .client = "127.0.0.1"
    };
    mc_http_response *response;
    mc_server_handle(&response, self->server, &request, &ctx, pool);
    self->bad += response->status != 200;
}

static void *
run_requests(void *baton)
{
    runner *self = baton;
    apr_allocator_t *allocator;
    apr_pool_t *pool;
    apr_allocator_create(&allocator);
    apr_allocator_max_free_set(allocator, 1 << 20);
    apr_pool_create_ex(&pool, NULL, NULL, allocator);
    for (int round = 0; round < self->rounds; round++) {
        double start = read_clock_us(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < self->count; i++) {
            ask_path(self, self->paths[(self->first + i) % self->count], pool);
            apr_pool_clear(pool);
        }
        double each = (read_clock_us(CLOCK_THREAD_CPUTIME_ID) - start) / self->count;
        if (round == 0 || each < self->microseconds)
            self->microseconds = each;
    }
    apr_pool_destroy(pool);
    return NULL;
}

static int
read_request_paths(char **paths, const char *file, const char *alias)
{
    char line[4096];
    int count = 0;
    FILE *in = fopen(file, "r");
    if (in == NULL)
        return 0;
    while (count < PATHS_MAX && fgets(line, sizeof(line), in) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        size_t skip = strncmp(line, alias, strlen(alias)) == 0 ? strlen(alias) : 0;
        paths[count++] = strdup(line + skip);
    }
    fclose(in);
    return count;
}

int
main(int argc, char **argv)
{
    static char *paths[PATHS_MAX];
    static runner runners[THREADS_MAX];
    apr_pool_t *pool;
    apr_initialize();
    apr_pool_create(&pool, NULL);
    if (argc < 3)
        return 0; /* without a configuration there is nothing to measure */
    int rounds = argc > 3 ? atoi(argv[3]) : 5;
    int count = read_request_paths(paths, argv[2], argc > 4 ? argv[4] : "/mc");
    int threads = argc > 5 ? atoi(argv[5]) : 1;
    mc_server *server;
    mc_runtime *runtime;
    mc_error *error = mc_server_load(&server, argv[1], mc_diagnostics_create(pool), pool);
    if (error == MC_OK)
        error = mc_runtime_create(&runtime, mc_server_config(server), 1, true, &mc_log_stderr, pool);
    if (error != MC_OK || count == 0 || threads < 1 || threads > THREADS_MAX) {
        fprintf(stderr, "%s\n", error == MC_OK ? "no paths, or no such number of threads" : error->message);
        return 1;
    }
    mc_server_follow(server, mc_runtime_process(runtime));
    for (int i = 0; i < threads; i++) {
        runners[i] = (runner){ .server = server,
                               .runtime = runtime,
                               .paths = paths,
                               .count = count,
                               .first = i * count / threads,
                               .rounds = rounds };
        pthread_create(&runners[i].thread, NULL, run_requests, &runners[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(runners[i].thread, NULL);
        printf("thread %d: %.2f us a request, %d of %d bad\n", i, runners[i].microseconds, runners[i].bad,
               rounds * count);
    }
    mc_runtime_destroy(runtime);
    return 0;
}
