/* Lines of access logs in the common and the combined format (Apache's and nginx's). */
#ifndef MC_DOCTOR_ACCESS_LOG_H
#define MC_DOCTOR_ACCESS_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parts of the line, which they do not outlive. */
typedef struct mc_access_line {
    const char *method, *target; /* target: path and query as the client has sent them, no bytes below the blank */
    size_t method_size, target_size;
    int status;    /* 100..599 */
    int64_t bytes; /* -1: not said */
} mc_access_line;

/* False: this is no such line, or its request was escaped (and is of no use to a server). The text need not end with a
 * zero byte. */
bool mc_access_line_parse(mc_access_line *line, const char *text, size_t size);

#endif
