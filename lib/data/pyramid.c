/*
 * Pyramids of ROK4: a JSON file, the descriptor, says which folders below it have the slabs of each level. Served are
 * those in files whose tiles are whole pictures, on the tile matrix set "PM", which is that of web maps.
 */
#include <apr_file_io.h>
#include <apr_strings.h>
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/data_private.h"
#include "grid/earth.h"
#include "text/json.h"
#include "text/text.h"

enum {
    DESCRIPTOR_BYTES = 1 << 20, /* a list of slabs stands in another file */
    LEVELS_MAX = 24,
    DESCRIPTORS_MAX = 100, /* of a folder */
    SLAB_SIDE_MAX = 256,
    DEPTH_MAX = 8
};

/* A level, as far as its fields have been read. */
typedef struct pyramid_level {
    const char *id, *storage, *folder;
    int depth, columns, rows;
    int west, north, east, south; /* tiles from the upper left corner, inclusive */
} pyramid_level;

typedef struct pyramid {
    pyramid_level level; /* that is being read; id NULL: none */
    pyramid_level finest;
    int first, last;    /* levels; -1: there is none yet */
    const char *folder; /* of the levels' folders, as the descriptor has it */
    const char *problem;
    apr_pool_t *pool;
} pyramid;

/* The whole text of a small file; NULL: it is none, or cannot be read. */
static const char *
read_small_file(const char *path, apr_size_t *size, apr_pool_t *pool)
{
    apr_file_t *file;
    apr_finfo_t info;
    if (apr_stat(&info, path, APR_FINFO_TYPE | APR_FINFO_SIZE, pool) != APR_SUCCESS || info.filetype != APR_REG ||
        info.size > DESCRIPTOR_BYTES || apr_file_open(&file, path, APR_READ | APR_BINARY, APR_OS_DEFAULT, pool) != 0)
        return NULL;
    char *text = apr_pcalloc(pool, (apr_size_t)info.size + 1);
    *size = 0;
    apr_status_t read = apr_file_read_full(file, text, (apr_size_t)info.size, size);
    apr_file_close(file);
    return read == APR_SUCCESS || read == APR_EOF ? text : NULL;
}

bool
mc_data_is_pyramid(const char *path, apr_pool_t *pool)
{
    apr_size_t size;
    const char *text = read_small_file(path, &size, pool);
    return text != NULL && strstr(text, "\"tile_matrix_set\"") != NULL && strstr(text, "\"image_directory\"") != NULL;
}

/* The number of a level by its name, as "PM" has it; -1: it is none. */
static int
level_of_id(const char *id)
{
    int number;
    return id != NULL && mc_parse_int(&number, id, 0, LEVELS_MAX - 1) && strlen(id) == (size_t)(number < 10 ? 1 : 2)
               ? number
               : -1;
}

/* A relative path that leads nowhere but down, without what a template would take for its own. */
static bool
leads_down(const char *folder)
{
    for (const char *part = folder; *part != '\0'; part += strspn(part, "/")) {
        const size_t size = strcspn(part, "/");
        if (size == 0 || (size == 2 && strncmp(part, "..", 2) == 0))
            return false;
        part += size;
    }
    return *folder != '\0' && strchr(folder, '{') == NULL;
}

/* "NAME/DATA/12" of level 12 -> "NAME/DATA/"; NULL: it ends with another name. */
static const char *
folder_of_levels(const pyramid_level *level, apr_pool_t *pool)
{
    const size_t size = strlen(level->folder), its = strlen(level->id);
    if (size <= its || strcmp(level->folder + size - its, level->id) != 0 || level->folder[size - its - 1] != '/')
        return NULL;
    return apr_pstrmemdup(pool, level->folder, size - its);
}

/* What keeps a level from being served; NULL: nothing. */
static const char *
check_level(const pyramid *pyramid)
{
    const pyramid_level *level = &pyramid->level, *other = &pyramid->finest;
    if (level->storage == NULL || strcmp(level->storage, "FILE") != 0)
        return "its slabs are not in files";
    if (level_of_id(level->id) < 0 || level->folder == NULL || !leads_down(level->folder) ||
        folder_of_levels(level, pyramid->pool) == NULL)
        return "the folder of a level is not below it under the level's number";
    if (level->columns < 1 || level->columns > SLAB_SIDE_MAX || level->rows < 1 || level->rows > SLAB_SIDE_MAX ||
        level->depth < 0 || level->depth > DEPTH_MAX)
        return "its slabs have a size or a depth that cannot be";
    if (pyramid->last >= 0 &&
        (level->columns != other->columns || level->rows != other->rows || level->depth != other->depth ||
         strcmp(pyramid->folder, folder_of_levels(level, pyramid->pool)) != 0))
        return "its levels differ in the size of their slabs or in their folders: they need a configuration";
    return NULL;
}

/* After the last field of a level. */
static void
end_level(pyramid *pyramid)
{
    const int number = level_of_id(pyramid->level.id);
    if (pyramid->level.id == NULL || pyramid->problem != NULL)
        return;
    pyramid->problem = check_level(pyramid);
    if (pyramid->problem != NULL)
        return;
    pyramid->folder = folder_of_levels(&pyramid->level, pyramid->pool);
    if (pyramid->first < 0 || number < pyramid->first)
        pyramid->first = number;
    if (number <= pyramid->last)
        return;
    pyramid->last = number;
    pyramid->finest = pyramid->level;
}

