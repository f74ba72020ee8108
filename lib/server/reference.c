/* Walks every key table of the build, so that the reference cannot say what the parser does not do. */
#include "server/reference.h"

#include <apr_strings.h>
#include <string.h>

#include "config/value.h"
#include "mapcache/cube.h"
#include "mapcache/service.h"
#include "server/server_private.h"

typedef struct reference_writer {
    apr_array_header_t *parts; /* of const char * */
    apr_hash_t *written;       /* address of a table -> path of the element under which it stands */
    apr_pool_t *pool;
} reference_writer;

static void
append_reference_text(reference_writer *writer, const char *text)
{
    APR_ARRAY_PUSH(writer->parts, const char *) = text;
}

const char *
mc_reference_cell(const char *text, apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, 8, sizeof(const char *));
    for (size_t size; *text != '\0'; text += size) {
        size = strcspn(text, "|<>");
        if (size > 0) {
            APR_ARRAY_PUSH(parts, const char *) = apr_pstrmemdup(pool, text, size);
            continue;
        }
        size = 1;
        APR_ARRAY_PUSH(parts, const char *) = *text == '|' ? "\\|" : *text == '<' ? "&lt;" : "&gt;";
    }
    return apr_array_pstrcat(pool, parts, '\0');
}

static const char *
key_name(const mc_key *key, apr_pool_t *pool)
{
    if (*key->name == '\0')
        return "its text";
    return *key->name == '@' ? apr_psprintf(pool, "`%s=\"\"`", key->name + 1) : apr_psprintf(pool, "`<%s>`", key->name);
}

static const char *
default_of(const mc_key *key)
{
    if (key->flags & MC_KEY_REQUIRED)
        return "required";
    return key->fallback == NULL ? "" : key->fallback;
}

static void
write_row(reference_writer *writer, const mc_key *key)
{
    apr_pool_t *pool = writer->pool;
    const char *many = key->flags & MC_KEY_REPEATABLE ? "; may be repeated" : "";
    const char *ours = key->flags & MC_KEY_OURS ? " *Not in MapCache.*" : "";
    append_reference_text(writer, apr_psprintf(pool, "| %s | %s%s | %s | %s%s |\n", key_name(key, pool),
                                               mc_reference_cell(mc_value_expected(key, pool), pool), many,
                                               mc_reference_cell(default_of(key), pool),
                                               mc_reference_cell(key->help, pool), ours));
}

static void
note_written(reference_writer *writer, const mc_key *keys, const char *path)
{
    const mc_key **address = apr_pmemdup(writer->pool, &keys, sizeof(keys));
    apr_hash_set(writer->written, address, sizeof(keys), path);
}

static void
write_rows(reference_writer *writer, const mc_key *keys)
{
    append_reference_text(writer, "| element or attribute | value | default | meaning |\n|---|---|---|---|\n");
    for (const mc_key *key = keys; key->name != NULL; key++)
        write_row(writer, key);
    append_reference_text(writer, "\n");
}

/* The elements inside of one that have tables. One that several share (or that holds itself) stands only once. */
static void
write_inner(reference_writer *writer, const char *path, const mc_key *keys)
{
    for (const mc_key *key = keys; key->name != NULL; key++) {
        if (key->children == NULL)
            continue;
        const char *inner = *path == '\0' ? key->name : apr_psprintf(writer->pool, "%s/%s", path, key->name);
        const char *elsewhere = apr_hash_get(writer->written, &key->children, sizeof(key->children));
        if (elsewhere != NULL) {
            if (strcmp(elsewhere, inner) != 0)
                append_reference_text(writer, apr_psprintf(writer->pool, "`%s`: see `%s`.\n\n", inner, elsewhere));
            continue;
        }
        note_written(writer, key->children, inner);
        append_reference_text(writer, apr_psprintf(writer->pool, "#### `%s`\n\n", inner));
        write_rows(writer, key->children);
        write_inner(writer, inner, key->children);
    }
}

static void
write_schema(reference_writer *writer, const mc_schema *schema)
{
    const char *type = schema->type == NULL ? "" : apr_psprintf(writer->pool, " type=\"%s\"", schema->type);
    append_reference_text(writer, apr_psprintf(writer->pool, "### `<%s%s>`\n\n%s\n\n", schema->element, type,
                                               mc_reference_cell(schema->help, writer->pool)));
    if (schema->keys == NULL || schema->keys->name == NULL) {
        append_reference_text(writer, "It has no settings.\n\n");
        return;
    }
    note_written(writer, schema->keys, schema->element);
    write_rows(writer, schema->keys);
    write_inner(writer, schema->element, schema->keys);
}

