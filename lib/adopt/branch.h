/*
 * What a configuration of another server says, as a tree: maps, lists and texts, each with its file and line. Whoever
 * reads a value marks it; what is not marked in the end was not taken over.
 */
#ifndef MC_ADOPT_BRANCH_H
#define MC_ADOPT_BRANCH_H

#include "mapcache/error.h"

enum {
    MC_BRANCH_DEPTH = 64,              /* how deeply values may nest */
    MC_BRANCHES_MAX = 100000,          /* values of a file, those that aliases repeat counted each time */
    MC_ADOPT_BYTES_MAX = 16 << 20,     /* of a file */
    MC_ADOPT_ALL_BYTES_MAX = 64 << 20, /* of all files of a command */
};

typedef enum mc_branch_kind { MC_BRANCH_TEXT, MC_BRANCH_MAP, MC_BRANCH_LIST } mc_branch_kind;

typedef struct mc_branch {
    mc_branch_kind kind;
    const char *file;
    int line;
    const char *key;  /* in a map; NULL in a list */
    const char *text; /* of a text; NULL: it is said to be nothing (null of YAML) */
    bool taken;       /* somebody has read it */
    char form;        /* of a text in a map file: mc_mapfile_word's */
    bool any_case;    /* the same */
    struct mc_branch *children, *last, *next;
} mc_branch;

mc_branch *mc_branch_create(mc_branch_kind kind, const char *file, int line, apr_pool_t *pool);

/* Puts a child at the end of a map or a list. */
void mc_branch_add(mc_branch *parent, mc_branch *child);

/* The value of a map (the last one of that name), marked as read; NULL: there is none, or `map` is NULL or no map. */
mc_branch *mc_branch_get(mc_branch *map, const char *key);

/* The same through several maps: "cache.base_dir". */
mc_branch *mc_branch_find(mc_branch *map, const char *path);

/* The text at a path; `otherwise` where there is none. */
const char *mc_branch_text(mc_branch *map, const char *path, const char *otherwise);

/* The item of a list, from 0; a text is a list of one. Marked as read; NULL: there are fewer. */
mc_branch *mc_branch_item(mc_branch *list, int number);

/* How many items mc_branch_item has: none of a map. */
int mc_branch_count(const mc_branch *list);

/* Whether a text is one of YAML's words for true. */
bool mc_branch_is_true(mc_branch *map, const char *path, bool otherwise);

/* The texts of a list, or of one text, joined. Empty where there is none. */
const char *mc_branch_join(mc_branch *list, const char *separator, apr_pool_t *pool);

/* Numbers of a list, or of one text with commas or blanks: how many of at most `most` there are; 0 where one is none.
 */
int mc_branch_numbers(double *numbers, int most, mc_branch *list);

/* Marks a value with all that is in it: it is of no use here, and nothing is lost. */
void mc_branch_pass(mc_branch *branch);

/* A deep copy: `*room` is how many more branches there may be. NULL: there were more. */
mc_branch *mc_branch_copy(const mc_branch *branch, int *room, apr_pool_t *pool);

#endif
