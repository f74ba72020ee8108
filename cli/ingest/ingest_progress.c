/* See ingest_progress.h. */
#include "ingest_progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/common/bar.h"
#include "cli/common/json_line.h"
#include "cli/common/style.h"
#include "text/text.h"

void
mc_ingest_report_init(mc_ingest_report *report, const mc_ingest_options *options)
{
    *report = (mc_ingest_report){ .quiet = options->quiet,
                                  .json = options->json,
                                  .dry_run = options->dry_run,
                                  .srs = options->raster.srs,
                                  .bar = !options->json && !options->quiet && mc_cli_is_screen(stdout),
                                  .began = mc_clock_now(),
                                  .before = -1,
                                  .after = -1 };
}

void
mc_ingest_report_line(mc_ingest_report *report, const char *message)
{
    mc_cli_clear_bar(&report->drawn);
    fprintf(stderr, "%s\n", message);
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

static void
outline_json(const mc_ingest_outline *outline, const mc_ingest_report *report, int groups, const apr_int64_t *tiles)
{
    const double extent[4] = { outline->extent.minx, outline->extent.miny, outline->extent.maxx, outline->extent.maxy };
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_integer(line.json, "images", report->images);
    mc_json_integer(line.json, "bad", report->all.bad);
    mc_json_integer(line.json, "without_crs", outline->told);
    mc_json_integer(line.json, "times", groups);
    mc_json_integer(line.json, "minzoom", outline->minzoom);
    mc_json_integer(line.json, "maxzoom", outline->maxzoom);
    mc_json_open_array(line.json, "extent");
    for (int i = 0; i < 4; i++)
        mc_json_digits(line.json, NULL, extent[i], 15);
    mc_json_close(line.json);
    mc_json_open_array(line.json, "levels");
    for (int z = outline->minzoom; z <= outline->maxzoom; z++) {
        mc_json_open_object(line.json, NULL);
        mc_json_integer(line.json, "level", z);
        mc_json_integer(line.json, "tiles", tiles[z]);
        mc_json_close(line.json);
    }
    mc_json_close(line.json);
    mc_cli_json_line_end(&line);
}

static void
outline_text(const mc_ingest_outline *outline, const mc_ingest_report *report, const mc_tileset *tileset,
             const mc_grid_link *link, int groups, const apr_int64_t *tiles)
{
    printf("%d images", report->images);
    if (groups > 1)
        printf(" of %d times", groups);
    printf(" into tileset %s, grid %s (%s), levels %d to %d\n", tileset->name, link->grid->name, link->grid->srs,
           outline->minzoom, outline->maxzoom);
    printf("they cover %.15g %.15g %.15g %.15g\n", outline->extent.minx, outline->extent.miny, outline->extent.maxx,
           outline->extent.maxy);
    if (outline->told > 0)
        printf("%d of them do not say which CRS they are in: it is taken to be %s (--srs)\n", outline->told,
               report->srs);
    if (!report->dry_run)
        return;
    printf("%6s %14s\n", "level", "tiles at most");
    for (int z = outline->minzoom; z <= outline->maxzoom; z++)
        printf("%6d %14lld\n", z, (long long)tiles[z]);
}

void
mc_ingest_report_outline(mc_ingest_report *report, const mc_tileset *tileset, const mc_grid_link *link,
                         mc_ingest *const *ingests, int count)
{
    apr_int64_t tiles[256] = { 0 };
    mc_ingest_outline all = *mc_ingest_outlined(ingests[0]);
    for (int i = 0; i < count; i++) {
        const mc_ingest_outline *one = mc_ingest_outlined(ingests[i]);
        for (int z = one->minzoom; z <= one->maxzoom; z++)
            tiles[z] += one->tiles[z];
        all.told += i == 0 ? 0 : one->told;
        all.extent = mc_extent_union(&all.extent, &one->extent);
        report->images += mc_ingest_counted(ingests[i])->inputs;
        if (report->dry_run)
            report->all.bad += mc_ingest_counted(ingests[i])->bad;
    }
    report->outlined = true;
    if (report->json)
        outline_json(&all, report, count, tiles);
    else if (!report->quiet)
        outline_text(&all, report, tileset, link, count, tiles);
    fflush(stdout);
}

/* --- progress ----------------------------------------------------------------------------------------------------- */

static mc_ingest_counts
add_ingest_counts(const mc_ingest_counts *a, const mc_ingest_counts *b)
{
    return (mc_ingest_counts){ .inputs = a->inputs + b->inputs,
                               .done = a->done + b->done,
                               .bad = a->bad + b->bad,
                               .tiles = a->tiles + b->tiles,
                               .bytes = a->bytes + b->bytes,
                               .spooled = a->spooled + b->spooled,
                               .peak = a->peak > b->peak ? a->peak : b->peak,
                               .decode = a->decode + b->decode,
                               .draw = a->draw + b->draw,
                               .encode = a->encode + b->encode,
                               .store = a->store + b->store };
}

static double
measure_ingest_seconds(const mc_ingest_report *report)
{
    double seconds = (double)(mc_clock_now() - report->began) / APR_USEC_PER_SEC;
    return seconds > 0.001 ? seconds : 0.001;
}

/* A text that came with the images: one line, and not a long one. */
static void
add_ingest_json_text(mc_cli_json_line *line, const char *name, const char *text)
{
    enum { LONGEST = 1000 };
    mc_json_string(line->json, name, mc_message_text(text, LONGEST, line->pool));
}

/* What the last line has besides. */
static void
add_ingest_json_end(mc_cli_json_line *line, const mc_ingest_report *report, const char *error, int status)
{
    const mc_ingest_counts *c = &report->now;
    mc_json_decimals(line->json, "decode", c->decode, 3);
    mc_json_decimals(line->json, "draw", c->draw, 3);
    mc_json_decimals(line->json, "encode", c->encode, 3);
    mc_json_decimals(line->json, "store", c->store, 3);
    if (report->before >= 0 && report->after >= 0) {
        mc_json_integer(line->json, "store_before", report->before);
        mc_json_integer(line->json, "store_after", report->after);
    }
    if (error != NULL)
        add_ingest_json_text(line, "error", error);
    mc_json_integer(line->json, "exit", status);
}

/* status below 0: the run goes on. */
static void
show_ingest_json(const mc_ingest_report *report, const char *error, int status)
{
    const mc_ingest_counts *c = &report->now;
    double seconds = measure_ingest_seconds(report);
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_integer(line.json, "images", report->images);
    mc_json_integer(line.json, "done", c->done);
    mc_json_integer(line.json, "bad", c->bad);
    mc_json_integer(line.json, "tiles", c->tiles);
    mc_json_integer(line.json, "bytes", c->bytes);
    mc_json_decimals(line.json, "seconds", seconds, 3);
    mc_json_decimals(line.json, "tiles_per_second", (double)c->tiles / seconds, 1);
    mc_json_integer(line.json, "spooled", c->spooled);
    mc_json_integer(line.json, "peak", c->peak);
    if (report->value != NULL && status < 0)
        add_ingest_json_text(&line, "time", report->value);
    if (status >= 0)
        add_ingest_json_end(&line, report, error, status);
    mc_cli_json_line_end(&line);
}

static void
show_ingest_progress_bar(mc_ingest_report *report)
{
    enum { WIDTH = 30 };
    static const char full[] = "##############################", empty[] = "..............................";
    const mc_ingest_counts *c = &report->now;
    double share = report->images > 0 ? (double)c->done / report->images : 0, seconds = measure_ingest_seconds(report);
    int filled = (int)(share * WIDTH);
    printf("\r\033[K[%.*s%.*s] %5.1f %%  %d of %d images, %lld tiles  %.0f tiles/s", filled, full, WIDTH - filled,
           empty, 100 * share, c->done, report->images, (long long)c->tiles, (double)c->tiles / seconds);
    if (c->done > 0)
        printf("  %.0f s left", seconds * (1 - share) / share);
    if (report->value != NULL)
        printf("  %s", report->value);
    report->drawn = true;
}

void
mc_ingest_report_begin(mc_ingest_report *report, const char *value)
{
    report->value = value;
}

void
mc_ingest_report_show(mc_ingest_report *report, const mc_ingest_counts *counts)
{
    report->now = add_ingest_counts(&report->all, counts);
    if (report->quiet || mc_clock_now() - report->shown < APR_USEC_PER_SEC)
        return;
    report->shown = mc_clock_now();
    if (report->json)
        show_ingest_json(report, NULL, -1);
    else if (report->bar)
        show_ingest_progress_bar(report);
    else
        printf("%d of %d images, %lld tiles stored\n", report->now.done, report->images, (long long)report->now.tiles);
    fflush(stdout);
}

void
mc_ingest_report_add(mc_ingest_report *report, const mc_ingest_counts *counts)
{
    report->all = add_ingest_counts(&report->all, counts);
    report->now = report->all;
}

static void
show_sums(const mc_ingest_report *report)
{
    const mc_ingest_counts *c = &report->now;
    double seconds = measure_ingest_seconds(report);
    printf("%d images, %lld tiles of %.1f MB together in %.1f s: %.0f tiles/s\n", c->done, (long long)c->tiles,
           (double)c->bytes / 1e6, seconds, (double)c->tiles / seconds);
    printf("seconds of all threads: decode %.2f, draw %.2f, encode %.2f, store %.2f\n", c->decode, c->draw, c->encode,
           c->store);
    if (c->spooled > 0)
        printf("%lld times a tile had to wait in the scratch file: more --cachelimit would be faster\n",
               (long long)c->spooled);
    if (report->before >= 0 && report->after >= 0)
        printf("the store: %.1f MB before, %.1f MB after\n", (double)report->before / 1e6, (double)report->after / 1e6);
}

void
mc_ingest_report_end(mc_ingest_report *report, const char *error, int status)
{
    mc_cli_clear_bar(&report->drawn);
    if (error != NULL)
        fprintf(stderr, "%s\n", error);
    if (report->dry_run && error == NULL)
        return;
    if (report->json)
        show_ingest_json(report, error, status);
    else if (!report->quiet && report->outlined)
        show_sums(report);
    fflush(stdout);
}
