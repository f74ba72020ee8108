/* Shared by the back ends of caches: common keys, templates of paths, the memory of the process. */
#ifndef MC_CACHE_CACHE_BASE_H
#define MC_CACHE_CACHE_BASE_H

#include <stddef.h>

#include "cache/cache_kinds.h"
#include "db/sqlite/handles.h"
#include "mapcache/cache.h"
#include "mapcache/trace.h"

enum { MC_PATH_MAX = 4096 };

/* What the END line says of a get. */
static inline void
mc_cache_note_get(mc_span *span, const mc_error *error, const mc_tile *tile)
{
    if (error != MC_OK)
        mc_span_note(span, "ERROR");
    else if (tile == NULL)
        mc_span_note(span, "CACHE_MISS");
}

/* Beginning of every back end's own struct. */
typedef struct mc_cache_base {
    mc_cache cache;
    const char *type;
    const char *memory; /* <memory> as it stands */
} mc_cache_base;

/* Rows that every cache's key table begins with; `type` has mc_cache_base as its first member `base`. */
#define MC_CACHE_KEYS(type_)                                                                                           \
    MC_KEY_TEXT("@name", offsetof(type_, base.cache.name), "Name that tilesets refer to.", .flags = MC_KEY_REQUIRED),  \
        MC_KEY_TEXT("@type", offsetof(type_, base.type), "Kind of cache.", .flags = MC_KEY_REQUIRED),                  \
        MC_KEY_INT("retries", offsetof(type_, base.cache.retries), "How often a failed operation is repeated.",        \
                   .max = 10, .fallback = "0"),                                                                        \
        MC_KEY_NUMBER("retry_delay", offsetof(type_, base.cache.retry_delay),                                          \
                      "Seconds before the first repetition; doubles with each, less up to a quarter by chance.",       \
                      .max = 3600, .fallback = "0"),                                                                   \
        MC_KEY_TEXT("memory", offsetof(type_, base.memory),                                                            \
                    "Whether what is read may stay in memory: true, false, or seconds where the store has no stamp.",  \
                    .flags = MC_KEY_OURS)

/* Reads `node` into the struct that begins with `base`. stamped: the store has stamps, <memory> is true by default. */
bool mc_cache_read(mc_cache_base *base, const mc_cache_ops *ops, bool stamped, const mc_node *node, mc_build *build);

/* A text that grows in `out`, which has MC_PATH_MAX bytes. `overflow`: the text did not fit. */
typedef struct mc_text_out {
    char *out;
    size_t length;
    bool overflow;
    size_t client_begin, client_end; /* what of it a client has named, from the first to the last; 0, 0: nothing */
} mc_text_out;

void mc_text_put(mc_text_out *text, const char *bytes, size_t size);
void mc_text_put_string(mc_text_out *text, const char *string);

/* The value of a dimension as part of a path: '/' and '.' become '#'; with paths allowed only "../" does
 * (docs/reference/configuration.md 5.3.1).
 */
void mc_text_put_dimension(mc_text_out *text, const char *value, bool paths_allowed);

/* The tileset's name as part of a path: as it is, or of a client_named key one component (several where it is long),
 * from which the name could be read back, and which is never "." or "..". */
void mc_text_put_tileset(mc_text_out *text, const mc_tile_key *key);

/* An error if the finished path, or a name in it, is longer than file systems take: MC_ERR_INVALID_DIMENSION where the
 * key has dimensions, whose values come from clients; else MC_ERR_LIMIT, of a client_named key
 * MC_ERR_LAYER_NOT_DEFINED. Of such a key also MC_ERR_FORBIDDEN where a folder or file that the client has named is a
 * link. */
mc_error *mc_text_check(const mc_text_out *text, const mc_tile_key *key, apr_pool_t *pool) MC_CHECKED;

/* MC_ERR_LAYER_NOT_DEFINED where the path is that of a file which SQLite puts beside another one. */
mc_error *mc_text_check_database(const mc_text_out *text, apr_pool_t *pool) MC_CHECKED;

/* Values in reversed order, joined by '#': the `dim` of SQL and keys (docs/reference/configuration.md 5.1). "" without
 * dimensions. */
const char *mc_cache_dimension_key(const mc_tile_key *key, apr_pool_t *pool);

/* A template of a path, parsed once. */
typedef struct mc_template mc_template;

typedef struct mc_template_rules {
    bool sqlite; /* tokens, order and repetition of docs/reference/configuration.md 5.3.2; else those of disk (5.5) */
    bool url;    /* tokens of disk, values of dimensions as they are (5.11) */
    bool allow_paths; /* allow_path_in_dim */
    int columns, rows, top;
    const char *const *formats; /* of sqlite: by mc_template_format, NULL for %d */
} mc_template_rules;

/* Attributes of <dbfile>: formats of the tokens of the same name. */
#define MC_TEMPLATE_FORMATS(X)                                                                                         \
    X(z)                                                                                                               \
    X(x)                                                                                                               \
    X(div_x)                                                                                                           \
    X(inv_x) X(inv_div_x) X(y) X(div_y) X(inv_y) X(inv_div_y) X(top) X(top_x) X(top_y) X(inv_top_x) X(inv_top_y)

typedef enum mc_template_format {
#define X(name) MC_FORMAT_##name,
    MC_TEMPLATE_FORMATS(X)
#undef X
        MC_FORMAT_COUNT
} mc_template_format;

/* Whether `format` is text with exactly one conversion of an int, of bounded width. */
bool mc_number_format_valid(const char *format);

