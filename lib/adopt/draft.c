/* See draft.h. */
#include "adopt/draft.h"

#include <apr_strings.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "text/text.h"

enum { NOTES_MAX = 2000, KEY_SHOWN = 120, STYLE_NAME_BYTES = 100 };

mc_adopt *
mc_adopt_create(apr_pool_t *pool)
{
    mc_adopt *adopt = apr_pcalloc(pool, sizeof(*adopt));
    adopt->pool = pool;
    for (int i = 0; i < MC_DRAFT_PARTS; i++) {
        adopt->parts[i] = apr_array_make(pool, 64, sizeof(const char *));
        adopt->names[i] = apr_hash_make(pool);
        adopt->numbers[i] = apr_hash_make(pool);
    }
    static const char *const builtin_grids[] = { "WGS84", "GoogleMapsCompatible", "g" };
    static const char *const builtin_formats[] = { "PNG", "PNG8", "JPEG", "mixed", "MVT", "WEBP" };
    for (size_t i = 0; i < sizeof(builtin_grids) / sizeof(*builtin_grids); i++)
        apr_hash_set(adopt->names[MC_DRAFT_GRIDS], builtin_grids[i], APR_HASH_KEY_STRING, "");
    for (size_t i = 0; i < sizeof(builtin_formats) / sizeof(*builtin_formats); i++)
        apr_hash_set(adopt->names[MC_DRAFT_FORMATS], builtin_formats[i], APR_HASH_KEY_STRING, "");
    adopt->notes = apr_array_make(pool, 16, sizeof(mc_adopt_note));
    adopt->said = apr_hash_make(pool);
    adopt->folders = apr_hash_make(pool);
    adopt->layers = apr_array_make(pool, 16, sizeof(mc_adopt_layer));
    adopt->permissions = 0777;
    adopt->styles = apr_array_make(pool, 16, sizeof(mc_adopt_style));
    adopt->later = apr_array_make(pool, 2, sizeof(const char *));
    return adopt;
}

const apr_array_header_t *
mc_adopt_notes(const mc_adopt *adopt)
{
    return adopt->notes;
}

mc_adopt_counts
mc_adopt_counted(const mc_adopt *adopt)
{
    return adopt->counts;
}

const apr_array_header_t *
mc_adopt_layers(const mc_adopt *adopt)
{
    return adopt->layers;
}

unsigned
mc_adopt_permissions(const mc_adopt *adopt)
{
    return adopt->permissions;
}

void
mc_adopt_write_styles_to(mc_adopt *adopt, const char *folder)
{
    adopt->style_folder = folder;
}

const apr_array_header_t *
mc_adopt_styles(const mc_adopt *adopt)
{
    return adopt->styles;
}

bool
mc_draft_has_styles(const mc_adopt *adopt)
{
    return adopt->style_folder != NULL;
}

