/*
 * Commands and their options, as tables. The parser, --help, the manual pages and the completion of shells read the
 * same rows: a command is one row of cli/commands.c, an option is one row of the table of its command.
 */
#ifndef MC_CLI_OPTIONS_H
#define MC_CLI_OPTIONS_H

#include <apr_tables.h>
#include <stdbool.h>
#include <stddef.h>

/* Reads the value of an option into its field. False: the value cannot be used. */
typedef bool mc_cli_value_parser(void *field, const char *text, apr_pool_t *pool);

/* The type of the field is behind the kind. */
typedef enum mc_cli_kind {
    MC_CLI_FLAG,       /* bool; the option has no value */
    MC_CLI_TEXT,       /* const char * */
    MC_CLI_TEXTS,      /* apr_array_header_t * of const char *; repeatable */
    MC_CLI_ASSIGNMENT, /* apr_table_t *; NAME=VALUE; repeatable */
    MC_CLI_INT,        /* int from min to max */
    MC_CLI_INT64,      /* int64_t from min to max */
    MC_CLI_NUMBER,     /* double from min to max */
    MC_CLI_SIZE,       /* int64_t: bytes from min to max, with K, M, G */
    MC_CLI_CHOICE,     /* int, or an enum: the index of the word in `choices` */
    MC_CLI_VALUE,      /* what `parse` makes of the text */
    MC_CLI_HEADING,    /* no option: the heading of the rows behind it */
} mc_cli_kind;

/* Under which names of the program an option is there. */
typedef enum mc_cli_names {
    MC_CLI_ALL_NAMES,
    MC_CLI_OUR_NAME, /* not under MapCache's name: mapcache_seed, mapcache_detail */
} mc_cli_names;

/* One row of a table of options, written with the makers below. A table ends with MC_OPTION_END. */
typedef struct mc_cli_option {
    const char *name; /* without the two dashes */
    int letter;       /* 0: none */
    mc_cli_kind kind;
    const char *value;          /* how help names the value: "FILE" */
    size_t offset;              /* of the field */
    const char *help;           /* what the option means */
    double min, max;            /* of numbers */
    const char *choices;        /* "a|b|c": of CHOICE; of VALUE: words that a shell completes */
    mc_cli_value_parser *parse; /* of VALUE */
    bool required;
    unsigned commands;  /* where commands share a table: those that have this option; 0: all of them */
    int drop_in_letter; /* the letter that the option has under MapCache's name of the command; 0: `letter` */
    mc_cli_names names;
} mc_cli_option;

/* Name, letter, value, offset of the field, what the kind needs, help; then .required and .commands where they are
 * meant. */
#define MC_OPTION_ROW(kind_, name_, letter_, value_, offset_, ...)                                                     \
    {                                                                                                                  \
        .name = name_, .letter = letter_, .kind = kind_, .value = value_, .offset = offset_, .help = __VA_ARGS__       \
    }
#define MC_OPTION_FLAG(name_, letter_, offset_, ...)                                                                   \
    MC_OPTION_ROW(MC_CLI_FLAG, name_, letter_, NULL, offset_, __VA_ARGS__)
#define MC_OPTION_TEXT(name_, letter_, value_, offset_, ...)                                                           \
    MC_OPTION_ROW(MC_CLI_TEXT, name_, letter_, value_, offset_, __VA_ARGS__)
#define MC_OPTION_TEXTS(name_, letter_, value_, offset_, ...)                                                          \
    MC_OPTION_ROW(MC_CLI_TEXTS, name_, letter_, value_, offset_, __VA_ARGS__)
#define MC_OPTION_ASSIGNMENT(name_, letter_, offset_, ...)                                                             \
    MC_OPTION_ROW(MC_CLI_ASSIGNMENT, name_, letter_, "NAME=VALUE", offset_, __VA_ARGS__)
#define MC_OPTION_INT(name_, letter_, value_, offset_, min_, max_, ...)                                                \
    MC_OPTION_ROW(MC_CLI_INT, name_, letter_, value_, offset_, __VA_ARGS__, .min = min_, .max = max_)
#define MC_OPTION_INT64(name_, letter_, value_, offset_, min_, max_, ...)                                              \
    MC_OPTION_ROW(MC_CLI_INT64, name_, letter_, value_, offset_, __VA_ARGS__, .min = min_, .max = max_)
#define MC_OPTION_NUMBER(name_, letter_, value_, offset_, min_, max_, ...)                                             \
    MC_OPTION_ROW(MC_CLI_NUMBER, name_, letter_, value_, offset_, __VA_ARGS__, .min = min_, .max = max_)
