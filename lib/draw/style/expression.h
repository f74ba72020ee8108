/* The members of mc_expression and mc_filter (OGC 09-026r1, 7), for the readers of styles and the evaluation. */
#ifndef MC_DRAW_STYLE_EXPRESSION_H
#define MC_DRAW_STYLE_EXPRESSION_H

#include "draw/style/style.h"

typedef enum mc_expression_kind {
    MC_LITERAL,
    MC_PROPERTY,
    MC_ADD,
    MC_SUBTRACT,
    MC_MULTIPLY,
    MC_DIVIDE,
    MC_CONCATENATE, /* mixed content of labels, and the function of that name */
    MC_FUNCTION,
} mc_expression_kind;

enum { MC_ARGUMENTS_MAX = 64, MC_EXPRESSION_DEPTH = 32 };

/* A function of styles; its arguments are counted before it is called. */
typedef struct mc_function {
    const char *name; /* in any case */
    int least, most;  /* arguments */
    const char *(*text)(const mc_expression *const *arguments, int count, const mc_feature *feature, apr_pool_t *pool);
    bool of_geometry; /* the argument is the geometry of the feature, by any name */
} mc_function;

const mc_function *mc_function_find(const char *name);

/* Whether the value of a function depends on its arguments alone, so that constants are computed once. */
bool mc_function_is_of_colors(const mc_function *function);

/* Upper bound of a number, from the style alone: the largest value that functions choose from. `otherwise` where the
 * number comes from the data. */
double mc_expression_most(const mc_expression *expression, double otherwise);

/* The shortest text that reads back as the same number; NULL where the number is not finite. */
const char *mc_expression_format(double value, apr_pool_t *pool);

struct mc_expression {
    mc_expression_kind kind;
    const char *literal;
    double number; /* of the literal; NAN: the literal is no number */
    int property;  /* index in the style's attributes */
    const mc_function *function;
    const mc_expression *const *arguments;
    int argument_count;
};

typedef enum mc_filter_kind {
    MC_FILTER_EQUAL,
    MC_FILTER_NOT_EQUAL,
    MC_FILTER_LESS,
    MC_FILTER_LESS_OR_EQUAL,
    MC_FILTER_GREATER,
    MC_FILTER_GREATER_OR_EQUAL,
    MC_FILTER_BETWEEN, /* of three operands: value, lower, upper; both inclusive */
    MC_FILTER_LIKE,
    MC_FILTER_NULL,
    MC_FILTER_AND,
    MC_FILTER_OR,
    MC_FILTER_NOT,
    MC_FILTER_ID,
    MC_FILTER_SPATIAL, /* draw/style/spatial.h */
} mc_filter_kind;

struct mc_filter {
    mc_filter_kind kind;
    const mc_expression *operands[3];
    bool any_case;                   /* EQUAL, NOT_EQUAL, LIKE */
    char wildcard, single, escape;   /* LIKE: for any characters, for one, before a literal one */
    const mc_filter *const *members; /* AND, OR, NOT */
    int member_count;
    const int64_t *ids; /* ID */
    int id_count;
    const struct mc_spatial *spatial; /* SPATIAL */
};

/* Whether a text fits a pattern. Takes time in proportion to the product of the two lengths at most. */
bool mc_like(const char *text, const char *pattern, const mc_filter *how);

#endif
