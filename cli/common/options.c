/* See options.h. */
#include "options.h"

#include <apr_strings.h>
#include <stdint.h>
#include <string.h>

#include "mapcache/config.h"
#include "text/text.h"
#include "values.h"

/* What every command has. The program itself looks at --color before it reads anything else (style.c). */
static const mc_cli_option common_rows[] = {
    MC_OPTION_HEADING("General"),
    MC_OPTION_QUIET(0),
    MC_OPTION_CHOICE("color", 0, "WHEN", 0, "auto|always|never",
                     "colours: auto (default: on a terminal, unless NO_COLOR is set), always or never",
                     .names = MC_CLI_OUR_NAME),
    MC_OPTION_FLAG("help", 'h', 0, "this list"),
    MC_OPTION_END,
};

static bool
is_common_row(const mc_cli_option *row)
{
    return row >= common_rows && row < common_rows + sizeof(common_rows) / sizeof(common_rows[0]);
}

static bool
has_command_option(const mc_cli_command *command, const mc_cli_option *row, bool drop_in)
{
    return row->kind != MC_CLI_HEADING && (row->commands == 0 || (row->commands & command->mask) != 0) &&
           !(drop_in && row->names == MC_CLI_OUR_NAME);
}

static bool
is_option_listed(const apr_array_header_t *list, const char *name)
{
    for (int i = 0; i < list->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(list, i, const mc_cli_option *)->name, name) == 0)
            return true;
    return false;
}

const apr_array_header_t *
mc_cli_options_of(const mc_cli_command *command, bool drop_in, apr_pool_t *pool)
{
    apr_array_header_t *list = apr_array_make(pool, 48, sizeof(const mc_cli_option *));
    for (const mc_cli_option *row = command->table->rows; row->name != NULL; row++)
        if (has_command_option(command, row, drop_in))
            APR_ARRAY_PUSH(list, const mc_cli_option *) = row;
    for (const mc_cli_option *row = common_rows; row->name != NULL; row++)
        if (has_command_option(command, row, drop_in) && !is_option_listed(list, row->name) &&
            !(drop_in && strcmp(row->name, "quiet") == 0)) /* what MapCache's program does not know */
            APR_ARRAY_PUSH(list, const mc_cli_option *) = row;
    return list;
}

const char *
mc_cli_heading_of(const mc_cli_command *command, const mc_cli_option *option)
{
    const mc_cli_option *first = is_common_row(option) ? common_rows : command->table->rows;
    bool grouped = command->table->rows->kind == MC_CLI_HEADING;
    for (const mc_cli_option *row = option; row >= first && grouped; row--)
        if (row->kind == MC_CLI_HEADING)
            return row->name;
    return "Options";
}

int
mc_cli_letter_of(const mc_cli_option *option, bool drop_in)
{
    return drop_in && option->drop_in_letter != 0 ? option->drop_in_letter : option->letter;
}

static bool
parse_choice(int *index, const char *choices, const char *text)
{
    size_t size = strlen(text);
    *index = 0;
    for (const char *at = choices;; at = strchr(at, '|') + 1, ++*index) {
        if (strncmp(at, text, size) == 0 && (at[size] == '|' || at[size] == '\0'))
            return true;
        if (strchr(at, '|') == NULL)
            return false;
    }
}

/* False: the value cannot be used. */
static bool
store_option_value(void *options, const mc_cli_option *row, const char *text, apr_pool_t *pool)
{
    void *field = (char *)options + row->offset;
    switch (row->kind) {
    case MC_CLI_FLAG:
        return *(bool *)field = true;
    case MC_CLI_TEXT:
        *(const char **)field = text;
        return true;
    case MC_CLI_TEXTS:
        APR_ARRAY_PUSH(*(apr_array_header_t **)field, const char *) = text;
        return true;
    case MC_CLI_ASSIGNMENT:
        return mc_cli_parse_assignment(*(apr_table_t **)field, text, pool);
    case MC_CLI_INT:
        return mc_parse_int(field, text, (int)row->min, (int)row->max);
    case MC_CLI_INT64:
        return mc_parse_int64(field, text, (int64_t)row->min, (int64_t)row->max);
    case MC_CLI_NUMBER:
        return mc_parse_double(field, text) && *(double *)field >= row->min && *(double *)field <= row->max;
    case MC_CLI_SIZE:
        return mc_parse_size(field, text) && (double)*(int64_t *)field >= row->min &&
               (double)*(int64_t *)field <= row->max;
    case MC_CLI_CHOICE:
        return parse_choice(field, row->choices, text);
    case MC_CLI_VALUE:
        return row->parse(field, text, pool);
    case MC_CLI_HEADING:
        break;
    }
    return false;
}

/* Where the parser is. */
typedef struct option_reader {
    mc_cli_call *call;
    const apr_array_header_t *rows; /* of const mc_cli_option * */
    bool *seen;                     /* by row */
    int argc, next;
    const char *const *argv;
    bool help;
} option_reader;

static const mc_cli_option *
get_option_row(const option_reader *reader, int index)
{
    return APR_ARRAY_IDX(reader->rows, index, const mc_cli_option *);
}

