/* The report of a comparison: one page of HTML with all pictures inside, which needs nothing else. */
#include <apr_base64.h>
#include <apr_strings.h>
#include <stdarg.h>
#include <string.h>

#include "compare.h"
#include "text/secret.h"
#include "text/text.h"

static const unsigned char report_text[] = {
#include "compare_page.inc"
};

static const char body_mark[] = "@BODY@";

void
mc_compare_put(mc_compare *compare, const char *format, ...)
{
    va_list arguments;
    apr_pool_t *scratch;
    apr_pool_create(&scratch, compare->pool);
    va_start(arguments, format);
    const char *text = apr_pvsprintf(scratch, format, arguments);
    va_end(arguments);
    /* beyond its maximum the page has no further pictures */
    (void)!mc_buf_append(compare->page, text, strlen(text), scratch);
    apr_pool_destroy(scratch);
}

void
mc_compare_put_heading(mc_compare *compare, const char *title)
{
    mc_compare_put(compare, "<h2>%s</h2>\n", title);
}

void
mc_compare_put_row(mc_compare *compare, const char *what, const char *there, const char *here, bool same)
{
    apr_pool_t *scratch;
    apr_pool_create(&scratch, compare->pool);
    compare->rows++;
    compare->unlike += !same;
    mc_compare_put(compare, "<tr class=%s><td>%s<td>%s<td>%s</tr>\n", same ? "same" : "unlike",
                   mc_xml_escape(mc_message_text(what, 300, scratch), scratch),
                   mc_xml_escape(mc_message_text(there, 600, scratch), scratch),
                   mc_xml_escape(mc_message_text(here, 600, scratch), scratch));
    apr_pool_destroy(scratch);
}

const char *
mc_compare_words(mc_compare_verdict verdict)
{
    static const char *const words[MC_COMPARE_VERDICTS] = {
        [MC_COMPARE_SAME_BYTES] = "same bytes",  [MC_COMPARE_SAME_PIXELS] = "same pixels",
        [MC_COMPARE_CLOSE] = "nearly the same",  [MC_COMPARE_DIFFERENT] = "different",
        [MC_COMPARE_ONLY_THERE] = "only there",  [MC_COMPARE_ONLY_HERE] = "only here",
        [MC_COMPARE_NEITHER] = "on neither side"
    };
    return words[verdict];
}

/* An address as a page may show it: without a password, escaped. */
static const char *
show_address(const char *address, apr_pool_t *pool)
{
    char *shown = apr_pstrdup(pool, mc_message_text(address, 2000, pool));
    mc_blank_address_password(shown);
    return mc_xml_escape(shown, pool);
}

static void
put_picture(mc_compare *compare, const char *caption, const char *address, const mc_buf *bytes, const char *media,
            const char *otherwise, apr_pool_t *pool)
{
    mc_compare_put(compare, "<figure><figcaption title=\"%s\">%s</figcaption>", show_address(address, pool),
                   mc_xml_escape(caption, pool));
    if (bytes == NULL) {
        mc_compare_put(compare, "<div class=none>%s</div></figure>\n", mc_xml_escape(otherwise, pool));
        return;
    }
    char *text = apr_palloc(pool, (apr_size_t)apr_base64_encode_len((int)bytes->size));
    apr_base64_encode_binary(text, bytes->data, (int)bytes->size);
    mc_compare_put(compare, "<img alt=\"%s\" src=\"data:%s;base64,%s\"></figure>\n", mc_xml_escape(caption, pool),
                   media, text);
}

/* What stands in the place of a picture: the status, and the begin of a text. */
static const char *
describe_missing_picture(const mc_compare_answer *answer, apr_pool_t *pool)
{
    if (answer->status == 0)
        return mc_message_text(answer->error, 300, pool);
    size_t size = answer->body == NULL ? 0 : answer->body->size < 400 ? answer->body->size : 400;
    const char *text = size == 0 ? "" : apr_pstrmemdup(pool, (const char *)answer->body->data, size);
    return mc_message_text(apr_psprintf(pool, "no picture: status %d, %s %s", answer->status, answer->media, text), 500,
                           pool);
}

