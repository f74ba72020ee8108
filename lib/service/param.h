/*
 * Parameters of requests: one table for each operation. The table reads a request, words the refusals and writes
 * docs/parameters.md (`mapcache parameters`): parameters of a query, elements of a path, or fields of a JSON body. Rows
 * are read in their order; a step checks what the rows above it have
 * read. Dimensions (TIME, ELEVATION, DIM_*) come from the configuration and stand in no table.
 */
#ifndef MC_SERVICE_PARAM_H
#define MC_SERVICE_PARAM_H

#include "mapcache/service.h"

typedef enum mc_param_type {
    MC_PARAM_END_OF_TABLE,
    MC_PARAM_IS_STEP,
    MC_PARAM_IS_TEXT,     /* const char *; with `max`: 1 to so many bytes */
    MC_PARAM_IS_LIST,     /* const char *: items with commas between them */
    MC_PARAM_IS_CRS,      /* const char * */
    MC_PARAM_IS_INTEGER,  /* int */
    MC_PARAM_IS_ID,       /* int64_t */
    MC_PARAM_IS_NUMBER,   /* double, above min, or from min on (MC_PARAM_FROM_MIN) */
    MC_PARAM_IS_BOX,      /* mc_extent, as the request orders its axes */
    MC_PARAM_IS_COLOUR,   /* mc_param_colour: 0xRRGGBB */
    MC_PARAM_IS_CHOICE,   /* int: the index in `choices`, -1 where the request does not say */
    MC_PARAM_IS_BOOLEAN,  /* int: 0, 1, -1 where the request does not say */
    MC_PARAM_IS_LETTERED, /* int behind the letter in `choices` */
    MC_PARAM_IS_FILE,     /* mc_param_file: number.extension */
    MC_PARAM_IS_OBJECT,   /* apr_table_t *: the members of an object in a body, texts of at most `max` bytes */
    MC_PARAM_IS_REFUSED   /* nothing: whoever sends the parameter is refused */
} mc_param_type;

typedef struct mc_param_colour {
    bool given;
    uint8_t rgb[3];
} mc_param_colour;

typedef struct mc_param_file {
    int number;
    const char *extension; /* NULL: none */
    int density;           /* of number@2x.extension, where the row allows it; 1: not given */
} mc_param_file;

enum {
    MC_PARAM_REQUIRED = 1,
    MC_PARAM_STRICT = 2,     /* required where the service is strict */
    MC_PARAM_EMPTY = 4,      /* an empty value counts as absent */
    MC_PARAM_LENIENT = 8,    /* a value that cannot be used counts as absent */
    MC_PARAM_ANY_CASE = 16,  /* choices are compared without case */
    MC_PARAM_LAX_OTHER = 32, /* the other name is not read where the service is strict */
    MC_PARAM_EXTENSION = 64, /* a file without an extension is refused */
    MC_PARAM_FROM_MIN = 128, /* the minimum of a number is one of the values */
    MC_PARAM_DENSITY = 256   /* a file may be number@2x.extension */
};

#define MC_PARAM_MEMBERS_MAX 64 /* of an object in a body */

typedef struct mc_param_reader mc_param_reader;

/* One row, written with the makers below. Templates may hold {name}, {value}, {min}, {max}, {path}. */
typedef struct mc_param_row {
    const char *name;  /* as refusals spell the name; requests may use any case */
    const char *other; /* a name that older clients use; or NULL */
    mc_param_type type;
    size_t offset; /* of the field in the struct that is read into */
    unsigned flags;
    double min, max;                            /* of numbers; of texts and members: max, in bytes */
    int (*most)(const mc_param_reader *reader); /* the greatest integer where the configuration or request decides */
    const char *choices;                        /* "a|b|c" */
    const char *fallback;                       /* what an absent parameter is read as; NULL: the field stays */
    bool (*applies)(const mc_param_reader *reader); /* NULL: always */
    mc_error *(*step)(mc_param_reader *reader);
    const char *locator;        /* the parameter as an exception report names it; NULL: none */
    mc_error_kind kind;         /* of a refusal; 0: MC_ERR_INVALID_PARAMETER */
    mc_error_kind missing_kind; /* where a required one is absent; 0: MC_ERR_MISSING_PARAMETER */
    const char *refusal;        /* template; NULL: by the type */
    const char *missing;        /* template; NULL: "the parameter {name} is missing" */
    const char *over;           /* template where an integer is above `most`; NULL: as any refusal */
    const char *limit;          /* for the reference: what `most` is */
    const char *help;           /* one sentence */
} mc_param_row;

