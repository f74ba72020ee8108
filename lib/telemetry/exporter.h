/*
 * Sends traces to a receiver of OTLP/HTTP: a queue that is bounded in number and bytes, and one thread of the process,
 * which is made with the first trace. Requests never wait for it.
 */
#ifndef MC_TELEMETRY_EXPORTER_H
#define MC_TELEMETRY_EXPORTER_H

#include "mapcache/ctx.h"
#include "telemetry/otlp.h"

/* Where traces go: of a configuration, which may end before the last trace has been sent. */
typedef struct mc_export_target mc_export_target;

/* Copies of an address of http or https, of headers (or NULL), and of the name of the service. */
mc_export_target *mc_export_target_create(const char *url, const apr_table_t *headers, const char *service_name);
void mc_export_target_unref(mc_export_target *target); /* NULL is ignored */

typedef struct mc_exporter mc_exporter;

/* Of a process, which the exporter uses for its HTTP client and metrics. Starts no thread yet. */
mc_exporter *mc_exporter_create(mc_process *process);

/* Sends what waits, for at most two seconds, and ends the thread. Of a forked process, which has no such thread, it
 * only frees. NULL is ignored. */
void mc_exporter_destroy(mc_exporter *exporter);

/* Whether one more of `most` traces of this second may begin; 0: no limit. */
bool mc_exporter_lets_in(mc_exporter *exporter, int most);

/* Takes over the spans of one request. What the queue has no room for is dropped and counted. */
void mc_exporter_push(mc_exporter *exporter, mc_export_target *target, mc_otlp_bytes spans);

#endif
