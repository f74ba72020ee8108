#include "store_server.h"

#include <apr_strings.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http/http.h"

store_server
store_start(const char *kind)
{
    const char *script = apr_pstrcat(pool, unit_source_folder, "/tests/integration/store_server.py", (char *)NULL);
    store_server store = { .port = 0 };
    int input[2], output[2];
    ck_assert_int_eq(pipe2(input, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(output, O_CLOEXEC), 0);
    store.pid = fork();
    ck_assert_int_ge(store.pid, 0);
    if (store.pid == 0) {
        dup2(input[0], 0);
        dup2(output[1], 1);
        unsetenv("LD_PRELOAD");
        execl("/usr/bin/python3", "python3", script, "--kind", kind, (char *)NULL);
        _exit(127);
    }
    close(input[0]);
    close(output[1]);
    store.input = input[1];
    FILE *lines = fdopen(output[0], "r");
    ck_assert_int_eq(fscanf(lines, "%d", &store.port), 1);
    fclose(lines);
    setenv("no_proxy", "127.0.0.1", 1); /* a proxy of the environment must not come between */
    process.http = mc_http_create(4);
    return store;
}

void
store_stop(store_server *store)
{
    mc_http_destroy(process.http);
    process.http = NULL;
    close(store->input);
    waitpid(store->pid, NULL, 0);
}

const char *
store_order(const store_server *store, const char *order)
{
    mc_http_call call = {
        .method = "GET",
        .url = apr_psprintf(pool, "http://127.0.0.1:%d/-/%s", store->port, order),
        .timeout = 60,
        .max_response = 16 << 20,
    };
    mc_http_reply reply;
    mc_ctx plain = { .pool = pool, .process = &process, .log = &mc_log_stderr };
    ck_ok(mc_http_send(&reply, process.http, &call, &plain, pool));
    ck_assert_int_eq(reply.status, 200);
    return apr_pstrmemdup(pool, (const char *)reply.body->data, reply.body->size);
}

int
store_requests(const store_server *store)
{
    int count = 0;
    for (const char *at = store_order(store, "log"); (at = strstr(at, "\"connection\":")) != NULL; at++)
        count++;
    return count;
}