static const char *
describe_unknown_option(const option_reader *reader, const char *word)
{
    const char **names = apr_palloc(reader->call->pool, sizeof(*names) * (size_t)reader->rows->nelts);
    const char *name = word + strspn(word, "-");
    for (int i = 0; i < reader->rows->nelts; i++)
        names[i] = get_option_row(reader, i)->name;
    const char *nearest =
        mc_config_nearest(apr_pstrmemdup(reader->call->pool, name, strcspn(name, "=")), names, reader->rows->nelts);
    return nearest == NULL
               ? apr_psprintf(reader->call->pool, "\"%s\" is no option", word)
               : apr_psprintf(reader->call->pool, "\"%s\" is no option: did you mean \"--%s\"?", word, nearest);
}

/* `value`: NULL where the option's value is the next word, or the option has none. */
static const char *
read_option(option_reader *reader, int index, const char *word, const char *value)
{
    const mc_cli_option *row = get_option_row(reader, index);
    apr_pool_t *pool = reader->call->pool;
    if (row->kind == MC_CLI_FLAG && strcmp(row->name, "help") == 0) {
        reader->help = true;
        return NULL;
    }
    if (row->kind != MC_CLI_FLAG && value == NULL) {
        if (reader->next == reader->argc)
            return apr_psprintf(pool, "\"%s\" lacks its value: --%s %s", word, row->name, row->value);
        value = reader->argv[reader->next++];
    }
    reader->seen[index] = true;
    int choice; /* what all commands have is in no struct of theirs */
    if (is_common_row(row) ? row->choices == NULL || parse_choice(&choice, row->choices, value)
                           : store_option_value(reader->call->options, row, value, pool))
        return NULL;
    return apr_psprintf(pool, "--%s cannot be \"%s\": --%s %s: %s", row->name, value, row->name, row->value, row->help);
}

static const char *
read_long_option(option_reader *reader, const char *word)
{
    size_t size = strcspn(word + 2, "=");
    const char *value = word[2 + size] == '=' ? word + 3 + size : NULL;
    for (int i = 0; i < reader->rows->nelts; i++) {
        const mc_cli_option *row = get_option_row(reader, i);
        if (strncmp(word + 2, row->name, size) != 0 || row->name[size] != '\0')
            continue;
        if (value != NULL && row->kind == MC_CLI_FLAG)
            return apr_psprintf(reader->call->pool, "\"%s\": --%s takes no value", word, row->name);
        return read_option(reader, i, word, value);
    }
    return describe_unknown_option(reader, word);
}

/* "-q", "-z0,3", "-qz 0,3" */
static const char *
read_letters(option_reader *reader, const char *word)
{
    for (const char *at = word + 1; *at != '\0' && !reader->help; at++) {
        const char name[] = { '-', *at, '\0' };
        int i = 0;
        while (i < reader->rows->nelts &&
               mc_cli_letter_of(get_option_row(reader, i), reader->call->drop_in) != (unsigned char)*at)
            i++;
        if (i == reader->rows->nelts)
            return describe_unknown_option(reader, at == word + 1 ? word : apr_pstrdup(reader->call->pool, name));
        bool flag = get_option_row(reader, i)->kind == MC_CLI_FLAG;
        const char *problem = read_option(reader, i, name, flag || at[1] == '\0' ? NULL : at + 1);
        if (problem != NULL || !flag)
            return problem;
    }
    return NULL;
}

static const char *
read_argument(option_reader *reader, const char *word)
{
    if (reader->call->command->argument == NULL)
        return apr_psprintf(reader->call->pool, "\"%s\" is no option", word);
    APR_ARRAY_PUSH(reader->call->arguments, const char *) = word;
    return NULL;
}

static const char *
find_missing_option(const option_reader *reader)
{
    for (int i = 0; i < reader->rows->nelts; i++)
        if (get_option_row(reader, i)->required && !reader->seen[i])
            return apr_psprintf(reader->call->pool, "the option --%s is required", get_option_row(reader, i)->name);
    return NULL;
}

static bool
was_option_given(const option_reader *reader, const char *name)
{
    for (int i = 0; i < reader->rows->nelts; i++)
        if (reader->seen[i] && strcmp(get_option_row(reader, i)->name, name) == 0)
            return true;
    return false;
}

const char *
mc_cli_options_parse(bool *help, mc_cli_call *call, int argc, const char *const *argv)
{
    option_reader reader = { .call = call, .argc = argc, .argv = argv, .next = 1 };
    const mc_cli_option_table *table = call->command->table;
    const char *problem = NULL;
    bool options_ended = false;
    reader.rows = mc_cli_options_of(call->command, call->drop_in, call->pool);
    reader.seen = apr_pcalloc(call->pool, sizeof(bool) * (size_t)reader.rows->nelts);
    call->options = apr_pcalloc(call->pool, table->size + 1);
    call->arguments = apr_array_make(call->pool, 16, sizeof(const char *));
    if (table->set_defaults != NULL)
        table->set_defaults(call->options, call->pool);
    while (problem == NULL && !reader.help && reader.next < argc) {
        const char *word = argv[reader.next++];
        if (options_ended || word[0] != '-' || word[1] == '\0')
            problem = read_argument(&reader, word);
        else if (strcmp(word, "--") == 0)
            options_ended = true;
        else
            problem = word[1] == '-' ? read_long_option(&reader, word) : read_letters(&reader, word);
    }
    *help = reader.help;
    call->quiet = was_option_given(&reader, "quiet");
    call->json = was_option_given(&reader, "json");
    if (problem != NULL || reader.help)
        return problem;
    problem = find_missing_option(&reader);
    return problem == NULL && call->command->check != NULL ? call->command->check(call) : problem;
}
