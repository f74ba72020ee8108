/* Reads requests by tables of parameters, and words what is refused. */
#include "service/param.h"

#include <apr_general.h>
#include <apr_strings.h>
#include <string.h>

#include "service/service_base.h"
#include "text/text.h"

/* A placeholder of a template as text; NULL where there is no such one. */
static const char *
placeholder_value(const mc_param_reader *reader, const char *placeholder, size_t size)
{
    const mc_param_row *row = reader->row;
    if (strncmp(placeholder, "name", size) == 0)
        return row->name;
    if (strncmp(placeholder, "value", size) == 0)
        return reader->text == NULL ? "" : reader->text;
    if (strncmp(placeholder, "min", size) == 0)
        return apr_psprintf(reader->pool, "%.0f", row->min);
    if (strncmp(placeholder, "max", size) == 0)
        return apr_itoa(reader->pool, mc_param_most(reader));
    return strncmp(placeholder, "path", size) == 0 ? reader->call->path : NULL;
}

/* Values are not looked through: what a client writes in braces stays as it is. */
static const char *
fill_template(const mc_param_reader *reader, const char *text)
{
    apr_array_header_t *parts = apr_array_make(reader->pool, 8, sizeof(const char *));
    while (*text != '\0') {
        size_t size = strcspn(text, "{");
        APR_ARRAY_PUSH(parts, const char *) = apr_pstrmemdup(reader->pool, text, size);
        text += size;
        if (*text == '\0')
            break;
        size = strcspn(++text, "}");
        const char *value = placeholder_value(reader, text, size);
        MC_ASSERT(value != NULL && text[size] == '}');
        APR_ARRAY_PUSH(parts, const char *) = value;
        text += size + 1;
    }
    return apr_array_pstrcat(reader->pool, parts, '\0');
}

static mc_error *
create_param_error(const mc_param_reader *reader, mc_error_kind kind, const char *text)
{
    return mc_error_located(reader->pool, kind, reader->row->locator, "%s", fill_template(reader, text));
}

static mc_error *
refuse_as(const mc_param_reader *reader, const char *by_type)
{
    const mc_param_row *row = reader->row;
    return create_param_error(reader, row->kind == 0 ? MC_ERR_INVALID_PARAMETER : row->kind,
                              row->refusal != NULL ? row->refusal : by_type);
}

mc_error *
mc_param_refuse(const mc_param_reader *reader)
{
    return refuse_as(reader, "{name} \"{value}\" is not valid here");
}

/* An absent parameter: an error, or the field has its default. */
static mc_error *
take_absent_param(mc_param_reader *reader)
{
    const mc_param_row *row = reader->row;
    bool required = row->flags & MC_PARAM_REQUIRED;
    if (required && reader->path != NULL && row->missing == NULL)
        return mc_param_refuse(reader); /* a path that is too short has an empty element there */
    if (required)
        return create_param_error(reader, row->missing_kind == 0 ? MC_ERR_MISSING_PARAMETER : row->missing_kind,
                                  row->missing != NULL ? row->missing : "the parameter {name} is missing");
    if ((row->flags & MC_PARAM_STRICT) && reader->call->service->strict)
        return mc_error_located(reader->pool, MC_ERR_MISSING_PARAMETER, row->locator, "the parameter %s is missing",
                                row->locator);
    if (row->fallback != NULL) {
        const char *by_type;
        reader->text = row->fallback;
        MC_ASSERT(mc_param_parse(&by_type, reader));
        reader->text = NULL;
    } else if (row->type == MC_PARAM_IS_CHOICE || row->type == MC_PARAM_IS_BOOLEAN) {
        *(int *)(void *)((char *)reader->target + row->offset) = -1;
    }
    return MC_OK;
}

/* An integer above the limit, however many digits the number has. */
static bool
is_over_limit(const mc_param_reader *reader)
{
    enum { DIGITS_MAX = 18 };
    const char *text = reader->text;
    int64_t number;
    if (strspn(text, "0123456789") == strlen(text) && strlen(text) > DIGITS_MAX)
        return true;
    return mc_parse_int64(&number, text, (int64_t)reader->row->min, INT64_MAX) && number > mc_param_most(reader);
}

static mc_error *
take_param(mc_param_reader *reader)
{
    const mc_param_row *row = reader->row;
    const char *by_type;
    if (row->type == MC_PARAM_IS_REFUSED)
        return mc_param_refuse(reader);
    if (row->over != NULL && is_over_limit(reader))
        return create_param_error(reader, MC_ERR_INVALID_PARAMETER, row->over);
    if (mc_param_parse(&by_type, reader))
        return MC_OK;
    if (!(row->flags & MC_PARAM_LENIENT))
        return refuse_as(reader, by_type);
    reader->text = NULL;
    return take_absent_param(reader);
}

