/* HTML and XML answers as one document. */
#include <apr_strings.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "service/info_join.h"

typedef struct markup {
    const char *text;
    size_t size;
} markup;

/* The first place of `word` in any case from `from` on, or NULL. */
static const char *
find_word(const markup *in, const char *from, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = from; (size_t)(at - in->text) + length <= in->size; at++)
        if (*at == *word && strncasecmp(at, word, length) == 0)
            return at;
    return NULL;
}

static const char *
find_last_word(const markup *in, const char *word)
{
    const char *found = NULL;
    for (const char *at = find_word(in, in->text, word); at != NULL; at = find_word(in, at + 1, word))
        found = at;
    return found;
}

/* Behind the tag that begins here: behind the ">" that is in no quotes. The end of the text where there is none. */
static const char *
behind_tag(const markup *in, const char *at)
{
    char quote = '\0';
    for (; at < in->text + in->size; at++)
        if (quote != '\0')
            quote = *at == quote ? '\0' : quote;
        else if (*at == '"' || *at == '\'')
            quote = *at;
        else if (*at == '>')
            return at + 1;
    return in->text + in->size;
}

/* --- HTML ------------------------------------------------------------------------------------------------------- */

/* What of a document goes into the body of another: that of its own, or all behind its head. */
static markup
find_html_content(bool *has_body, const markup *in)
{
    static const char *const before[] = { "<!doctype", "<html", "</head" };
    const char *first = in->text, *end = in->text + in->size, *found = find_word(in, in->text, "<body");
    *has_body = found != NULL;
    for (size_t i = 0; !*has_body && i < sizeof(before) / sizeof(before[0]); i++) {
        const char *tag = find_word(in, first, before[i]);
        first = tag == NULL ? first : behind_tag(in, tag);
    }
    if (*has_body)
        first = behind_tag(in, found);
    const char *last = find_last_word(in, *has_body ? "</body" : "</html");
    if (last == NULL && *has_body)
        last = find_last_word(in, "</html");
    if (last != NULL && last >= first)
        end = last;
    return (markup){ first, (size_t)(end - first) };
}

mc_error *
mc_info_join_html(mc_buf *out, mc_buf *const *parts, int count, apr_pool_t *pool)
{
    markup around = { NULL, 0 }, inside = { NULL, 0 };
    bool has_body;
    for (int i = 0; i < count && around.text == NULL; i++) {
        const markup all = { (const char *)parts[i]->data, parts[i]->size };
        inside = find_html_content(&has_body, &all);
        if (has_body)
            around = all;
    }
    if (around.text != NULL)
        MC_TRY(mc_buf_append(out, around.text, (size_t)(inside.text - around.text), pool));
    for (int i = 0; i < count; i++) {
        const markup all = { (const char *)parts[i]->data, parts[i]->size };
        markup content = find_html_content(&has_body, &all);
        if (i > 0 && out->size > 0 && out->data[out->size - 1] != '\n')
            MC_TRY(mc_buf_append(out, "\n", 1, pool));
        MC_TRY(mc_buf_append(out, content.text, content.size, pool));
    }
    if (around.text == NULL)
        return MC_OK;
    const char *tail = inside.text + inside.size;
    return mc_buf_append(out, tail, (size_t)(around.text + around.size - tail), pool);
}

/* --- XML -------------------------------------------------------------------------------------------------------- */

typedef struct xml_answer {
    markup prologue; /* up to the root element */
    markup root;     /* its start tag without "<", ">" and "/" */
    markup name;     /* of the root element */
    markup bounds;   /* a boundedBy at the beginning of the content */
    markup content;  /* what follows that */
    markup encoding; /* as the declaration names it */
} xml_answer;

static bool
same_markup(const markup *a, const markup *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->text, b->text, a->size) == 0);
}

static const char *
skip_xml_space(const char *at, const char *end)
{
    while (at < end && isspace((unsigned char)*at))
        at++;
    return at;
}

static bool
begins_with(const char *at, const char *end, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(end - at) >= length && memcmp(at, word, length) == 0;
}

/* Behind white space, comments, declarations and instructions; NULL where one does not end, and for a document type. */
static const char *
skip_xml_misc(const markup *in, const char *at)
{
    const char *end = in->text + in->size;
    for (at = skip_xml_space(at, end); at < end; at = skip_xml_space(at, end)) {
        bool comment = begins_with(at, end, "<!--"), instruction = begins_with(at, end, "<?");
        if (!comment && !instruction)
            return begins_with(at, end, "<!") ? NULL : at;
        const char *close = find_word(in, at, comment ? "-->" : "?>");
        if (close == NULL)
            return NULL;
        at = close + (comment ? 3 : 2);
    }
    return at;
}

