/* Tables of request parameters: types, defaults, refusals, and what the tables of the build have to keep to. */
#include "unit.h"

#include <string.h>

#include "service/param.h"
#include "service/service_base.h"
#include "text/text.h"

typedef struct sample {
    const char *text, *list;
    int integer, choice, boolean, lettered, strict, steps;
    int64_t id;
    double number;
    mc_extent box;
    mc_param_colour colour;
    mc_param_file file;
} sample;

static int
sample_most(const mc_param_reader *reader)
{
    (void)reader;
    return 100;
}

static mc_error *
count_step(mc_param_reader *reader)
{
    ((sample *)reader->target)->steps++;
    return MC_OK;
}

static const mc_param_row rows[] = {
    MC_PARAM_TEXT("Text", offsetof(sample, text), "A text.", .other = "OLD", .flags = MC_PARAM_EMPTY),
    MC_PARAM_LIST("list", offsetof(sample, list), "A list."),
    MC_PARAM_STEP(count_step),
    MC_PARAM_INTEGER("integer", offsetof(sample, integer), "An integer.", .min = 1, .most = sample_most,
                     .locator = "where", .refusal = "{name} {value} {min} {max}", .over = "{value} > {max}"),
    MC_PARAM_ID("id", offsetof(sample, id), "A number of something.", .min = 1),
    MC_PARAM_NUMBER("number", offsetof(sample, number), "A number.", .max = 10, .kind = MC_ERR_NOT_FOUND),
    MC_PARAM_BOX("box", offsetof(sample, box), "A box."),
    MC_PARAM_COLOUR("colour", offsetof(sample, colour), "A colour."),
    MC_PARAM_CHOICE("choice", offsetof(sample, choice), "one|two", "A choice.", .flags = MC_PARAM_ANY_CASE),
    MC_PARAM_BOOLEAN("boolean", offsetof(sample, boolean), "A boolean."),
    MC_PARAM_LETTERED("lettered", offsetof(sample, lettered), "S", "A letter and a number."),
    MC_PARAM_FILE("file", offsetof(sample, file), "A file."),
    MC_PARAM_INTEGER("strict", offsetof(sample, strict), "Needed by strict services.", .min = 1, .max = 9,
                     .flags = MC_PARAM_STRICT | MC_PARAM_LENIENT, .fallback = "7", .locator = "Strict"),
    MC_PARAM_REFUSED("never", "Never.", .refusal = "no {name}"),
    MC_PARAM_END,
};

static mc_error *
read_sample(sample *out, const char *query, bool strict)
{
    mc_service service = { .strict = strict };
    mc_call call = { .service = &service, .path = "the/path", .params = mc_query_parse(query, 64, pool) };
    *out = (sample){ 0 };
    return mc_params_read(out, rows, &call, pool);
}

START_TEST(values_of_each_type_are_read)
{
    sample s;
    ck_ok(read_sample(&s,
                      "TEXT=t&list=a,b&integer=100&id=9000000000&number=1.5&box=1,2,3,4&colour=0xFF0010&choice=TWO"
                      "&boolean=true&lettered=S12&file=7.png&strict=3",
                      true));
    ck_assert_str_eq(s.text, "t");
    ck_assert_str_eq(s.list, "a,b");
    ck_assert_int_eq(s.integer, 100);
    ck_assert_int_eq(s.id, 9000000000);
    ck_assert_double_eq(s.number, 1.5);
    ck_assert_double_eq(s.box.maxy, 4);
    ck_assert(s.colour.given && s.colour.rgb[0] == 255 && s.colour.rgb[1] == 0 && s.colour.rgb[2] == 16);
    ck_assert_int_eq(s.choice, 1);
    ck_assert_int_eq(s.boolean, 1);
    ck_assert_int_eq(s.lettered, 12);
    ck_assert_int_eq(s.file.number, 7);
    ck_assert_str_eq(s.file.extension, "png");
    ck_assert_int_eq(s.strict, 3);
    ck_assert_int_eq(s.steps, 1);
}
END_TEST

START_TEST(absent_values_leave_defaults)
{
    sample s;
    ck_ok(read_sample(&s, "text=", false));
    ck_assert_ptr_null(s.text);
    ck_assert_int_eq(s.choice, -1);
    ck_assert_int_eq(s.boolean, -1);
    ck_assert(!s.colour.given);
    ck_assert_int_eq(s.strict, 7);
    ck_ok(read_sample(&s, "text=&old=o&strict=99", false)); /* an older name; a lenient row */
    ck_assert_str_eq(s.text, "o");
    ck_assert_int_eq(s.strict, 7);
}
END_TEST

