/* <telemetry>: see telemetry.h and docs/operations.md. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "telemetry/exporter.h"
#include "telemetry/line_file.h"
#include "text/text.h"

typedef struct telemetry_config {
    const char *traces;
    const mc_node *headers;
    double sampling;
    int most_traces;
    bool trusts;
    const char *service_name;
    const char *access_log, *slow_log;
    bool hits;
    double slow_after;
    int format;
} telemetry_config;

#define FIELD(member) offsetof(telemetry_config, member)

const mc_key mc_telemetry_keys[] = {
    MC_KEY_URL(
        "traces", FIELD(traces),
        "Address of a receiver of OTLP/HTTP that takes binary protobuf, as http://localhost:4318/v1/traces: spans "
        "of a part of the requests are sent there. Not by a plain CGI program.",
        .flags = MC_KEY_OURS),
    MC_KEY_TREE("headers", FIELD(headers), NULL, "Headers for the receiver, one element each: <Name>value</Name>.",
                .flags = MC_KEY_OURS),
    MC_KEY_NUMBER("sampling", FIELD(sampling), "Percent of the requests that begin a trace.", .flags = MC_KEY_OURS,
                  .min = 0, .max = 100, .fallback = "1"),
    MC_KEY_INT("max_traces_per_second", FIELD(most_traces),
               "Requests of a process that are traced in a second at most, whoever wants it; 0: no limit.",
               .flags = MC_KEY_OURS, .min = 0, .max = 1000000, .fallback = "100"),
    MC_KEY_BOOL("trust_traceparent", FIELD(trusts),
                "Whether a client's or a proxy's header traceparent (W3C Trace Context) is obeyed: its trace goes on "
                "here, and it says whether the request is traced. false: the header is not looked at.",
                .flags = MC_KEY_OURS, .fallback = "true"),
    MC_KEY_LINE("service_name", FIELD(service_name), "What the receiver is told as service.name.", .flags = MC_KEY_OURS,
                .fallback = "mapcache"),
    MC_KEY_TEXT("access_log", FIELD(access_log),
                "File for a line about each request that was no hit (a stored tile that goes out as it is), or stderr.",
                .flags = MC_KEY_OURS),
    MC_KEY_BOOL("access_log_hits", FIELD(hits), "Whether hits have such a line, too.", .flags = MC_KEY_OURS,
                .fallback = "false"),
    MC_KEY_TEXT("slow_log", FIELD(slow_log),
                "File for a line about each request that took long, with what took how long in it, or stderr.",
                .flags = MC_KEY_OURS),
    MC_KEY_NUMBER("slow_seconds", FIELD(slow_after), "From so many seconds on a request is slow.", .flags = MC_KEY_OURS,
                  .min = 0.001, .max = 86400, .fallback = "1"),
    MC_KEY_CHOICE("log_format", FIELD(format), "logfmt|json", "The form of these lines.", .flags = MC_KEY_OURS,
                  .fallback = "logfmt"),
    MC_KEY_END,
};

#undef FIELD

static apr_status_t
release_target(void *data)
{
    mc_export_target_unref(data);
    return APR_SUCCESS;
}

static bool
is_receiver_address(const char *url)
{
    return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
}

static bool
read_target(mc_telemetry *telemetry, const telemetry_config *config, const mc_node *node, mc_build *build)
{
    apr_table_t *headers = apr_table_make(build->pool, 4);
    if (!is_receiver_address(config->traces)) {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "traces"),
                    "<traces>: \"%s\" should be an address of http or https", config->traces);
        return false;
    }
    for (const mc_node *header = config->headers == NULL ? NULL : config->headers->children; header != NULL;
         header = header->next) {
        if (!mc_is_token(header->name, strlen(header->name))) {
            mc_complain(build->diagnostics, MC_REFUSED, header, "\"%s\" cannot be the name of a header", header->name);
            return false;
        }
        apr_table_setn(headers, header->name, header->text == NULL ? "" : mc_unwrap_text(header->text, build->pool));
    }
    telemetry->target = mc_export_target_create(config->traces, headers, config->service_name);
    apr_pool_cleanup_register(build->pool, telemetry->target, release_target, apr_pool_cleanup_null);
    return true;
}

static struct mc_line_file *
read_line_file(const char *path, const mc_node *node, apr_pool_t *pool)
{
    if (path == NULL)
        return NULL;
    return mc_line_file_create(strcmp(path, "stderr") == 0 ? path : mc_config_path(node->file, path, pool), pool);
}

/* A share of all numbers of 64 bits. */
static uint64_t
threshold_of_percent(double percent)
{
    return percent >= 100 ? UINT64_MAX : (uint64_t)ldexp(percent / 100, 64);
}

mc_telemetry *
mc_telemetry_from_config(const mc_node *node, mc_build *build)
{
    telemetry_config config = { 0 };
    if (node == NULL || !mc_config_read(&config, node, mc_telemetry_keys, build->diagnostics))
        return NULL;
    mc_telemetry *telemetry = apr_pcalloc(build->pool, sizeof(*telemetry));
    if (config.traces != NULL && !read_target(telemetry, &config, node, build))
        return NULL;
    telemetry->threshold = threshold_of_percent(config.sampling);
    telemetry->most_traces = config.most_traces;
    telemetry->trusts = config.trusts;
    telemetry->access = read_line_file(config.access_log, node, build->pool);
    telemetry->slow = read_line_file(config.slow_log, node, build->pool);
    telemetry->tells_hits = config.hits;
    telemetry->slow_after = (apr_interval_time_t)(config.slow_after * APR_USEC_PER_SEC);
    telemetry->json = config.format == 1;
    return telemetry;
}
