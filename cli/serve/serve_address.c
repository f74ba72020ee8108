/* See serve_address.h. */
#include "serve_address.h"

#include <apr_strings.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LISTENERS_MAX = 64, PORTS_TRIED = 100, PORT_MAX = 65535, FIRST_FREE_PORT = 1024 };

static bool
is_loopback(const struct sockaddr_storage *socket)
{
    if (socket->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)socket)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)socket)->sin6_addr);
}

static bool
is_any_address(const struct sockaddr_storage *socket)
{
    if (socket->ss_family == AF_INET)
        return ((const struct sockaddr_in *)socket)->sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)socket)->sin6_addr);
}

mc_error *
mc_serve_address_find(mc_serve_address *address, const char *text, apr_pool_t *pool)
{
    const struct addrinfo wanted = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *found = NULL;
    char host[INET6_ADDRSTRLEN + 20];
    size_t size = strlen(text);
    const char *bare =
        size > 2 && text[0] == '[' && text[size - 1] == ']' ? apr_pstrndup(pool, text + 1, size - 2) : text;
    int status = getaddrinfo(bare, "0", &wanted, &found);
    if (status != 0)
        return mc_error_create(pool, MC_ERR_CONFIG, "--listen %s: %s", text, gai_strerror(status));
    *address = (mc_serve_address){ .size = found->ai_addrlen };
    memcpy(&address->socket, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    status = getnameinfo((const struct sockaddr *)&address->socket, address->size, host, sizeof(host), NULL, 0,
                         NI_NUMERICHOST);
    if (status != 0)
        return mc_error_create(pool, MC_ERR_CONFIG, "--listen %s: %s", text, gai_strerror(status));
    address->host =
        address->socket.ss_family == AF_INET6 ? apr_pstrcat(pool, "[", host, "]", NULL) : apr_pstrdup(pool, host);
    address->public = !is_loopback(&address->socket);
    address->any = is_any_address(&address->socket);
    return MC_OK;
}

static void
set_address_port(mc_serve_address *address, int port)
{
    address->port = port;
    if (address->socket.ss_family == AF_INET)
        ((struct sockaddr_in *)&address->socket)->sin_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in6 *)&address->socket)->sin6_port = htons((uint16_t)port);
}

/* 0, or errno: EADDRINUSE, EACCES, EADDRNOTAVAIL. */
static int
try_to_listen(const mc_serve_address *address)
{
    int on = 1, code = 0, probe = socket(address->socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return errno;
    setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); /* as servers do */
    if (bind(probe, (const struct sockaddr *)&address->socket, address->size) != 0 || listen(probe, 1) != 0)
        code = errno;
    close(probe);
    return code;
}

/* --- who has a port ----------------------------------------------------------------------------------------------- */

/* The inode of the socket of a line of /proc/net/tcp; 0: it does not listen on this port. */
static unsigned long
find_listening_inode(char *line, int port)
{
    enum { LOCAL_PORT = 2, STATE = 5, INODE = 13, FIELDS, LISTENS = 0x0A };
    char *fields[FIELDS], *rest, *field = strtok_r(line, " :\n", &rest);
    int count = 0;
    for (; field != NULL && count < FIELDS; field = strtok_r(NULL, " :\n", &rest))
        fields[count++] = field;
    if (count < FIELDS || strtol(fields[LOCAL_PORT], NULL, 16) != port || strtol(fields[STATE], NULL, 16) != LISTENS)
        return 0;
    return strtoul(fields[INODE], NULL, 10);
}

/* Adds the inodes of the sockets that listen on a port, by a table of the kernel. */
static void
add_listening_inodes(unsigned long *inodes, int *count, const char *table, int port)
{
    char line[512];
    FILE *file = fopen(table, "re");
    if (file == NULL)
        return;
    while (*count < LISTENERS_MAX && fgets(line, sizeof(line), file) != NULL) {
        unsigned long inode = find_listening_inode(line, port);
        if (inode != 0)
            inodes[(*count)++] = inode;
    }
    fclose(file);
}

static int
list_listening_inodes(unsigned long *inodes, int port)
{
    int count = 0;
    add_listening_inodes(inodes, &count, "/proc/net/tcp", port);
    add_listening_inodes(inodes, &count, "/proc/net/tcp6", port);
    return count;
}