START_TEST(wrong_values_are_refused_by_the_rows_words)
{
    static const struct {
        const char *query, *message;
        mc_error_kind kind;
    } wrong[] = {
        { "integer=0", "integer 0 1 100", MC_ERR_INVALID_PARAMETER },
        { "integer=x{min}", "integer x{min} 1 100", MC_ERR_INVALID_PARAMETER },
        { "integer=101", "101 > 100", MC_ERR_INVALID_PARAMETER },
        { "integer=99999999999999999999", "99999999999999999999 > 100", MC_ERR_INVALID_PARAMETER },
        { "id=0", "id \"0\" is not valid here", MC_ERR_INVALID_PARAMETER },
        { "number=0", "number \"0\" is not valid here", MC_ERR_NOT_FOUND },
        { "number=nan", "number \"nan\" is not valid here", MC_ERR_NOT_FOUND },
        { "box=1,2,3", "box \"1,2,3\" is not four coordinates", MC_ERR_INVALID_PARAMETER },
        { "box=1e13,2,3,4", "box \"1e13,2,3,4\" is not four coordinates", MC_ERR_INVALID_PARAMETER },
        { "box=3,2,1,4", "box \"3,2,1,4\": minimum must be below maximum", MC_ERR_INVALID_PARAMETER },
        { "colour=0xFF001", "colour \"0xFF001\" is not 0xRRGGBB", MC_ERR_INVALID_PARAMETER },
        { "choice=on", "choice \"on\" is not valid here", MC_ERR_INVALID_PARAMETER },
        { "choice=one|two", "choice \"one|two\" is not valid here", MC_ERR_INVALID_PARAMETER },
        { "boolean=1", "boolean \"1\" is not TRUE or FALSE", MC_ERR_INVALID_PARAMETER },
        { "lettered=T1", "lettered \"T1\" is not valid here", MC_ERR_INVALID_PARAMETER },
        { "file=x.png", "file \"x.png\" is not valid here", MC_ERR_INVALID_PARAMETER },
        { "never=", "no never", MC_ERR_INVALID_PARAMETER },
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        sample s;
        mc_error *error = read_sample(&s, wrong[i].query, false);
        ck_assert_msg(error != MC_OK, "%s", wrong[i].query);
        ck_assert_str_eq(error->message, wrong[i].message);
        ck_assert_int_eq(error->kind, wrong[i].kind);
    }
}
END_TEST

START_TEST(strict_services_want_more)
{
    sample s;
    mc_error *error = read_sample(&s, "", true);
    ck_assert_ptr_nonnull(error);
    ck_assert_str_eq(error->message, "the parameter Strict is missing");
    ck_assert_str_eq(error->locator, "Strict");
    ck_assert_int_eq(error->kind, MC_ERR_MISSING_PARAMETER);
}
END_TEST

START_TEST(paths_are_read_element_by_element)
{
    static const mc_param_row path_rows[] = {
        MC_PARAM_TEXT("layer", offsetof(sample, text), "A layer.", .flags = MC_PARAM_REQUIRED,
                      .missing = "no layer in {path}", .missing_kind = MC_ERR_NOT_FOUND),
        MC_PARAM_INTEGER("z", offsetof(sample, integer), "A level.", .flags = MC_PARAM_REQUIRED,
                         .refusal = "z \"{value}\""),
        MC_PARAM_END,
    };
    mc_service service = { 0 };
    mc_call call = { .service = &service, .path = "x/a/3" };
    const apr_array_header_t *path = mc_path_segments(call.path, pool);
    sample s;
    int next = 1;
    ck_ok(mc_params_read_path(&s, path_rows, &call, path, &next, pool));
    ck_assert_str_eq(s.text, "a");
    ck_assert_int_eq(s.integer, 3);
    ck_assert_int_eq(next, 3);
    mc_error *error = mc_params_read_path(&s, path_rows, &call, path, &next, pool);
    ck_assert_str_eq(error->message, "no layer in x/a/3");
    next = 2;
    error = mc_params_read_path(&s, path_rows, &call, path, &next, pool);
    ck_assert_str_eq(error->message, "z \"\"");
}
END_TEST

typedef struct body_sample {
    const char *text;
    int choice, integer;
    double number;
    apr_table_t *members;
} body_sample;

static const mc_param_row body_rows[] = {
    MC_PARAM_TEXT("text", offsetof(body_sample, text), "A text.", .max = 5, .flags = MC_PARAM_REQUIRED,
                  .locator = "text"),
    MC_PARAM_CHOICE("choice", offsetof(body_sample, choice), "one|two", "A choice.", .fallback = "two"),
    MC_PARAM_INTEGER("integer", offsetof(body_sample, integer), "An integer.", .min = -3, .max = 3),
    MC_PARAM_NUMBER("number", offsetof(body_sample, number), "A number.", .min = 1, .max = 2,
                    .flags = MC_PARAM_FROM_MIN),
    MC_PARAM_OBJECT("members", offsetof(body_sample, members), "Texts by name.", .max = 3, .locator = "members"),
    MC_PARAM_END,
};

/* Fields are pairs of name and value; NULL ends them. */
static mc_error *
read_body(body_sample *out, const char *const *fields)
{
    apr_table_t *table = apr_table_make(pool, 8);
    for (; *fields != NULL; fields += 2)
        apr_table_add(table, fields[0], fields[1]);
    *out = (body_sample){ .integer = 7 };
    return mc_params_read_fields(out, body_rows, table, pool);
}