/* Makers: the name, the field's offset, what the type needs, the help; then what is special, by the member's name. */
#define MC_PARAM_ROW(type_, name_, offset_, ...)                                                                       \
    {                                                                                                                  \
        .name = name_, .type = type_, .offset = offset_, .help = __VA_ARGS__                                           \
    }
#define MC_PARAM_TEXT(name_, offset_, ...) MC_PARAM_ROW(MC_PARAM_IS_TEXT, name_, offset_, __VA_ARGS__)
#define MC_PARAM_LIST(name_, offset_, ...) MC_PARAM_ROW(MC_PARAM_IS_LIST, name_, offset_, __VA_ARGS__)
#define MC_PARAM_CRS(name_, offset_, ...) MC_PARAM_ROW(MC_PARAM_IS_CRS, name_, offset_, __VA_ARGS__)
#define MC_PARAM_INTEGER(name_, offset_, ...) MC_PARAM_ROW(MC_PARAM_IS_INTEGER, name_, offset_, __VA_ARGS__)
#define MC_PARAM_ID(name_, offset_, ...) MC_PARAM_ROW(MC_PARAM_IS_ID, name_, offset_, __VA_ARGS__)
#define MC_PARAM_NUMBER(name_, offset_, ...) MC_PARAM_ROW(MC_PARAM_IS_NUMBER, name_, offset_, __VA_ARGS__)
#define MC_PARAM_BOX(name_, offset_, ...) MC_PARAM_ROW(MC_PARAM_IS_BOX, name_, offset_, __VA_ARGS__)
#define MC_PARAM_COLOUR(name_, offset_, ...) MC_PARAM_ROW(MC_PARAM_IS_COLOUR, name_, offset_, __VA_ARGS__)
#define MC_PARAM_BOOLEAN(name_, offset_, ...) MC_PARAM_ROW(MC_PARAM_IS_BOOLEAN, name_, offset_, __VA_ARGS__)
#define MC_PARAM_FILE(name_, offset_, ...) MC_PARAM_ROW(MC_PARAM_IS_FILE, name_, offset_, __VA_ARGS__)
#define MC_PARAM_CHOICE(name_, offset_, choices_, ...)                                                                 \
    MC_PARAM_ROW(MC_PARAM_IS_CHOICE, name_, offset_, __VA_ARGS__, .choices = choices_)
#define MC_PARAM_LETTERED(name_, offset_, letter_, ...)                                                                \
    MC_PARAM_ROW(MC_PARAM_IS_LETTERED, name_, offset_, __VA_ARGS__, .choices = letter_)
#define MC_PARAM_OBJECT(name_, offset_, ...) MC_PARAM_ROW(MC_PARAM_IS_OBJECT, name_, offset_, __VA_ARGS__)
#define MC_PARAM_REFUSED(name_, ...) MC_PARAM_ROW(MC_PARAM_IS_REFUSED, name_, 0, __VA_ARGS__)
#define MC_PARAM_STEP(step_)                                                                                           \
    {                                                                                                                  \
        .type = MC_PARAM_IS_STEP, .step = step_                                                                        \
    }
