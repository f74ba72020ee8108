/* Tables of what the parents in a style know: child elements, parameters, options. One row for each, with its reader.
 */
#ifndef MC_DRAW_SLD_SLD_ELEMENTS_H
#define MC_DRAW_SLD_SLD_ELEMENTS_H

#include <stddef.h>

#include "draw/sld/sld_private.h"

/* Reads a child into a member of what its parent is read into. */
typedef void mc_sld_reader(void *member, mc_sld *sld, const mc_node *node);

/* Whether an option moves paint beyond the geometry, so that mc_painter_margin counts the option. */
typedef enum mc_sld_reach { MC_REACH_UNDECLARED, MC_REACH_INSIDE, MC_REACH_BEYOND } mc_sld_reach;

/* Whether the symbol in a legend looks different with the option. */
typedef enum mc_sld_legend { MC_LEGEND_UNDECLARED, MC_LEGEND_SHOWS, MC_LEGEND_HIDES } mc_sld_legend;

typedef struct mc_sld_element {
    const char *name;    /* of an element, or the attribute `name` of a parameter or an option */
    mc_sld_reader *read; /* NULL: the child is known, and nothing is read in its turn */
    size_t offset;       /* of the member that the reader fills */
    mc_sld_reach reach;
    mc_sld_legend legend;
} mc_sld_element;

/* Rows of a table, and its end. SILENT: known, not read in its turn. OPTION: of a symbolizer, with the effects of the
 * option (INSIDE or BEYOND, SHOWS or HIDES). */
#define MC_SLD_SILENT(name)                                                                                            \
    {                                                                                                                  \
        name, NULL, 0, MC_REACH_UNDECLARED, MC_LEGEND_UNDECLARED,                                                      \
    }
#define MC_SLD_ELEMENT(name, read, offset)                                                                             \
    {                                                                                                                  \
        name, read, offset, MC_REACH_UNDECLARED, MC_LEGEND_UNDECLARED,                                                 \
    }
#define MC_SLD_OPTION(name, read, offset, reach, legend)                                                               \
    {                                                                                                                  \
        name, read, offset, MC_REACH_##reach, MC_LEGEND_##legend,                                                      \
    }
#define MC_SLD_END                                                                                                     \
    {                                                                                                                  \
        NULL, NULL, 0, MC_REACH_UNDECLARED, MC_LEGEND_UNDECLARED,                                                      \
    }

/* Reads the children of a node in their order. Complains about each child that no row names: "<child>", and " of
 * `parent`" where there is a parent's name. */
void mc_sld_read_elements(void *into, mc_sld *sld, const mc_node *node, const mc_sld_element *rows, const char *parent);

/* The same in two steps. The complaints, false where there are any; and the reading without complaints. */
bool mc_sld_check_elements(mc_sld *sld, const mc_node *node, const mc_sld_element *rows, const char *parent);
void mc_sld_read_known(void *into, mc_sld *sld, const mc_node *node, const mc_sld_element *rows);

/* Reads a node by its attribute `name`. False, without a complaint, where no row has that name. */
bool mc_sld_read_named(void *into, mc_sld *sld, const mc_node *node, const mc_sld_element *rows,
                       mc_sld_compare *compare);

/* Reads a <VendorOption>, with a complaint where no row has its name. */
void mc_sld_read_option(void *into, mc_sld *sld, const mc_node *node, const mc_sld_element *rows);

/* The complaint about an option; `of` stands behind its name. */
void mc_sld_report_option(mc_sld *sld, const mc_node *node, const char *of);

/* The place of a node's text in a list that ends with NULL; -1 after the complaint that the option is not known. */
int mc_sld_read_choice(mc_sld *sld, const mc_node *node, const char *const *choices);

/* Readers of several tables: a length that is the same for all features (double), and what a <Geometry> names: that of
 * the feature, whatever the property is called, or a part that a function makes of the geometry (mc_geometry_part);
 * "true" and "false", as XML Schema and as people write them (bool). */
mc_sld_reader mc_sld_read_length, mc_sld_read_part, mc_sld_read_flag;

/* The options of symbolizers and of all that is inside of them. */
extern const mc_sld_element mc_sld_polygon_elements[], mc_sld_line_elements[], mc_sld_point_elements[],
    mc_sld_symbolizer_options[], mc_sld_fill_elements[], mc_sld_fill_parameters[], mc_sld_stroke_elements[],
    mc_sld_stroke_parameters[], mc_sld_graphic_stroke_elements[], mc_sld_graphic_elements[], mc_sld_graphic_options[],
    mc_sld_label_elements[], mc_sld_label_options[], mc_sld_font_parameters[], mc_sld_placement_elements[],
    mc_sld_point_placement_elements[], mc_sld_line_placement_elements[], mc_sld_halo_elements[];

#endif
