/* Files that grow by whole lines, which others may rename away: log rotation. */
#ifndef MC_TELEMETRY_LINE_FILE_H
#define MC_TELEMETRY_LINE_FILE_H

#include "mapcache/ctx.h"

typedef struct mc_line_file mc_line_file;

/* Of a path, or of "stderr". Opened with the first line, closed with the pool; used from any thread and process. */
mc_line_file *mc_line_file_create(const char *path, apr_pool_t *pool);

/* Appends a line (its line break included) by one write. What cannot be written is lost; the log says so once a minute.
 */
void mc_line_file_write(mc_line_file *file, const char *line, size_t size, const mc_ctx *ctx);

#endif