const char *
mc_draft_style(mc_adopt *adopt, const char *layer, const char *text)
{
    char *name = apr_pstrndup(adopt->pool, layer, STYLE_NAME_BYTES);
    for (char *c = name; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_')
            *c = '_';
    const char *file = apr_pstrcat(adopt->pool, mc_draft_name(adopt, MC_DRAFT_STYLES, name), ".sld", NULL);
    APR_ARRAY_PUSH(adopt->styles, mc_adopt_style) = (mc_adopt_style){ file, text };
    return apr_pstrcat(adopt->pool, adopt->style_folder, "/", file, NULL);
}

void
mc_draft_layer(mc_adopt *adopt, const char *tileset, const char *there, const char *extension)
{
    APR_ARRAY_PUSH(adopt->layers, mc_adopt_layer) = (mc_adopt_layer){ tileset, there, extension };
}

void
mc_draft_put(mc_adopt *adopt, mc_draft_part part, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    APR_ARRAY_PUSH(adopt->parts[part], const char *) = apr_pvsprintf(adopt->pool, format, arguments);
    va_end(arguments);
}

void
mc_draft_element(mc_adopt *adopt, mc_draft_part part, const char *indent, const char *name, const char *text)
{
    if (text != NULL && *text != '\0')
        mc_draft_put(adopt, part, "%s<%s>%s</%s>\n", indent, name, mc_xml_escape(text, adopt->pool), name);
}

bool
mc_draft_has(const mc_adopt *adopt, mc_draft_part part, const char *name)
{
    return apr_hash_get(adopt->names[part], name, APR_HASH_KEY_STRING) != NULL;
}

const char *
mc_draft_name(mc_adopt *adopt, mc_draft_part part, const char *wanted)
{
    const char *name = wanted = apr_pstrdup(adopt->pool, *wanted == '\0' ? "unnamed" : wanted);
    int *used = apr_hash_get(adopt->numbers[part], wanted, APR_HASH_KEY_STRING);
    if (used == NULL) {
        used = apr_pcalloc(adopt->pool, sizeof(*used));
        *used = 1;
        apr_hash_set(adopt->numbers[part], wanted, APR_HASH_KEY_STRING, used);
    }
    while (mc_draft_has(adopt, part, name))
        name = apr_psprintf(adopt->pool, "%s_%d", wanted, ++*used);
    apr_hash_set(adopt->names[part], name, APR_HASH_KEY_STRING, "");
    return name;
}

const char *
mc_draft_no_cache(mc_adopt *adopt)
{
    static const char name[] = "not-stored";
    if (!mc_draft_has(adopt, MC_DRAFT_CACHES, name)) {
        apr_hash_set(adopt->names[MC_DRAFT_CACHES], name, APR_HASH_KEY_STRING, "");
        mc_draft_put(adopt, MC_DRAFT_CACHES, "  <cache name=\"%s\" type=\"none\"/>\n", name);
    }
    return name;
}

static void
note_text(mc_adopt *adopt, const char *file, int line, const char *text)
{
    text = mc_message_text(text, 1000, adopt->pool);
    const char *whole = apr_psprintf(adopt->pool, "%s:%d:%s", file, line, text);
    if (apr_hash_get(adopt->said, whole, APR_HASH_KEY_STRING) != NULL || adopt->notes->nelts > NOTES_MAX)
        return;
    apr_hash_set(adopt->said, whole, APR_HASH_KEY_STRING, "");
    if (adopt->notes->nelts == NOTES_MAX)
        text = "there are more such notes, which are left out";
    APR_ARRAY_PUSH(adopt->notes, mc_adopt_note) = (mc_adopt_note){ apr_pstrdup(adopt->pool, file), line, text };
}

void
mc_draft_note(mc_adopt *adopt, const char *file, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    note_text(adopt, file, line, apr_pvsprintf(adopt->pool, format, arguments));
    va_end(arguments);
}

void
mc_draft_note_at(mc_adopt *adopt, const mc_branch *at, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    note_text(adopt, at->file, at->line, apr_pvsprintf(adopt->pool, format, arguments));
    va_end(arguments);
}

void
mc_draft_note_folder(mc_adopt *adopt, const mc_branch *at, const char *folder)
{
    if (access(folder, F_OK) == 0 || apr_hash_get(adopt->folders, folder, APR_HASH_KEY_STRING) != NULL)
        return;
    apr_hash_set(adopt->folders, folder, APR_HASH_KEY_STRING, at);
    mc_draft_note_at(
        adopt, at,
        "there is no folder %s, so that no stored tile is found there: run the command on the machine that "
        "has the tiles, or write the right path into the caches",
        mc_message_text(folder, 300, adopt->pool));
}

static const char *
find_advice(const mc_draft_advice *advice, const char *parent, const char *key)
{
    for (; advice->key != NULL; advice++) {
        size_t size = strlen(parent);
        if (strcmp(advice->key, key) == 0 || (strncmp(advice->key, parent, size) == 0 && advice->key[size] == '.' &&
                                              strcmp(advice->key + size + 1, key) == 0))
            return advice->advice;
    }
    return NULL;
}

static void
note_untaken(mc_adopt *adopt, const mc_branch *branch, const char *path, const char *parent,
             const mc_draft_advice *advice)
{
    for (const mc_branch *child = branch->children; child != NULL; child = child->next) {
        const char *key = child->key == NULL ? "" : mc_message_text(child->key, KEY_SHOWN, adopt->pool);
        const char *below = *key == '\0' ? path : *path == '\0' ? key : apr_pstrcat(adopt->pool, path, ".", key, NULL);
        if (child->taken) {
            note_untaken(adopt, child, below, *key == '\0' ? parent : key, advice);
            continue;
        }
        const char *what = find_advice(advice, parent, key);
        mc_draft_note_at(adopt, child, "%s is not taken over: %s", below,
                         what != NULL ? what : "there is nothing like it here; leave it out");
    }
}

void
mc_draft_note_untaken(mc_adopt *adopt, const mc_branch *root, const mc_draft_advice *advice)
{
    note_untaken(adopt, root, "", "", advice);
}

mc_error *
mc_draft_read_file(char **bytes, size_t *size, const char *path, mc_adopt *adopt)
{
    struct stat about;
    apr_pool_t *pool = adopt->pool;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not be waited for */
    if (file < 0)
        return mc_error_create(pool, MC_ERR_CONFIG, "%s cannot be read: %s", path, apr_pstrdup(pool, strerror(errno)));
    bool plain = fstat(file, &about) == 0 && S_ISREG(about.st_mode);
    bool small = plain && about.st_size <= MC_ADOPT_BYTES_MAX;
    bool fits = small && adopt->bytes + (size_t)about.st_size <= MC_ADOPT_ALL_BYTES_MAX;
    if (fits) {
        *bytes = apr_palloc(pool, (size_t)about.st_size + 1);
        *size = mc_files_read_at(file, 0, *bytes, (size_t)about.st_size);
        (*bytes)[*size] = '\0';
        adopt->bytes += *size;
        adopt->permissions &= about.st_mode;
    }
    close(file);
    if (!plain)
        return mc_error_create(pool, MC_ERR_CONFIG, "%s is no plain file", path);
    if (!small)
        return mc_error_create(pool, MC_ERR_CONFIG, "%s has more than %d MB", path, MC_ADOPT_BYTES_MAX >> 20);
    return fits ? MC_OK
                : mc_error_create(pool, MC_ERR_CONFIG, "%s is left out: all files together have more than %d MB", path,
                                  MC_ADOPT_ALL_BYTES_MAX >> 20);
}

const char *
mc_draft_folder(const char *file, apr_pool_t *pool)
{
    const char *slash = strrchr(file, '/');
    return slash == NULL ? "." : slash == file ? "/" : apr_pstrmemdup(pool, file, (size_t)(slash - file));
}

const char *
mc_draft_path(const char *folder, const char *path, apr_pool_t *pool)
{
    char here[4096];
    if (*path == '/')
        return path;
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    if (*folder != '/' && getcwd(here, sizeof(here)) != NULL)
        folder = strcmp(folder, ".") == 0 ? apr_pstrdup(pool, here) : apr_pstrcat(pool, here, "/", folder, NULL);
    return apr_pstrcat(pool, strcmp(folder, "/") == 0 ? "" : folder, *path == '\0' || strcmp(path, ".") == 0 ? "" : "/",
                       strcmp(path, ".") == 0 ? "" : path, NULL);
}