static void
put_answer(mc_compare *compare, const mc_compare_pair *pair, mc_compare_side side, apr_pool_t *pool)
{
    const mc_compare_answer *answer = &pair->answers[side];
    bool shown = pair->verdict != MC_COMPARE_NEITHER &&
                 pair->verdict != (side == MC_COMPARE_HERE ? MC_COMPARE_ONLY_THERE : MC_COMPARE_ONLY_HERE);
    const char *media = shown ? mc_coding_mime(mc_image_sniff(answer->body->data, answer->body->size)) : NULL;
    const char *caption =
        apr_psprintf(pool, "%s: %d, %s, %.0f ms", side == MC_COMPARE_THERE ? "There" : "Here", answer->status,
                     shown ? apr_psprintf(pool, "%.1f kB", (double)answer->body->size / 1000) : "no picture",
                     1000 * answer->seconds);
    put_picture(compare, caption, pair->addresses[side], media == NULL ? NULL : answer->body, media,
                describe_missing_picture(answer, pool), pool);
}

void
mc_compare_put_pair(mc_compare *compare, const mc_compare_pair *pair, int group)
{
    apr_pool_t *scratch;
    apr_pool_create(&scratch, compare->pool);
    compare->pictures[group][pair->verdict]++;
    mc_compare_put(compare, "<section class=\"pair %s\"><h3>%s</h3><b>%s</b>",
                   pair->verdict <= MC_COMPARE_CLOSE ? "good" : "bad",
                   mc_xml_escape(mc_message_text(pair->title, 300, scratch), scratch), mc_compare_words(pair->verdict));
    if (pair->share > 0)
        mc_compare_put(compare, " <span class=soft>%.2f %% of the pixels look different</span>", 100 * pair->share);
    mc_compare_put(compare, "<div class=row>\n");
    put_answer(compare, pair, MC_COMPARE_THERE, scratch);
    put_answer(compare, pair, MC_COMPARE_HERE, scratch);
    if (pair->difference != NULL)
        put_picture(compare, "Where they differ", "", pair->difference, "image/png", "", scratch);
    mc_compare_put(compare, "</div></section>\n");
    apr_pool_destroy(scratch);
}

const char *
mc_compare_sum(const mc_compare *compare, int group, apr_pool_t *pool)
{
    const char *text = "";
    for (int verdict = 0; verdict < MC_COMPARE_VERDICTS; verdict++)
        if (compare->pictures[group][verdict] > 0)
            text = apr_psprintf(pool, "%s%s%d %s", text, *text == '\0' ? "" : ", ", compare->pictures[group][verdict],
                                mc_compare_words((mc_compare_verdict)verdict));
    return *text == '\0' ? "none" : text;
}

const char *
mc_compare_page(const mc_compare *compare, apr_pool_t *pool)
{
    const char *page = (const char *)report_text,
               *mark = memmem(report_text, sizeof(report_text), body_mark, sizeof(body_mark) - 1);
    size_t behind = sizeof(report_text) - (size_t)(mark - page) - (sizeof(body_mark) - 1);
    return apr_pstrcat(
        pool, apr_pstrmemdup(pool, page, (size_t)(mark - page)),
        apr_psprintf(pool,
                     "<h1>Comparison</h1>\n<p class=soft>There: <code>%s</code>. Here: what mapcache answers with the "
                     "new configuration.</p>\n<ul class=sums><li>Capabilities: %d of %d rows are the same<li>Tiles: "
                     "%s<li>Maps: %s</ul>\n",
                     show_address(compare->url, pool), compare->rows - compare->unlike, compare->rows,
                     mc_compare_sum(compare, 0, pool), mc_compare_sum(compare, 1, pool)),
        apr_pstrmemdup(pool, (const char *)compare->page->data, compare->page->size),
        apr_pstrmemdup(pool, mark + sizeof(body_mark) - 1, behind), NULL);
}
