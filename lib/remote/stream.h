/* One connection to a server: bytes to it, lines and bytes from it, each wait bounded. */
#ifndef MC_REMOTE_STREAM_H
#define MC_REMOTE_STREAM_H

#include "remote/remote.h"

enum { MC_STREAM_BUFFER = 16 << 10, MC_STREAM_LINE_MAX = 2048 };

/* A connection to the server: a kept one, unless `fresh` is wanted, or a new one, greeted. */
mc_error *mc_stream_open(mc_stream **stream, mc_remote *remote, bool fresh, const mc_remote_call *call) MC_CHECKED;

/* One that somebody has made; for tests. `call` lives as long as it. */
mc_stream *mc_stream_adopt(mc_remote *remote, int descriptor, const mc_remote_call *call);

/* Ends the use of the connection: it is kept where everything that has come was read, and closed otherwise. Keeping
 * also reports that the server works. */
void mc_stream_keep(mc_stream *stream);
void mc_stream_close(mc_stream *stream);

mc_error *mc_stream_send(mc_stream *stream, const void *bytes, size_t size) MC_CHECKED;

/* The next line without its CR LF, ended by a zero byte; valid until the next call. MC_ERR_CORRUPT: it is longer than
 * MC_STREAM_LINE_MAX, or holds a zero byte. */
mc_error *mc_stream_line(char **line, size_t *size, mc_stream *stream) MC_CHECKED;

/* Exactly so many bytes. */
mc_error *mc_stream_bytes(mc_stream *stream, void *out, size_t size) MC_CHECKED;

/* The same of bytes that nobody wants. */
mc_error *mc_stream_pass(mc_stream *stream, size_t size) MC_CHECKED;

/* As many bytes as a value has, attached to the call's pool; MC_ERR_CORRUPT beyond `most`. */
mc_error *mc_stream_value(mc_buf **value, mc_stream *stream, size_t size, size_t most) MC_CHECKED;

/* The end of a value's bytes: CR LF. */
mc_error *mc_stream_end_of_value(mc_stream *stream) MC_CHECKED;

/* Whether the server has said something that is not read yet, or has ended the connection; waits until `until`
 * (mc_clock_now()) at most, and no longer than the client. */
bool mc_stream_wait(mc_stream *stream, apr_time_t until);

bool mc_stream_is_fresh(const mc_stream *stream);   /* made for this call */
bool mc_stream_has_ended(const mc_stream *stream);  /* the server has ended it */
bool mc_stream_has_unread(const mc_stream *stream); /* bytes that nobody has read yet */
bool mc_stream_was_silent(const mc_stream *stream); /* an answer did not begin in time */
const mc_remote_call *mc_stream_call(const mc_stream *stream);
mc_remote *mc_stream_remote(const mc_stream *stream);

/* For another call, where a connection outlives the one that it was made for. */
void mc_stream_hand_over(mc_stream *stream, const mc_remote_call *call);

/* An answer that is none: MC_ERR_CORRUPT with the server's name and the beginning of what it said. */
mc_error *mc_stream_nonsense(mc_stream *stream, const char *line) MC_CHECKED;

#endif
