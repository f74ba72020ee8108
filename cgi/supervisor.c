/* One datagram for each change of state: see supervisor.h. */
#include "supervisor.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* RELOADING=1 goes with the time of the monotonic clock, in microseconds. */
static void
format_state(char text[128], mc_supervised_state state)
{
    struct timespec now;
    switch (state) {
    case MC_SUPERVISED_SERVES:
        snprintf(text, 128, "READY=1");
        break;
    case MC_SUPERVISED_RELOADS:
        clock_gettime(CLOCK_MONOTONIC, &now);
        snprintf(text, 128, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
        break;
    case MC_SUPERVISED_ENDS:
        snprintf(text, 128, "STOPPING=1");
        break;
    }
}

void
mc_supervisor_tell(mc_supervised_state state)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const char *path = getenv("NOTIFY_SOCKET");
    size_t length = path == NULL ? 0 : strlen(path);
    if (length < 2 || length >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@') /* the abstract name space */
        address.sun_path[0] = '\0';
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return;
    char text[128] = "";
    format_state(text, state);
    (void)!sendto(descriptor, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&address,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    close(descriptor);
}