mc_template *mc_template_compile(const char *text, const mc_template_rules *rules, apr_pool_t *pool);

/* True where every key gives the same path. */
bool mc_template_constant(const mc_template *template);

/* The path of a key, into `out` of MC_PATH_MAX bytes. MC_ERR_LIMIT when it is too long. */
mc_error *mc_template_expand(char *out, const mc_template *template, const mc_tile_key *key,
                             apr_pool_t *pool) MC_CHECKED;

/* As mc_template_expand, but with MC_TEMPLATE_MARK and the letter x, y, X or Y (inverted) for column and row (u, v, U,
 * V for those that are divided), and with `levels` also z for the level. For names that are to be told apart again. */
#define MC_TEMPLATE_MARK '\x01'
mc_error *mc_template_expand_marked(char *out, const mc_template *template, const mc_tile_key *key, bool levels,
                                    apr_pool_t *pool) MC_CHECKED;

/* The folder before the first placeholder of a template's text; NULL: there is none. */
const char *mc_template_folder(const char *text, apr_pool_t *pool);

/* A pattern for glob(3) that all paths of the template match, of MC_PATH_MAX bytes. False: it is too long. */
bool mc_template_pattern(char *pattern, const mc_template *template);

/* True where the path depends on level, column or row; on a dimension; on the grid. */
bool mc_template_by_tile(const mc_template *template);
bool mc_template_by_dimension(const mc_template *template);
bool mc_template_by_grid(const mc_template *template);

/* For used_by: warns where the tileset has dimensions, and the paths of the cache's files do not (`by_dimension`):
 * clients would get the same tile for all values. */
void mc_cache_note_dimensions(const mc_cache *cache, bool by_dimension, const char *remedy, const mc_cache_use *use,
                              const mc_node *node, mc_build *build);

/* For used_by: complains where `place`, the path of a tile of this use, is in `places` (path to the name of a use)
 * already for another tileset or grid; else adds it. `remedy`: what the administrator may do. */
void mc_cache_note_place(const mc_cache *cache, apr_hash_t *places, const char *place, const char *remedy,
                         const mc_cache_use *use, const mc_node *node, mc_build *build);

/* The SQLite file that a tile stands in: mc_sqlite_get_stamped reads it. */
typedef struct mc_store_location {
    mc_cache *cache;      /* the cache that holds the tile: the cache itself or a part of it; NULL: no SQLite file */
    uint64_t identity;    /* of how it is read: differs where the same file and key may give something else */
    uint64_t paths;       /* of how the path is made of a key */
    const char *coverage; /* statement that tells which tiles the file has, or NULL */
    bool by_tile;         /* other tiles of the same tileset, grid and dimensions may stand elsewhere */
    bool needed;          /* a missing file is an error, unless the tileset can render */
    char path[MC_PATH_MAX];
} mc_store_location;

/* Turns a stored colour ('#' B G R A) into a picture of this colour. Other tiles stay as they are. */
mc_error *mc_cache_expand(mc_tile *tile, const mc_tile_key *key, apr_pool_t *pool) MC_CHECKED;

/* While ctx->writes is set: adds tiles to the waiting puts; adds keys of one series to the waiting removals; flushes
 * before `key` is read or removed, if this tile waits. */
mc_error *mc_cache_writes_add(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx) MC_CHECKED;
mc_error *mc_cache_writes_remove(mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx) MC_CHECKED;
mc_error *mc_cache_writes_settle(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx) MC_CHECKED;

/* For mc_cache_upkeep: adds a group to the numbers of its store, and to `orphans` (of mc_store_group) where the group
 * is not known. The second function reports the orphans. */
struct mc_store;
struct mc_store_group;
void mc_store_add(struct mc_store *store, const struct mc_store_group *group, const struct mc_upkeep *task,
                  apr_array_header_t *orphans);
void mc_store_tell_orphans(const struct mc_store *store, const struct mc_upkeep *task,
                           const apr_array_header_t *orphans);

/* A tile as read: data attached to the pool, coding by its signature. */
mc_tile *mc_tile_create(mc_buf *data, apr_time_t mtime, apr_pool_t *pool);

/*
 * The key of a remembered tile, valid for a stamp. `identity` tells stores of equal paths apart: it is the hash of the
 * way of reading (statement, type, definition). Keys outlive configurations: whatever two of them read different tiles
 * by has different keys. The key is built in the caller's frame.
 */
typedef struct mc_memory_key {
    size_t size;
    bool looked;         /* memory was asked for it, and */
    uint32_t generation; /* what was forgotten since is not remembered (memory/shared_cache.h) */
    char bytes[MC_PATH_MAX + 1024];
} mc_memory_key;

void mc_memory_key_build(mc_memory_key *memory_key, uint64_t identity, const char *path, const mc_tile_key *key);

/* True if something is known under this very stamp; *tile NULL then: known to be absent. A NULL stamp asks for what
 * was remembered for a time. */
bool mc_memory_get(mc_tile **tile, mc_memory_key *key, const mc_stamp *stamp, mc_ctx *ctx, apr_pool_t *pool);

/* Remembers a tile, or with NULL its absence, unless the stamp is younger than 50 ms at `now`, the time it was taken.
 */
void mc_memory_put(const mc_memory_key *key, const mc_stamp *stamp, apr_time_t now, mc_tile *tile, mc_ctx *ctx);
/* The same for stores without a stamp: for `seconds`. */
void mc_memory_put_for(const mc_memory_key *key, double seconds, mc_tile *tile, mc_ctx *ctx);
void mc_memory_forget(const mc_memory_key *key, mc_ctx *ctx);

#endif
