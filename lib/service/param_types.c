/* The types of parameters: from the text of a client to the field of a struct. */
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "service/param.h"
#include "service/service_base.h"
#include "text/text.h"

/* Coordinates beyond it belong to no CRS, and tile numbers could not be computed from them. */
#define COORDINATE_MAX 1e12

int
mc_param_most(const mc_param_reader *reader)
{
    const mc_param_row *row = reader->row;
    if (row->most != NULL)
        return row->most(reader);
    return row->max > row->min ? (int)row->max : INT32_MAX;
}

static bool
parse_param_integer(int *field, const mc_param_reader *reader)
{
    return mc_parse_int(field, reader->text, (int)reader->row->min, mc_param_most(reader));
}

static bool
parse_param_number(double *field, const mc_param_reader *reader)
{
    double number;
    const mc_param_row *row = reader->row;
    if (!mc_parse_double(&number, reader->text) || number > row->max ||
        !(number > row->min || ((row->flags & MC_PARAM_FROM_MIN) && number >= row->min)))
        return false;
    *field = number;
    return true;
}

static bool
parse_param_box(mc_extent *field, const char **by_type, const mc_param_reader *reader)
{
    double numbers[4];
    int found = 0;
    bool parsed = mc_parse_doubles(numbers, 4, &found, reader->text, ",") && found == 4;
    for (int i = 0; parsed && i < 4; i++)
        parsed = isfinite(numbers[i]) && fabs(numbers[i]) <= COORDINATE_MAX;
    if (!parsed)
        return false;
    *field = (mc_extent){ numbers[0], numbers[1], numbers[2], numbers[3] };
    *by_type = "{name} \"{value}\": minimum must be below maximum";
    return mc_extent_valid(field);
}

static bool
parse_param_colour(mc_param_colour *field, const char *text)
{
    bool prefixed = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    if (!prefixed || strlen(text) != 8 || strspn(text + 2, "0123456789abcdefABCDEF") != 6)
        return false;
    unsigned long rgb = strtoul(text + 2, NULL, 16);
    *field = (mc_param_colour){ true, { (uint8_t)(rgb >> 16), (uint8_t)(rgb >> 8), (uint8_t)rgb } };
    return true;
}

/* The index of a word in "a|b|c". */
static bool
parse_param_choice(int *field, const char *choices, bool any_case, const char *text)
{
    size_t size = strlen(text);
    for (int index = 0;; index++) {
        size_t length = strcspn(choices, "|");
        if (length == size && (any_case ? strncasecmp(choices, text, size) : strncmp(choices, text, size)) == 0) {
            *field = index;
            return true;
        }
        if (choices[length] == '\0')
            return false;
        choices += length + 1;
    }
}

static bool
parse_param_file(mc_param_file *field, const mc_param_reader *reader)
{
    mc_param_file file = { .density = 1 };
    const char *text = reader->text, *at = strchr(text, '@');
    if (at != NULL && (reader->row->flags & MC_PARAM_DENSITY) && at[1] >= '2' && at[1] <= '9' && at[2] == 'x') {
        file.density = at[1] - '0';
        text = apr_pstrcat(reader->pool, apr_pstrmemdup(reader->pool, text, (size_t)(at - text)), at + 3, NULL);
    }
    if (!mc_path_number(&file.number, &file.extension, text, reader->pool) ||
        ((reader->row->flags & MC_PARAM_EXTENSION) && file.extension == NULL))
        return false;
    *field = file;
    return true;
}

static bool
parse_param_text(const char **field, const mc_param_reader *reader)
{
    size_t size = strlen(reader->text);
    if (reader->row->max > 0 && (size == 0 || size > (size_t)reader->row->max))
        return false;
    *field = reader->text;
    return true;
}

static const char *
refusal_of_type(const mc_param_row *row)
{
    switch (row->type) {
    case MC_PARAM_IS_TEXT:
        return row->max > 0 ? "{name} has 1 to {max} bytes" : "{name} \"{value}\" is not valid here";
    case MC_PARAM_IS_INTEGER:
        return "{name} \"{value}\" is not one of {min} to {max}";
    case MC_PARAM_IS_BOX:
        return "{name} \"{value}\" is not four coordinates";
    case MC_PARAM_IS_COLOUR:
        return "{name} \"{value}\" is not 0xRRGGBB";
    case MC_PARAM_IS_BOOLEAN:
        return "{name} \"{value}\" is not TRUE or FALSE";
    default:
        return "{name} \"{value}\" is not valid here";
    }
}

bool
mc_param_parse(const char **template_text, const mc_param_reader *reader)
{
    const mc_param_row *row = reader->row;
    const char *text = reader->text;
    void *field = (char *)reader->target + row->offset;
    *template_text = refusal_of_type(row);
    switch (row->type) {
    case MC_PARAM_IS_TEXT:
        return parse_param_text(field, reader);
    case MC_PARAM_IS_INTEGER:
        return parse_param_integer(field, reader);
    case MC_PARAM_IS_ID:
        return mc_parse_int64(field, text, (int64_t)row->min, INT64_MAX);
    case MC_PARAM_IS_NUMBER:
        return parse_param_number(field, reader);
    case MC_PARAM_IS_BOX:
        return parse_param_box(field, template_text, reader);
    case MC_PARAM_IS_COLOUR:
        return parse_param_colour(field, text);
    case MC_PARAM_IS_CHOICE:
        return parse_param_choice(field, row->choices, row->flags & MC_PARAM_ANY_CASE, text);
    case MC_PARAM_IS_BOOLEAN:
        return parse_param_choice(field, "FALSE|TRUE", true, text);
    case MC_PARAM_IS_LETTERED:
        return text[0] == row->choices[0] && mc_parse_int(field, text + 1, 0, INT32_MAX);
    case MC_PARAM_IS_FILE:
        return parse_param_file(field, reader);
    default:
        *(const char **)field = text;
        return true;
    }
}
