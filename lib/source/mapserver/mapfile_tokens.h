/* The words of a map file of MapServer (its documentation, "Mapfile"), and what the keywords among them begin. */
#ifndef MC_SOURCE_MAPSERVER_MAPFILE_TOKENS_H
#define MC_SOURCE_MAPSERVER_MAPFILE_TOKENS_H

#include <apr_pools.h>
#include <stdbool.h>

/* One word, number, text in quotes, (expression), /pattern/ or {list}. */
typedef struct mc_mapfile_word {
    const char *text; /* without quotes */
    bool plain;       /* it has none: it may be a keyword */
    char form;        /* what it begins with: a quote, (, { or /; 0 where it is plain */
    bool any_case;    /* an i follows its end: "text"i, /pattern/i */
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

/* Whether a word is one of the list, which ends with NULL; capitals do not matter. */
bool mc_mapfile_lists(const char *const *list, const char *word);

/* Whether a keyword begins a block inside the block `parent` (in capitals; "": outside of all): SYMBOL and STYLE have
 * values elsewhere. */
bool mc_mapfile_begins_block(const char *word, const char *parent);

/* Whether the next word is the value of the keyword, whatever that word is. */
bool mc_mapfile_has_value(const char *word);

/* Whether a block is made of names and values. */
bool mc_mapfile_has_pairs(const char *block);

#endif
