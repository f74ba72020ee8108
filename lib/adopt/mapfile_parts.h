/*
 * From a layer of a map file to a layer of ours: its data as elements of a source, its classes as an SLD document. What
 * cannot be drawn as MapServer draws it makes the whole layer one that MapServer's library draws.
 */
#ifndef MC_ADOPT_MAPFILE_PARTS_H
#define MC_ADOPT_MAPFILE_PARTS_H

#include <apr_hash.h>

#include "adopt/draft.h"

/* A map file, and the layer of it that is being read. */
typedef struct mc_mapfile_reader {
    mc_adopt *adopt;
    apr_pool_t *pool;
    const char *path;     /* of the map file, absolute */
    const char *folder;   /* that INCLUDE and data are seen from */
    const char *shapes;   /* SHAPEPATH; NULL: none */
    const char *srs;      /* "EPSG:..." of the map; NULL: others, or none */
    apr_hash_t *symbols;  /* SYMBOL blocks by their names in lower case, of mc_branch * */
    apr_hash_t *fonts;    /* files of FONTSET by their names, of const char * */
    apr_hash_t *families; /* CssParameters of the fonts that were read, by the same names */
    double scale_unit;    /* SLD's scale denominator of a scale denominator here */
    mc_branch *layer;     /* that is being read */
    enum { MC_MAPFILE_POINT, MC_MAPFILE_LINE, MC_MAPFILE_POLYGON } type;
    const mc_branch *refused; /* why MapServer has to draw the layer; NULL: it has not */
    const char *refusal;
} mc_mapfile_reader;

/* Remembers why MapServer has to draw the layer, the first reason only. Always false. */
bool mc_mapfile_refuse(mc_mapfile_reader *reader, const mc_branch *at, const char *format, ...) MC_PRINTF(3, 4);

/* Refuses the first value of a block that nobody has read. True where there is none. */
bool mc_mapfile_is_read(mc_mapfile_reader *reader, const mc_branch *block);

/* Marks values of a block that change no picture; the list ends with NULL. */
void mc_mapfile_pass(mc_branch *block, const char *const *keys);

/* A number of a block; `otherwise` where there is none. False where it is no number, which refuses the layer. */
bool mc_mapfile_number(double *number, mc_mapfile_reader *reader, mc_branch *block, const char *key, double otherwise);

/* Puts a formatted text at the end of an array of const char *. */
void mc_mapfile_put(apr_array_header_t *out, const char *format, ...) MC_PRINTF(2, 3);

/* The shortest text of a number. */
const char *mc_mapfile_digits(double number, apr_pool_t *pool);

/*
 * Elements of the <layer> of a source of ours for the data of the layer, as text of several lines, and the kind of the
 * source. NULL: refused.
 */
const char *mc_mapfile_data(const char **kind, mc_mapfile_reader *reader);

/* The classes of the layer as an SLD document with one user style. NULL: refused. */
const char *mc_mapfile_style(mc_mapfile_reader *reader);

/* Puts the symbolizers of a STYLE block of lines and areas. `outline`: of a line's OUTLINEWIDTH, the line below; else
 * what lies above. */
bool mc_mapfile_symbolizers(apr_array_header_t *out, mc_mapfile_reader *reader, mc_branch *style, bool outline);

/* Whether a STYLE block of a line has an OUTLINEWIDTH: a line below it. */
bool mc_mapfile_has_outline(mc_branch *style);

/* A colour "r g b" or "#rrggbb[aa]" of a block as "#rrggbb"; NULL: none. `*opacity` becomes its own where that
 * was 1. False: refused. */
bool mc_mapfile_color(const char **color, double *opacity, mc_mapfile_reader *reader, mc_branch *block,
                      const char *key);

/*
 * A length of a block: a number, no smaller and no larger than its MINWIDTH and MAXWIDTH (WIDTH) or MINSIZE and MAXSIZE
 * (others), or "[attribute]"; `otherwise` where there is none. Times `factor`, plus `plus`; as an expression of SLD.
 * False: refused.
 */
bool mc_mapfile_size(const char **size, mc_mapfile_reader *reader, mc_branch *style, const char *key, double otherwise,
                     double factor, double plus);

/* Puts the PointSymbolizer of a STYLE block at points. */
bool mc_mapfile_graphic(apr_array_header_t *out, mc_mapfile_reader *reader, mc_branch *style);

/* Puts the TextSymbolizer of a LABEL block. */
bool mc_mapfile_label(apr_array_header_t *out, mc_mapfile_reader *reader, mc_branch *class, mc_branch *label);

/* Symbols of a map file or of the file that SYMBOLSET names; fonts of the file that FONTSET names. */
void mc_mapfile_read_symbols(mc_mapfile_reader *reader, mc_branch *map);
void mc_mapfile_read_fonts(mc_mapfile_reader *reader, mc_branch *map);

/* CssParameters of the font of a name of FONTSET, NULL for the builtin one. NULL: refused. */
const char *mc_mapfile_font(mc_mapfile_reader *reader, const mc_branch *at, const char *name);

/* The condition of an EXPRESSION or FILTER as an element of a filter; `item` is the attribute that it is about, where
 * it does not say one. NULL: refused. */
const char *mc_mapfile_condition(mc_mapfile_reader *reader, const mc_branch *expression, const char *item);

/* A condition of the attribute by a regular expression. NULL: it has no other form. */
const char *mc_mapfile_pattern(const char *operand, const char *safe, const char *pattern, bool any_case,
                               apr_pool_t *pool);

/* A TEXT as an expression of SLD. NULL: refused. */
const char *mc_mapfile_text(mc_mapfile_reader *reader, const mc_branch *text);

/* The value of an attribute: `otherwise`, unless NULL, stands for one that is not there. */
const char *mc_mapfile_attribute(const char *name, const char *otherwise, apr_pool_t *pool);

#endif