START_TEST(fields_of_a_body_are_read)
{
    body_sample s;
    ck_ok(read_body(&s, (const char *[]){ "text", "12345", "number", "1", "integer", "-3", "members.a", "xyz",
                                          "members.b.c", "", NULL }));
    ck_assert_str_eq(s.text, "12345");
    ck_assert_int_eq(s.choice, 1);
    ck_assert_int_eq(s.integer, -3);
    ck_assert_double_eq(s.number, 1);
    ck_assert_str_eq(apr_table_get(s.members, "a"), "xyz");
    ck_assert_str_eq(apr_table_get(s.members, "b.c"), "");
    ck_ok(read_body(&s, (const char *[]){ "text", "x", NULL }));
    ck_assert_int_eq(s.integer, 7);
    ck_assert_int_eq(apr_table_elts(s.members)->nelts, 0);
}
END_TEST

START_TEST(fields_of_a_body_are_refused_by_the_rows_words)
{
    static const struct {
        const char *fields[5], *message;
        mc_error_kind kind;
    } wrong[] = {
        { { NULL }, "the parameter text is missing", MC_ERR_MISSING_PARAMETER },
        { { "text", "", NULL }, "text has 1 to 5 bytes", MC_ERR_INVALID_PARAMETER },
        { { "text", "123456", NULL }, "text has 1 to 5 bytes", MC_ERR_INVALID_PARAMETER },
        { { "Text", "x", NULL }, "there is no field \"Text\"", MC_ERR_BAD_REQUEST },
        { { "text", "x", "members", "x", NULL }, "there is no field \"members\"", MC_ERR_BAD_REQUEST },
        { { "text", "x", "members.", "x", NULL }, "there is no field \"members.\"", MC_ERR_BAD_REQUEST },
        { { "text", "x", "text.a", "x", NULL }, "there is no field \"text.a\"", MC_ERR_BAD_REQUEST },
        { { "text", "x", "", "x", NULL }, "there is no field \"\"", MC_ERR_BAD_REQUEST },
        { { "text", "x", "number", "0.9", NULL }, "number \"0.9\" is not valid here", MC_ERR_INVALID_PARAMETER },
        { { "text", "x", "members.a", "wxyz", NULL },
          "members has at most 64 members, each with at most 3 bytes",
          MC_ERR_INVALID_PARAMETER },
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        body_sample s;
        mc_error *error = read_body(&s, wrong[i].fields);
        ck_assert_msg(error != MC_OK, "%s", wrong[i].message);
        ck_assert_str_eq(error->message, wrong[i].message);
        ck_assert_int_eq(error->kind, wrong[i].kind);
    }
}
END_TEST

/* A template as the reader fills one. */
static void
check_template(const char *service, const mc_param_row *row, const char *text)
{
    static const char *const known[] = { "{name}", "{value}", "{min}", "{max}", "{path}" };
    for (const char *at = text == NULL ? NULL : strchr(text, '{'); at != NULL; at = strchr(at + 1, '{')) {
        bool found = false;
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            found |= strncmp(at, known[i], strlen(known[i])) == 0;
        ck_assert_msg(found, "%s: %s: %s", service, row->name, text);
    }
}

static void
check_row(const char *service, const mc_param_row *row)
{
    ck_assert_msg(row->help != NULL && row->help[strlen(row->help) - 1] == '.', "%s: %s", service, row->name);
    ck_assert_msg(!(row->flags & MC_PARAM_STRICT) || row->locator != NULL, "%s: %s", service, row->name);
    ck_assert_msg(row->type != MC_PARAM_IS_CHOICE || row->choices != NULL, "%s: %s", service, row->name);
    ck_assert_msg(row->most == NULL || row->limit != NULL, "%s: %s", service, row->name);
    check_template(service, row, row->refusal);
    check_template(service, row, row->missing);
    check_template(service, row, row->over);
}

START_TEST(tables_of_the_build_are_whole)
{
    int count = 0;
    for (int i = 0; mc_service_kinds[i] != NULL; i++)
        for (const mc_operation *one = mc_service_kinds[i]->operations; one != NULL && one->name != NULL; one++)
            for (int k = 0; k < 4 && one->rows[k] != NULL; k++)
                for (const mc_param_row *row = one->rows[k]; row->type != MC_PARAM_END_OF_TABLE; row++, count++)
                    if (row->type != MC_PARAM_IS_STEP)
                        check_row(mc_service_kinds[i]->type, row);
    ck_assert_int_gt(count, 80);
}
END_TEST

UNIT_MAIN("params", values_of_each_type_are_read, absent_values_leave_defaults,
          wrong_values_are_refused_by_the_rows_words, strict_services_want_more, paths_are_read_element_by_element,
          fields_of_a_body_are_read, fields_of_a_body_are_refused_by_the_rows_words, tables_of_the_build_are_whole)
