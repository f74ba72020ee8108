/* The elements of caches in SQLite files (docs/reference/configuration.md 5.3.1), and what is made of them once. */
#include <apr_strings.h>
#include <string.h>

#include "base/hash.h"
#include "cache/sqlite/sqlite_base.h"

typedef struct dbfile {
    const char *path;
    const char *formats[MC_FORMAT_COUNT];
} dbfile;

static const mc_key dbfile_keys[] = { MC_KEY_TEXT("", offsetof(dbfile, path), "Path or template of the files.",
                                                  .flags = MC_KEY_REQUIRED | MC_KEY_WORKDIR),
#define X(name)                                                                                                        \
    MC_KEY_TEXT("@" #name "_fmt", offsetof(dbfile, formats[MC_FORMAT_##name]),                                         \
                "How the number of the token of that name is printed, like %03d."),
                                      MC_TEMPLATE_FORMATS(X)
#undef X
                                          MC_KEY_END };

typedef struct queries {
    const char *create, *exists, *get, *set, *remove;
} queries;

#define QUERY(name, field, text) MC_KEY_TEXT(name, offsetof(queries, field), text)
static const mc_key query_keys[] = {
    QUERY("create", create, "Run before the first write to a file."),
    QUERY("exists", exists, "Gives a row where the tile exists."),
    QUERY("get", get, "Gives the blob and, if wanted, its time in Unix seconds."),
    QUERY("set", set, "Stores :data."),
    QUERY("delete", remove, "Removes the tile."),
    MC_KEY_END,
};

typedef struct pragma_text {
    const char *name, *value;
} pragma_text;

static const mc_key pragma_keys[] = {
    MC_KEY_TEXT("@name", offsetof(pragma_text, name), "Name of the pragma.", .flags = MC_KEY_REQUIRED),
    MC_KEY_TEXT("", offsetof(pragma_text, value), "Value of the pragma.", .flags = MC_KEY_REQUIRED),
    MC_KEY_END,
};

#define FIELD(field) offsetof(sqlite_cache, field)
/* clang-format off */
#define SQLITE_ROWS \
    MC_CACHE_KEYS(sqlite_cache), \
    MC_KEY_TREE("dbfile", FIELD(dbfile), dbfile_keys, "Path of the files.", .flags = MC_KEY_REQUIRED), \
    MC_KEY_INT("xcount", FIELD(columns), "Tiles in a file from west to east.", .min = -1e9, .max = 1 << 30, .fallback = "-1"), \
    MC_KEY_INT("ycount", FIELD(rows), "Tiles in a file from south to north.", .min = -1e9, .max = 1 << 30, .fallback = "-1"), \
    MC_KEY_INT("top", FIELD(top), "Level whose tiles have a file each.", .min = -1e9, .max = 1000, .fallback = "-1"), \
    MC_KEY_TEXT("@allow_path_in_dim", FIELD(allow_path_in_dim), "yes: values that a catalogue resolves may contain / and . in the path."), \
    MC_KEY_FLAG("detect_blank", FIELD(detect_blank), "Store tiles of one colour as that colour."), \
    MC_KEY_TREE("pragma", FIELD(pragmas), pragma_keys, "Run when a file is opened.", .flags = MC_KEY_REPEATABLE), \
    MC_KEY_TREE("queries", FIELD(queries), query_keys, "Statements for another schema."), \
    MC_KEY_TEXT("hitstats", FIELD(hitstats), "Historical; true is refused."), \
    MC_KEY_TEXT("base", FIELD(historical_base), "Historical; refused."), \
    MC_KEY_TEXT("dbname_template", FIELD(historical_template), "Historical; refused."), \
    MC_KEY_BOOL("immutable", FIELD(immutable), "The files never change while they are served: no locks are taken.", .flags = MC_KEY_OURS, .fallback = "false"), \
    MC_KEY_CHOICE("index_check", FIELD(index_check), "warn|error|off", "What happens when the get statement reads whole tables.", .flags = MC_KEY_OURS, .fallback = "warn"), \
    MC_QUOTA_KEY(sqlite_cache)
/* clang-format on */

const mc_key mc_sqlite_keys[] = {
    SQLITE_ROWS,
    MC_KEY_BOOL("deduplicate", FIELD(deduplicate),
                "New files have each content once, however many tiles have it; mapcache compact removes contents that"
                " no tile has any more.",
                .flags = MC_KEY_OURS, .fallback = "false"),
    MC_KEY_END,
};

const mc_key mc_geopackage_keys[] = {
    SQLITE_ROWS,
    MC_KEY_TEXT("table", FIELD(table), "Name of the tile table in the files; without it tiles.", .flags = MC_KEY_OURS),
    MC_KEY_END,
};

