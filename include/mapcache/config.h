/*
 * The configuration file as a tree with positions, and the key tables that say what may stand in it.
 * One table for each element drives the parser, the checker and the reference in docs/; nothing else knows XML.
 */
#ifndef MAPCACHE_CONFIG_H
#define MAPCACHE_CONFIG_H

#include <apr_hash.h>
#include <apr_tables.h>
#include <apr_time.h>
#include <stddef.h>

#include "mapcache/error.h"

/* An element. Text is the concatenated character data, untrimmed (MapCache's rule). Positions count from 1. */
typedef struct mc_node {
    const char *file;
    int line;
    int column;
    const char *name;
    const char *text;
    struct mc_attr *attrs;
    struct mc_node *children;
    struct mc_node *next;
    struct mc_node *parent;
    size_t text_before;       /* bytes of the parent's text that stand before it */
    struct mc_node *comments; /* those right inside of it, in their order: only `text` and where they stand */
} mc_node;

typedef struct mc_attr {
    const char *name;
    const char *value;
    struct mc_attr *next;
} mc_attr;

/* The first child of that name, or NULL. Further ones are ignored unless the key is repeatable
 * (docs/reference/configuration.md 1.1). */
const mc_node *mc_node_child(const mc_node *node, const char *name);
const mc_node *mc_node_next(const mc_node *node); /* the next sibling of the same name, or NULL */
const char *mc_node_attr(const mc_node *node, const char *name);

/* Where an element stands: for people, once the tree is forgotten. */
typedef struct mc_position {
    const char *file; /* NULL: of what no file has */
    int line;
} mc_position;

static inline mc_position
mc_node_position(const mc_node *node)
{
    return node == 0 ? (mc_position){ 0, 0 } : (mc_position){ node->file, node->line };
}

/* A hash of what the element says: its name, attributes, text and children, whatever file and line they stand in. */
uint64_t mc_node_hash(const mc_node *node);

typedef enum mc_severity {
    MC_NOTE,      /* nothing is wrong: what whoever reads a thorough check may want to know */
    MC_WARNING,   /* loads; `mapcache check` exits 2 */
    MC_NOT_BUILT, /* loads without the item, which answers 501 or 503; `mapcache check` exits 2 */
    MC_REFUSED,   /* does not load; `mapcache check` exits 1 */
} mc_severity;

/* A complaint: where, what, and what would be right. */
typedef struct mc_complaint {
    mc_severity severity;
    const char *file;
    int line;
    int column;
    const char *text;
} mc_complaint;

/* Everything that was found, in the order of the file's evaluation. */
typedef struct mc_diagnostics {
    apr_pool_t *pool;
    apr_array_header_t *complaints; /* of mc_complaint */
    int refused;                    /* how many of them refuse the file */
    bool thorough; /* what a start has no time for is looked at too (mapcache check): whether fonts are there */
    apr_interval_time_t opening; /* microseconds that looking at data has taken */
    apr_array_header_t *files; /* of const char *: absolute paths of files that the configuration names: styles, data */
    struct mc_config_files *read; /* what the configuration was read of (lib/config/config_files.h) */
} mc_diagnostics;

mc_diagnostics *mc_diagnostics_create(apr_pool_t *pool);
void mc_complain(mc_diagnostics *diagnostics, mc_severity severity, const mc_node *at, const char *format, ...)
    MC_PRINTF(4, 5);

/* A complaint about a place that is no element. */
void mc_complain_at(mc_diagnostics *diagnostics, mc_severity severity, const char *file, int line, int column,
                    const char *format, ...) MC_PRINTF(6, 7);

/* "file:line:column: text"; only the text where there is no position. */
const char *mc_complaint_format(const mc_complaint *complaint, apr_pool_t *pool);

/* `text` in quotes for a complaint: cut after 60 bytes, control characters as blanks. */
const char *mc_config_quote(const char *text, apr_pool_t *pool);

/* Which of `count` known names is probably meant by `name`, or NULL. */
const char *mc_config_nearest(const char *name, const char *const *known, int count);