#define MC_PARAM_END                                                                                                   \
    {                                                                                                                  \
        .type = MC_PARAM_END_OF_TABLE                                                                                  \
    }

/* A request of the configuration that docs/urls.md shows, and its answer: tests/integration/test_urls.py asks all. */
typedef struct mc_url_example {
    const char *url;  /* below the alias, "POST " before it where it is no GET; NULL ends the list */
    int status;       /* of the answer */
    const char *mime; /* of the answer; NULL: there is no body */
    const char *help; /* what is shown */
    const char *body; /* of a POST, or NULL */
} mc_url_example;

#define MC_URL_EXAMPLES_MAX 12 /* of an operation, with the end of the list */

/* One operation of a protocol, for the references. Several tables may make up an operation. */
typedef struct mc_operation {
    const char *name;    /* "GetMap"; NULL ends the list */
    const char *address; /* how a request is written */
    const mc_param_row *rows[5];
    mc_url_example examples[MC_URL_EXAMPLES_MAX];
} mc_operation;

/* The reading of one request. */
struct mc_param_reader {
    void *target;                   /* the struct that is read into */
    const mc_call *call;            /* NULL: a body is read */
    const apr_array_header_t *path; /* elements of a path, of const char *; NULL: no path is read */
    const apr_table_t *fields;      /* of a body; NULL: no body is read */
    int next;                       /* the element that is read next */
    const mc_param_row *row;        /* that was read last */
    const char *text;               /* the value of that row as the client wrote it; NULL: absent */
    apr_pool_t *pool;
};

/* Reads the query of `call` by a table into the struct `target`. */
mc_error *mc_params_read(void *target, const mc_param_row *rows, const mc_call *call, apr_pool_t *pool) MC_CHECKED;

/* Reads elements of a path, one for each row, from *next on. */
mc_error *mc_params_read_path(void *target, const mc_param_row *rows, const mc_call *call,
                              const apr_array_header_t *path, int *next, apr_pool_t *pool) MC_CHECKED;

/* Reads the fields of a JSON body (mc_json_fields). MC_ERR_BAD_REQUEST where a field is in no row: names are compared
 * letter by letter. */
mc_error *mc_params_read_fields(void *target, const mc_param_row *rows, const apr_table_t *fields,
                                apr_pool_t *pool) MC_CHECKED;

/* The refusal of the value that was read last: for steps that find more wrong than the type says. */
mc_error *mc_param_refuse(const mc_param_reader *reader) MC_CHECKED;

/* What GetCapabilities of WMS and WMTS reads. */
typedef struct mc_capabilities_params {
    const char *version; /* WMTS: a list */
    const char *update_sequence;
    int tiled;            /* WMS: the TileSet elements are wanted; -1: not said */
    const char *sequence; /* of the answer; NULL: not known */
    bool is_current;      /* the client has the capabilities that the answer would be */
} mc_capabilities_params;

#define MC_PARAM_UPDATE_SEQUENCE                                                                                       \
    MC_PARAM_TEXT("UPDATESEQUENCE", offsetof(mc_capabilities_params, update_sequence),                                 \
                  "The age of the capabilities that the client has: `updateSequence` of an earlier answer.",           \
                  .flags = MC_PARAM_EMPTY)

/* After the parameters: compares with the age of what the answer would be (WMS 1.3.0 table 7, OWS 1.1.0 7.3.4).
 * MC_ERR_INVALID_UPDATE_SEQUENCE where the client's is a later one, or no such text. */
mc_error *mc_update_sequence_check(mc_capabilities_params *params, const mc_call *call, mc_ctx *ctx,
                                   apr_pool_t *pool) MC_CHECKED;

/* The greatest value of an integer row in this request. */
int mc_param_most(const mc_param_reader *reader);

/* Reads one value by the type of the row into the target. False where the value cannot be used; *template_text is the
 * refusal by the type then. */
bool mc_param_parse(const char **template_text, const mc_param_reader *reader);

#endif
