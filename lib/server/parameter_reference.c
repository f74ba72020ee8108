/* The reference of request parameters, from the tables that read them: `mapcache parameters`, docs/parameters.md. */
#include <apr_hash.h>
#include <apr_strings.h>
#include <stdio.h>

#include "server/reference.h"
#include "service/param.h"

typedef struct reference_page {
    apr_array_header_t *parts; /* of const char * */
    apr_hash_t *written;       /* address of a table -> title of the operation under which the table stands */
    apr_pool_t *pool;
} reference_page;

static void
append_page_text(reference_page *page, const char *text)
{
    APR_ARRAY_PUSH(page->parts, const char *) = text;
}

static const char *
integer_range_text(const mc_param_row *row, apr_pool_t *pool)
{
    if (row->limit != NULL)
        return apr_psprintf(pool, "a whole number from %.0f to %s", row->min, row->limit);
    if (row->max > row->min)
        return apr_psprintf(pool, "a whole number from %.0f to %.0f", row->min, row->max);
    return apr_psprintf(pool, "a whole number from %.0f", row->min);
}

static const char *
number_range_text(const mc_param_row *row, apr_pool_t *pool)
{
    char least[32], greatest[32];
    snprintf(least, sizeof(least), "%.15g", row->min);
    snprintf(greatest, sizeof(greatest), "%.15g", row->max);
    return row->flags & MC_PARAM_FROM_MIN ? apr_psprintf(pool, "a number from %s to %s", least, greatest)
                                          : apr_psprintf(pool, "a number above %s, at most %s", least, greatest);
}

/* The values that a row takes. */
static const char *
param_values_text(const mc_param_row *row, apr_pool_t *pool)
{
    switch (row->type) {
    case MC_PARAM_IS_TEXT:
        return row->max > 0 ? apr_psprintf(pool, "a text of 1 to %.0f bytes", row->max) : "a text";
    case MC_PARAM_IS_LIST:
        return "a list with commas";
    case MC_PARAM_IS_CRS:
        return "a CRS such as EPSG:3857";
    case MC_PARAM_IS_INTEGER:
    case MC_PARAM_IS_ID:
        return integer_range_text(row, pool);
    case MC_PARAM_IS_NUMBER:
        return number_range_text(row, pool);
    case MC_PARAM_IS_BOX:
        return "four numbers with commas";
    case MC_PARAM_IS_COLOUR:
        return "0xRRGGBB";
    case MC_PARAM_IS_CHOICE:
        return row->choices;
    case MC_PARAM_IS_BOOLEAN:
        return "TRUE|FALSE";
    case MC_PARAM_IS_LETTERED:
        return apr_psprintf(pool, "%s and a whole number", row->choices);
    case MC_PARAM_IS_FILE:
        return "a whole number and an extension";
    case MC_PARAM_IS_OBJECT:
        return apr_psprintf(pool, "an object of at most %d texts, each of at most %.0f bytes", MC_PARAM_MEMBERS_MAX,
                            row->max);
    case MC_PARAM_IS_REFUSED:
    default:
        return "none";
    }
}

static const char *
param_default_text(const mc_param_row *row)
{
    if (row->flags & MC_PARAM_REQUIRED)
        return "required";
    if (row->flags & MC_PARAM_STRICT)
        return "required where the service is strict";
    return row->fallback == NULL ? "" : row->fallback;
}

/* The exception code and the HTTP status of a value that cannot be used. */
static const char *
param_refusal_text(const mc_param_row *row, apr_pool_t *pool)
{
    mc_error_kind kind = row->kind == 0 ? MC_ERR_INVALID_PARAMETER : row->kind;
    const char *code = mc_error_code(kind);
    if (row->flags & MC_PARAM_LENIENT)
        return "none: counts as absent";
    return code == NULL ? apr_psprintf(pool, "%d", mc_error_status(kind))
                        : apr_psprintf(pool, "%s, %d", code, mc_error_status(kind));
}