static const char *
find_param_text(mc_param_reader *reader)
{
    const mc_param_row *row = reader->row;
    const mc_call *call = reader->call;
    const char *text = NULL;
    if (reader->path != NULL) {
        if (reader->next < reader->path->nelts)
            text = APR_ARRAY_IDX(reader->path, reader->next, const char *);
        reader->next++;
        return text;
    }
    if (reader->fields != NULL)
        return apr_table_get(reader->fields, row->name);
    for (int i = 0; i < 2 && text == NULL; i++) {
        const char *name = i == 0 ? row->name : row->other;
        if (name == NULL || (i == 1 && (row->flags & MC_PARAM_LAX_OTHER) && call->service->strict))
            continue;
        text = mc_param(call, name);
        if (text != NULL && *text == '\0' && (row->flags & MC_PARAM_EMPTY))
            text = NULL;
    }
    return text;
}

/* Whether a field of a body is the row's, or a member of the object that is. */
static bool
is_field_of_row(const mc_param_row *row, const char *field)
{
    size_t size = row->name == NULL ? 0 : strlen(row->name);
    if (size == 0 || strncmp(row->name, field, size) != 0)
        return false;
    return row->type == MC_PARAM_IS_OBJECT ? field[size] == '.' && field[size + 1] != '\0' : field[size] == '\0';
}

/* The members of an object. */
static mc_error *
take_param_members(mc_param_reader *reader)
{
    const mc_param_row *row = reader->row;
    const apr_array_header_t *fields = apr_table_elts(reader->fields);
    apr_table_t *members = apr_table_make(reader->pool, 4);
    for (int i = 0; i < fields->nelts; i++) {
        const apr_table_entry_t *field = &APR_ARRAY_IDX(fields, i, apr_table_entry_t);
        if (!is_field_of_row(row, field->key))
            continue;
        apr_table_set(members, field->key + strlen(row->name) + 1, field->val);
        if (strlen(field->val) > (size_t)row->max || apr_table_elts(members)->nelts > MC_PARAM_MEMBERS_MAX)
            return refuse_as(reader, "{name} has at most " APR_STRINGIFY(
                                         MC_PARAM_MEMBERS_MAX) " members, each with at most {max} bytes");
    }
    *(apr_table_t **)(void *)((char *)reader->target + row->offset) = members;
    return MC_OK;
}

static mc_error *
read_rows(mc_param_reader *reader, const mc_param_row *rows)
{
    for (const mc_param_row *row = rows; row->type != MC_PARAM_END_OF_TABLE; row++) {
        if (row->type == MC_PARAM_IS_STEP) {
            MC_TRY(row->step(reader));
            continue;
        }
        if (row->applies != NULL && !row->applies(reader))
            continue;
        reader->row = row;
        if (row->type == MC_PARAM_IS_OBJECT) {
            MC_TRY(take_param_members(reader));
            continue;
        }
        reader->text = find_param_text(reader);
        MC_TRY(reader->text != NULL ? take_param(reader) : take_absent_param(reader));
    }
    return MC_OK;
}

mc_error *
mc_params_read(void *target, const mc_param_row *rows, const mc_call *call, apr_pool_t *pool)
{
    mc_param_reader reader = { .target = target, .call = call, .pool = pool };
    return read_rows(&reader, rows);
}

mc_error *
mc_params_read_path(void *target, const mc_param_row *rows, const mc_call *call, const apr_array_header_t *path,
                    int *next, apr_pool_t *pool)
{
    mc_param_reader reader = { .target = target, .call = call, .path = path, .next = *next, .pool = pool };
    MC_TRY(read_rows(&reader, rows));
    *next = reader.next;
    return MC_OK;
}

mc_error *
mc_params_read_fields(void *target, const mc_param_row *rows, const apr_table_t *fields, apr_pool_t *pool)
{
    enum { SHOWN = 100 }; /* bytes of a name */
    mc_param_reader reader = { .target = target, .fields = fields, .pool = pool };
    const apr_array_header_t *entries = apr_table_elts(fields);
    for (int i = 0; i < entries->nelts; i++) {
        const char *name = APR_ARRAY_IDX(entries, i, apr_table_entry_t).key;
        const mc_param_row *row = rows;
        while (row->type != MC_PARAM_END_OF_TABLE && !is_field_of_row(row, name))
            row++;
        if (row->type == MC_PARAM_END_OF_TABLE)
            return mc_error_create(pool, MC_ERR_BAD_REQUEST, "there is no field \"%s\"",
                                   mc_message_text(name, SHOWN, pool));
    }
    return read_rows(&reader, rows);
}
