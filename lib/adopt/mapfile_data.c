/* Where the data of a layer of a map file are, as elements of a source of ours (MapServer's documentation, "Vector
 * Data"). See mapfile_parts.h. */
#include <apr_strings.h>
#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adopt/mapfile_parts.h"
#include "base/files.h"
#include "text/text.h"

enum { SHAPE_HEADER = 36, SHAPE_TYPE = 32 }; /* bytes of a shapefile, and where its type stands */

/* DATA of a layer in PostGIS: "geometry from table using unique id using srid=4326". */
typedef struct postgis_data {
    const char *geometry, *table, *query, *id;
    int srid; /* 0: not said */
} postgis_data;

/* Whether %name% stands in a text, which MapServer fills in from a request. */
static bool
has_request_value(const char *text)
{
    for (const char *at = strchr(text, '%'); at != NULL; at = strchr(at + 1, '%')) {
        size_t size = 0;
        while (isalnum((unsigned char)at[1 + size]) || at[1 + size] == '_')
            size++;
        if (size > 0 && at[1 + size] == '%')
            return true;
    }
    return false;
}

/* The code of EPSG of the layer's data; 0: that of a .prj (AUTO), or none is said. False: refused. */
static bool
read_layer_code(int *code, mc_mapfile_reader *reader)
{
    mc_branch *projection = mc_branch_get(reader->layer, "PROJECTION");
    const mc_branch *item = mc_branch_item(projection, 0);
    *code = 0;
    if (projection == NULL)
        return reader->srs == NULL || mc_parse_int(code, reader->srs + strlen("EPSG:"), 1, 999999);
    const char *text = item == NULL || item->text == NULL ? "" : item->text;
    if (strcasecmp(text, "AUTO") == 0)
        return true;
    text += strncasecmp(text, "init=", 5) == 0 ? 5 : 0;
    return (strncasecmp(text, "epsg:", 5) == 0 && mc_branch_count(projection) == 1 &&
            mc_parse_int(code, text + 5, 1, 999999)) ||
           mc_mapfile_refuse(reader, projection, "a PROJECTION without a code of EPSG");
}

/* The file of a name, as MapServer looks for it; NULL: there is none. */
static const char *
find_data_file(const mc_mapfile_reader *reader, const char *name)
{
    static const char *const endings[] = { "", ".shp", ".SHP" };
    const char *folders[] = { reader->shapes == NULL ? NULL
                                                     : mc_draft_path(reader->folder, reader->shapes, reader->pool),
                              reader->folder };
    struct stat about;
    for (size_t folder = 0; folder < 2; folder++)
        for (size_t i = 0; folders[folder] != NULL && i < sizeof(endings) / sizeof(*endings); i++) {
            const char *path =
                apr_pstrcat(reader->pool, mc_draft_path(folders[folder], name, reader->pool), endings[i], NULL);
            if (stat(path, &about) == 0 && S_ISREG(about.st_mode))
                return path;
        }
    return NULL;
}

static bool
has_file_ending(const char *path, const char *ending)
{
    size_t size = strlen(path), most = strlen(ending);
    return size > most && strcasecmp(path + size - most, ending) == 0;
}

/* Whether shapes of that file are of the layer's type: MapServer draws others in its own way. */
static bool
fits_shapes(mc_mapfile_reader *reader, const mc_branch *data, const char *path)
{
    unsigned char header[SHAPE_HEADER] = { 0 };
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool whole = file >= 0 && mc_files_read_at(file, 0, (char *)header, sizeof(header)) == sizeof(header);
    if (file >= 0)
        close(file);
    int type = header[SHAPE_TYPE] % 10; /* with heights or measures 10 or 20 more */
    bool point = type == 1 || type == 8, line = type == 3, area = type == 5;
    bool fits = reader->type == MC_MAPFILE_POINT ? point : reader->type == MC_MAPFILE_LINE ? line || area : area;
    return (whole && fits) || mc_mapfile_refuse(reader, data, "shapes that are not of its TYPE");
}

static void
put_data_element(apr_array_header_t *out, const char *name, const char *text)
{
    if (text != NULL && *text != '\0')
        mc_mapfile_put(out, "      <%s>%s</%s>\n", name, mc_xml_escape(text, out->pool), name);
}

static bool
put_file_data(apr_array_header_t *out, mc_mapfile_reader *reader, const mc_branch *data, const char *path, int code)
{
    if (!fits_shapes(reader, data, path))
        return false;
    put_data_element(out, "data", path);
    if (code != 0)
        put_data_element(out, "srs", apr_psprintf(reader->pool, "EPSG:%d", code));
    put_data_element(out, "encoding", mc_branch_text(reader->layer, "ENCODING", NULL));
    return true;
}

