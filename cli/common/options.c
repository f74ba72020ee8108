/* See options.h. */
#include "options.h"

#include <apr_strings.h>
#include <stdio.h>

#include "text/text.h"

static void
no_complaint(void *stream, const char *format, ...)
{
    (void)stream, (void)format;
}

static const char *
find_option_name(const apr_getopt_option_t *row, int letter)
{
    while (row->name != NULL && row->optch != letter)
        row++;
    return row->name;
}

static bool
store_option_value(const mc_option_place *places, int letter, const char *text)
{
    for (; places->letter != 0; places++)
        if (places->letter == letter) {
            if (places->text != NULL)
                *places->text = text;
            else
                *places->flag = true;
            return true;
        }
    return false;
}

const char *
mc_options_parse(const apr_array_header_t **arguments, const apr_getopt_option_t *rows, const mc_option_place *places,
                 mc_option_take *take, void *baton, int argc, const char *const *argv, apr_pool_t *pool)
{
    apr_array_header_t *list = apr_array_make(pool, 16, sizeof(const char *));
    apr_getopt_t *parser;
    int letter;
    const char *text;
    apr_status_t status;
    *arguments = list;
    apr_getopt_init(&parser, pool, argc, argv);
    parser->interleave = 1;
    parser->errfn = no_complaint;
    while ((status = apr_getopt_long(parser, rows, &letter, &text)) == APR_SUCCESS)
        if (!store_option_value(places, letter, text) && !take(baton, letter, text, pool))
            return apr_psprintf(pool, "--%s cannot be \"%s\"", find_option_name(rows, letter), text);
    if (status != APR_EOF)
        return apr_psprintf(pool, "%s is no option, or lacks its value",
                            parser->ind > 0 && parser->ind <= argc ? argv[parser->ind - 1] : "something");
    for (int i = parser->ind; i < argc; i++) /* its own copy: options that stood between are in front now */
        APR_ARRAY_PUSH(list, const char *) = parser->argv[i];
    return NULL;
}

void
mc_options_list(const apr_getopt_option_t *rows)
{
    for (const apr_getopt_option_t *row = rows; row->name != NULL; row++) {
        char name[40];
        snprintf(name, sizeof(name), "--%s%s", row->name, row->has_arg ? " ..." : "");
        if (row->optch < 256)
            printf("  -%c, %-22s %s\n", row->optch, name, row->description);
        else
            printf("      %-22s %s\n", name, row->description);
    }
}

bool
mc_option_color(unsigned char rgb[3], const char *text)
{
    double numbers[3];
    int found = 0;
    if (!mc_parse_doubles(numbers, 3, &found, text, ",") || found == 2)
        return false;
    for (int i = 0; i < 3; i++) {
        double value = numbers[found == 1 ? 0 : i];
        if (!(value >= 0 && value <= 255) || value != (double)(int)value)
            return false;
        rgb[i] = (unsigned char)value;
    }
    return true;
}
