/* <OnlineResource> and <InlineContent> of graphics. */
#include <apr_base64.h>
#include <apr_strings.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_files.h"
#include "draw/sld/sld_private.h"
#include "draw/symbol/picture_private.h"
#include "text/text.h"

/* The constant that ${ is followed by, and in *rest what comes behind its bracket; NULL: there is something else. */
static const char *
read_constant(const char *at, const char **rest, apr_pool_t *pool)
{
    char *out = apr_palloc(pool, strlen(at) + 1);
    size_t length = 0;
    at += strspn(at, " ");
    if (*at == '\'') {
        for (at++; *at != '\0' && (*at != '\'' || at[1] == '\''); at++) {
            at += *at == '\''; /* two stand for one */
            out[length++] = *at;
        }
        if (*at++ != '\'')
            return NULL;
    } else {
        length = strspn(at, "0123456789.+-");
        memcpy(out, at, length);
        at += length;
        if (length == 0)
            return NULL;
    }
    out[length] = '\0';
    at += strspn(at, " ");
    if (*at != '}')
        return NULL;
    *rest = at + 1;
    return out;
}

const char *
mc_sld_fill_constants(const char *text, apr_pool_t *pool)
{
    enum { LONGEST = 4096 }; /* bytes: each constant copies what stands before it */
    const char *done = "", *begin = strstr(text, "${");
    if (begin != NULL && strlen(text) > LONGEST)
        return text;
    while (begin != NULL) {
        const char *rest = begin + 2, *constant = read_constant(begin + 2, &rest, pool);
        done = apr_pstrcat(pool, done, apr_pstrmemdup(pool, text, (size_t)(begin - text)),
                           constant == NULL ? "${" : constant, NULL);
        text = rest;
        begin = strstr(text, "${");
    }
    return *done == '\0' ? text : apr_pstrcat(pool, done, text, NULL);
}

/* `text` with ${attribute} in it as a value for each feature. */
static const mc_expression *
with_attributes(mc_sld *sld, const char *text)
{
    apr_pool_t *pool = sld->build->pool;
    mc_expression *joined = apr_pcalloc(pool, sizeof(*joined));
    const mc_expression **parts = apr_pcalloc(pool, sizeof(*parts) * MC_ARGUMENTS_MAX);
    *joined = (mc_expression){ .kind = MC_CONCATENATE, .arguments = parts };
    while (*text != '\0' && joined->argument_count + 2 < MC_ARGUMENTS_MAX) {
        const char *begin = strstr(text, "${"), *end = begin == NULL ? NULL : strchr(begin, '}');
        if (end == NULL || begin > text) {
            size_t size = end == NULL ? strlen(text) : (size_t)(begin - text);
            parts[joined->argument_count++] = mc_sld_literal(apr_pstrmemdup(pool, text, size), pool);
            text += size;
            continue;
        }
        const char *name = apr_pstrmemdup(pool, begin + 2, (size_t)(end - begin - 2));
        if (*name == '\0' || name[strcspn(name, "()'\" +-*/")] != '\0')
            return NULL; /* an expression of GeoServer's own language */
        parts[joined->argument_count++] = mc_sld_property(sld, name);
        text = end + 1;
    }
    return joined->argument_count == 1 ? parts[0] : joined;
}

/* name=value&name=value, each in the URL's escapes. */
static bool
read_parameters(mc_picture *made, mc_sld *sld, const char *query, const char **why)
{
    char *rest = apr_pstrdup(sld->build->pool, query), *state, *pair;
    for (; (pair = apr_strtok(rest, "&", &state)) != NULL; rest = NULL) {
        char *value = strchr(pair, '=');
        if (value == NULL || made->parameter_count == MC_PICTURE_PARAMETERS_MAX) {
            *why = "these parameters of an SVG: ";
            return false;
        }
        *value++ = '\0';
        const mc_expression *expression =
            with_attributes(sld, mc_url_decode(value, strlen(value), false, sld->build->pool));
        if (expression == NULL) {
            *why = "an expression inside of ";
            return false;
        }
        made->names[made->parameter_count] = pair;
        made->values[made->parameter_count++] = expression;
    }
    return true;
}

/* What can be told without drawing it; the rest is logged when it is drawn. */
static bool
check_bytes(const char *bytes, size_t size, apr_pool_t *pool, const char **why)
{
    int width, height;
    if (!mc_picture_is_known(bytes, size))
        *why = "a graphic that is no PNG, JPEG, GIF or SVG: ";
    else if (mc_picture_is_svg(bytes, size))
        return true;
    else if (mc_picture_size(&width, &height, bytes, size, pool) != MC_OK)
        *why = "a graphic that cannot be read: ";
    else if (width > MC_PICTURE_NATIVE_MAX || height > MC_PICTURE_NATIVE_MAX)
        *why = "a graphic of more than 4096 pixels a side: ";
    return *why == NULL;
}

