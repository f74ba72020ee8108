/*
 * The flame chart: one HTML file that needs nothing else. The page is trace_page.html; its data, written here as JSON,
 * takes the place of the mark in it.
 */
#include <string.h>

#include "trace_report.h"

static const unsigned char page_text[] = {
#include "trace_page.inc"
};

/* More would be a page that no browser opens. */
enum { PAGE_SPANS_MAX = 500000 };

static const char mark[] = "@DATA@";

static const char *
page_mark(void)
{
    return memmem(page_text, sizeof(page_text), mark, sizeof(mark) - 1);
}

/* What does not go out stays in the error state of the file, which the command looks at in the end. */
static void
flush_trace_page(const mc_trace_page *page)
{
    mc_error *error = mc_json_flush(page->json, page->out);
    MC_ASSERT(error == MC_OK || ferror(page->out));
}

void
mc_trace_page_begin(mc_trace_page *page, FILE *out, apr_pool_t *pool)
{
    *page = (mc_trace_page){ .out = out, .json = mc_json_create(MC_JSON_HTML, pool) };
    fwrite(page_text, 1, (size_t)(page_mark() - (const char *)page_text), out);
    mc_json_open_object(page->json, NULL);
    mc_json_open_array(page->json, "groups");
}

static void
write_trace_span(mc_json_writer *json, const mc_trace_span *span, int64_t begin)
{
    mc_json_integer(json, NULL, span->name);
    mc_json_integer(json, NULL, span->depth);
    mc_json_integer(json, NULL, span->begin - begin);
    mc_json_integer(json, NULL, span->end - span->begin);
    mc_json_integer(json, NULL, mc_trace_span_self(span));
    mc_json_integer(json, NULL, span->note);
    mc_json_integer(json, NULL, span->closed);
}

/* [thread, number, begin, [name, depth, begin, duration, self, note, closed, ...], request]; times in microseconds,
 * a span's begin from the group's. */
void
mc_trace_page_add(void *baton, const mc_trace_log *log, const mc_trace_group *group)
{
    mc_trace_page *page = baton;
    (void)log;
    if (page->spans + group->count > PAGE_SPANS_MAX) {
        page->omitted++;
        return;
    }
    int64_t begin = group->spans[0].begin;
    if (page->groups > 0)
        mc_json_space(page->json, "\n");
    mc_json_open_array(page->json, NULL);
    mc_json_string(page->json, NULL, group->thread);
    mc_json_integer(page->json, NULL, group->number);
    mc_json_integer(page->json, NULL, begin);
    mc_json_open_array(page->json, NULL);
    for (int i = 0; i < group->count; i++)
        write_trace_span(page->json, &group->spans[i], begin);
    mc_json_close(page->json);
    mc_json_string(page->json, NULL, group->request == NULL ? "" : group->request);
    mc_json_close(page->json);
    flush_trace_page(page);
    page->groups++;
    page->spans += group->count;
}

void
mc_trace_page_end(mc_trace_page *page, const mc_trace_log *log)
{
    mc_json_close(page->json);
    mc_json_open_array(page->json, "names");
    for (int i = 0; i < mc_trace_log_names(log); i++)
        mc_json_string(page->json, NULL, mc_trace_log_name(log, i));
    mc_json_close(page->json);
    mc_json_integer(page->json, "omitted", page->omitted);
    mc_json_close(page->json);
    flush_trace_page(page);
    const char *rest = page_mark() + sizeof(mark) - 1;
    fwrite(rest, 1, (size_t)((const char *)page_text + sizeof(page_text) - rest), page->out);
}
