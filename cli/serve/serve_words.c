/* See serve_words.h. */
#include "serve_words.h"

#include <apr_strings.h>
#include <apr_tables.h>
#include <string.h>

#include "text/secret.h"
#include "text/text.h"

/* --- lines of logs ------------------------------------------------------------------------------------------------ */

/* How a server names the weight of a line: "mapcache:error" or "error". */
typedef enum { NO_LEVEL, QUIET_LEVEL, LOUD_LEVEL } log_level;

/* LOUD_LEVEL: people should see the line. */
static log_level
weigh_level(const char *word, size_t size)
{
    static const struct {
        const char *name;
        log_level level;
    } levels[] = {
        { "emerg", LOUD_LEVEL }, { "alert", LOUD_LEVEL },   { "crit", LOUD_LEVEL },  { "error", LOUD_LEVEL },
        { "warn", LOUD_LEVEL },  { "notice", QUIET_LEVEL }, { "info", QUIET_LEVEL }, { "debug", QUIET_LEVEL }
    };
    const char *colon = memchr(word, ':', size);
    if (colon != NULL) {
        size -= (size_t)(colon + 1 - word);
        word = colon + 1;
    }
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        if (strlen(levels[i].name) == size && memcmp(word, levels[i].name, size) == 0)
            return levels[i].level;
    return size > 5 && memcmp(word, "trace", 5) == 0 ? QUIET_LEVEL : NO_LEVEL; /* trace1 to trace8 */
}

/* "[Mon Nov 23 08:27:31.399289 2026] [core:crit] [pid 15049:tid 15070] [client 127.0.0.1:53642] AH00025: text" */
static const char *
skip_httpd_prefix(bool *loud, const char *line)
{
    *loud = true;
    while (*line == '[') {
        const char *end = strchr(line, ']');
        if (end == NULL)
            return line;
        size_t size = (size_t)(end - line - 1);
        if (weigh_level(line + 1, size) == QUIET_LEVEL)
            *loud = false;
        line = end + 1 + strspn(end + 1, " ");
    }
    if (strncmp(line, "AH", 2) == 0 && strspn(line + 2, "0123456789") == 5 && line[7] == ':')
        line += 8 + strspn(line + 8, " ");
    return line;
}

/* "2026/11/23 08:27:31 [error] 123#0: *1 text, client: 127.0.0.1, server: , request: "GET / HTTP/1.1", host: ..." */
static const char *
skip_nginx_prefix(bool *loud, const char *line, apr_pool_t *pool)
{
    const char *level = strchr(line, '['), *end = level == NULL ? NULL : strchr(level, ']');
    if (end == NULL)
        return line;
    *loud = weigh_level(level + 1, (size_t)(end - level - 1)) == LOUD_LEVEL;
    line = end + 1 + strspn(end + 1, " 0123456789#");
    line += strspn(line, ": ");
    if (*line == '*')
        line += 1 + strspn(line + 1, "0123456789 ");
    const char *client = strstr(line, ", client: "), *request = strstr(line, ", request: ");
    if (client == NULL)
        return line;
    const char *address = request == NULL ? "" : request + strlen(", request: ");
    const char *stop = strstr(address, " HTTP/");
    return apr_psprintf(pool, "%.*s%s%.*s", (int)(client - line), line, *address == '\0' ? "" : ": ",
                        stop == NULL ? (int)strlen(address) : (int)(stop - address), address + (*address == '"'));
}

const char *
mc_serve_log_words(const char *line, apr_pool_t *pool)
{
    enum { LONGEST = 1000 };
    bool loud = true, dated = strspn(line, "0123456789/") == 10 && line[4] == '/';
    const char *words = dated ? skip_nginx_prefix(&loud, line, pool) : skip_httpd_prefix(&loud, line);
    if (!loud || *words == '\0')
        return NULL;
    return mc_message_text(mc_hide_passwords(words, NULL, pool), LONGEST, pool);
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

const char *
mc_serve_error_words(const mc_error *error, apr_pool_t *pool)
{
    const char *text = error->message;
    for (const mc_error *cause = error->cause; cause != NULL; cause = cause->cause)
        text = apr_pstrcat(pool, text, ": ", cause->message, NULL);
    return mc_hide_passwords(text, NULL, pool);
}

const char *
mc_serve_terminal_lines(const char *text, apr_pool_t *pool)
{
    enum { LONGEST = 2000, MOST = 20 };
    apr_array_header_t *lines = apr_array_make(pool, 4, sizeof(const char *));
    int left_out = 0;
    for (;;) {
        size_t size = strcspn(text, "\n");
        if (lines->nelts < MOST)
            APR_ARRAY_PUSH(lines, const char *) = mc_message_text(apr_pstrmemdup(pool, text, size), LONGEST, pool);
        else
            left_out++;
        if (text[size] == '\0')
            break;
        text += size + 1;
    }
    if (left_out > 0)
        APR_ARRAY_PUSH(lines, const char *) = apr_psprintf(pool, "(%d more)", left_out);
    return mc_replace_all(apr_array_pstrcat(pool, lines, '\n'), "\n", "\n  ", pool);
}