static mc_picture *
of_bytes(mc_picture *made, const char *bytes, size_t size, mc_sld *sld, const char **why)
{
    static unsigned count;
    if (size > MC_PICTURE_BYTES_MAX)
        *why = "a graphic of more than 4 MB: ";
    if (*why != NULL || !check_bytes(bytes, size, sld->build->pool, why))
        return NULL;
    made->bytes = apr_pstrmemdup(sld->build->pool, bytes, size);
    made->size = size;
    made->identity = apr_psprintf(sld->build->pool, "inline %u", __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED));
    return made;
}

static mc_picture *
of_base64(mc_picture *made, const char *text, size_t length, mc_sld *sld, const char **why)
{
    char *packed = apr_palloc(sld->build->pool, length + 1), *to = packed;
    for (const char *c = text; c < text + length; c++)
        if (strchr(" \t\r\n", *c) == NULL)
            *to++ = *c;
    *to = '\0';
    char *bytes = apr_pcalloc(sld->build->pool, (size_t)apr_base64_decode_len(packed) + 1);
    int size = apr_base64_decode(bytes, packed);
    return of_bytes(made, bytes, (size_t)(size < 0 ? 0 : size), sld, why);
}

/* A file that is there now. Absolute paths are as configured; others stay in the style's folder. */
static mc_picture *
of_path(mc_picture *made, const char *path, mc_sld *sld, const char **why)
{
    apr_pool_t *pool = sld->build->pool;
    char real[PATH_MAX], *bytes;
    size_t size;
    mc_config_files_note(sld->build->diagnostics->read,
                         *path == '/' ? path : apr_pstrcat(pool, sld->folder, "/", path, NULL));
    if (*path == '/')
        made->path = realpath(path, real) == NULL ? NULL : apr_pstrdup(pool, real);
    else
        made->path = mc_picture_inside(sld->folder, path, pool);
    if (made->path == NULL) {
        *why = *path == '/' ? "a file that is not there: " : "a file that is not in the style's folder: ";
        return NULL;
    }
    if (mc_picture_read(&bytes, &size, made->path, pool) != MC_OK)
        *why = "a file that cannot be read, or is larger than 4 MB: ";
    return *why == NULL && check_bytes(bytes, size, pool, why) ? made : NULL;
}

mc_picture *
mc_sld_picture_of_file(mc_sld *sld, const char *href, const char **why)
{
    apr_pool_t *pool = sld->build->pool;
    mc_picture *made = apr_pcalloc(pool, sizeof(*made));
    made->folder = sld->folder;
    href = mc_sld_fill_constants(href, pool);
    const bool inside = strncmp(href, "base64:", 7) == 0;
    if (inside) {
        href += 7;
    } else if (strncmp(href, "file:", 5) == 0) {
        href += 5;
        href += strncmp(href, "//", 2) == 0 ? 2 : 0; /* file:///srv/a.svg; GeoServer's file://a.svg is relative */
    }
    const char *query = strchr(href, '?');
    size_t size = query == NULL ? strlen(href) : (size_t)(query - href);
    if (query != NULL && !read_parameters(made, sld, query + 1, why))
        return NULL;
    if (inside)
        return of_base64(made, href, size, sld, why);
    const char *path = mc_url_decode(href, size, false, pool), *colon = strstr(path, "://");
    if (colon != NULL || strncmp(path, "data:", 5) == 0) {
        *why = "a graphic that is no file of this machine: ";
        return NULL;
    }
    if (strstr(path, "${") == NULL)
        return of_path(made, path, sld, why);
    made->name = with_attributes(sld, path);
    if (made->name == NULL || *path == '/') {
        *why = *path == '/' ? "a computed name of a file outside of the style's folder: " : "an expression inside of ";
        return NULL;
    }
    return made;
}

mc_picture *
mc_sld_picture_of_mark(mc_sld *sld, const char *href, const mc_paint *paint, const char **why)
{
    apr_pool_t *pool = sld->build->pool;
    mc_picture *made = mc_sld_picture_of_file(sld, href, why);
    if (made == NULL || !paint->present)
        return made;
    mc_color color = paint->color;
    made->tint = paint->color_value != NULL
                     ? paint->color_value
                     : mc_sld_literal(apr_psprintf(pool, "#%02x%02x%02x", color.red, color.green, color.blue), pool);
    made->tint_opacity =
        paint->opacity != NULL ? paint->opacity : mc_sld_literal(mc_expression_format(color.alpha / 255.0, pool), pool);
    return made;
}

mc_picture *
mc_sld_picture_of_content(mc_sld *sld, const mc_node *node, const char **why)
{
    const char *encoding = mc_node_attr(node, "encoding");
    mc_picture *made = apr_pcalloc(sld->build->pool, sizeof(*made));
    made->folder = sld->folder;
    if (encoding != NULL && strcmp(encoding, "base64") == 0 && node->children == NULL)
        return of_base64(made, node->text, strlen(node->text), sld, why);
    *why = "a graphic as XML inside of the style: ";
    return NULL;
}