static bool
read_shapefile_data(apr_array_header_t *out, mc_mapfile_reader *reader, int code)
{
    const mc_branch *data = mc_branch_get(reader->layer, "DATA");
    const char *path = data == NULL || data->text == NULL ? NULL : find_data_file(reader, data->text);
    if (path == NULL || !has_file_ending(path, ".shp"))
        return mc_mapfile_refuse(reader, data == NULL ? reader->layer : data, "data that are no shapefile");
    return put_file_data(out, reader, data, path, code);
}

static bool
read_ogr_data(apr_array_header_t *out, const char **kind, mc_mapfile_reader *reader, int code)
{
    static const char *const endings[] = { ".gpkg", ".fgb", ".geojson", ".json" };
    const mc_branch *connection = mc_branch_get(reader->layer, "CONNECTION"),
                    *data = mc_branch_get(reader->layer, "DATA");
    const char *path = connection == NULL || connection->text == NULL ? NULL : find_data_file(reader, connection->text);
    const char *table = data == NULL ? NULL : data->text;
    bool known = false;
    if (path != NULL && has_file_ending(path, ".shp"))
        return put_file_data(out, reader, connection, path, code);
    for (size_t i = 0; path != NULL && i < sizeof(endings) / sizeof(*endings); i++)
        known = known || has_file_ending(path, endings[i]);
    if (!known)
        return mc_mapfile_refuse(reader, connection == NULL ? reader->layer : connection,
                                 "data that are no shapefile, GeoPackage, FlatGeobuf or GeoJSON");
    if (table != NULL && (strncasecmp(table, "select ", 7) == 0 || isdigit((unsigned char)*table)))
        return mc_mapfile_refuse(reader, data, "DATA that does not name a layer of the file");
    *kind = "ogr";
    put_data_element(out, "data", path);
    if (has_file_ending(path, ".gpkg"))
        put_data_element(out, "table", table);
    if (code != 0)
        put_data_element(out, "srs", apr_psprintf(reader->pool, "EPSG:%d", code));
    return true;
}

/* ---- PostGIS ---- */

static const char *
pass_sql_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n\f\v");
}

/* The bytes of a name in SQL, with its schema, each in quotes or not. 0: there is none. */
static size_t
sql_name_size(const char *at)
{
    size_t size = 0;
    for (;;) {
        if (at[size] == '"') {
            const char *end = strchr(at + size + 1, '"');
            if (end == NULL)
                return 0;
            size = (size_t)(end - at) + 1;
        } else {
            while (isalnum((unsigned char)at[size]) || at[size] == '_' || at[size] == '$' || (at[size] & 0x80) != 0)
                size++;
        }
        if (at[size] != '.')
            return size;
        size++;
    }
}

/* A name as PostgreSQL understands it: in small letters where it has no quotes, which are left out. */
static const char *
plain_sql_name(const char *at, size_t size, apr_pool_t *pool)
{
    char *name = apr_palloc(pool, size + 1), *to = name;
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        if (at[i] == '"')
            quoted = !quoted;
        else
            *to++ = quoted ? at[i] : (char)tolower((unsigned char)at[i]);
    }
    *to = '\0';
    return name;
}

/* Behind the bracket that closes the one at `at`; NULL: there is none. */
static const char *
closing_bracket(const char *at)
{
    int depth = 0;
    for (char quote = '\0'; *at != '\0'; at++) {
        if (quote != '\0')
            quote = *at == quote ? '\0' : quote;
        else if (*at == '\'' || *at == '"')
            quote = *at;
        else if (*at == '(')
            depth++;
        else if (*at == ')' && --depth == 0)
            return at + 1;
    }
    return NULL;
}

/* Whether a word stands here; then behind it. */
static bool
take_sql_word(const char **at, const char *word)
{
    size_t size = strlen(word);
    const char *from = pass_sql_blanks(*at);
    if (strncasecmp(from, word, size) != 0 || isalnum((unsigned char)from[size]) || from[size] == '_')
        return false;
    *at = from + size;
    return true;
}

/* "using unique id" and "using srid=4326", in any order. */
static bool
read_using(postgis_data *made, const char *at, apr_pool_t *pool)
{
    while (take_sql_word(&at, "using")) {
        if (take_sql_word(&at, "unique")) {
            at = pass_sql_blanks(at);
            size_t size = sql_name_size(at);
            if (size == 0)
                return false;
            made->id = apr_pstrmemdup(pool, at, size);
            if (*made->id == '"')
                made->id = plain_sql_name(at, size, pool);
            at += size;
        } else if (take_sql_word(&at, "srid")) {
            at = pass_sql_blanks(at);
            at = pass_sql_blanks(at + (*at == '='));
            size_t size = strspn(at, "0123456789");
            if (!mc_parse_int(&made->srid, apr_pstrmemdup(pool, at, size), 0, 999999))
                return false;
            at += size;
        } else {
            return false;
        }
    }
    return *pass_sql_blanks(at) == '\0';
}

