/* See serve_things.h. */
#include "serve_things.h"

#include <apr_strings.h>
#include <apr_user.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "data/data.h"
#include "db/postgres/postgres.h"
#include "mapcache/upkeep.h"
#include "text/secret.h"
#include "text/text.h"

static const char config_name[] = "mapcache.xml";

/* --- names -------------------------------------------------------------------------------------------------------- */

/* http://..., postgresql://..., /vsis3/...: what is no path. */
static bool
is_address_of_data(const char *name)
{
    const char *colon = strstr(name, "://");
    return colon != NULL && colon > name && memchr(name, '/', (size_t)(colon - name)) == NULL;
}

static const char *
absolute_thing(const char *name, apr_pool_t *pool)
{
    char folder[4096];
    if (*name == '/' || is_address_of_data(name) || getcwd(folder, sizeof(folder)) == NULL)
        return apr_pstrdup(pool, name);
    while (name[0] == '.' && name[1] == '/')
        name += 2;
    bool itself = strcmp(name, ".") == 0 || *name == '\0';
    return itself ? apr_pstrdup(pool, folder)
                  : apr_pstrcat(pool, strcmp(folder, "/") == 0 ? "" : folder, "/", name, NULL);
}

/* Whether a file is a configuration: an XML file with the element <mapcache> near its beginning. */
static bool
is_configuration(const char *path)
{
    enum { BEGINNING = 65536 };
    static char text[BEGINNING + 1];
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat about;
    if (file < 0)
        return false;
    size_t size = fstat(file, &about) == 0 && S_ISREG(about.st_mode) ? mc_files_read_at(file, 0, text, BEGINNING) : 0;
    close(file);
    text[size] = '\0';
    const char *at = text + (strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
    at += strspn(at, " \t\r\n");
    return *at == '<' && (strstr(at, "<mapcache>") != NULL || strstr(at, "<mapcache ") != NULL);
}

static mc_error *
explain_unreadable(const char *name, apr_pool_t *pool)
{
    int code = errno;
    char *user;
    if (code != EACCES || apr_uid_name_get(&user, geteuid(), pool) != APR_SUCCESS)
        return mc_error_create(pool, MC_ERR_CONFIG, "%s cannot be read: %s", name, strerror(code));
    return mc_error_create(pool, MC_ERR_CONFIG,
                           "%s cannot be read: the user that serves (%s) may not read it, or may not enter a folder on "
                           "the way; chmod o+rX gives that right to both",
                           name, user);
}

mc_error *
mc_serve_things_name(mc_serve_things *things, const apr_array_header_t *arguments, const char *folder, bool closed,
                     apr_pool_t *pool)
{
    apr_array_header_t *names = apr_array_make(pool, arguments->nelts, sizeof(const char *));
    *things = (mc_serve_things){ .names = names,
                                 .config = apr_pstrcat(pool, folder, "/", config_name, NULL),
                                 .closed = closed };
    for (int i = 0; i < arguments->nelts; i++) {
        const char *argument = APR_ARRAY_IDX(arguments, i, const char *);
        const char *name = absolute_thing(argument, pool);
        if (*argument == '\0')
            return mc_error_create(pool, MC_ERR_CONFIG, "a THING is an empty text");
        if (!is_address_of_data(name) && strchr(name, '#') == NULL && access(name, R_OK) != 0 &&
            strncmp(name, "/vsi", 4) != 0)
            return explain_unreadable(argument, pool);
        if (is_configuration(name)) {
            things->given = true;
            things->config = name;
        }
        APR_ARRAY_PUSH(names, const char *) = name;
    }
    if (things->given && names->nelts > 1)
        return mc_error_create(pool, MC_ERR_CONFIG, "%s is a configuration, and is served alone", things->config);
    return MC_OK;
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

/* Whole at once, for nobody else to read: it may hold passwords. */
static mc_error *
write_configuration(const char *file, const char *text, apr_pool_t *pool)
{
    const char *draft = apr_pstrcat(pool, file, ".draft", NULL);
    int out = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool written = out >= 0 && mc_files_write(out, text, strlen(text));
    if (out >= 0 && close(out) != 0)
        written = false;
    if (written && rename(draft, file) == 0)
        return MC_OK;
    return mc_error_create(pool, MC_ERR_IO, "%s cannot be written: %s", file, strerror(errno));
}

/* What the comment of the configuration says. */
static const char *
describe_call(const apr_array_header_t *names, apr_pool_t *pool)
{
    const char *call = "mapcache serve";
    for (int i = 0; i < names->nelts; i++)
        call =
            apr_pstrcat(pool, call, " ", mc_hide_address_password(APR_ARRAY_IDX(names, i, const char *), pool), NULL);
    return call;
}

static mc_error *
look_at_data(mc_data_found *found, const mc_serve_things *things, apr_pool_t *pool)
{
    enum { CONNECTIONS = 4 };
    mc_process process = { .postgres = mc_postgres_create(CONNECTIONS, 1, APR_USEC_PER_SEC, false) };
    mc_ctx ctx = { .pool = pool, .process = &process };
    mc_error *error = mc_data_find_all(found, (const char *const *)(void *)things->names->elts, things->names->nelts,
                                       NULL, &ctx, pool);
    mc_postgres_destroy(process.postgres);
    return error;
}

void
mc_serve_things_ask_places(const mc_serve_things *things, apr_pool_t *parent)
{
    apr_pool_t *pool;
    apr_pool_create(&pool, parent);
    mc_process process = { .postgres = mc_postgres_create(1, 1, APR_USEC_PER_SEC, false) };
    mc_ctx ctx = { .pool = pool, .process = &process };
    mc_tilesets_ask_places(things->model->tilesets, &ctx);
    mc_postgres_destroy(process.postgres);
    apr_pool_destroy(pool);
}

/* The name of the element that a line of a configuration that was written here is in: that of a layer. */
static const char *
name_at_line(const char *text, int wanted, apr_pool_t *pool)
{
    const char *name = "";
    for (int line = 1; line <= wanted; line++) {
        size_t size = strcspn(text, "\n");
        const char *at = strncmp(text, "  <", 3) == 0 ? strstr(text, " name=\"") : NULL;
        if (at != NULL && at < text + size)
            name = apr_pstrmemdup(pool, at + 7, strcspn(at + 7, "\""));
        if (text[size] == '\0')
            break;
        text += size + 1;
    }
    return name;
}

/* Of a configuration that was written here nobody knows the file: the layer's name says more than line and element. */
static const char *
word_complaint(const mc_complaint *complaint, const mc_serve_things *things, apr_pool_t *pool)
{
    if (things->given)
        return mc_complaint_format(complaint, pool);
    const char *end = *complaint->text == '<' ? strstr(complaint->text, ">: ") : NULL;
    return apr_pstrcat(pool, name_at_line(things->text, complaint->line, pool), ": ",
                       end == NULL ? complaint->text : end + 3, NULL);
}

/* Why a configuration that was written here does not load, without the place in the file, which is nobody's. */
static mc_error *
load_model(mc_serve_things *things, mc_diagnostics *diagnostics, apr_pool_t *pool)
{
    mc_error *error = mc_config_load(&things->model, things->config, diagnostics, pool);
    if (error == MC_OK || things->given)
        return error;
    for (int i = 0; i < diagnostics->complaints->nelts; i++) {
        const mc_complaint *complaint = &APR_ARRAY_IDX(diagnostics->complaints, i, mc_complaint);
        if (complaint->severity == MC_REFUSED)
            return mc_error_create(pool, error->kind, "%s", word_complaint(complaint, things, pool));
    }
    return error;
}

typedef struct store_look {
    apr_array_header_t *notes; /* of const char * */
    apr_hash_t *told;          /* caches by their names */
    const char *tileset, *user;
    apr_pool_t *pool;
} store_look;

static void
note_denied_store(void *baton, mc_cache *cache)
{
    store_look *look = baton;
    if (apr_hash_get(look->told, cache->name, APR_HASH_KEY_STRING) != NULL)
        return;
    mc_cache_denial denial = mc_cache_denied(cache, look->tileset, look->pool);
    if (denial.path == NULL)
        return;
    apr_hash_set(look->told, cache->name, APR_HASH_KEY_STRING, "");
    const char *owned = mc_shell_word(denial.folder == NULL ? denial.path : denial.folder, look->pool);
    APR_ARRAY_PUSH(look->notes, const char *) = apr_psprintf(
        look->pool,
        "cache \"%s\": the user %s cannot write %s, so that tiles which it renders are not stored and some of them "
        "fail (500); `%s%s%schown %s%s %s` gives the right, or start `mapcache serve` as a user who has it",
        cache->name, look->user, denial.path, denial.missing ? "mkdir -p " : "", denial.missing ? owned : "",
        denial.missing ? " && " : "", denial.folder == NULL ? "" : "-R ", look->user, owned);
}

/* Stores in which this user, who serves, cannot put the tiles that it renders. */
static void
note_denied_stores(const mc_serve_things *things, apr_array_header_t *notes, apr_pool_t *pool)
{
    char *user;
    store_look look = { .notes = notes, .told = apr_hash_make(pool), .pool = pool };
    look.user = apr_uid_name_get(&user, geteuid(), pool) == APR_SUCCESS ? user : "that serves";
    for (int i = 0; i < things->model->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(things->model->tilesets, i, const mc_tileset *);
        look.tileset = tileset->name;
        if (tileset->source != NULL && !tileset->read_only)
            mc_cache_parts(tileset->cache, note_denied_store, &look);
    }
}

static void
list_notes(mc_serve_things *things, const apr_array_header_t *found, const mc_diagnostics *diagnostics,
           apr_pool_t *pool)
{
    apr_array_header_t *notes = apr_array_make(pool, 8, sizeof(const char *));
    apr_array_header_t *told = apr_array_make(pool, 8, sizeof(const char *));
    for (int i = 0; found != NULL && i < found->nelts; i++)
        APR_ARRAY_PUSH(notes, const char *) = APR_ARRAY_IDX(found, i, const char *);
    for (int i = 0; i < diagnostics->complaints->nelts; i++) {
        const mc_complaint *complaint = &APR_ARRAY_IDX(diagnostics->complaints, i, mc_complaint);
        if (complaint->severity == MC_NOTE)
            continue;
        APR_ARRAY_PUSH(notes, const char *) = word_complaint(complaint, things, pool);
        APR_ARRAY_PUSH(told, const char *) = mc_complaint_format(complaint, pool);
    }
    note_denied_stores(things, notes, pool);
    things->notes = notes;
    things->told = told;
}

static mc_error *
look_in_pool(mc_serve_things *next, bool *changed, apr_pool_t *pool)
{
    mc_data_found found = { NULL, NULL };
    mc_diagnostics *diagnostics = mc_diagnostics_create(pool);
    *changed = true;
    if (!next->given) {
        mc_data_config about = { .made_by = describe_call(next->names, pool) };
        const char *before = next->text;
        MC_TRY(look_at_data(&found, next, pool));
        next->text = mc_data_write_config(&found, &about, pool);
        *changed = before == NULL || strcmp(before, next->text) != 0;
        about.closed = next->closed; /* here, and not where an administrator saves it for a server */
        if (*changed)
            MC_TRY(write_configuration(next->config, mc_data_write_config(&found, &about, pool), pool));
    }
    MC_TRY(load_model(next, diagnostics, pool));
    next->files = diagnostics->files;
    list_notes(next, found.notes, diagnostics, pool);
    return MC_OK;
}

mc_error *
mc_serve_things_look(mc_serve_things *things, bool *changed, apr_pool_t *parent)
{
    mc_serve_things next = *things;
    apr_pool_create(&next.pool, parent);
    mc_error *error = look_in_pool(&next, changed, next.pool);
    if (error != MC_OK) {
        error = mc_error_copy(error, parent);
        apr_pool_destroy(next.pool);
        return error;
    }
    if (things->pool != NULL)
        apr_pool_destroy(things->pool);
    *things = next;
    return MC_OK;
}

const apr_array_header_t *
mc_serve_things_paths(const mc_serve_things *things, apr_pool_t *pool)
{
    apr_array_header_t *paths = apr_array_make(pool, 8, sizeof(const char *));
    for (int i = 0; i < things->names->nelts; i++)
        if (!is_address_of_data(APR_ARRAY_IDX(things->names, i, const char *)))
            APR_ARRAY_PUSH(paths, const char *) = APR_ARRAY_IDX(things->names, i, const char *);
    return paths;
}

mc_error *
mc_serve_things_save(const mc_serve_things *things, int file, apr_pool_t *pool)
{
    enum { MOST = 16777216 };
    if (things->text != NULL)
        return mc_files_write(file, things->text, strlen(things->text))
                   ? MC_OK
                   : mc_error_create(pool, MC_ERR_IO, "%s", strerror(errno));
    char *text = apr_palloc(pool, MOST);
    int in = open(things->config, O_RDONLY | O_CLOEXEC);
    size_t size = in < 0 ? 0 : mc_files_read_at(in, 0, text, MOST);
    if (in >= 0)
        close(in);
    if (size == 0 || !mc_files_write(file, text, size))
        return mc_error_create(pool, MC_ERR_IO, "%s", strerror(errno));
    return MC_OK;
}
