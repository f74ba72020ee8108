/* The page of the jobs: a frame; its script asks the API. */
#include <apr_strings.h>
#include <string.h>

#include "service/jobs/jobs.h"
#include "text/text.h"

/* Addresses are relative to the page's own, which may have been asked for with a slash at its end or without. */
mc_buf *
mc_jobs_page(const mc_call *call, apr_pool_t *pool)
{
    bool in_folder = call->full_path[strlen(call->full_path) - 1] == '/';
    const char *here = in_folder ? "" : "jobs/";
    const char *layers = mc_call_service(call, "demo") == NULL ? ""
                         : in_folder                           ? " <a href=\"../demo/?list\">All layers</a>"
                                                               : " <a href=\"demo/?list\">All layers</a>";
    const char *title = mc_meta(call->config->metadata, "title");
    title = mc_xml_escape(title != NULL ? title : "mapcache", pool);
    const char *html = apr_psprintf(
        pool,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Jobs - %s</title>"
        "<link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"%sstatic/base.css\">"
        "<link rel=\"stylesheet\" href=\"%sstatic/jobs.css\"></head>\n"
        "<body data-api=\"%sapi\"><header><h1>%s</h1><nav><a href=\"\" aria-current=\"page\">Jobs</a>%s</nav>"
        "<form id=\"key\"><input id=\"token\" type=\"password\" autocomplete=\"off\" placeholder=\"Token\""
        " aria-label=\"Token\"><button>Use</button></form></header>\n"
        "<main class=\"jobs\"><p id=\"notice\" role=\"status\"></p>"
        "<h2>Jobs</h2><p id=\"nothing\" hidden>There are no jobs.</p><ul id=\"jobs\"></ul>"
        "<h2>Workers</h2><p id=\"idle\" hidden>No worker has been heard of in the last 30 seconds.</p>"
        "<table id=\"workers\"><thead><tr><th>Worker</th><th>Threads</th><th>Job</th><th>Tiles/s</th><th>Tiles</th>"
        "<th>Seen</th></tr></thead><tbody></tbody></table></main>\n"
        "<script src=\"%sstatic/jobs.js\"></script></body></html>\n",
        title, here, here, here, title, layers, here);
    return mc_buf_attach(mc_buf_copy(html, strlen(html)), pool);
}
