#include "db/postgres/postgres_frames.h"

#include "base/bytes.h"

/* What a head says. NULL, or what is wrong with it. */
static const char *
read_frame_head(mc_pg_frames *frames, const unsigned char *head)
{
    uint32_t length = (uint32_t)mc_big_number(head + 1, 4);
    if (length < 4)
        return "it sends what is no message of its protocol";
    if (length > MC_PG_MESSAGE_MAX)
        return "it begins a message that is too large";
    if (head[0] == 'S' && ++frames->settings > MC_PG_SETTINGS_MAX)
        return "it sends settings without end";
    frames->left = length - 4;
    return NULL;
}

const char *
mc_pg_frames_pass(mc_pg_frames *frames, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    const char *complaint = NULL;
    while (complaint == NULL) {
        size_t skipped = frames->left < size ? frames->left : size;
        frames->left -= (uint32_t)skipped;
        at += skipped;
        size -= skipped;
        if (size == 0)
            return NULL;
        if (frames->head_size == 0 && size >= MC_PG_HEAD) {
            complaint = read_frame_head(frames, at);
            at += MC_PG_HEAD;
            size -= MC_PG_HEAD;
            continue;
        }
        frames->head[frames->head_size++] = *at++;
        size--;
        if (frames->head_size < MC_PG_HEAD)
            continue;
        frames->head_size = 0;
        complaint = read_frame_head(frames, frames->head);
    }
    return complaint;
}
