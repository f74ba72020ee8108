/* Where a server's messages begin, and how long each says that it is (PostgreSQL manual, "Message Formats"). */
#ifndef MC_DB_POSTGRES_POSTGRES_FRAMES_H
#define MC_DB_POSTGRES_POSTGRES_FRAMES_H

#include <stddef.h>
#include <stdint.h>

enum {
    MC_PG_HEAD = 5,               /* bytes of a message's head: its kind, its length */
    MC_PG_MESSAGE_MAX = 64 << 20, /* bytes that a message may have behind its kind: a row, a field of a COPY */
    MC_PG_SETTINGS_MAX = 4000,    /* that a server may tell on one connection; libpq keeps them in a list */
    MC_PG_SETTINGS_MANY = 1000,   /* with so many the connection is not kept */
};

typedef struct mc_pg_frames {
    unsigned char head[MC_PG_HEAD];
    size_t head_size; /* bytes of a head whose rest is still to come */
    uint32_t left;    /* bytes of the message that are still to come */
    int settings;     /* that were told so far */
} mc_pg_frames;

/* Follows the next bytes of a server. NULL, or what is wrong with them; nothing may follow then. */
const char *mc_pg_frames_pass(mc_pg_frames *frames, const void *bytes, size_t size);

#endif
