/* What paths of tiles are made of. Values of dimensions, and in the mirror modes names of tilesets, come from clients.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cache/cache_base.h"

/* A client's name is one component of a path, or several where it is longer than this, with room for what stands around
 * it in a template and for what SQLite adds. */
enum { COMPONENT_BYTES = 230 };

void
mc_text_put(mc_text_out *text, const char *bytes, size_t size)
{
    if (text->overflow || size >= MC_PATH_MAX - text->length) {
        text->overflow = true;
        return;
    }
    memcpy(text->out + text->length, bytes, size);
    text->length += size;
    text->out[text->length] = '\0';
}

void
mc_text_put_string(mc_text_out *text, const char *string)
{
    mc_text_put(text, string, strlen(string));
}

void
mc_text_put_dimension(mc_text_out *text, const char *value, bool paths_allowed)
{
    for (const char *at = value; *at != '\0'; at++) {
        size_t plain = strcspn(at, "/.");
        mc_text_put(text, at, plain);
        at += plain;
        if (*at == '\0')
            break;
        if (!paths_allowed) {
            mc_text_put(text, "#", 1);
        } else if (strncmp(at, "../", 3) == 0) {
            mc_text_put(text, "#", 1);
            at += 2;
        } else if (strcmp(at, "..") == 0) { /* a '/' of the template may follow */
            mc_text_put(text, "#", 1);
            at += 1;
        } else {
            mc_text_put(text, at, 1);
        }
    }
}

static bool
name_too_long(const char *path)
{
    for (size_t size = 0; *path != '\0'; path += size + (path[size] == '/')) {
        size = strcspn(path, "/");
        if (size > NAME_MAX)
            return true;
    }
    return false;
}

/* The name as it is, but for what would mean something in a path: '/', a name of nothing but dots, control bytes, and
 * '%', with which those are written. Behind every COMPONENT_BYTES stands "%/", which nothing else becomes. */
static void
put_client_name(mc_text_out *text, const char *name)
{
    bool dots = name[strspn(name, ".")] == '\0';
    size_t begin = text->length;
    for (const char *at = name; *at != '\0'; at++) {
        const unsigned char byte = (unsigned char)*at;
        char escaped[4];
        if (text->length - begin > COMPONENT_BYTES) {
            mc_text_put(text, "%/", 2);
            begin = text->length;
        }
        bool hidden = byte == '.' && (dots || (text->length == begin && at != name)); /* no component is ".." */
        bool plain = byte >= 0x20 && byte != 0x7f && byte != '/' && byte != '%' && !hidden;
        snprintf(escaped, sizeof(escaped), plain ? "%c" : "%%%02X", byte);
        mc_text_put_string(text, escaped);
    }
}

void
mc_text_put_tileset(mc_text_out *text, const mc_tile_key *key)
{
    if (!key->client_named) {
        mc_text_put_string(text, key->tileset);
        return;
    }
    if (text->client_end == 0)
        text->client_begin = text->length;
    put_client_name(text, key->tileset);
    text->client_end = text->length;
}

/* Links of the operator and of MapCache lead anywhere, but no client chooses one by its name. */
static mc_error *
check_client_links(const mc_text_out *text, apr_pool_t *pool)
{
    char path[MC_PATH_MAX];
    struct stat info;
    memcpy(path, text->out, text->length + 1);
    for (size_t at = text->client_begin; at < text->client_end;) {
        at += strcspn(path + at, "/");
        path[at] = '\0';
        if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
            mc_error *cause = mc_error_create(pool, MC_ERR_FORBIDDEN, "%s is a link", path);
            return mc_error_wrap(pool, cause, MC_ERR_FORBIDDEN, "a layer of this name cannot be stored");
        }
        path[at] = text->out[at];
        at++;
    }
    return MC_OK;
}

mc_error *
mc_text_check(const mc_text_out *text, const mc_tile_key *key, apr_pool_t *pool)
{
    bool chosen = key->dimension_count > 0 || key->client_named;
    if (!text->overflow && (!chosen || !name_too_long(text->out)))
        return key->client_named ? check_client_links(text, pool) : MC_OK;
    if (key->dimension_count > 0)
        return mc_error_create(pool, MC_ERR_INVALID_DIMENSION, "the values of the dimensions are too long");
    if (key->client_named)
        return mc_error_create(pool, MC_ERR_LAYER_NOT_DEFINED, "the name of the layer is too long");
    return mc_error_create(pool, MC_ERR_LIMIT, "the path of a tile is too long");
}

mc_error *
mc_text_check_database(const mc_text_out *text, apr_pool_t *pool)
{
    static const char *const others[] = { "-wal", "-shm", "-journal" };
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        size_t size = strlen(others[i]);
        if (text->length >= size && strcmp(text->out + text->length - size, others[i]) == 0)
            return mc_error_create(pool, MC_ERR_LAYER_NOT_DEFINED, "a layer's name cannot end with %s", others[i]);
    }
    return MC_OK;
}
