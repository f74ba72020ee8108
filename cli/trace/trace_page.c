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

void
mc_trace_page_begin(mc_trace_page *page, FILE *out)
{
    *page = (mc_trace_page){ .out = out };
    fwrite(page_text, 1, (size_t)(page_mark() - (const char *)page_text), out);
    fputs("{\"groups\":[", out);
}

/* [thread, number, begin, [name, depth, begin, duration, self, note, closed, ...]]; times in microseconds,
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
    fprintf(page->out, "%s[\"%s\",%d,%lld,[", page->groups == 0 ? "" : ",\n", group->thread, group->number,
            (long long)begin);
    for (int i = 0; i < group->count; i++) {
        const mc_trace_span *span = &group->spans[i];
        fprintf(page->out, "%s%d,%d,%lld,%lld,%lld,%d,%d", i == 0 ? "" : ",", span->name, span->depth,
                (long long)(span->begin - begin), (long long)(span->end - span->begin),
                (long long)mc_trace_span_self(span), span->note, span->closed);
    }
    fputs("]]", page->out);
    page->groups++;
    page->spans += group->count;
}

/* Names are printable ASCII; what could end the string or the script element is escaped. */
static void
write_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (strchr("\"\\<>&", *text) != NULL)
            fprintf(out, "\\u%04x", (unsigned)*text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

void
mc_trace_page_end(mc_trace_page *page, const mc_trace_log *log)
{
    fputs("],\"names\":[", page->out);
    for (int i = 0; i < mc_trace_log_names(log); i++) {
        if (i > 0)
            fputc(',', page->out);
        write_string(page->out, mc_trace_log_name(log, i));
    }
    fprintf(page->out, "],\"omitted\":%d}", page->omitted);
    const char *rest = page_mark() + sizeof(mark) - 1;
    fwrite(rest, 1, (size_t)((const char *)page_text + sizeof(page_text) - rest), page->out);
}
