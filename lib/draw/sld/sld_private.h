/* Shared by the files that read SLD and SE documents. */
#ifndef MC_DRAW_SLD_SLD_PRIVATE_H
#define MC_DRAW_SLD_SLD_PRIVATE_H

#include <stddef.h>

#include "draw/style/expression.h"

typedef struct mc_sld {
    mc_build *build;
    apr_array_header_t *attributes; /* of const char *: named so far by filters and values */
    bool failed;                    /* something was refused */
    int labels;                     /* text symbolizers so far */
    bool ids;                       /* a filter or value looks at the numbers of features */
    const char *folder;             /* of the file: names of graphics are relative to the folder */
    bool undrawn;                   /* a graphic of the symbolizer cannot be drawn */
    int patterns;                   /* how deep patterns are nested at this point */
    double margin[4];               /* of the symbolizer's patterns: top, right, bottom, left */
    double cell_x, cell_y;          /* and their distances; 0: not given */
} mc_sld;

/* The name of an element without its prefix. */
const char *mc_sld_name(const mc_node *node);
bool mc_sld_is(const mc_node *node, const char *name);
const mc_node *mc_sld_child(const mc_node *node, const char *name); /* first of that local name, or NULL */

/* Text without the blanks around it. */
const char *mc_sld_text(const mc_node *node, apr_pool_t *pool);

typedef int mc_sld_compare(const char *a, const char *b); /* strcmp, strcasecmp */

/* The row of a table whose rows begin with a name (const char *), or NULL. */
const void *mc_sld_find_row(const void *rows, size_t count, size_t row_size, const char *name, mc_sld_compare *compare);
#define MC_SLD_FIND(rows, name, compare)                                                                               \
    mc_sld_find_row(rows, sizeof(rows) / sizeof((rows)[0]), sizeof((rows)[0]), name, compare)

/* The place of a text in a list that ends with NULL; -1: it is not there. */
int mc_sld_choice(const char *text, const char *const *choices, mc_sld_compare *compare);

/* Complains that the element `node` is left out of the picture. */
void mc_sld_lacking(mc_sld *sld, const mc_node *node, const char *what);

/* The value of an element that holds text, an expression, or both in turn; NULL where the element is empty. */
const mc_expression *mc_sld_value(mc_sld *sld, const mc_node *node);

/* Text that is the same for all features, as it stands or as a literal; "" after a complaint. */
const char *mc_sld_plain(mc_sld *sld, const mc_node *node);

/* The expression that an element itself is (Literal, PropertyName, Add, Function, ...); NULL after a complaint. */
const mc_expression *mc_sld_expression(mc_sld *sld, const mc_node *node, int depth);

/* Whether an element is a function of SE (Categorize, FormatNumber, ...); and the call of the function, NULL after a
 * complaint. read_value: reads the arguments. */
typedef const mc_expression *mc_sld_value_reader(mc_sld *sld, const mc_node *node, int depth);
bool mc_sld_is_function(const mc_node *node);
const mc_expression *mc_sld_function(mc_sld *sld, const mc_node *node, int depth, mc_sld_value_reader *read_value);

/* Whether a call has the number of arguments that its function needs; false after a complaint. */
bool mc_sld_fit_arguments(mc_expression *made, mc_sld *sld, const mc_node *node);

/* A constant, and the value of the attribute of that name. */
const mc_expression *mc_sld_literal(const char *text, apr_pool_t *pool);
const mc_expression *mc_sld_property(mc_sld *sld, const char *name);

/* The condition inside of a <Filter>. */
const mc_filter *mc_sld_filter(mc_sld *sld, const mc_node *filter);

/* A number that is the same for all features goes to *constant, any other to *value. */
void mc_sld_number(double *constant, const mc_expression **value, mc_sld *sld, const mc_node *node);

/* <Fill> and <Stroke>. */
void mc_sld_fill(mc_paint *paint, mc_sld *sld, const mc_node *node);
void mc_sld_stroke(mc_stroke *stroke, mc_sld *sld, const mc_node *node);

/* The unit of a symbolizer's sizes. */
mc_uom mc_sld_uom(mc_sld *sld, const mc_node *node);

/* Whether an element names an attribute: <PropertyName>, and <ValueReference> of Filter 2.0. */
bool mc_sld_is_property(const mc_node *node);

/* Whether an expression stands for the feature's geometry: a property of any name, or GeoServer's geometry(). */
bool mc_sld_is_geometry(const mc_node *node);

/* The name of a <CssParameter> or <SvgParameter>; NULL for any other element. */
const char *mc_sld_parameter(const mc_node *node);

/* Reads a <TextSymbolizer>; false where the symbolizer has no label. */
bool mc_sld_text_symbol(mc_text_symbol *symbol, mc_sld *sld, const mc_node *node);

/* <Graphic>, and <Displacement>. False, after complaints, where no mark and no file of the graphic can be drawn. */
bool mc_sld_graphic(mc_graphic *graphic, mc_sld *sld, const mc_node *node);
void mc_sld_displacement(mc_pair *pair, mc_sld *sld, const mc_node *node);

/*
 * The picture that an <OnlineResource> names: a path as seen from the style's folder, with parameters of an SVG behind
 * a question mark, with ${attribute} in the path. NULL, and the reason in *why, where the picture cannot be drawn.
 */
mc_picture *mc_sld_picture_of_file(mc_sld *sld, const char *href, const char **why);

/* The same of a file that is drawn as a mark: all of it in the colour of `paint`. */
mc_picture *mc_sld_picture_of_mark(mc_sld *sld, const char *href, const mc_paint *paint, const char **why);

/* Text with the constants of GeoServer's language in it, ${'text'} and ${12}, as what they say. */
const char *mc_sld_fill_constants(const char *text, apr_pool_t *pool);

/* The picture that stands in an <InlineContent>. */
mc_picture *mc_sld_picture_of_content(mc_sld *sld, const mc_node *node, const char **why);

/* Margins as in CSS: top, right, bottom, left; a missing number is that of the opposite side. False for any other
 * text. */
bool mc_sld_margin(double margin[4], const char *text);

/* <BBOX>, <Within> and the other spatial conditions. False, without a complaint, for any other element, and for a
 * condition that cannot be evaluated. */
struct mc_spatial;
bool mc_sld_spatial(struct mc_spatial *made, mc_sld *sld, const mc_node *node);

/* Reads a symbolizer of one kind; false where nothing of the symbolizer can be drawn. */
bool mc_sld_symbolizer(mc_symbolizer *symbolizer, mc_sld *sld, const mc_node *node, mc_symbolizer_kind kind);

#endif
