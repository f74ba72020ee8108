#include "redis_server.h"

#include <apr_strings.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memcached_server.h"
#include "text/text.h"
#include "unit.h"

enum { OPTIONS_MAX = 40 };

static int
connect_redis_socket(const redis_server_process *server)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/redis.sock", server->folder);
    int line = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(line, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return line;
    close(line);
    return -1;
}

static void
run_redis_program(const redis_server_process *server, const char *const *options)
{
    const char *arguments[OPTIONS_MAX] = { "redis-server",
                                           "--port",
                                           apr_psprintf(pool, "%d", server->port),
                                           "--bind",
                                           "127.0.0.1",
                                           "--save",
                                           "",
                                           "--appendonly",
                                           "no",
                                           "--dir",
                                           server->folder,
                                           "--unixsocket",
                                           apr_psprintf(pool, "%s/redis.sock", server->folder),
                                           "--loglevel",
                                           "warning",
                                           "--logfile",
                                           apr_psprintf(pool, "%s/log", server->folder) };
    int count = 0;
    while (arguments[count] != NULL)
        count++;
    for (int i = 0; options != NULL && options[i] != NULL && count < OPTIONS_MAX - 1; i++)
        arguments[count++] = mc_replace_all(options[i], "{folder}", server->folder, pool);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing running */
    execvp("redis-server", (char *const *)(uintptr_t)arguments);
    _exit(127);
}

/* False: the program has ended, perhaps because somebody else has taken its port. */
static bool
launch_redis(redis_server_process *server, const char *const *options)
{
    int keeper, status;
    server->port = reserve_unused_port(&keeper);
    close(keeper);
    signal(SIGPIPE, SIG_IGN);
    server->pid = fork();
    if (server->pid == 0)
        run_redis_program(server, options);
    while (waitpid(server->pid, &status, WNOHANG) == 0) {
        int line = connect_redis_socket(server);
        if (line >= 0) {
            close(line);
            return true;
        }
        usleep(10000);
    }
    return false;
}

void
start_redis(redis_server_process *server, const char *const *options)
{
    if (server->folder[0] == '\0') {
        strcpy(server->folder, "/tmp/mapcache-redis-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(server->folder));
    }
    for (int i = 0; i < 5; i++)
        if (launch_redis(server, options))
            return;
    ck_abort_msg("redis-server did not start: is it installed?");
}

void
stop_redis(redis_server_process *server)
{
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    ck_assert_int_eq(system(apr_psprintf(pool, "rm -rf %s", server->folder)), 0);
    server->folder[0] = '\0';
}

const char *
ask_redis(const redis_server_process *server, const char *line)
{
    char *answer = apr_pcalloc(pool, 1 << 16);
    const char *request = apr_pstrcat(pool, line, "\r\nECHO end-of-it\r\n", NULL);
    size_t got = 0;
    int socket = connect_redis_socket(server);
    ck_assert_int_ge(socket, 0);
    ck_assert_int_eq(send(socket, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    char *end = NULL;
    while (end == NULL && got < (1 << 16) - 1) {
        ssize_t count = recv(socket, answer + got, (1 << 16) - 1 - got, 0);
        ck_assert_int_gt(count, 0);
        got += (size_t)count;
        end = memmem(answer, got, "$9\r\nend-of-it\r\n", 15);
        if (end == NULL) /* who may not say so either */
            end = memmem(answer, got, "-NOAUTH Authentication required.\r\n-NOAUTH", 41);
    }
    close(socket);
    if (end != NULL)
        *end = '\0';
    return answer;
}

void
start_redis_cluster(redis_server_process servers[3])
{
    static const char *const slots[] = { "0 5460", "5461 10922", "10923 16383" };
    for (int i = 0; i < 3; i++) {
        int keeper, bus = reserve_unused_port(&keeper);
        const char *options[] = { "--cluster-enabled",
                                  "yes",
                                  "--cluster-port",
                                  apr_psprintf(pool, "%d", bus),
                                  "--cluster-node-timeout",
                                  "2000",
                                  NULL };
        close(keeper);
        servers[i].folder[0] = '\0';
        start_redis(&servers[i], options);
        ck_assert_str_eq(ask_redis(&servers[i], apr_psprintf(pool, "CLUSTER ADDSLOTSRANGE %s", slots[i])), "+OK\r\n");
        for (int j = 0; j < i; j++) {
            const char *meet = apr_psprintf(pool, "CLUSTER MEET 127.0.0.1 %d %d", servers[i].port, bus);
            ck_assert_str_eq(ask_redis(&servers[j], meet), "+OK\r\n");
        }
    }
    for (int i = 0; i < 3; i++)
        while (strstr(ask_redis(&servers[i], "CLUSTER INFO"), "cluster_state:ok") == NULL ||
               strstr(ask_redis(&servers[i], "CLUSTER INFO"), "cluster_size:3") == NULL)
            usleep(20000);
}

void
make_redis_certificates(const char *folder)
{
    static const char script[] =
        "cd %s && exec >openssl.log 2>&1 && "
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout authority.key -out "
        "authority.pem && "
        "openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr && "
        "printf 'subjectAltName=DNS:localhost,IP:127.0.0.1' >names && "
        "openssl x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 -extfile "
        "names "
        "-out server.pem";
    ck_assert_int_eq(system(mc_replace_all(script, "%s", folder, pool)), 0);
}
