/* See mapfile_layers.h. */
#include "source/mapserver/mapfile_layers.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "source/mapserver/mapfile_tokens.h"

typedef struct layer_reader {
    apr_array_header_t *layers; /* of mc_mapfile_layer */
    const char *blocks[MC_MAPFILE_DEPTH_MAX];
    int depth;          /* of blocks */
    int files, nesting; /* that were included; on the way here */
    const char *folder; /* of the map file, with a slash at its end; "": that of the process */
    apr_pool_t *pool;
} layer_reader;

static mc_error *
read_mapfile_text(const char **text, const char *path, apr_pool_t *pool)
{
    struct stat info;
    char reason[128];
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hold the request up */
    if (file < 0)
        return mc_error_create(pool, MC_ERR_CONFIG, "%s: %s", path, strerror_r(errno, reason, sizeof(reason)));
    bool usable = fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= MC_MAPFILE_BYTES_MAX;
    if (usable) {
        char *bytes = apr_palloc(pool, (apr_size_t)info.st_size + 1);
        bytes[mc_files_read_at(file, 0, bytes, (size_t)info.st_size)] = '\0';
        *text = bytes;
    }
    close(file);
    return usable ? MC_OK
                  : mc_error_create(pool, MC_ERR_CONFIG, "%s: it is no file of at most %d bytes", path,
                                    MC_MAPFILE_BYTES_MAX);
}

static const char *
innermost_block(const layer_reader *reader)
{
    return reader->depth == 0 ? "" : reader->blocks[reader->depth - 1];
}

/* Of a layer itself, not of its classes. */
static void
take_layer_value(const layer_reader *reader, const char *keyword, const char *value)
{
    if (strcasecmp(innermost_block(reader), "LAYER") != 0)
        return;
    mc_mapfile_layer *layer = &APR_ARRAY_IDX(reader->layers, reader->layers->nelts - 1, mc_mapfile_layer);
    if (strcasecmp(keyword, "NAME") == 0)
        layer->name = value;
    else if (strcasecmp(keyword, "GROUP") == 0)
        layer->group = value;
    else if (strcasecmp(keyword, "STATUS") == 0)
        layer->on = strcasecmp(value, "ON") == 0 || strcasecmp(value, "DEFAULT") == 0;
}

static mc_error *
begin_mapfile_block(layer_reader *reader, const mc_mapfile_word *word, const char *path)
{
    if (reader->depth == MC_MAPFILE_DEPTH_MAX)
        return mc_error_create(reader->pool, MC_ERR_CONFIG, "%s:%d: blocks are nested too deeply", path, word->line);
    char *name = apr_pstrdup(reader->pool, word->text);
    for (char *c = name; *c != '\0'; c++)
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    reader->blocks[reader->depth++] = name;
    if (strcmp(innermost_block(reader), "LAYER") == 0)
        APR_ARRAY_PUSH(reader->layers, mc_mapfile_layer) = (mc_mapfile_layer){ .name = "", .group = "" };
    return MC_OK;
}

static mc_error *read_layers_of_file(layer_reader *reader, const char *path);

static mc_error *
include_mapfile(layer_reader *reader, const mc_mapfile_word *word, const char *name, const char *path)
{
    if (++reader->files > MC_MAPFILE_FILES_MAX || reader->nesting >= MC_MAPFILE_INCLUDE_MAX)
        return mc_error_create(reader->pool, MC_ERR_CONFIG, "%s:%d: too many files are included", path, word->line);
    reader->nesting++;
    const char *file = *name == '/' ? name : apr_pstrcat(reader->pool, reader->folder, name, NULL);
    mc_error *error = read_layers_of_file(reader, file);
    reader->nesting--;
    return error;
}

static mc_error *
take_mapfile_word(layer_reader *reader, mc_mapfile_words *words, const mc_mapfile_word *word, const char *path)
{
    mc_mapfile_word value;
    const char *block = innermost_block(reader);
    if (word->plain && strcasecmp(word->text, "END") == 0) {
        reader->depth -= reader->depth > 0;
    } else if (word->plain && strcasecmp(word->text, "INCLUDE") == 0) {
        if (mc_mapfile_next(&value, words))
            return include_mapfile(reader, word, value.text, path);
    } else if (mc_mapfile_has_pairs(block)) {
        (void)mc_mapfile_next(&value, words);
    } else if (word->plain && mc_mapfile_begins_block(word->text, block)) {
        return begin_mapfile_block(reader, word, path);
    } else if (word->plain && mc_mapfile_has_value(word->text) && mc_mapfile_next(&value, words)) {
        take_layer_value(reader, word->text, value.text);
    }
    return MC_OK;
}

static mc_error *
read_layers_of_file(layer_reader *reader, const char *path)
{
    mc_mapfile_words words = { .line = 1, .pool = reader->pool };
    mc_mapfile_word word;
    MC_TRY(read_mapfile_text(&words.at, path, reader->pool));
    while (mc_mapfile_next(&word, &words))
        MC_TRY(take_mapfile_word(reader, &words, &word, path));
    return MC_OK;
}

mc_error *
mc_mapfile_layers(apr_array_header_t **layers, const char *file, apr_pool_t *pool)
{
    const char *slash = strrchr(file, '/');
    layer_reader reader = { .layers = apr_array_make(pool, 16, sizeof(mc_mapfile_layer)), .pool = pool };
    reader.folder = slash == NULL ? "" : apr_pstrmemdup(pool, file, (apr_size_t)(slash - file) + 1);
    *layers = reader.layers;
    return read_layers_of_file(&reader, file);
}