static bool
refuse_historical(const sqlite_cache *cache, const mc_node *node, mc_build *build)
{
    if (cache->hitstats != NULL && strcasecmp(cache->hitstats, "true") == 0)
        mc_complain(build->diagnostics, MC_REFUSED, node, "<hitstats> is not supported any more");
    else if (cache->historical_base != NULL || cache->historical_template != NULL)
        mc_complain(build->diagnostics, MC_REFUSED, node, "<base> and <dbname_template> became <dbfile>");
    else
        return true;
    return false;
}

static bool
read_dbfile(sqlite_cache *cache, mc_build *build)
{
    dbfile *file = apr_pcalloc(build->pool, sizeof(*file));
    if (!mc_config_read(file, cache->dbfile, dbfile_keys, build->diagnostics))
        return false;
    for (int i = 0; i < MC_FORMAT_COUNT; i++)
        if (file->formats[i] != NULL && !mc_number_format_valid(file->formats[i])) {
            mc_complain(build->diagnostics, MC_REFUSED, cache->dbfile,
                        "%s is not text with one number in it, like %%03d",
                        mc_config_quote(file->formats[i], build->pool));
            return false;
        }
    mc_template_rules rules = { .sqlite = true,
                                .allow_paths =
                                    cache->allow_path_in_dim != NULL && strcmp(cache->allow_path_in_dim, "yes") == 0,
                                .columns = cache->columns,
                                .rows = cache->rows,
                                .top = cache->top,
                                .formats = file->formats };
    cache->path_text = file->path;
    cache->template = mc_template_compile(file->path, &rules, build->pool);
    cache->single_file = mc_template_constant(cache->template);
    return true;
}

/* A pragma's name and value are pasted into SQL: words and numbers only. */
static bool
plain_word(const char *text)
{
    return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-' ")] == '\0';
}

static bool
read_pragmas(sqlite_cache *cache, mc_build *build)
{
    int count = cache->pragmas->nelts;
    mc_pragma *pragmas = apr_pcalloc(build->pool, sizeof(*pragmas) * (size_t)(count + 1));
    for (int i = 0; i < count; i++) {
        const mc_node *node = APR_ARRAY_IDX(cache->pragmas, i, const mc_node *);
        pragma_text text = { 0 };
        if (!mc_config_read(&text, node, pragma_keys, build->diagnostics))
            return false;
        if (!plain_word(text.name) || !plain_word(text.value)) {
            mc_complain(build->diagnostics, MC_REFUSED, node, "a pragma's name and value are words or numbers");
            return false;
        }
        pragmas[i] = (mc_pragma){ text.name, text.value };
    }
    cache->reading.pragmas = cache->writing.pragmas = pragmas;
    cache->reading.pragma_count = cache->writing.pragma_count = count;
    return true;
}

static bool
read_queries(sqlite_cache *cache, bool fixed_writes, mc_build *build)
{
    if (cache->queries == NULL)
        return true;
    queries found = { 0 };
    if (!mc_config_read(&found, cache->queries, query_keys, build->diagnostics))
        return false;
    if (fixed_writes && (found.set != NULL || found.remove != NULL))
        mc_complain(build->diagnostics, MC_WARNING, cache->queries, "<set> and <delete> of caches of type %s are fixed",
                    cache->base.type);
    cache->create = found.create != NULL ? found.create : cache->create;
    cache->exists = found.exists != NULL ? found.exists : cache->exists;
    cache->get = found.get != NULL ? found.get : cache->get;
    cache->set = found.set != NULL && !fixed_writes ? found.set : cache->set;
    cache->remove = found.remove != NULL && !fixed_writes ? found.remove : cache->remove;
    return true;
}

/* Files of a catalogue are written once and read by many programs, and those for other programs (fixed_writes) are to
 * be read without the right to write, too: both in rollback mode. */
static mc_journal
choose_journal(const sqlite_cache *cache, bool fixed_writes)
{
    for (int i = 0; i < cache->writing.pragma_count; i++)
        if (strcasecmp(cache->writing.pragmas[i].name, "journal_mode") == 0)
            return MC_JOURNAL_KEPT;
    return !cache->single_file ? MC_JOURNAL_KEPT : fixed_writes ? MC_JOURNAL_ROLLBACK : MC_JOURNAL_SERVED;
}