/* (select ...) as alias. */
static const char *
read_subselect(postgis_data *made, const char *at, apr_pool_t *pool)
{
    const char *end = closing_bracket(at);
    if (end == NULL)
        return NULL;
    made->query = mc_replace_all(apr_pstrmemdup(pool, at + 1, (apr_size_t)(end - at) - 2), "!BOX!", "!BBOX!", pool);
    (void)take_sql_word(&end, "as");
    const char *alias = pass_sql_blanks(end), *using = alias;
    return take_sql_word(&using, "using") ? alias : alias + sql_name_size(alias);
}

/* False: it is not understood. */
static bool
parse_postgis_data(postgis_data *made, const char *text, apr_pool_t *pool)
{
    const char *at = pass_sql_blanks(text);
    size_t size = sql_name_size(at);
    *made = (postgis_data){ .geometry = *at == '"' ? plain_sql_name(at, size, pool) : apr_pstrmemdup(pool, at, size) };
    at += size;
    if (size == 0 || !take_sql_word(&at, "from"))
        return false;
    at = pass_sql_blanks(at);
    if (*at == '(') {
        at = read_subselect(made, at, pool);
        return at != NULL && read_using(made, at, pool);
    }
    size = sql_name_size(at);
    made->table = plain_sql_name(at, size, pool);
    return size > 0 && read_using(made, at + size, pool);
}

static bool
read_postgis_data(apr_array_header_t *out, mc_mapfile_reader *reader, int code)
{
    postgis_data parts;
    const mc_branch *data = mc_branch_get(reader->layer, "DATA"),
                    *connection = mc_branch_get(reader->layer, "CONNECTION");
    const char *text = data == NULL || data->text == NULL ? "" : data->text;
    if (connection == NULL || connection->text == NULL || *connection->text == '\0' ||
        has_request_value(connection->text) || strchr(connection->text, '{') != NULL)
        return mc_mapfile_refuse(reader, connection == NULL ? reader->layer : connection,
                                 "a CONNECTION that is encrypted, empty, or filled in by a request");
    if (has_request_value(text) || !parse_postgis_data(&parts, text, reader->pool))
        return mc_mapfile_refuse(reader, data == NULL ? reader->layer : data,
                                 "DATA that is not \"geometry from table using unique id using srid=number\"");
    if (parts.srid != 0 && code != 0 && parts.srid != code)
        return mc_mapfile_refuse(reader, data, "an SRID (%d) that is not that of its PROJECTION (%d)", parts.srid,
                                 code);
    if (parts.query != NULL && parts.srid == 0 && code == 0)
        return mc_mapfile_refuse(reader, data, "DATA without \"using srid=\" and without a PROJECTION");
    put_data_element(out, "connection", connection->text);
    put_data_element(out, "table", parts.table);
    put_data_element(out, "query", parts.query);
    put_data_element(out, "geometry", parts.geometry);
    if (parts.srid != 0 || parts.query != NULL)
        put_data_element(out, "srid", apr_psprintf(reader->pool, "%d", parts.srid != 0 ? parts.srid : code));
    put_data_element(out, "id", parts.id);
    return true;
}

/* Entries of PROCESSING that change no picture. */
static bool
pass_processing(mc_mapfile_reader *reader)
{
    static const char *const passed[] = { "CLOSE_CONNECTION=", "LABEL_NO_CLIP=", "POLYLINE_NO_CLIP=", "ITEMS=" };
    for (mc_branch *child = reader->layer->children; child != NULL; child = child->next) {
        if (strcmp(child->key, "PROCESSING") != 0)
            continue;
        child->taken = true;
        bool known = false;
        for (size_t i = 0; child->text != NULL && i < sizeof(passed) / sizeof(*passed); i++)
            known = known || strncasecmp(child->text, passed[i], strlen(passed[i])) == 0;
        if (!known)
            return mc_mapfile_refuse(reader, child, "PROCESSING %s",
                                     mc_message_text(child->text == NULL ? "" : child->text, 60, reader->pool));
    }
    return true;
}

const char *
mc_mapfile_data(const char **kind, mc_mapfile_reader *reader)
{
    apr_array_header_t *out = apr_array_make(reader->pool, 16, sizeof(const char *));
    const mc_branch *said = mc_branch_get(reader->layer, "CONNECTIONTYPE");
    const char *type = mc_branch_text(reader->layer, "CONNECTIONTYPE", "LOCAL");
    bool read = false;
    int code;
    if (!read_layer_code(&code, reader) || !pass_processing(reader))
        return NULL;
    *kind = "shapefile";
    if (strcasecmp(type, "POSTGIS") == 0) {
        *kind = "postgis";
        read = read_postgis_data(out, reader, code);
    } else if (strcasecmp(type, "OGR") == 0)
        read = read_ogr_data(out, kind, reader, code);
    else if (strcasecmp(type, "LOCAL") == 0)
        read = read_shapefile_data(out, reader, code);
    else
        (void)mc_mapfile_refuse(reader, said, "CONNECTIONTYPE %s", mc_message_text(type, 60, reader->pool));
    return read ? apr_array_pstrcat(reader->pool, out, '\0') : NULL;
}
