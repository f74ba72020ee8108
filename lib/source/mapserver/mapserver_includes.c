/* See mapserver_includes.h. */
#include "source/mapserver/mapserver_includes.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { BYTES_MAX = 4 << 20, WORD_MAX = 16 };

static void
look_at_included_file(mapserver_file *file)
{
    struct stat status;
    if (stat(file->path, &status) != 0) {
        file->inode = 0;
        return;
    }
    file->inode = status.st_ino;
    file->size = status.st_size;
    file->modified = status.st_mtim;
    file->changed = status.st_ctim;
}

static int
is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Relative names are seen from the folder of the map file. */
static void
add_included_file(mapserver_includes *files, const char *name, size_t size)
{
    if (files->count == MAPSERVER_INCLUDES_MAX || size == 0)
        return;
    const char *base = files->files[0].path, *slash = strrchr(base, '/');
    size_t folder = files->count == 0 || *name == '/' || slash == NULL ? 0 : (size_t)(slash - base) + 1;
    mapserver_file *file = &files->files[files->count];
    if (size >= sizeof(file->path) - folder)
        return;
    memcpy(file->path, base, folder);
    memcpy(file->path + folder, name, size);
    file->path[folder + size] = '\0';
    look_at_included_file(file);
    files->count++;
}

/* The bytes of a file, ended by a NUL; NULL: not to be had. */
static char *
read_bytes(const char *path)
{
    FILE *file = fopen(path, "re");
    char *bytes = file == NULL ? NULL : malloc(BYTES_MAX + 1);
    if (bytes != NULL)
        bytes[fread(bytes, 1, BYTES_MAX, file)] = '\0';
    if (file != NULL)
        (void)fclose(file);
    return bytes;
}

static int
names_included_file(const char *word, size_t size)
{
    static const char *const words[] = { "INCLUDE", "SYMBOLSET", "FONTSET" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i]) == size && strncasecmp(words[i], word, size) == 0)
            return 1;
    return 0;
}

/* The quote that ends a text; one behind a backslash is a part of the text, unless it is the last one of its line, as
 * in "c:\maps\". NULL: there is none. */
static const char *
end_of_quoted_text(const char *text, char quote)
{
    const char *end = strchr(text, quote);
    while (end != NULL && end > text && end[-1] == '\\') {
        const char *next = strpbrk(end + 1, quote == '"' ? "\"\n" : "'\n");
        if (next == NULL || *next == '\n')
            break;
        end = next;
    }
    return end;
}

/* Goes through the words of a map file: # begins a comment to the end of the line; texts stand in quotes. */
static void
find_included_names(mapserver_includes *files, const char *at)
{
    int named = 0;
    while (*at != '\0') {
        if (*at == '#') {
            at += strcspn(at, "\n");
        } else if (*at == '"' || *at == '\'') {
            const char *text = at + 1, *end = end_of_quoted_text(text, *at);
            if (end == NULL)
                return;
            if (named)
                add_included_file(files, text, (size_t)(end - text));
            named = 0;
            at = end + 1;
        } else if (isalpha((unsigned char)*at)) {
            size_t size = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
            named = names_included_file(at, size);
            at += size;
        } else {
            at++;
        }
    }
}

void
note_included_files(mapserver_includes *files, const char *mapfile)
{
    *files = (mapserver_includes){ .files = calloc(MAPSERVER_INCLUDES_MAX, sizeof(*files->files)) };
    if (files->files == NULL)
        return;
    add_included_file(files, mapfile, strlen(mapfile));
    for (int i = 0; i < files->count; i++) {
        char *bytes = read_bytes(files->files[i].path);
        if (bytes != NULL)
            find_included_names(files, bytes);
        free(bytes);
    }
}

int
are_included_files_same(const mapserver_includes *files)
{
    for (int i = 0; i < files->count; i++) {
        mapserver_file now, *then = &files->files[i];
        memcpy(now.path, then->path, strlen(then->path) + 1);
        look_at_included_file(&now);
        if (now.inode != then->inode ||
            (now.inode != 0 && (now.size != then->size || !is_same_time(&now.modified, &then->modified) ||
                                !is_same_time(&now.changed, &then->changed))))
            return 0;
    }
    return files->count > 0;
}

void
forget_included_files(mapserver_includes *files)
{
    free(files->files);
    *files = (mapserver_includes){ 0 };
}