/* What is said behind the complaint that there is no such name: "; did you mean \"x\"?", or else the names that there
 * are, at most ten of them; "" where there is none. */
const char *mc_config_names_hint(const char *name, const char *const *known, int count, apr_pool_t *pool);
const char *mc_config_keys_hint(const char *name, apr_hash_t *things, apr_pool_t *pool);

/*
 * The thing that `at` refers to by `name`, or NULL after a complaint that refuses the file. The name is taken as it
 * stands, blanks included (docs/reference/configuration.md 1.1); where they are all that is wrong, the complaint says
 * so. `noun`: "grid", ...
 */
void *mc_config_find(apr_hash_t *things, const char *noun, const char *name, const mc_node *at,
                     mc_diagnostics *diagnostics);

/* All complaints that refuse the file as one MC_ERR_CONFIG ("file:line:column: text" each on a line), or MC_OK. */
mc_error *mc_diagnostics_error(const mc_diagnostics *diagnostics, apr_pool_t *pool) MC_CHECKED;

/*
 * Reads an XML file (expat; internal entities only, no external ones, bounded size, depth and expansion). MC_ERR_CONFIG
 * with line and column when the file is not well-formed. mc_xml_parse_file takes any root; names keep their prefixes.
 * mc_xml_parse_text does the same of a text that messages call `name`.
 *
 * A configuration has the root <mapcache>. Where MapCache reads a configuration that is not well-formed XML (a bare &,
 * bytes of another encoding, text outside of the root and others), the configuration is repaired and read with warnings
 * in `diagnostics` (docs/reference/configuration.md 1.1); without `diagnostics` the file is refused.
 */