/* mc_json_field */
static mc_error *
take_level_field(void *baton, const char *name, const char *text)
{
    pyramid *pyramid = baton;
    pyramid_level *level = &pyramid->level;
    const struct {
        const char *name;
        const char **text;
        int *number;
    } fields[] = { { "id", &level->id, NULL },
                   { "storage.type", &level->storage, NULL },
                   { "storage.image_directory", &level->folder, NULL },
                   { "storage.path_depth", NULL, &level->depth },
                   { "tiles_per_width", NULL, &level->columns },
                   { "tiles_per_height", NULL, &level->rows },
                   { "tile_limits.min_col", NULL, &level->west },
                   { "tile_limits.max_col", NULL, &level->east },
                   { "tile_limits.min_row", NULL, &level->north },
                   { "tile_limits.max_row", NULL, &level->south } };
    if (name == NULL) {
        end_level(pyramid);
        *level = (pyramid_level){ .id = "", .depth = -1, .west = 0, .east = -1, .north = 0, .south = -1 };
        return MC_OK;
    }
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        if (strcmp(name, fields[i].name) != 0)
            continue;
        if (fields[i].text != NULL)
            *fields[i].text = apr_pstrdup(pyramid->pool, text);
        else if (!mc_parse_int(fields[i].number, text, 0, 1 << LEVELS_MAX))
            *fields[i].number = -1;
    }
    return MC_OK;
}

/* NULL: its tiles are no whole pictures. */
static const char *
format_of_pyramid(const char *name)
{
    if (name == NULL)
        return NULL;
    return strcmp(name, "TIFF_PNG_UINT8") == 0                                            ? "PNG"
           : strcmp(name, "TIFF_JPG_UINT8") == 0 || strcmp(name, "TIFF_JPG90_UINT8") == 0 ? "JPEG"
                                                                                          : NULL;
}

static void
add_pyramid(mc_data_search *search, const pyramid *pyramid, const char *path, const char *format)
{
    apr_pool_t *pool = search->pool;
    const double half = MC_WEB_MERCATOR_HALF, side = 2 * half / exp2(pyramid->last);
    const pyramid_level *finest = &pyramid->finest;
    const char *slash = strrchr(path, '/');
    mc_data_layer *layer = mc_data_add(search, MC_DATA_TILES, "rok4");
    if (layer == NULL)
        return;
    layer->format = format;
    layer->data = apr_pstrcat(pool, slash == NULL ? "" : apr_pstrmemdup(pool, path, (apr_size_t)(slash - path + 1)),
                              pyramid->folder, "{z}", NULL);
    layer->slab_columns = finest->columns;
    layer->slab_rows = finest->rows;
    layer->slab_depth = finest->depth;
    layer->name = mc_data_stem(path, pool);
    layer->minzoom = pyramid->first;
    layer->maxzoom = pyramid->last;
    layer->extent = (mc_extent){ finest->west * side - half, half - (finest->south + 1) * side,
                                 (finest->east + 1) * side - half, half - finest->north * side };
    const mc_extent world = { -half, -half, half, half };
    layer->extent = mc_extent_intersection(&layer->extent, &world);
    layer->has_extent = mc_extent_valid(&layer->extent);
    layer->srs = "EPSG:3857";
    mc_data_place(layer, 0, pool);
}

mc_error *
mc_data_look_pyramid(mc_data_search *search, const char *path)
{
    apr_size_t size = 0;
    apr_pool_t *pool = search->pool;
    pyramid pyramid = { .first = -1, .last = -1, .pool = pool };
    const char *text = read_small_file(path, &size, pool);
    if (text == NULL)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "\"%s\" cannot be read", path);
    mc_error *error = mc_json_items(text, size, "levels", take_level_field, &pyramid, pool);
    if (error != MC_OK)
        return mc_error_wrap(pool, error, MC_ERR_CONFIG, "\"%s\" is no descriptor of a pyramid", path);
    end_level(&pyramid);
    const char *grid = mc_data_json_text(text, size, "tile_matrix_set", pool);
    const char *format = format_of_pyramid(mc_data_json_text(text, size, "format", pool));
    if (pyramid.problem != NULL)
        mc_data_note(search, "%s: %s", path, pyramid.problem);
    else if (pyramid.last < 0)
        mc_data_note(search, "%s: it has no levels", path);
    else if (grid == NULL || strcmp(grid, "PM") != 0)
        mc_data_note(search, "%s: its tiles are not those of web maps (PM): they need a configuration with their grid",
                     path);
    else if (format == NULL)
        mc_data_note(search, "%s: its tiles are neither PNG nor JPEG", path);
    else if (strchr(path, '{') != NULL)
        mc_data_note(search, "%s: a pyramid cannot have { in its path", path);
    else
        add_pyramid(search, &pyramid, path, format);
    return MC_OK;
}

bool
mc_data_look_pyramids(mc_data_search *search, const char *path)
{
    glob_t found;
    bool any = false;
    apr_pool_t *pool = search->pool;
    const char *pattern = apr_pstrcat(pool, mc_data_glob_text(path, pool), "/*.json", NULL);
    size_t count = glob(pattern, GLOB_NOESCAPE, NULL, &found) == 0 ? found.gl_pathc : 0;
    for (size_t i = 0; i < count && i < DESCRIPTORS_MAX; i++) {
        if (!mc_data_is_pyramid(found.gl_pathv[i], pool))
            continue;
        any = true;
        mc_error *error = mc_data_look_pyramid(search, apr_pstrdup(pool, found.gl_pathv[i]));
        if (error != MC_OK)
            mc_data_note(search, "%s", mc_error_chain(error, pool));
    }
    globfree(&found);
    return any;
}
