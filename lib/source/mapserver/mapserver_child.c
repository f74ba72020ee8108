/*
 * The program mapcache-mapserver: draws map files by MapServer's library for one server process, which has started it
 * and is at the other end of standard input. The program ends when the server closes that end, also in the middle of
 * a map, and when nothing has been asked for long.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "source/mapserver/mapserver_map.h"

enum { IDLE_MAX = 300 * 1000 /* ms */ };

/* A thread of its own, as the other one may be waiting for a database that never answers. */
static void *
end_with_server(void *unused)
{
    struct pollfd server = { .fd = 0, .events = POLLRDHUP };
    while (poll(&server, 1, -1) <= 0)
        continue;
    _exit(0);
    return unused;
}

static bool
read_all(void *bytes, size_t size)
{
    for (char *to = bytes; size > 0;) {
        ssize_t got = read(0, to, size);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        if (got > 0) {
            to += got;
            size -= (size_t)got;
        }
    }
    return true;
}

static bool
send_all(const void *bytes, size_t size)
{
    for (const char *from = bytes; size > 0;) {
        ssize_t sent = send(0, from, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return false;
        if (sent > 0) {
            from += sent;
            size -= (size_t)sent;
        }
    }
    return true;
}

/* The next of the texts; NULL: there is none. */
static char *
next_text(char **at, const char *end)
{
    char *text = *at;
    if (text >= end)
        return NULL;
    *at = text + strlen(text) + 1;
    return text;
}

/* False: what was read is no ask of this program's version. */
static bool
read_ask(mc_mapserver_ask *ask, mapserver_texts *texts, char bytes[MC_MAPSERVER_TEXTS_MAX])
{
    char *at = bytes;
    if (!read_all(ask, sizeof(*ask)) || ask->magic != MC_MAPSERVER_MAGIC || ask->text_size < 1 ||
        ask->text_size > MC_MAPSERVER_TEXTS_MAX || ask->pair_count > MC_MAPSERVER_PAIRS_MAX || ask->width < 0 ||
        ask->width > MC_MAPSERVER_SIDE_MAX || ask->height < 0 || ask->height > MC_MAPSERVER_SIDE_MAX ||
        !read_all(bytes, ask->text_size) || bytes[ask->text_size - 1] != '\0')
        return false;
    const char *end = bytes + ask->text_size;
    texts->mapfile = next_text(&at, end);
    texts->srs = next_text(&at, end);
    texts->layers = next_text(&at, end);
    bool whole = texts->layers != NULL;
    for (uint32_t i = 0; i < ask->pair_count && whole; i++) {
        texts->names[i] = next_text(&at, end);
        texts->values[i] = next_text(&at, end);
        whole = texts->values[i] != NULL;
    }
    return whole;
}

static bool
send_drawing(const mapserver_drawing *drawing)
{
    mc_mapserver_answer answer = { .magic = MC_MAPSERVER_MAGIC,
                                   .outcome = drawing->outcome,
                                   .text_size = (uint32_t)strlen(drawing->said),
                                   .opaque = (uint32_t)drawing->opaque };
    if (drawing->pixels != NULL) {
        answer.width = drawing->width;
        answer.height = drawing->height;
    }
    return send_all(&answer, sizeof(answer)) && send_all(drawing->said, answer.text_size) &&
           (drawing->pixels == NULL || send_all(drawing->pixels, (size_t)drawing->width * (size_t)drawing->height * 4));
}

/* Whether something is asked, within a time; also once the server has gone. */
static bool
wait_for_ask(void)
{
    struct pollfd server = { .fd = 0, .events = POLLIN };
    int ready;
    do
        ready = poll(&server, 1, IDLE_MAX);
    while (ready < 0 && errno == EINTR);
    return ready > 0;
}

int
main(void)
{
    static char bytes[MC_MAPSERVER_TEXTS_MAX];
    static mapserver_drawing drawing;
    const struct rlimit no_core = { 0, 0 };
    pthread_t watcher;
    (void)setrlimit(RLIMIT_CORE, &no_core);
    if (pthread_create(&watcher, NULL, end_with_server, NULL) != 0 || !start_mapserver()) {
        (void)fputs("MapServer's library cannot be started\n", stderr);
        return 1;
    }
    while (wait_for_ask()) {
        mc_mapserver_ask ask;
        mapserver_texts texts;
        if (!read_ask(&ask, &texts, bytes))
            break;
        alarm(ask.seconds);
        draw_mapfile(&drawing, &ask, &texts);
        alarm(0);
        bool sent = send_drawing(&drawing);
        free(drawing.pixels);
        if (!sent)
            break;
    }
    _exit(0); /* not exit(): what MapServer would free is the kernel's to free */
}
