/* See detail_json.h. Numbers have 17 digits: a reader gets the same doubles. */
#include "detail_json.h"

#include <stdio.h>

enum { DIGITS = 17 };

/* [minx, miny, maxx, maxy] */
static void
write_detail_box(mc_json_writer *json, const char *name, const mc_extent *box)
{
    mc_json_open_array(json, name);
    mc_json_digits(json, NULL, box->minx, DIGITS);
    mc_json_digits(json, NULL, box->miny, DIGITS);
    mc_json_digits(json, NULL, box->maxx, DIGITS);
    mc_json_digits(json, NULL, box->maxy, DIGITS);
    mc_json_close(json);
}

static void
write_box_polygon(mc_json_writer *json, const char *name, const mc_extent *box)
{
    const double corners[5][2] = { { box->minx, box->miny },
                                   { box->maxx, box->miny },
                                   { box->maxx, box->maxy },
                                   { box->minx, box->maxy },
                                   { box->minx, box->miny } };
    mc_json_open_object(json, name);
    mc_json_string(json, "type", "Polygon");
    mc_json_open_array(json, "coordinates");
    mc_json_open_array(json, NULL);
    for (int i = 0; i < 5; i++) {
        mc_json_open_array(json, NULL);
        mc_json_digits(json, NULL, corners[i][0], DIGITS);
        mc_json_digits(json, NULL, corners[i][1], DIGITS);
        mc_json_close(json);
    }
    mc_json_close(json);
    mc_json_close(json);
    mc_json_close(json);
}

void
mc_detail_region(mc_json_writer *json, const char *name, const mc_extent *box, const char *geometry)
{
    mc_json_open_object(json, name);
    write_detail_box(json, "bounding_box", box);
    if (geometry != NULL)
        mc_json_raw(json, "geometry", geometry);
    else
        write_box_polygon(json, "geometry", box);
    mc_json_close(json);
}

static void
write_detail_count(mc_json_writer *json, const char *what, const char *where, int64_t count)
{
    char name[40];
    snprintf(name, sizeof(name), "%s_in_%s", what, where);
    mc_json_integer(json, name, count);
}

void
mc_detail_counts(mc_json_writer *json, const char *where, const mc_detail_tiles *tiles)
{
    mc_json_open_object(json, "nb_tiles_in_region");
    write_detail_count(json, "missing", where, tiles->most - tiles->stored);
    write_detail_count(json, "cached", where, tiles->stored);
    write_detail_count(json, "max", where, tiles->most);
    if (tiles->most == 0)
        mc_json_null(json, "coverage");
    else
        mc_json_digits(json, "coverage", (double)tiles->stored / (double)tiles->most, DIGITS);
    mc_json_close(json);
}

void
mc_detail_file(mc_json_writer *json, const mc_survey_file *file, const mc_extent *box, const mc_extent *region,
               const char *geometry)
{
    mc_detail_tiles tiles = { file->stored, file->most };
    mc_json_open_object(json, NULL);
    mc_json_string(json, "file_name", file->path);
    mc_json_integer(json, "file_size", file->bytes);
    write_detail_box(json, "file_bounding_box", box);
    mc_detail_region(json, "region_in_file", region, geometry);
    mc_detail_counts(json, "file", &tiles);
    mc_json_close(json);
}