bool
mc_sqlite_read(sqlite_cache *cache, const mc_cache_ops *ops, bool fixed_writes, const mc_node *node, mc_build *build)
{
    const char *get = cache->get;
    if (!mc_cache_read(&cache->base, ops, true, node, build) || !refuse_historical(cache, node, build) ||
        !read_dbfile(cache, build) || !read_pragmas(cache, build) || !read_queries(cache, fixed_writes, build))
        return false;
    if (cache->deduplicate && cache->queries != NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, cache->queries,
                    "<deduplicate> has statements of its own: there are no <queries> beside it");
        return false;
    }
    cache->reading.immutable = cache->immutable;
    cache->writing.write = true;
    cache->writing.journal = choose_journal(cache, fixed_writes);
    cache->writing.create = cache->create;
    cache->reading.profile = mc_open_options_profile(&cache->reading);
    cache->writing.profile = mc_open_options_profile(&cache->writing);
    cache->settled = cache->reading;
    cache->settled.immutable = cache->settled.settled = true;
    cache->settled.profile = mc_open_options_profile(&cache->settled);
    if (cache->get != get) { /* of another schema */
        cache->list = NULL;
        cache->counts = (mc_sqlite_counts){ .area = cache->counts.area, .series = cache->counts.series };
        cache->coverage = mc_coverage_statement(cache->get, build->pool);
    }
    cache->bare = !cache->immutable && !cache->single_file && mc_plain_get_read(&cache->plain, cache->get);
    for (int i = 0; i < cache->reading.pragma_count; i++)
        cache->bare = cache->bare && strcasecmp(cache->reading.pragmas[i].name, "journal_mode") == 0;
    cache->identity = mc_hash64(cache->get, strlen(cache->get), 1);
    cache->paths = mc_hash64(cache->path_text, strlen(cache->path_text), mc_node_hash(node));
    atomic_init(&cache->plan, cache->index_check == 2 ? 1 : 0);
    if (cache->immutable && cache->base.cache.max_size > 0) {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "max_size"),
                    "files that are <immutable> never change: no tile of theirs can be removed for <max_size>");
        return false;
    }
    return mc_quota_from_config(&cache->base.cache, &mc_sqlite_quota, MC_QUOTA_SHIFT, node, build);
}

void
mc_sqlite_used_by(mc_cache *base, const mc_cache_use *use, const mc_node *node, mc_build *build)
{
    sqlite_cache *cache = (sqlite_cache *)base;
    const char *tileset = use->tileset;
    const char *element = strcmp(base->ops->type, "pmtiles") == 0 ? "file" : "dbfile";
    const mc_grid *grid = use->grid;
    mc_tile_key key = { .tileset = tileset, .grid = grid };
    char path[MC_PATH_MAX];
    if (mc_template_expand(path, cache->template, &key, build->pool) != MC_OK)
        return;        /* said with the first request */
    bool told = false; /* for another of its grids */
    for (int i = 0; i < cache->uses->nelts; i++)
        told = told || strcmp(APR_ARRAY_IDX(cache->uses, i, mc_sqlite_use).tileset, tileset) == 0;
    if (use->dimensions && !told && !mc_template_by_dimension(cache->template))
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "tileset \"%s\" has dimensions, and %s files cannot tell the tiles of their values apart: put {dim}"
                    " into the <%s> of cache \"%s\"",
                    tileset, base->ops->type, element, base->name);
    for (int i = 0; i < cache->uses->nelts; i++) {
        const mc_sqlite_use *other = &APR_ARRAY_IDX(cache->uses, i, mc_sqlite_use);
        if (strcmp(other->path, path) == 0 &&
            (strcmp(other->tileset, tileset) != 0 || strcmp(other->grid, grid->name) != 0)) {
            mc_complain(
                build->diagnostics, mc_cache_use_severity(use), node,
                "tileset \"%s\" on grid \"%s\" and tileset \"%s\" on grid \"%s\" share the files of cache \"%s\","
                " and %s files cannot tell their tiles apart: put {tileset} and {grid} into <%s>",
                tileset, grid->name, other->tileset, other->grid, base->name, base->ops->type, element);
            return;
        }
    }
    APR_ARRAY_PUSH(cache->uses, mc_sqlite_use) = (mc_sqlite_use){ tileset, grid->name, apr_pstrdup(build->pool, path) };
}

/* By the file, or by what is bound to the statements that read and write. */
bool
mc_sqlite_tells_grids(const mc_cache *base)
{
    const sqlite_cache *cache = (const sqlite_cache *)base;
    return mc_template_by_grid(cache->template) ||
           (strstr(cache->get, ":grid") != NULL && cache->set != NULL && strstr(cache->set, ":grid") != NULL);
}

const char *
mc_sqlite_place(bool *file, const mc_cache *base, apr_pool_t *pool)
{
    const sqlite_cache *cache = (const sqlite_cache *)base;
    *file = cache->single_file;
    return cache->single_file ? cache->path_text : mc_template_folder(cache->path_text, pool);
}
