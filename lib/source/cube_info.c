/* Feature info of cubes: what the cube is under a pixel of the map at each of the requested dates, in one read. */
#include <apr_strings.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mapcache/trace.h"
#include "source/cube.h"
#include "text/json_writer.h"
#include "text/text.h"

enum {
    MOST_DATES = 20000,
    MOST_PIXELS = 4 << 20, /* of all dates: 8 to 20 MB */
    MOST_SIDE = 64,        /* pixels of the cube along each side that are averaged for one of the map */
    ROW_BYTES = 160,       /* of any row that is written */
    PROFILE_BYTES = (MOST_DATES + 10) * ROW_BYTES
};

/* What stands for a pixel of the map at one date. */
typedef struct value {
    const char *time;
    int known; /* pixels of the cube that are; 0: nothing is */
    double means[4];
} value;

typedef struct profile {
    const mc_cube *cube;
    mc_cube_window window; /* empty where the point lies outside */
    double x, y;           /* centre of the map's pixel, in units of the CRS */
    const char *const *bands;
} profile;

/* Numbers that a band's mean is, with two decimals at most. */
static int
write_number(char *out, size_t size, double number)
{
    int count = (int)mc_format_double(out, size, 'f', 2, number);
    while (count > 0 && out[count - 1] == '0')
        count--;
    if (count > 0 && out[count - 1] == '.')
        count--;
    out[count] = '\0';
    return count;
}

static void
summarize_plane(value *v, const mc_cube_plane *plane, const profile *p, apr_pool_t *pool)
{
    int pixels = (p->window.x1 - p->window.x0) * (p->window.y1 - p->window.y0), bands = p->cube->shape.bands;
    *v = (value){ .time = mc_time_text(plane->time_us, pool) };
    for (int i = 0; i < pixels; i++) {
        if (!plane->present[i])
            continue;
        v->known++;
        for (int band = 0; band < bands; band++)
            v->means[band] += plane->samples[i * bands + band];
    }
    for (int band = 0; band < bands && v->known > 0; band++)
        v->means[band] /= v->known;
}

/* The means of a date with something between them. */
static const char *
format_profile_means(const profile *p, const value *v, const char *between, apr_pool_t *pool)
{
    char text[ROW_BYTES] = "";
    size_t at = 0;
    for (int i = 0; i < p->cube->shape.bands; i++) {
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s", i == 0 ? "" : between);
        at += (size_t)write_number(text + at, sizeof(text) - at, v->means[i]);
    }
    return apr_pstrdup(pool, text);
}

static const char *
format_profile_names(const profile *p, const char *between, apr_pool_t *pool)
{
    const char *text = "";
    for (int i = 0; i < p->cube->shape.bands; i++)
        text = apr_pstrcat(pool, text, i == 0 ? "" : between, p->bands[i], NULL);
    return text;
}

static const char *
text_head(const profile *p, apr_pool_t *pool)
{
    return apr_psprintf(pool, "cube '%s' at %.6f %.6f (%d x %d pixels)\n  time %s\n", p->cube->name, p->x, p->y,
                        p->window.x1 - p->window.x0, p->window.y1 - p->window.y0, format_profile_names(p, " ", pool));
}

static const char *
text_row(const profile *p, const value *v, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "  ", v->time, " ", v->known > 0 ? format_profile_means(p, v, " ", pool) : "-", "\n",
                       NULL);
}

static const char *
csv_head(const profile *p, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "time,", format_profile_names(p, ",", pool), "\n", NULL); /* RFC 4180, but for its CR LF */
}

static const char *
csv_row(const profile *p, const value *v, apr_pool_t *pool)
{
    static const char nothing[] = ",,,";
    return apr_pstrcat(pool, v->time, ",",
                       v->known > 0 ? format_profile_means(p, v, ",", pool) : nothing + 4 - p->cube->shape.bands, "\n",
                       NULL);
}