static void
read_encoding(xml_answer *answer)
{
    const markup *prologue = &answer->prologue;
    const char *at = find_word(prologue, prologue->text, "encoding");
    answer->encoding = (markup){ "UTF-8", 5 };
    if (at == NULL || (at = strpbrk(at, "\"'")) == NULL || at >= prologue->text + prologue->size)
        return;
    const char *close = strchr(at + 1, *at);
    if (close != NULL && close < prologue->text + prologue->size)
        answer->encoding = (markup){ at + 1, (size_t)(close - at - 1) };
}

/* "boundedBy" of any prefix at the beginning of the content: a collection has one, before its members. */
static void
part_bounds(xml_answer *answer)
{
    const char *end = answer->content.text + answer->content.size, *at = skip_xml_space(answer->content.text, end);
    answer->content = (markup){ at, (size_t)(end - at) };
    if (at >= end || *at != '<')
        return;
    size_t size = strcspn(at + 1, " \t\r\n/>");
    const char *name = at + 1, *local = memchr(name, ':', size);
    local = local == NULL ? name : local + 1;
    if ((size_t)(name + size - local) != 9 || memcmp(local, "boundedBy", 9) != 0)
        return;
    const char *close = behind_tag(&answer->content, at);
    if (close[-2] != '/') {
        char word[128];
        apr_snprintf(word, sizeof(word), "</%.*s", (int)(size < 100 ? size : 100), name);
        close = find_word(&answer->content, at, word);
        if (close == NULL)
            return;
        close = behind_tag(&answer->content, close);
    }
    answer->bounds = (markup){ at, (size_t)(close - at) };
    close = skip_xml_space(close, end);
    answer->content = (markup){ close, (size_t)(end - close) };
}

/* `text` ends with a zero byte. */
static bool
read_xml_answer(xml_answer *answer, const markup *in)
{
    const char *end = in->text + in->size;
    const char *first = in->text + (begins_with(in->text, end, "\xef\xbb\xbf") ? 3 : 0);
    const char *root = skip_xml_misc(in, first);
    if (root == NULL || root >= end || *root != '<')
        return false;
    answer->prologue = (markup){ first, (size_t)(root - first) };
    read_encoding(answer);
    const char *behind = behind_tag(in, root);
    if (behind[-1] != '>')
        return false;
    bool empty = behind[-2] == '/';
    answer->root = (markup){ root + 1, (size_t)(behind - root) - (empty ? 3 : 2) };
    while (answer->root.size > 0 && isspace((unsigned char)answer->root.text[answer->root.size - 1]))
        answer->root.size--;
    answer->name = (markup){ root + 1, strcspn(root + 1, " \t\r\n/>") };
    answer->content = (markup){ behind, 0 };
    if (empty)
        return true;
    const char *last = find_last_word(in, "</");
    if (last == NULL || last < behind)
        return false;
    const markup closing = { last + 2, strcspn(last + 2, " \t\r\n>") };
    if (!same_markup(&closing, &answer->name) || skip_xml_misc(in, behind_tag(in, last)) != end)
        return false;
    answer->content.size = (size_t)(last - behind);
    part_bounds(answer);
    return true;
}

static bool
fit_together(const xml_answer *a, const xml_answer *b)
{
    return same_markup(&a->root, &b->root) && same_markup(&a->bounds, &b->bounds) &&
           a->encoding.size == b->encoding.size &&
           strncasecmp(a->encoding.text, b->encoding.text, a->encoding.size) == 0;
}

static mc_error *
append_markup(mc_buf *out, const char *before, const markup *what, const char *behind, apr_pool_t *pool)
{
    MC_TRY(mc_buf_append(out, before, strlen(before), pool));
    MC_TRY(mc_buf_append(out, what->text == NULL ? "" : what->text, what->size, pool));
    return mc_buf_append(out, behind, strlen(behind), pool);
}

mc_error *
mc_info_join_xml(mc_buf *out, mc_buf *const *parts, int count, apr_pool_t *pool)
{
    xml_answer *answers = apr_pcalloc(pool, sizeof(*answers) * (size_t)count);
    for (int i = 0; i < count; i++) {
        const markup in = { apr_pstrmemdup(pool, (const char *)parts[i]->data, parts[i]->size), parts[i]->size };
        if (!read_xml_answer(&answers[i], &in))
            return mc_error_create(pool, MC_ERR_UPSTREAM,
                                   "the feature info of layer number %d is no XML that can be joined", i + 1);
        if (!fit_together(&answers[0], &answers[i]))
            return mc_error_located(
                pool, MC_ERR_INVALID_FORMAT, "info_format",
                "these layers answer with different XML, which does not make one document: ask for one "
                "layer, or for another format");
    }
    MC_TRY(append_markup(out, "", &answers[0].prologue, "", pool));
    MC_TRY(append_markup(out, "<", &answers[0].root, ">\n", pool));
    MC_TRY(append_markup(out, "", &answers[0].bounds, answers[0].bounds.size > 0 ? "\n" : "", pool));
    for (int i = 0; i < count; i++)
        MC_TRY(append_markup(out, "", &answers[i].content, "", pool));
    return append_markup(out, "</", &answers[0].name, ">\n", pool);
}
