/* See mapserver_map.h. */
#include "source/mapserver/mapserver_map.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <proj.h> /* MapServer's headers ask for its version */

#include <mapserv-config.h>
#include <mapserver.h>

#include "source/mapserver/mapserver_includes.h"

enum { KEPT_MAX = 16 };

/* A map file that is open. Parameters are written into it, and layers switched: so it is one of many for each of them.
 */
typedef struct kept_map {
    mapObj *map;
    char *key;
    size_t key_size;
    mapserver_includes files;
    unsigned long used; /* when, in maps */
    char *srs;          /* of the map that was drawn last; NULL: none yet */
} kept_map;

static kept_map kept[KEPT_MAX];
static unsigned long maps;
static configObj *configuration; /* of MapServer; NULL: none is there */

int
start_mapserver(void)
{
    setenv("GDAL_CACHEMAX", "64", 0); /* MB */
    if (msSetup() != MS_SUCCESS)
        return 0;
    configuration = msLoadConfig(NULL);
    msResetErrorList();
    return 1;
}

static int
fail_drawing(mapserver_drawing *drawing, mc_mapserver_outcome outcome, const char *text)
{
    char *errors = text == NULL ? msGetErrorString("; ") : NULL;
    drawing->outcome = outcome;
    (void)snprintf(drawing->said, sizeof(drawing->said), "%s", text != NULL ? text : errors != NULL ? errors : "");
    msFree(errors);
    msResetErrorList();
    return 0;
}

/* --- map files that are open ------------------------------------------------------------------------------------ */

static void
close_kept(kept_map *one)
{
    if (one->map != NULL)
        msFreeMap(one->map);
    free(one->key);
    free(one->srs);
    forget_included_files(&one->files);
    *one = (kept_map){ 0 };
    msConnPoolCloseUnreferenced();
}

/* All that an open map depends on: generation, map file, layers, and the pairs. NULs part them. */
static char *
make_kept_key(size_t *size, const mc_mapserver_ask *ask, const mapserver_texts *texts)
{
    char *key;
    FILE *to = open_memstream(&key, size);
    if (to == NULL)
        return NULL;
    (void)fprintf(to, "%llu%c%s%c%s", (unsigned long long)ask->generation, 0, texts->mapfile, 0, texts->layers);
    for (uint32_t i = 0; i < ask->pair_count; i++)
        (void)fprintf(to, "%c%s%c%s", 0, texts->names[i], 0, texts->values[i]);
    if (fclose(to) == 0)
        return key;
    free(key);
    return NULL;
}

/* The place of the key: where it is kept, an empty one, or the one that was used longest ago. */
static kept_map *
find_kept_map(const char *key, size_t size)
{
    kept_map *oldest = kept;
    for (kept_map *one = kept; one < kept + KEPT_MAX; one++) {
        if (one->key != NULL && one->key_size == size && memcmp(one->key, key, size) == 0)
            return one;
        if (one->used < oldest->used)
            oldest = one;
    }
    return oldest;
}

/* Switches on what the comma list names, and all else off. */
static int
choose_layers(mapserver_drawing *drawing, mapObj *map, const char *layers)
{
    if (*layers == '\0')
        return 1;
    for (int i = 0; i < map->numlayers; i++)
        GET_LAYER(map, i)->status = MS_OFF;
    char *list = strdup(layers), *rest = list;
    for (char *name; list != NULL && (name = strsep(&rest, ",")) != NULL;) {
        int found = 0;
        name += strspn(name, " \t\r\n");
        for (size_t length = strlen(name); length > 0 && isspace((unsigned char)name[length - 1]);)
            name[--length] = '\0';
        for (int i = 0; i < map->numlayers && *name != '\0'; i++) {
            layerObj *layer = GET_LAYER(map, i);
            if ((layer->name != NULL && strcmp(layer->name, name) == 0) ||
                (layer->group != NULL && strcmp(layer->group, name) == 0)) {
                layer->status = MS_ON;
                found = 1;
            }
        }
        if (!found) {
            char text[200];
            (void)snprintf(text, sizeof(text), "the map file has no layer or group \"%.100s\"", name);
            free(list);
            return fail_drawing(drawing, MC_MAPSERVER_BAD_MAPFILE, text);
        }
    }
    free(list);
    return 1;
}

/* Values of dimensions take the place of %name% where the map file has a pattern for them (VALIDATION), and fits it. */
static int
write_parameters(mapserver_drawing *drawing, mapObj *map, const mc_mapserver_ask *ask, const mapserver_texts *texts)
{
    if (ask->pair_count > 0) {
        msResetErrorList();
        msApplySubstitutions(map, (char **)texts->names, (char **)texts->values, (int)ask->pair_count);
        if (msGetErrorObj()->code != MS_NOERR)
            return fail_drawing(drawing, MC_MAPSERVER_BAD_PARAMETER, NULL);
    }
    msApplyDefaultSubstitutions(map);
    return 1;
}

