/* See roff.h. */
#include "roff.h"

#include <apr_lib.h>
#include <apr_strings.h>
#include <stdbool.h>
#include <string.h>

#include "manual.h"
#include "mapcache/server.h"

void
mc_roff_begin(FILE *out, const char *name, int section, const char *summary)
{
    fputs(".TH ", out);
    for (const char *at = name; *at != '\0'; at++)
        if (*at == '-')
            fputs("\\-", out);
        else
            putc(apr_toupper(*at), out);
    fprintf(out, " %d \"" MC_MANUAL_DATE "\" \"mapcache " MC_VERSION "\" \"mapcache\"\n.SH NAME\n", section);
    mc_roff_text(out, "", name, " \\- ");
    mc_roff_text(out, "", summary, "\n");
}

void
mc_roff_text(FILE *out, const char *before, const char *text, const char *after)
{
    fputs(before, out);
    if (*text == '.' || *text == '\'')
        fputs("\\&", out);
    for (; *text != '\0'; text++) {
        const char *special = *text == '-'    ? "\\-"
                              : *text == '\\' ? "\\e"
                              : *text == '\'' ? "\\(aq"
                              : *text == '`'  ? "\\(ga"
                              : *text == '^'  ? "\\(ha"
                              : *text == '"'  ? "\\(dq"
                              : *text == '~'  ? "\\(ti"
                                              : NULL;
        if (special != NULL)
            fputs(special, out);
        else
            putc(*text, out);
        if (*text == '\n' && (text[1] == '.' || text[1] == '\''))
            fputs("\\&", out);
    }
    fputs(after, out);
}

void
mc_roff_also(FILE *out, const char *first, const char *others, const char *page, apr_pool_t *pool)
{
    char *rest, *text = apr_pstrcat(pool, first, " ", others == NULL ? "" : others, NULL);
    fputs(".SH SEE ALSO\n", out);
    const char *between = "";
    for (char *word = apr_strtok(text, " ", &rest); word != NULL; word = apr_strtok(NULL, " ", &rest)) {
        char *section = strchr(word, '(');
        *section++ = '\0';
        fputs(between, out);
        mc_roff_text(out, ".BR ", word, " (");
        fprintf(out, "%.1s)", section);
        between = ",\n";
    }
    fputs("\n", out);
    if (page != NULL)
        fprintf(out, ".PP\ndocs/%s in the documentation of the package.\n", page);
}

/* --- Markdown ----------------------------------------------------------------------------------------------------- */

const char *
mc_strip_markdown(const char *text, apr_pool_t *pool)
{
    static const struct {
        const char *from, *to;
    } rows[] = {
        { "&lt;", "<" }, { "&gt;", ">" }, { "\\|", "|" }, { "`", "" }, { "*Not in MapCache.*", "Not in MapCache." }
    };
    enum { COUNT = sizeof(rows) / sizeof(rows[0]) };
    char *plain = apr_palloc(pool, strlen(text) + 1), *end = plain;
    while (*text != '\0') {
        int row = 0;
        while (row < COUNT && strncmp(text, rows[row].from, strlen(rows[row].from)) != 0)
            row++;
        if (row == COUNT) {
            *end++ = *text++;
            continue;
        }
        text += strlen(rows[row].from);
        for (const char *to = rows[row].to; *to != '\0'; to++)
            *end++ = *to;
    }
    *end = '\0';
    return plain;
}

const char *
mc_take_markdown_cell(const char **at, apr_pool_t *pool)
{
    const char *begin = *at, *end = begin;
    while (*end != '\0' && !(*end == '|' && end[-1] != '\\'))
        end++;
    *at = *end == '\0' ? end : end + 1;
    while (begin < end && *begin == ' ')
        begin++;
    while (end > begin && end[-1] == ' ')
        end--;
    return mc_strip_markdown(apr_pstrmemdup(pool, begin, (apr_size_t)(end - begin)), pool);
}

/* | name | value | default | meaning | */
static void
print_table_row(FILE *out, const char *line, apr_pool_t *pool)
{
    const char *at = line + 1, *name = mc_take_markdown_cell(&at, pool), *value = mc_take_markdown_cell(&at, pool);
    const char *fallback = mc_take_markdown_cell(&at, pool), *meaning = mc_take_markdown_cell(&at, pool);
    mc_roff_text(out, ".TP\n\\fB", name, "\\fR");
    if (strcmp(fallback, "required") == 0)
        mc_roff_text(out, " (", value, "; required)\n");
    else if (*fallback != '\0')
        mc_roff_text(out, " (", apr_pstrcat(pool, value, "; default: ", fallback, NULL), ")\n");
    else
        mc_roff_text(out, " (", value, ")\n");
    mc_roff_text(out, "", *meaning == '\0' ? "See below." : meaning, "\n");
}

/* `headed`: the line before is a heading. */
static void
print_markdown_line(FILE *out, const char *line, bool headed, apr_pool_t *pool)
{
    static const char *const ignored[] = { "| element", "|---", "# " };
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        if (strncmp(line, ignored[i], strlen(ignored[i])) == 0)
            return;
    if (*line == '|')
        print_table_row(out, line, pool);
    else if (strncmp(line, "## ", 3) == 0)
        mc_roff_text(out, ".SH \"", mc_strip_markdown(line + 3, pool), "\"\n");
    else if (*line == '#')
        mc_roff_text(out, ".SS \"", mc_strip_markdown(line + strspn(line, "# "), pool), "\"\n");
    else
        mc_roff_text(out, headed ? "" : ".PP\n", mc_strip_markdown(line, pool), "\n");
}

void
mc_roff_markdown(FILE *out, const char *markdown, apr_pool_t *pool)
{
    char *rest, *text = apr_pstrdup(pool, markdown);
    bool headed = false;
    for (char *line = apr_strtok(text, "\n", &rest); line != NULL; line = apr_strtok(NULL, "\n", &rest)) {
        print_markdown_line(out, line, headed, pool);
        headed = *line == '#' && line[1] == '#';
    }
}
