#include "memcached_server.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

int
reserve_unused_port(int *keeper)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(address);
    *keeper = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(*keeper, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(getsockname(*keeper, (struct sockaddr *)&address, &size), 0);
    return ntohs(address.sin_port);
}

/* The port that memcached has written to a file; 0: none yet. */
static int
read_memcached_port(const char *path)
{
    int port = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fscanf(file, "TCP INET: %d", &port) != 1)
        port = 0;
    fclose(file);
    return port;
}

pid_t
start_memcached(int *port)
{
    char path[] = "/tmp/mapcache-memcached-XXXXXX";
    int status, file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    unlink(path);             /* memcached renames its own file to that */
    signal(SIGPIPE, SIG_IGN); /* as every server does: a lost connection is an error, not the end */
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing running */
        setenv("MEMCACHED_PORT_FILENAME", path, 1);
        execlp("memcached", "memcached", "-l", "127.0.0.1", "-p", "-1", "-U", "0", "-u", "root", NULL);
        _exit(127);
    }
    while ((*port = read_memcached_port(path)) == 0 && waitpid(child, &status, WNOHANG) == 0)
        usleep(10000);
    unlink(path);
    ck_assert_msg(*port != 0, "memcached did not start: is it installed?");
    return child;
}

long
read_memcached_seconds(int port)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                         .sin_port = htons((uint16_t)port) };
    char answer[8192];
    size_t size = 0;
    int line = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(line, (const struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(write(line, "stats\r\n", 7), 7);
    do {
        ssize_t count = read(line, answer + size, sizeof(answer) - 1 - size);
        ck_assert_int_gt(count, 0);
        size += (size_t)count;
        answer[size] = '\0';
    } while (strstr(answer, "END\r\n") == NULL);
    close(line);
    const char *found = strstr(answer, "STAT uptime ");
    ck_assert_ptr_nonnull(found);
    return strtol(found + strlen("STAT uptime "), NULL, 10);
}

void
stop_memcached(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}