mc_error *mc_xml_parse_file(mc_node **root, const char *file, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_xml_parse_text(mc_node **root, const char *name, const char *text, size_t size,
                            apr_pool_t *pool) MC_CHECKED;
mc_error *mc_config_parse_file(mc_node **root, const char *file, mc_diagnostics *diagnostics,
                               apr_pool_t *pool) MC_CHECKED;
mc_error *mc_config_parse_text(mc_node **root, const char *name, const char *text, size_t size,
                               mc_diagnostics *diagnostics, apr_pool_t *pool) MC_CHECKED;

/* A path in a configuration file as an absolute one: a relative one is seen from the folder of `file`. */
const char *mc_config_path(const char *file, const char *path, apr_pool_t *pool);

typedef enum mc_value_kind {
    MC_TEXT,      /* const char *: as it stands; empty is refused where required */
    MC_LINE,      /* const char *: one line, for headers: line breaks are blanks, none at the ends */
    MC_URL,       /* const char *: an address: no blanks, wherever the file breaks its lines */
    MC_INT,       /* int: whole number in min..max */
    MC_NUMBER,    /* double: finite, in min..max */
    MC_BOOL,      /* bool: true/false, any case */
    MC_BOOL_CS,   /* bool: true/false, this case only */
    MC_TRUE_ONLY, /* bool: true exactly, anything else is false (MapCache's rule for a few elements) */
    MC_FLAG,      /* bool: present and text not "false" (any case) */
    MC_PRESENT,   /* bool: present */
    MC_SIZE,      /* apr_int64_t: bytes with K, M, G (powers of 1024) */
    MC_CHOICE,    /* int: index into `choices`, this case only */
    MC_CHOICE_CI, /* int: index into `choices`, any case */
    MC_NUMBERS,   /* mc_number_list */
    MC_TREE,      /* const mc_node *: an element with the table `children` (NULL: anything may stand in it) */
} mc_value_kind;

typedef struct mc_number_list {
    double *values;
    int count;
} mc_number_list;

enum {
    MC_KEY_REQUIRED = 1,
    MC_KEY_REPEATABLE = 2,
    MC_KEY_OURS = 4,         /* not in MapCache's vocabulary */
    MC_KEY_FILE = 8,         /* of TEXT: a path; a relative one is resolved against the file that it stands in */
    MC_KEY_WORKDIR = 16,     /* of TEXT: a path that is seen from the working directory, as MapCache does; or no path */
    MC_KEY_MAY_BE_EMPTY = 32 /* a required text that is there and empty is a warning */
};

/* The members that the tables of operations of all kinds begin with: caches, dimensions, sources, services. The help is
 * a sentence for the reference of the configuration. */
#define MC_KIND(type_, keys_, from_config_, help_)                                                                     \
    .type = (type_), .keys = (keys_), .from_config = (from_config_), .help = (help_)

/* One row of a key table, written with the makers below. A table ends with MC_KEY_END. */
typedef struct mc_key {
    const char *name; /* element name, or "@name" for an attribute, or "" for the element's own text */
    mc_value_kind kind;
    unsigned flags;
    double min; /* of INT, NUMBER, SIZE; the least count of NUMBERS */
    double max; /* the greatest, or the greatest count; min == max == 0: unbounded; below min: no upper bound */
    const char *choices;  /* "a|b|c" */
    const char *fallback; /* default as it would be written; NULL: field is left as it is */
    size_t offset;        /* offsetof the field */
    const struct mc_key *children;
    const char *help; /* one or two sentences for the reference and for messages */
} mc_key;

/*
 * A row for each kind of value: the key, the offset of its field, what the kind needs, the help; then what is special
 * of it by the member's name (.flags, .min, .max, .fallback). The field of a repeatable key is an apr_array_header_t *
 * of const mc_node *, whatever the kind; never NULL after reading.
 *
 * Example: an element <area name="" zoom=""> with a child <limit>.
 *
 *     typedef struct area {
 *         const char *name;
 *         int zoom;
 *         double limit;
 *     } area;
 *
 *     static const mc_key area_keys[] = {
 *         MC_KEY_TEXT("@name", offsetof(area, name), "Name of the area.", .flags = MC_KEY_REQUIRED),
 *         MC_KEY_INT("@zoom", offsetof(area, zoom), "First level.", .min = 0, .max = 99, .fallback = "0"),
 *         MC_KEY_NUMBER("limit", offsetof(area, limit), "Share of the area.", .min = 0, .max = 1, .fallback = "1"),
 *         MC_KEY_END,
 *     };
 *
 *     bool
 *     read_area(area *result, const mc_node *node, mc_diagnostics *diagnostics)
 *     {
 *         return mc_config_read(result, node, area_keys, diagnostics);
 *     }
 */
#define MC_KEY_ROW(kind_, name_, offset_, ...)                                                                         \
    {                                                                                                                  \
        .name = name_, .kind = kind_, .offset = offset_, .help = __VA_ARGS__                                           \
    }
#define MC_KEY_TEXT(name_, offset_, ...) MC_KEY_ROW(MC_TEXT, name_, offset_, __VA_ARGS__)
#define MC_KEY_LINE(name_, offset_, ...) MC_KEY_ROW(MC_LINE, name_, offset_, __VA_ARGS__)
#define MC_KEY_URL(name_, offset_, ...) MC_KEY_ROW(MC_URL, name_, offset_, __VA_ARGS__)
#define MC_KEY_INT(name_, offset_, ...) MC_KEY_ROW(MC_INT, name_, offset_, __VA_ARGS__)
#define MC_KEY_NUMBER(name_, offset_, ...) MC_KEY_ROW(MC_NUMBER, name_, offset_, __VA_ARGS__)
#define MC_KEY_BOOL(name_, offset_, ...) MC_KEY_ROW(MC_BOOL, name_, offset_, __VA_ARGS__)
#define MC_KEY_BOOL_CS(name_, offset_, ...) MC_KEY_ROW(MC_BOOL_CS, name_, offset_, __VA_ARGS__)
#define MC_KEY_TRUE_ONLY(name_, offset_, ...) MC_KEY_ROW(MC_TRUE_ONLY, name_, offset_, __VA_ARGS__)
#define MC_KEY_FLAG(name_, offset_, ...) MC_KEY_ROW(MC_FLAG, name_, offset_, __VA_ARGS__)
#define MC_KEY_PRESENT(name_, offset_, ...) MC_KEY_ROW(MC_PRESENT, name_, offset_, __VA_ARGS__)
#define MC_KEY_SIZE(name_, offset_, ...) MC_KEY_ROW(MC_SIZE, name_, offset_, __VA_ARGS__)
#define MC_KEY_NUMBERS(name_, offset_, ...) MC_KEY_ROW(MC_NUMBERS, name_, offset_, __VA_ARGS__)
#define MC_KEY_CHOICE(name_, offset_, choices_, ...)                                                                   \
    MC_KEY_ROW(MC_CHOICE, name_, offset_, __VA_ARGS__, .choices = choices_)
#define MC_KEY_CHOICE_CI(name_, offset_, choices_, ...)                                                                \
    MC_KEY_ROW(MC_CHOICE_CI, name_, offset_, __VA_ARGS__, .choices = choices_)
#define MC_KEY_TREE(name_, offset_, children_, ...)                                                                    \
    MC_KEY_ROW(MC_TREE, name_, offset_, __VA_ARGS__, .children = children_)
#define MC_KEY_END                                                                                                     \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }

/*
 * Reads `node` by its table into the struct `out` (results in diagnostics->pool): defaults first, then what the file
 * says. Unknown elements and attributes are warnings with the nearest known name, bad values are refused with what
 * would be right. False if anything was refused.
 */
bool mc_config_read(void *out, const mc_node *node, const mc_key *keys, mc_diagnostics *diagnostics);

/* An entry of the reference: the element, its type (NULL if it has none), its table, a sentence. Collected by
 * lib/server/reference.c. */
typedef struct mc_schema {
    const char *element;
    const char *type;
    const mc_key *keys;
    const char *help;
} mc_schema;

/* <metadata>: case-insensitive multi-valued keys; one nested level (docs/reference/configuration.md 1.3). */
typedef struct mc_metadata mc_metadata;
mc_metadata *mc_metadata_create(apr_pool_t *pool);
void mc_metadata_add(mc_metadata *metadata, const mc_node *node);
const char *mc_metadata_get(const mc_metadata *metadata, const char *key); /* first value or NULL */
const apr_array_header_t *mc_metadata_all(const mc_metadata *metadata,
                                          const char *key);                          /* of const char *, never NULL */
const mc_metadata *mc_metadata_nested(const mc_metadata *metadata, const char *key); /* or NULL */
void mc_metadata_set(mc_metadata *metadata, const char *key, const char *value);     /* for builtin objects */

/* What the parts of one configuration see of each other while it is built: name -> object, in the order of
 * docs/reference/configuration.md 1.1. */
typedef struct mc_build {
    apr_pool_t *pool; /* of the generation */
    mc_diagnostics *diagnostics;
    apr_hash_t *grids;             /* mc_grid * */
    apr_hash_t *dense_grids;       /* mc_grid *, of variants for fine screens; NULL: none so far */
    apr_hash_t *formats;           /* mc_format * */
    apr_hash_t *cubes;             /* mc_cube * */
    apr_hash_t *sources;           /* mc_source * */
    apr_hash_t *caches;            /* mc_cache * */
    apr_hash_t *rulesets;          /* mc_ruleset * */
    apr_hash_t *tilesets;          /* mc_tileset * */
    apr_array_header_t *databases; /* of const char *: connection strings of PostgreSQL, each once; may be NULL */
    struct mc_jobs *jobs;          /* of <jobs>; NULL without it */
    const struct mc_changes_config *changes; /* of <changes> (lib/changes/watch.h); NULL without it */
    const struct mc_cdns *cdns;              /* of <cdn> (lib/cdn/cdn.h); NULL without any */
    unsigned colors_taken;                   /* of the colours of layers without a style, a bit for each */
    bool mirror;                             /* <mapcache mode> is one of the mirror modes */
    bool status_page;                        /* the service status has its page */
    apr_hash_t *missing;                     /* "cache NAME" -> const char * reason: declared, but not built */
    const char *waiting; /* the reason of those whose data are not there: somebody has complained already */
} mc_build;

#endif