/* Rows of text, each of which is made in a pool of its own. */
typedef const char *profile_row(const profile *p, const value *v, apr_pool_t *pool);

static mc_error *
write_profile_rows(mc_buf *out, const char *head, profile_row *row, const profile *p, const apr_array_header_t *planes,
                   apr_pool_t *pool)
{
    apr_pool_t *scratch;
    mc_error *error = mc_buf_append(out, head, strlen(head), pool);
    apr_pool_create(&scratch, pool);
    for (int i = 0; i < planes->nelts && error == MC_OK; i++) {
        value v;
        apr_pool_clear(scratch);
        summarize_plane(&v, &APR_ARRAY_IDX(planes, i, mc_cube_plane), p, scratch);
        const char *text = row(p, &v, scratch);
        error = mc_buf_append(out, text, strlen(text), pool);
    }
    apr_pool_destroy(scratch);
    return error;
}

static mc_error *
write_profile_plain(mc_buf **text, const profile *p, const apr_array_header_t *planes, apr_pool_t *pool)
{
    *text = mc_buf_attach(mc_buf_create(4096, PROFILE_BYTES), pool);
    return write_profile_rows(*text, text_head(p, pool), text_row, p, planes, pool);
}

static mc_error *
write_profile_csv(mc_buf **text, const profile *p, const apr_array_header_t *planes, apr_pool_t *pool)
{
    *text = mc_buf_attach(mc_buf_create(4096, PROFILE_BYTES), pool);
    return write_profile_rows(*text, csv_head(p, pool), csv_row, p, planes, pool);
}

static void
write_profile_value(mc_json_writer *json, const profile *p, const value *v)
{
    char number[ROW_BYTES];
    mc_json_space(json, "\n");
    mc_json_open_object(json, NULL);
    mc_json_string(json, "time", v->time);
    if (v->known > 0) {
        mc_json_open_array(json, "value");
        for (int i = 0; i < p->cube->shape.bands; i++) {
            write_number(number, sizeof(number), v->means[i]);
            mc_json_raw(json, NULL, number);
        }
        mc_json_close(json);
    } else {
        mc_json_null(json, "value");
    }
    mc_json_close(json);
}

static mc_error *
write_profile_json(mc_buf **text, const profile *p, const apr_array_header_t *planes, apr_pool_t *pool)
{
    apr_pool_t *scratch;
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "cube", p->cube->name);
    mc_json_string(json, "srs", p->cube->shape.srs);
    mc_json_decimals(json, "x", p->x, 6);
    mc_json_decimals(json, "y", p->y, 6);
    mc_json_open_array(json, "pixels");
    mc_json_integer(json, NULL, p->window.x1 - p->window.x0);
    mc_json_integer(json, NULL, p->window.y1 - p->window.y0);
    mc_json_close(json);
    mc_json_open_array(json, "bands");
    for (int i = 0; i < p->cube->shape.bands; i++)
        mc_json_string(json, NULL, p->bands[i]);
    mc_json_close(json);
    mc_json_open_array(json, "values");
    apr_pool_create(&scratch, pool);
    for (int i = 0; i < planes->nelts; i++) {
        value v;
        apr_pool_clear(scratch);
        summarize_plane(&v, &APR_ARRAY_IDX(planes, i, mc_cube_plane), p, scratch);
        write_profile_value(json, p, &v);
    }
    apr_pool_destroy(scratch);
    mc_json_space(json, "\n");
    mc_json_close(json);
    mc_json_close(json);
    mc_json_space(json, "\n");
    return mc_json_finish(text, json);
}

typedef struct cube_info_writer {
    const char *mime;
    mc_error *(*write)(mc_buf **text, const profile *p, const apr_array_header_t *planes, apr_pool_t *pool);
} cube_info_writer;

static const cube_info_writer writers[] = {
    { "text/plain", write_profile_plain },
    { "application/json", write_profile_json },
    { "text/csv", write_profile_csv },
    { "text/plain; charset=utf-8", write_profile_plain },
};
enum { WRITERS = sizeof(writers) / sizeof(writers[0]) };