#define MC_OPTION_SIZE(name_, letter_, offset_, min_, max_, ...)                                                       \
    MC_OPTION_ROW(MC_CLI_SIZE, name_, letter_, "SIZE", offset_, __VA_ARGS__, .min = min_, .max = max_)
#define MC_OPTION_CHOICE(name_, letter_, value_, offset_, choices_, ...)                                               \
    MC_OPTION_ROW(MC_CLI_CHOICE, name_, letter_, value_, offset_, __VA_ARGS__, .choices = choices_)
#define MC_OPTION_VALUE(name_, letter_, value_, offset_, parse_, ...)                                                  \
    MC_OPTION_ROW(MC_CLI_VALUE, name_, letter_, value_, offset_, __VA_ARGS__, .parse = parse_)
/* "Area": the rows behind it, up to the next heading, are one group in help, manual pages and documents. */
#define MC_OPTION_HEADING(title_)                                                                                      \
    {                                                                                                                  \
        .name = title_, .kind = MC_CLI_HEADING                                                                         \
    }
/* Rows that mean the same in every command that has them. */
#define MC_OPTION_JSON(offset_, ...) MC_OPTION_FLAG("json", 'j', offset_, __VA_ARGS__)
#define MC_OPTION_QUIET(offset_) MC_OPTION_FLAG("quiet", 'q', offset_, "say nothing unless something fails")
#define MC_OPTION_VERBOSE(offset_) MC_OPTION_FLAG("verbose", 'v', offset_, "all messages, on standard error")
#define MC_OPTION_DRY_RUN(offset_, ...) MC_OPTION_FLAG("dry-run", 'N', offset_, __VA_ARGS__)
#define MC_OPTION_END                                                                                                  \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }

/* The options of a command, or of commands that share them. */
typedef struct mc_cli_option_table {
    const mc_cli_option *rows;
    size_t size;                                           /* of the struct that the offsets are of */
    void (*set_defaults)(void *options, apr_pool_t *pool); /* or NULL: all is zero */
} mc_cli_option_table;

/* One call of a command: its options are read. */
typedef struct mc_cli_call {
    const struct mc_cli_command *command;
    const char *program;           /* as messages name it: "mapcache seed", "mapcache_seed" */
    bool drop_in;                  /* under the name of a program of MapCache */
    bool quiet, json;              /* --quiet and --json were given */
    void *options;                 /* the command's own struct */
    apr_array_header_t *arguments; /* of const char * */
    apr_pool_t *pool;
} mc_cli_call;

typedef struct mc_cli_command {
    const char *name;     /* "seed", "jobs work" */
    const char *summary;  /* for lists of commands */
    const char *synopsis; /* what follows the name */
    const mc_cli_option_table *table;
    int (*run)(mc_cli_call *call); /* the exit status; NULL: a group, whose name begins those of its commands */
    const char *(*check)(mc_cli_call *call); /* what is wrong with options or arguments together; NULL: nothing */
    unsigned mask;                           /* which of the commands that share the table this one is */
    const char *argument;                    /* how help names an argument; NULL: the command takes none */
    const char *about;                       /* sentences */
    const char *statuses;                    /* "0 done\n1 an error"; NULL only of a group */
    const char *drop_in;                     /* how the command differs under MapCache's name of it; NULL: has none */
    const char *page;                        /* in docs */
    const char *examples;                    /* pairs of lines, "mapcache seed ...\nwhat it does\n"; or NULL */
    const char *topic;                       /* in lists, the heading of this command and of those behind it; or NULL */
    const char *also;                        /* manual pages besides mapcache(1): "mapcache.xml(5) mapcache-jobs(1)" */
} mc_cli_command;

/* The options of a command, those that all commands have the last: of const mc_cli_option *, without headings. */
const apr_array_header_t *mc_cli_options_of(const mc_cli_command *command, bool drop_in, apr_pool_t *pool);

/* The heading that an option of this command stands under; "Options" where the table has none. */
const char *mc_cli_heading_of(const mc_cli_command *command, const mc_cli_option *option);

/* The letter of an option under one of the two names of its command; 0: none. */
int mc_cli_letter_of(const mc_cli_option *option, bool drop_in);

/* Reads argv into call->options and call->arguments. NULL, or what is wrong. *help: --help was met, the rest is not
 * read. Options and arguments stand in any order; behind "--" all are arguments. */
const char *mc_cli_options_parse(bool *help, mc_cli_call *call, int argc, const char *const *argv);

#endif
