/* Tables of the functions of styles, and readers of arguments. */
#ifndef MC_DRAW_STYLE_FUNCTIONS_H
#define MC_DRAW_STYLE_FUNCTIONS_H

#include <math.h>

#include "draw/style/expression.h"

typedef const mc_expression *const *mc_arguments;

/* The functions of each file; a list ends without a name. */
#define MC_FUNCTIONS_END                                                                                               \
    {                                                                                                                  \
        NULL, 0, 0, NULL, false                                                                                        \
    }
extern const mc_function mc_functions_of_text[], mc_functions_of_numbers[], mc_functions_of_dates[],
    mc_functions_of_conditions[], mc_functions_of_geometry[], mc_functions_of_colors[];

static inline const char *
mc_argument_text(mc_arguments args, int i, const mc_feature *feature, apr_pool_t *pool)
{
    return mc_expression_text(args[i], feature, pool);
}

static inline double
mc_argument_number(mc_arguments args, int i, const mc_feature *feature, apr_pool_t *pool)
{
    return mc_expression_number(args[i], feature, NAN, pool);
}

#endif