const apr_array_header_t *
mc_cube_source_info_formats(apr_pool_t *pool)
{
    apr_array_header_t *formats = apr_array_make(pool, WRITERS, sizeof(const char *));
    for (int i = 0; i < WRITERS; i++)
        APR_ARRAY_PUSH(formats, const char *) = writers[i].mime;
    return formats;
}

static const cube_info_writer *
find_profile_writer(const char *mime)
{
    for (int i = 0; i < WRITERS; i++)
        if (strcmp(writers[i].mime, mime) == 0)
            return &writers[i];
    return &writers[0];
}

/* Pixels of the cube whose centres lie between; the one in the middle where there are none; of many, those in the
 * middle. */
static void
choose_range(int *first, int *end, double from, double to, int limit)
{
    double low = ceil(from - 0.5), high = ceil(to - 0.5);
    if (high <= low) {
        low = floor((from + to) / 2);
        high = low + 1;
    }
    if (high - low > MOST_SIDE) {
        low = floor((low + high - MOST_SIDE) / 2);
        high = low + MOST_SIDE;
    }
    *first = low < 0 ? 0 : low > limit ? limit : (int)low;
    *end = high < 0 ? 0 : high > limit ? limit : (int)high;
}

static mc_error *
locate_profile_window(profile *p, const mc_cube_source *source, const mc_info_request *wanted, apr_pool_t *pool)
{
    static const char *const gray[] = { "gray" }, *const colours[] = { "red", "green", "blue", "alpha" };
    mc_cube_view view;
    const mc_cube_shape *shape = &source->cube->shape;
    const mc_extent *box = &wanted->map.box;
    MC_TRY(mc_cube_source_view(&view, source, &wanted->map, pool));
    p->cube = source->cube;
    p->bands = shape->bands == 1 ? gray : colours;
    p->x = box->minx + (wanted->x + 0.5) * (box->maxx - box->minx) / wanted->map.width;
    p->y = box->maxy - (wanted->y + 0.5) * (box->maxy - box->miny) / wanted->map.height;
    double left = view.left + wanted->x * view.step_x, top = view.top + wanted->y * view.step_y;
    choose_range(&p->window.x0, &p->window.x1, left, left + view.step_x, shape->width);
    choose_range(&p->window.y0, &p->window.y1, top, top + view.step_y, shape->height);
    if (p->window.x0 >= p->window.x1 || p->window.y0 >= p->window.y1)
        p->window = (mc_cube_window){ 0 };
    return MC_OK;
}

mc_error *
mc_cube_source_info(mc_buf **text, mc_source *base, const mc_info_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_source_cube_info");
    const mc_cube_source *source = (const mc_cube_source *)base;
    apr_array_header_t *spans, *planes = apr_array_make(pool, 0, sizeof(mc_cube_plane));
    profile p;
    MC_TRY(locate_profile_window(&p, source, wanted, pool));
    MC_TRY(mc_cube_source_times(&spans, source, &wanted->map, pool));
    int pixels = (p.window.x1 - p.window.x0) * (p.window.y1 - p.window.y0);
    int most = pixels > MOST_PIXELS / MOST_DATES ? MOST_PIXELS / pixels : MOST_DATES;
    if (pixels > 0)
        MC_TRY(mc_cube_read(&planes, source->cube,
                            spans == NULL ? NULL : (const mc_time_span *)(const void *)spans->elts,
                            spans == NULL ? 0 : spans->nelts, most + 1, &p.window, ctx, pool));
    if (planes->nelts > most)
        return mc_error_located(pool, MC_ERR_INVALID_DIMENSION, source->dimension,
                                "more than %d dates of %d pixels are asked for at once: narrow the time", most, pixels);
    return find_profile_writer(wanted->format)->write(text, &p, planes, pool);
}
