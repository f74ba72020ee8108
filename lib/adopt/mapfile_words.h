/* The words of a map file of MapServer, and the blocks that they make. */
#ifndef MC_ADOPT_MAPFILE_WORDS_H
#define MC_ADOPT_MAPFILE_WORDS_H

#include "adopt/branch.h"

/* One word, number, text in quotes, (expression), /pattern/ or {list}. */
typedef struct mc_mapfile_word {
    const char *text; /* without quotes */
    bool plain;       /* it has none: it may be a keyword */
    int line;
} mc_mapfile_word;

typedef struct mc_mapfile_words {
    const char *at; /* where the next one begins; the text ends with a zero byte */
    int line;
    apr_pool_t *pool;
} mc_mapfile_words;

/* The next word. False at the end; comments (# to the end of the line, and those of C) are passed over. A text whose
 * quote is not closed ends with the file. */
bool mc_mapfile_next(mc_mapfile_word *word, mc_mapfile_words *words);

/*
 * The blocks of a map file as branches: a block is a map whose key is its keyword in capitals; a keyword with a value
 * is a text; the pairs of METADATA are texts by their name in lower case, PROJECTION is a list. Keywords that are of no
 * use to a reader who serves layers are left out. INCLUDE is a text.
 *
 * MC_ERR_CONFIG with "FILE:LINE: ...": it does not begin with MAP (`whole`) or LAYER, blocks nest more deeply than
 * MC_BRANCH_DEPTH or do not end, there are too many values.
 */
mc_error *mc_mapfile_parse(mc_branch **root, const char *file, const char *text, apr_pool_t *pool) MC_CHECKED;

#endif