static int
open_mapfile_anew(mapserver_drawing *drawing, kept_map *one, const mc_mapserver_ask *ask, const mapserver_texts *texts)
{
    note_included_files(&one->files,
                        texts->mapfile); /* before they are read: what changes meanwhile is seen next time */
    msResetErrorList();
    one->map = msLoadMap(texts->mapfile, NULL, configuration);
    if (one->map == NULL)
        return fail_drawing(drawing, MC_MAPSERVER_BAD_MAPFILE, NULL);
    if (!write_parameters(drawing, one->map, ask, texts) || !choose_layers(drawing, one->map, texts->layers))
        return 0;
    /* Layers without a CRS are in the map file's own, which the grid's takes the place of. */
    if (msMapSetLayerProjections(one->map) != MS_SUCCESS)
        return fail_drawing(drawing, MC_MAPSERVER_BAD_MAPFILE, NULL);
    return 1;
}

/* NULL: it cannot be opened, and the drawing says why. */
static kept_map *
open_kept(mapserver_drawing *drawing, const mc_mapserver_ask *ask, const mapserver_texts *texts)
{
    size_t size;
    char *key = make_kept_key(&size, ask, texts);
    if (key == NULL) {
        (void)fail_drawing(drawing, MC_MAPSERVER_NOT_DRAWN, "no memory");
        return NULL;
    }
    kept_map *one = find_kept_map(key, size);
    int same = one->key != NULL && one->key_size == size && memcmp(one->key, key, size) == 0;
    if (same && are_included_files_same(&one->files)) {
        free(key);
        one->used = ++maps;
        return one;
    }
    close_kept(one);
    *one = (kept_map){ .key = key, .key_size = size, .used = ++maps };
    if (open_mapfile_anew(drawing, one, ask, texts))
        return one;
    close_kept(one);
    return NULL;
}

/* --- one map ---------------------------------------------------------------------------------------------------- */

static enum MS_UNITS
map_units_of(double metres)
{
    return metres > 1000 ? MS_DD : fabs(metres - 0.3048) < 0.001 ? MS_FEET : MS_METERS;
}

/* While a map is open, MapServer keeps how each layer gets into the CRS of the map that was drawn first. In a map
 * of another CRS whose pixels are no squares, features would be put in places far off. */
static void
forget_projections(mapObj *map)
{
    for (int i = 0; i < map->numlayers; i++) {
        layerObj *layer = GET_LAYER(map, i);
        reprojectionObj **both[] = { &layer->reprojectorLayerToMap, &layer->reprojectorMapToLayer };
        for (int way = 0; way < 2; way++) {
            if (*both[way] != NULL)
                msProjectDestroyReprojector(*both[way]);
            *both[way] = NULL;
        }
        layer->project = MS_TRUE;
    }
}

/* The same CRS as that of the map before, or a new begin. */
static int
note_srs(mapserver_drawing *drawing, kept_map *one, const char *srs)
{
    if (one->srs != NULL && strcmp(one->srs, srs) == 0)
        return 1;
    if (one->srs != NULL)
        forget_projections(one->map);
    free(one->srs);
    one->srs = strdup(srs);
    return one->srs != NULL ? 1 : fail_drawing(drawing, MC_MAPSERVER_NOT_DRAWN, "no memory");
}

/* MapServer's box is that of the centres of the outermost pixels. */
static int
place_map(mapserver_drawing *drawing, mapObj *map, const mc_mapserver_ask *ask, const char *srs)
{
    double column = (ask->box[2] - ask->box[0]) / ask->width, row = (ask->box[3] - ask->box[1]) / ask->height;
    int square = fabs(column - row) < 1e-6 * column;
    if (msLoadProjectionString(&map->projection, srs) != 0)
        return fail_drawing(drawing, MC_MAPSERVER_NOT_DRAWN, NULL);
    map->units = map_units_of(ask->metres_per_unit);
    map->resolution = map->defresolution * ask->density;
    (void)msSetConfigOption(map, "MS_NONSQUARE", square ? "NO" : "YES");
    if (msMapSetSize(map, ask->width, ask->height) != MS_SUCCESS)
        return fail_drawing(drawing, MC_MAPSERVER_NOT_DRAWN, NULL);
    map->gt.need_geotransform = map->gt.rotation_angle != 0; /* MapServer leaves it as the map before needed it */
    map->extent =
        (rectObj){ ask->box[0] + column / 2, ask->box[1] + row / 2, ask->box[2] - column / 2, ask->box[3] - row / 2 };
    return 1;
}

