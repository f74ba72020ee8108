/* Which files a map file is made of, and whether one of them has changed since. */
#ifndef MC_SOURCE_MAPSERVER_MAPSERVER_INCLUDES_H
#define MC_SOURCE_MAPSERVER_MAPSERVER_INCLUDES_H

#include <limits.h>
#include <sys/types.h>
#include <time.h>

enum { MAPSERVER_INCLUDES_MAX = 32 };

typedef struct mapserver_file {
    char path[PATH_MAX]; /* empty: none */
    ino_t inode;         /* 0: it could not be looked at */
    off_t size;
    struct timespec modified, changed;
} mapserver_file;

typedef struct mapserver_includes {
    int count;
    mapserver_file *files; /* malloc'ed */
} mapserver_includes;

/* Notes the map file and the files that it names by INCLUDE, SYMBOLSET and FONTSET, those of included files too, as far
 * as there is room; data are no part of it. */
void note_included_files(mapserver_includes *files, const char *mapfile);
int are_included_files_same(const mapserver_includes *files);
void forget_included_files(mapserver_includes *files);

#endif