/* Whether a process has one of the sockets open. */
static bool
holds_socket(const char *process, const unsigned long *inodes, int count)
{
    char folder[64], path[400], target[64], wanted[64];
    bool held = false;
    snprintf(folder, sizeof(folder), "/proc/%.20s/fd", process);
    DIR *list = opendir(folder);
    if (list == NULL)
        return false;
    for (const struct dirent *entry; !held && (entry = readdir(list)) != NULL;) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        ssize_t size = readlink(path, target, sizeof(target) - 1);
        target[size < 0 ? 0 : size] = '\0';
        for (int i = 0; i < count && !held; i++) {
            snprintf(wanted, sizeof(wanted), "socket:[%lu]", inodes[i]);
            held = strcmp(target, wanted) == 0;
        }
    }
    closedir(list);
    return held;
}

/* "nginx (process 1234)", or NULL where that cannot be known. */
static const char *
find_listener(int port, apr_pool_t *pool)
{
    unsigned long inodes[LISTENERS_MAX];
    const char *found = NULL;
    int count = list_listening_inodes(inodes, port);
    DIR *list = count == 0 ? NULL : opendir("/proc");
    if (list == NULL)
        return NULL;
    for (const struct dirent *entry; found == NULL && (entry = readdir(list)) != NULL;) {
        if (entry->d_name[strspn(entry->d_name, "0123456789")] != '\0' || !holds_socket(entry->d_name, inodes, count))
            continue;
        char path[64], name[64] = "";
        snprintf(path, sizeof(path), "/proc/%.20s/comm", entry->d_name);
        FILE *file = fopen(path, "re");
        if (file != NULL && fgets(name, sizeof(name), file) != NULL)
            found = apr_psprintf(pool, "%.*s (process %s)", (int)strcspn(name, "\n"), name, entry->d_name);
        if (file != NULL)
            fclose(file);
    }
    closedir(list);
    return found;
}

static mc_error *
refuse_port(const mc_serve_address *address, int code, apr_pool_t *pool)
{
    const char *who = code == EADDRINUSE ? find_listener(address->port, pool) : NULL;
    if (code == EADDRINUSE && who != NULL)
        return mc_error_create(pool, MC_ERR_CONFIG, "port %d is taken by %s: end it, or choose another --port",
                               address->port, who);
    if (code == EADDRINUSE)
        return mc_error_create(pool, MC_ERR_CONFIG,
                               "port %d is taken, and by whom only root can see: `sudo ss -ltnp 'sport = :%d'` names "
                               "the program; or choose another --port",
                               address->port, address->port);
    if (code == EADDRNOTAVAIL)
        return mc_error_create(pool, MC_ERR_CONFIG, "--listen %s is no address of this machine", address->host);
    return mc_error_create(pool, MC_ERR_CONFIG, "port %d of %s cannot be listened on: %s", address->port, address->host,
                           strerror(code));
}

/* --- choosing ----------------------------------------------------------------------------------------------------- */

mc_error *
mc_serve_address_choose(mc_serve_address *address, int wanted, bool exactly, apr_pool_t *pool)
{
    int code = EADDRINUSE;
    if (wanted < FIRST_FREE_PORT && geteuid() == 0)
        return mc_error_create(pool, MC_ERR_CONFIG,
                               "--port %d: root gives up its rights before it serves, and ports below %d need them",
                               wanted, FIRST_FREE_PORT);
    for (int port = wanted; port <= PORT_MAX && port < wanted + (exactly ? 1 : PORTS_TRIED); port++) {
        set_address_port(address, port);
        code = try_to_listen(address);
        if (code == 0)
            return MC_OK;
        if (code != EADDRINUSE)
            break;
    }
    return refuse_port(address, code, pool);
}

/* Whether anybody answers; cheap, where the kernel's tables of sockets may be long. */
static bool
is_address_answered(const mc_serve_address *address)
{
    struct sockaddr_storage target = address->socket;
    if (address->any && target.ss_family == AF_INET)
        ((struct sockaddr_in *)&target)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else if (address->any)
        ((struct sockaddr_in6 *)&target)->sin6_addr = in6addr_loopback;
    int probe = socket(target.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return false;
    bool answered = connect(probe, (const struct sockaddr *)&target, address->size) == 0;
    close(probe);
    return answered;
}

bool
mc_serve_address_held(const mc_serve_address *address, pid_t process)
{
    unsigned long inodes[LISTENERS_MAX];
    char name[24];
    int count = 0;
    if (!is_address_answered(address))
        return false;
    snprintf(name, sizeof(name), "%d", (int)process);
    add_listening_inodes(inodes, &count, address->socket.ss_family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6",
                         address->port);
    return count > 0 && holds_socket(name, inodes, count);
}

const char *
mc_serve_address_url(const mc_serve_address *address, apr_pool_t *pool)
{
    const char *host = !address->any ? address->host : address->socket.ss_family == AF_INET6 ? "[::1]" : "127.0.0.1";
    return apr_psprintf(pool, "http://%s:%d/", host, address->port);
}