/* The output format of the map file if it draws pixels in memory by AGG, else a PNG's. */
static int
choose_map_format(mapserver_drawing *drawing, mapObj *map, uint32_t ground)
{
    outputFormatObj *format = map->outputformat;
    int transparent = format != NULL && format->transparent == MS_TRUE;
    if (format == NULL || format->renderer != MS_RENDER_WITH_AGG) {
        format = msCreateDefaultOutputFormat(NULL, "AGG/PNG", "mapcache", NULL);
        if (format == NULL)
            return fail_drawing(drawing, MC_MAPSERVER_NOT_DRAWN, NULL);
        msApplyOutputFormat(&map->outputformat, format, MS_NOOVERRIDE); /* keeps a reference */
        format = map->outputformat;
    }
    transparent = ground == MC_MAPSERVER_AS_MAPFILE ? transparent : ground == MC_MAPSERVER_TRANSPARENT;
    format->transparent = transparent ? MS_TRUE : MS_FALSE;
    if (ground != MC_MAPSERVER_AS_MAPFILE || transparent || format->imagemode != MS_IMAGEMODE_RGBA)
        format->imagemode = transparent ? MS_IMAGEMODE_RGBA : MS_IMAGEMODE_RGB;
    return 1;
}

/* Whether MapServer's order of bytes is ours; the alpha of opaque maps does not matter. */
static int
is_our_order(const rgbaArrayObj *from)
{
    return from->pixel_step == 4 && from->b == from->pixels && from->g == from->b + 1 && from->r == from->b + 2 &&
           (from->a == NULL || from->a == from->b + 3);
}

/* From MapServer's order of bytes to ours. */
static void
copy_pixels(uint8_t *to, const rgbaArrayObj *from, int width, int height)
{
    const size_t size = (size_t)width * 4;
    for (int y = 0; y < height && is_our_order(from); y++, to += size)
        memcpy(to, from->pixels + (size_t)y * (size_t)from->row_step, size);
    for (int y = 0; y < height && !is_our_order(from); y++) {
        const size_t row = (size_t)y * (size_t)from->row_step;
        const unsigned char *b = from->b + row, *g = from->g + row, *r = from->r + row;
        const unsigned char *a = from->a == NULL ? NULL : from->a + row;
        for (int x = 0; x < width; x++, to += 4) {
            const size_t at = (size_t)x * (size_t)from->pixel_step;
            to[0] = b[at];
            to[1] = g[at];
            to[2] = r[at];
            to[3] = a == NULL ? 255 : a[at];
        }
    }
}

static int
take_pixels(mapserver_drawing *drawing, imageObj *image)
{
    rasterBufferObj buffer = { 0 };
    rendererVTableObj *renderer = image->format->vtable;
    if (!renderer->supports_pixel_buffer || renderer->getRasterBufferHandle(image, &buffer) != MS_SUCCESS ||
        buffer.type != MS_BUFFER_BYTE_RGBA || (int)buffer.width != image->width || (int)buffer.height != image->height)
        return fail_drawing(drawing, MC_MAPSERVER_NOT_DRAWN, "the output format gives no pixels");
    drawing->pixels = malloc((size_t)image->width * (size_t)image->height * 4);
    if (drawing->pixels == NULL)
        return fail_drawing(drawing, MC_MAPSERVER_NOT_DRAWN, "no memory");
    drawing->width = image->width;
    drawing->height = image->height;
    drawing->opaque = buffer.data.rgba.a == NULL;
    copy_pixels(drawing->pixels, &buffer.data.rgba, image->width, image->height);
    return 1;
}

/* MapServer draws a map without a layer whose server has not answered, and calls that a success: only its list of
 * errors tells. The list has harmless errors, too; those of servers are about what is missing. */
static int
lacks_layer(void)
{
    for (const errorObj *error = msGetErrorObj(); error != NULL && error->code != MS_NOERR; error = error->next)
        if (error->code == MS_WMSERR || error->code == MS_WMSCONNERR || error->code == MS_WFSERR ||
            error->code == MS_WFSCONNERR || error->code == MS_HTTPERR)
            return 1;
    return 0;
}

static int
draw_kept(mapserver_drawing *drawing, mapObj *map, const mc_mapserver_ask *ask, const char *srs)
{
    if (!place_map(drawing, map, ask, srs) || !choose_map_format(drawing, map, ask->ground))
        return 0;
    msResetErrorList();
    imageObj *image = msDrawMap(map, MS_FALSE);
    if (image == NULL)
        return fail_drawing(drawing, MC_MAPSERVER_NOT_DRAWN, NULL);
    int taken = lacks_layer() ? fail_drawing(drawing, MC_MAPSERVER_NOT_DRAWN, NULL)
                : image->width != ask->width || image->height != ask->height
                    ? fail_drawing(drawing, MC_MAPSERVER_NOT_DRAWN, "the map has another size than was asked for")
                    : take_pixels(drawing, image);
    msFreeImage(image);
    return taken;
}

void
draw_mapfile(mapserver_drawing *drawing, const mc_mapserver_ask *ask, const mapserver_texts *texts)
{
    *drawing = (mapserver_drawing){ .outcome = MC_MAPSERVER_DRAWN };
    kept_map *one = open_kept(drawing, ask, texts);
    if (one != NULL && ask->width > 0 &&
        !(note_srs(drawing, one, texts->srs) && draw_kept(drawing, one->map, ask, texts->srs)))
        close_kept(one); /* whatever state it is in */
}
