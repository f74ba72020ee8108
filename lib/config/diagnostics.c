/* Complaints about the configuration: gathered, so that one run shows all of them. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/controls.h"
#include "config/config_files.h"
#include "mapcache/config.h"
#include "text/secret.h"
#include "text/text.h"
#include "text/utf8.h"

mc_diagnostics *
mc_diagnostics_create(apr_pool_t *pool)
{
    mc_diagnostics *diagnostics = apr_pcalloc(pool, sizeof(*diagnostics));
    diagnostics->pool = pool;
    diagnostics->complaints = apr_array_make(pool, 4, sizeof(mc_complaint));
    diagnostics->files = apr_array_make(pool, 4, sizeof(const char *));
    diagnostics->read = mc_config_files_create(pool);
    return diagnostics;
}

const char *
mc_config_quote(const char *text, apr_pool_t *pool)
{
    enum { LONGEST = 60 };
    text = mc_hide_address_password(text, pool); /* before a cut hides where the password ends */
    size_t size = strlen(text);
    bool cut = size > LONGEST;
    if (cut)
        size = mc_utf8_cut(text, LONGEST);
    char *copy = apr_pstrmemdup(pool, text, size);
    mc_controls_blank(copy);
    return apr_pstrcat(pool, "\"", copy, cut ? "...\"" : "\"", NULL);
}

/* "<grid name="merc">: ", so that the reader need not look up the line. */
static const char *
describe_diagnosed_node(const mc_node *at, apr_pool_t *pool)
{
    if (at == NULL)
        return "";
    const char *name = mc_node_attr(at, "name");
    if (name == NULL)
        return apr_psprintf(pool, "<%.60s>: ", at->name);
    return apr_psprintf(pool, "<%.60s name=%s>: ", at->name, mc_config_quote(name, pool));
}

static void
add_complaint(mc_diagnostics *diagnostics, const mc_complaint *complaint)
{
    *(mc_complaint *)apr_array_push(diagnostics->complaints) = *complaint;
    diagnostics->refused += complaint->severity == MC_REFUSED;
}

void
mc_complain(mc_diagnostics *diagnostics, mc_severity severity, const mc_node *at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = apr_pvsprintf(diagnostics->pool, format, args);
    va_end(args);
    text = mc_hide_passwords(text, at == NULL ? NULL : at->text, diagnostics->pool);
    add_complaint(diagnostics, &(mc_complaint){
                                   .severity = severity,
                                   .file = at == NULL ? NULL : at->file,
                                   .line = at == NULL ? 0 : at->line,
                                   .column = at == NULL ? 0 : at->column,
                                   .text = apr_pstrcat(diagnostics->pool,
                                                       describe_diagnosed_node(at, diagnostics->pool), text, NULL),
                               });
}

void
mc_complain_at(mc_diagnostics *diagnostics, mc_severity severity, const char *file, int line, int column,
               const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = apr_pvsprintf(diagnostics->pool, format, args);
    va_end(args);
    text = mc_hide_passwords(text, NULL, diagnostics->pool);
    add_complaint(diagnostics, &(mc_complaint){ severity, apr_pstrdup(diagnostics->pool, file), line, column, text });
}

const char *
mc_complaint_format(const mc_complaint *complaint, apr_pool_t *pool)
{
    if (complaint->file == NULL)
        return complaint->text;
    return apr_psprintf(pool, "%s:%d:%d: %s", complaint->file, complaint->line, complaint->column, complaint->text);
}

mc_error *
mc_diagnostics_error(const mc_diagnostics *diagnostics, apr_pool_t *pool)
{
    if (diagnostics->refused == 0)
        return MC_OK;
    apr_array_header_t *lines = apr_array_make(pool, diagnostics->refused, sizeof(const char *));
    for (int i = 0; i < diagnostics->complaints->nelts; i++) {
        const mc_complaint *complaint = &APR_ARRAY_IDX(diagnostics->complaints, i, const mc_complaint);
        if (complaint->severity == MC_REFUSED)
            APR_ARRAY_PUSH(lines, const char *) = mc_complaint_format(complaint, pool);
    }
    return mc_error_create(pool, MC_ERR_CONFIG, "%s", apr_array_pstrcat(pool, lines, '\n'));
}

/* Name that a person may have meant, or NULL: a third of the letters may be wrong. */
const char *
mc_config_nearest(const char *name, const char *const *known, int count)
{
    const char *nearest = NULL;
    int least = (int)(strnlen(name, 60) + 2) / 3;
    for (int i = 0; i < count; i++) {
        int distance = mc_text_distance(name, known[i]);
        if (distance <= least) {
            least = distance - 1; /* among equals the first one stays */
            nearest = known[i];
        }
    }
    return nearest;
}

const char *
mc_config_names_hint(const char *name, const char *const *known, int count, apr_pool_t *pool)
{
    enum { MOST = 10 };
    const char *nearest = mc_config_nearest(name, known, count), *list = "";
    if (nearest != NULL)
        return apr_psprintf(pool, "; did you mean \"%s\"?", nearest);
    for (int i = 0; i < count && i < MOST; i++)
        list = apr_pstrcat(pool, list, i == 0 ? "; there is " : ", ", known[i], NULL);
    return count <= MOST ? list : apr_psprintf(pool, "%s and %d others", list, count - MOST);
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *
mc_config_keys_hint(const char *name, apr_hash_t *things, apr_pool_t *pool)
{
    apr_array_header_t *names = apr_array_make(pool, 16, sizeof(const char *));
    for (apr_hash_index_t *i = apr_hash_first(pool, things); i != NULL; i = apr_hash_next(i))
        APR_ARRAY_PUSH(names, const char *) = apr_hash_this_key(i);
    qsort(names->elts, (size_t)names->nelts, sizeof(const char *), compare_names);
    return mc_config_names_hint(name, (const char *const *)names->elts, names->nelts, pool);
}

static const char *
trim_name_blanks(const char *text, apr_pool_t *pool)
{
    const char *blanks = " \t\r\n";
    text += strspn(text, blanks);
    size_t size = strlen(text);
    while (size > 0 && strchr(blanks, text[size - 1]) != NULL)
        size--;
    return apr_pstrmemdup(pool, text, size);
}

void *
mc_config_find(apr_hash_t *things, const char *noun, const char *name, const mc_node *at, mc_diagnostics *diagnostics)
{
    void *thing = apr_hash_get(things, name, APR_HASH_KEY_STRING);
    if (thing != NULL)
        return thing;
    apr_pool_t *pool = diagnostics->pool;
    const char *quoted = mc_config_quote(name, pool);
    const char *core = trim_name_blanks(name, pool);
    if (apr_hash_get(things, core, APR_HASH_KEY_STRING) != NULL) {
        mc_complain(diagnostics, MC_REFUSED, at, "there is no %s %s, but there is \"%s\": remove the blanks around it",
                    noun, quoted, core);
        return NULL;
    }
    mc_complain(diagnostics, MC_REFUSED, at, "there is no %s %s declared before this%s", noun, quoted,
                mc_config_keys_hint(core, things, pool));
    return NULL;
}