/* The top level. Elements that have a heading of their own are only named there. */
static void
write_reference_root(reference_writer *writer)
{
    note_written(writer, mc_grid_keys, "grid");
    note_written(writer, mc_ruleset_keys, "ruleset");
    note_written(writer, mc_tileset_keys, "tileset");
    note_written(writer, mc_locker_keys, "locker");
    append_reference_text(writer, "## `<mapcache>`\n\n");
    write_rows(writer, mc_root_keys);
    write_inner(writer, "", mc_root_keys);
}

#define WRITE_KINDS(writer_, element_, kinds_)                                                                         \
    for (int i_ = 0; (kinds_)[i_] != NULL; i_++) {                                                                     \
        mc_schema schema_ = { element_, (kinds_)[i_]->type, (kinds_)[i_]->keys, (kinds_)[i_]->help };                  \
        write_schema(writer_, &schema_);                                                                               \
    }

static void
write_fixed(reference_writer *writer, const char *heading, const mc_schema *schemas, int count)
{
    append_reference_text(writer, apr_psprintf(writer->pool, "## %s\n\n", heading));
    for (int i = 0; i < count; i++)
        write_schema(writer, &schemas[i]);
}

const char *
mc_reference_markdown(apr_pool_t *pool)
{
    static const mc_schema grids[] = {
        { "grid", NULL, mc_grid_keys, "A tile matrix set: a coordinate reference system, an extent, resolutions." },
        { "ruleset", NULL, mc_ruleset_keys, "Which areas show at which levels." },
    };
    static const mc_schema formats[] = {
        { "format", "PNG", mc_format_png_keys, "Lossless, with transparency." },
        { "format", "JPEG", mc_format_jpeg_keys, "Lossy, without transparency." },
        { "format", "WEBP", mc_format_webp_keys, "Lossy or lossless, with transparency; smaller than PNG and JPEG." },
        { "format", "MIXED", mc_format_mixed_keys,
          "One format for tiles with transparent pixels, another for the others." },
        { "format", "RAW", mc_format_raw_keys, "Bytes that are stored and served as the source sends them." },
        { "format", "MVT", mc_format_mvt_keys, "Vector tiles (Mapbox Vector Tile 2.1), of the sources that draw." },
    };
    static const mc_schema tilesets[] = {
        { "tileset", NULL, mc_tileset_keys,
          "A layer: where its tiles come from, where they are stored, how they are cut." },
    };
    static const mc_schema lockers[] = {
        { "locker", NULL, mc_locker_keys, "How processes agree on who renders a metatile." },
    };
    reference_writer writer = { apr_array_make(pool, 256, sizeof(const char *)), apr_hash_make(pool), pool };
    append_reference_text(
        &writer, "# Configuration reference\n\n"
                 "Written by `mapcache keys` from the tables that the parser itself reads by; `mapcache check FILE` "
                 "tests a file against them.\n\n");
    write_reference_root(&writer);
    write_fixed(&writer, "Grids", grids, (int)(sizeof(grids) / sizeof(grids[0])));
    append_reference_text(&writer, "## Cubes\n\n");
    WRITE_KINDS(&writer, "cube", mc_cube_kinds)
    append_reference_text(&writer, "## Sources\n\n");
    WRITE_KINDS(&writer, "source", mc_source_kinds)
    write_fixed(&writer, "Formats", formats, (int)(sizeof(formats) / sizeof(formats[0])));
    append_reference_text(&writer, "## Caches\n\n");
    WRITE_KINDS(&writer, "cache", mc_cache_kinds)
    write_fixed(&writer, "Tilesets", tilesets, 1);
    append_reference_text(&writer, "## Dimensions\n\n");
    WRITE_KINDS(&writer, "dimension", mc_dimension_kinds)
    append_reference_text(&writer, "## Services\n\n");
    WRITE_KINDS(&writer, "service", mc_service_kinds)
    write_fixed(&writer, "Locks", lockers, 1);
    return apr_array_pstrcat(pool, writer.parts, '\0');
}
