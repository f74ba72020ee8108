/* Pieces of the report; each begins where the line stands and leaves it behind its last bracket. */
#include "detail_json.h"

static void
start_indented_line(FILE *out, int depth)
{
    fputc('\n', out);
    for (int i = 0; i < depth; i++)
        fputc('\t', out);
}

void
mc_detail_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if (*at < 0x20)
            fprintf(out, "\\u%04x", *at);
        else
            fputc(*at, out);
    }
    fputc('"', out);
}

void
mc_detail_box(FILE *out, const mc_extent *box)
{
    fprintf(out, "[%.17g, %.17g, %.17g, %.17g]", box->minx, box->miny, box->maxx, box->maxy);
}

static void
write_box_polygon(FILE *out, int depth, const mc_extent *box)
{
    fputc('{', out);
    start_indented_line(out, depth + 1);
    fputs("\"type\":\t\"Polygon\",", out);
    start_indented_line(out, depth + 1);
    fprintf(out, "\"coordinates\":\t[[[%.17g, %.17g], [%.17g, %.17g], [%.17g, %.17g], [%.17g, %.17g], [%.17g, %.17g]]]",
            box->minx, box->miny, box->maxx, box->miny, box->maxx, box->maxy, box->minx, box->maxy, box->minx,
            box->miny);
    start_indented_line(out, depth);
    fputc('}', out);
}

void
mc_detail_region(FILE *out, int depth, const char *name, const mc_extent *box, const char *geometry)
{
    start_indented_line(out, depth);
    fprintf(out, "\"%s\":\t{", name);
    start_indented_line(out, depth + 1);
    fputs("\"bounding_box\":\t", out);
    mc_detail_box(out, box);
    fputc(',', out);
    start_indented_line(out, depth + 1);
    fputs("\"geometry\":\t", out);
    if (geometry != NULL)
        fputs(geometry, out);
    else
        write_box_polygon(out, depth + 1, box);
    start_indented_line(out, depth);
    fputc('}', out);
}

void
mc_detail_counts(FILE *out, int depth, const char *where, const mc_detail_tiles *tiles)
{
    start_indented_line(out, depth);
    fputs("\"nb_tiles_in_region\":\t{", out);
    start_indented_line(out, depth + 1);
    fprintf(out, "\"missing_in_%s\":\t%lld,", where, (long long)(tiles->most - tiles->stored));
    start_indented_line(out, depth + 1);
    fprintf(out, "\"cached_in_%s\":\t%lld,", where, (long long)tiles->stored);
    start_indented_line(out, depth + 1);
    fprintf(out, "\"max_in_%s\":\t%lld,", where, (long long)tiles->most);
    start_indented_line(out, depth + 1);
    if (tiles->most == 0)
        fputs("\"coverage\":\tnull", out);
    else
        fprintf(out, "\"coverage\":\t%.17g", (double)tiles->stored / (double)tiles->most);
    start_indented_line(out, depth);
    fputc('}', out);
}

void
mc_detail_file(FILE *out, const mc_survey_file *file, const mc_extent *box, const mc_extent *region,
               const char *geometry)
{
    enum { DEPTH = 5 };
    mc_detail_tiles tiles = { file->stored, file->most };
    fputc('{', out);
    start_indented_line(out, DEPTH);
    fputs("\"file_name\":\t", out);
    mc_detail_text(out, file->path);
    fputc(',', out);
    start_indented_line(out, DEPTH);
    fprintf(out, "\"file_size\":\t%lld,", (long long)file->bytes);
    start_indented_line(out, DEPTH);
    fputs("\"file_bounding_box\":\t", out);
    mc_detail_box(out, box);
    fputc(',', out);
    mc_detail_region(out, DEPTH, "region_in_file", region, geometry);
    fputc(',', out);
    mc_detail_counts(out, DEPTH, "file", &tiles);
    start_indented_line(out, DEPTH - 1);
    fputc('}', out);
}
