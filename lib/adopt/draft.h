/*
 * The mapcache.xml that is being written: grids, formats, sources, caches and tilesets as text, in the order in which
 * they must stand, with names that are taken, and notes of what could not be taken over.
 */
#ifndef MC_ADOPT_DRAFT_H
#define MC_ADOPT_DRAFT_H

#include <apr_hash.h>
#include <apr_tables.h>

#include "adopt/adopt.h"
#include "adopt/branch.h"

/* Parts of the file, in their order. */
typedef enum mc_draft_part {
    MC_DRAFT_HEAD, /* metadata of the service */
    MC_DRAFT_GRIDS,
    MC_DRAFT_FORMATS,
    MC_DRAFT_SOURCES,
    MC_DRAFT_CACHES,
    MC_DRAFT_TILESETS,
    MC_DRAFT_SERVICES,
    MC_DRAFT_SEEDS,  /* commands, in a comment */
    MC_DRAFT_STYLES, /* names of files */
    MC_DRAFT_PARTS
} mc_draft_part;

struct mc_adopt {
    apr_pool_t *pool;
    apr_array_header_t *parts[MC_DRAFT_PARTS]; /* of const char * */
    apr_hash_t *names[MC_DRAFT_PARTS];         /* that are taken */
    apr_hash_t *numbers[MC_DRAFT_PARTS];       /* of int *: the last number behind a name that several want */
    apr_array_header_t *notes;                 /* of mc_adopt_note */
    apr_hash_t *said;                          /* notes by their text */
    apr_hash_t *folders;                       /* of tiles that are not there, by their paths */
    mc_adopt_counts counts;
    apr_array_header_t *layers;   /* of mc_adopt_layer */
    size_t bytes;                 /* of all files that were read */
    unsigned permissions;         /* that all of them have */
    const char *cors;             /* origins; NULL: not said */
    apr_array_header_t *later;    /* of const char *: seed files, which need the tilesets */
    const char *style_folder;     /* as the file names it; NULL: no styles are written */
    apr_array_header_t *styles;   /* of mc_adopt_style */
    struct mc_mapproxy *mapproxy; /* the configuration of MapProxy that was read last; NULL: none */
};

/* Puts a formatted text; values in it are to be escaped (mc_xml_escape). */
void mc_draft_put(mc_adopt *adopt, mc_draft_part part, const char *format, ...) MC_PRINTF(3, 4);

/* Puts `<name>text</name>` on a line of its own, escaped; nothing where the text is NULL or empty. */
void mc_draft_element(mc_adopt *adopt, mc_draft_part part, const char *indent, const char *name, const char *text);

/* A name that nothing in that part has: `wanted`, or with _2, _3, ... behind it. The name is then taken. */
const char *mc_draft_name(mc_adopt *adopt, mc_draft_part part, const char *wanted);

/* Whether the name is taken. */
bool mc_draft_has(const mc_adopt *adopt, mc_draft_part part, const char *name);

/* Puts `<cache name="" type="none"/>` once. Its name. */
const char *mc_draft_no_cache(mc_adopt *adopt);

/* Whether styles can be written beside the file. */
bool mc_draft_has_styles(const mc_adopt *adopt);

/* Adds an SLD document for a layer. The path of its file as <style> names it. */
const char *mc_draft_style(mc_adopt *adopt, const char *layer, const char *text);

/* Remembers a layer that was taken over: a tileset's name, and the name there; `extension` as in mc_adopt_layer. */
void mc_draft_layer(mc_adopt *adopt, const char *tileset, const char *there, const char *extension);

/* Notes what is not taken over, with its place: "KEY is not taken over: WHAT TO DO". */
void mc_draft_note(mc_adopt *adopt, const char *file, int line, const char *format, ...) MC_PRINTF(4, 5);
void mc_draft_note_at(mc_adopt *adopt, const mc_branch *at, const char *format, ...) MC_PRINTF(3, 4);

/* Notes a folder of tiles that is not there, each folder once. */
void mc_draft_note_folder(mc_adopt *adopt, const mc_branch *at, const char *folder);

/* What to do about keys that nobody reads: the last key of the path, or its last two ("wms_opts.version"). The last row
 * has no key. */
typedef struct mc_draft_advice {
    const char *key, *advice;
} mc_draft_advice;

/* Notes all values below that nobody has read, each once, with what is to be done by the table. */
void mc_draft_note_untaken(mc_adopt *adopt, const mc_branch *root, const mc_draft_advice *advice);

/* Reads a whole file of at most MC_ADOPT_BYTES_MAX bytes. MC_ERR_CONFIG with the file's name: it is not there, no plain
 * file, too large, or all files together have more than MC_ADOPT_ALL_BYTES_MAX. A zero byte follows the bytes. */
mc_error *mc_draft_read_file(char **bytes, size_t *size, const char *path, mc_adopt *adopt) MC_CHECKED;

/* A path seen from a folder. */
const char *mc_draft_path(const char *folder, const char *path, apr_pool_t *pool);

/* The folder of a file: "." where the name has none. */
const char *mc_draft_folder(const char *file, apr_pool_t *pool);

/* The readers of each neighbour's files. MC_ERR_CONFIG: nothing of the file can be used, with its name and line. */
mc_error *mc_adopt_mapproxy(mc_adopt *adopt, const char *file) MC_CHECKED;
mc_error *mc_adopt_renderd(mc_adopt *adopt, const char *file) MC_CHECKED;
mc_error *mc_adopt_mapfile(mc_adopt *adopt, const char *file) MC_CHECKED;

/* `file` may be a folder of GeoServer: its data directory, or the folder gwc in it. */
mc_error *mc_adopt_geowebcache(mc_adopt *adopt, const char *file) MC_CHECKED;

/* A seed.yaml of MapProxy, whose tasks become commands; after the mapproxy.yaml that it belongs to. */
mc_error *mc_adopt_mapproxy_seeds(mc_adopt *adopt, const char *file) MC_CHECKED;

#endif