static void
write_param_row(reference_page *page, const mc_param_row *row)
{
    apr_pool_t *pool = page->pool;
    const char *other = row->other == NULL ? "" : apr_psprintf(pool, " or `%s`", row->other);
    append_page_text(page, apr_psprintf(pool, "| `%s`%s | %s | %s | %s | %s |\n", row->name, other,
                                        mc_reference_cell(param_values_text(row, pool), pool),
                                        mc_reference_cell(param_default_text(row), pool), param_refusal_text(row, pool),
                                        mc_reference_cell(row->help, pool)));
}

/* The names of a table's first and last row. */
static const char *
table_names_text(const mc_param_row *rows, apr_pool_t *pool)
{
    const char *first = NULL, *last = NULL;
    for (const mc_param_row *row = rows; row->type != MC_PARAM_END_OF_TABLE; row++) {
        if (row->type == MC_PARAM_IS_STEP)
            continue;
        first = first == NULL ? row->name : first;
        last = row->name;
    }
    return first == last ? apr_psprintf(pool, "`%s`", first) : apr_psprintf(pool, "`%s` to `%s`", first, last);
}

static void
write_param_table(reference_page *page, const mc_param_row *rows)
{
    append_page_text(page, "| parameter | values | default | refusal | meaning |\n|---|---|---|---|---|\n");
    for (const mc_param_row *row = rows; row->type != MC_PARAM_END_OF_TABLE; row++)
        if (row->type != MC_PARAM_IS_STEP)
            write_param_row(page, row);
    append_page_text(page, "\n");
}

/* A table that operations share stands at the first one of them. */
static void
write_param_operation(reference_page *page, const char *service, const mc_operation *operation)
{
    apr_pool_t *pool = page->pool;
    const size_t count = sizeof(operation->rows) / sizeof(operation->rows[0]);
    const char *title = apr_psprintf(pool, "%s: %s", service, operation->name);
    append_page_text(page, apr_psprintf(pool, "### %s\n\n`%s`\n\n", title, operation->address));
    if (operation->rows[0] == NULL)
        append_page_text(page, "No parameters besides those in the address.\n\n");
    for (size_t i = 0; i < count && operation->rows[i] != NULL; i++) {
        const mc_param_row *const *rows = &operation->rows[i];
        const char *elsewhere = apr_hash_get(page->written, rows, sizeof(*rows));
        if (elsewhere != NULL) {
            append_page_text(page, apr_psprintf(pool, "%s: see *%s*.\n\n", table_names_text(*rows, pool), elsewhere));
            continue;
        }
        apr_hash_set(page->written, rows, sizeof(*rows), title);
        write_param_table(page, *rows);
    }
}

const char *
mc_parameters_markdown(apr_pool_t *pool)
{
    reference_page page = { apr_array_make(pool, 256, sizeof(const char *)), apr_hash_make(pool), pool };
    append_page_text(&page,
                     "# Parameters of requests\n\n"
                     "Written by `mapcache parameters` from the tables that the server itself reads requests by. Names "
                     "of query parameters may be written in any case, those of fields in a body as they stand here. A "
                     "refusal is an exception code of the protocol, "
                     "where there is one, and an HTTP status; WMTS answers every refused query with 400. Dimensions "
                     "(`TIME`, `ELEVATION`, `DIM_` and a name) are those of the layer: see "
                     "[dimensions.md](dimensions.md). An example of each address: [urls.md](urls.md).\n\n");
    for (int i = 0; mc_service_kinds[i] != NULL; i++) {
        const mc_service_ops *ops = mc_service_kinds[i];
        if (ops->operations == NULL)
            continue;
        append_page_text(&page, apr_psprintf(pool, "## %s\n\n%s\n\n", ops->type, ops->help));
        for (const mc_operation *operation = ops->operations; operation->name != NULL; operation++)
            write_param_operation(&page, ops->type, operation);
    }
    return apr_array_pstrcat(pool, page.parts, '\0');
}
