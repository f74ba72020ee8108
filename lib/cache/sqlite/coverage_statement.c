/*
 * Which get statements tell what a file has. A wrong guess would make tiles vanish, so a statement is taken apart word
 * by word, and anything that is not expected ends it.
 */
#include <apr_strings.h>
#include <ctype.h>
#include <string.h>

#include "cache/sqlite/coverage.h"

/* A word, a text in quotes or a single character, as it stands. */
typedef struct coverage_statement_token {
    const char *text;
    size_t size;
} coverage_statement_token;

typedef struct scan {
    const char *at;
    coverage_statement_token token; /* size 0 at the end */
} scan;

static const char word_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

static void
advance_sql_token(scan *scan)
{
    scan->at += strspn(scan->at, " \t\r\n");
    const char *begin = scan->at;
    size_t size = strspn(begin, word_bytes);
    if (size == 0 && *begin == '\'') {
        const char *end = strchr(begin + 1, '\'');
        size = end == NULL ? 1 : (size_t)(end - begin) + 1;
    } else if (size == 0 && *begin != '\0') {
        size = 1;
    }
    scan->at = begin + size;
    scan->token = (coverage_statement_token){ begin, size };
}

static bool
is_sql_token(const scan *scan, const char *word)
{
    return strlen(word) == scan->token.size && strncasecmp(scan->token.text, word, scan->token.size) == 0;
}

static bool
accept_sql_word(scan *scan, const char *word)
{
    if (!is_sql_token(scan, word))
        return false;
    advance_sql_token(scan);
    return true;
}

/* Each of `words`, NULL at the end, in turn. */
static bool
take_all(scan *scan, const char *const *words)
{
    for (; *words != NULL; words++)
        if (!accept_sql_word(scan, *words))
            return false;
    return true;
}

/* "SELECT data [, ctime | , strftime('%s', ctime)] FROM tiles [NOT INDEXED] WHERE": what gives a row for each tile, and
 * none without one. A count or a maximum would always give one. */
static bool
take_head(scan *scan, mc_plain_get *get)
{
    static const char *const time[] = { "(", "'%s'", ",", "ctime", ")", NULL };
    static const char *const unindexed[] = { "NOT", "INDEXED", NULL };
    static const char *const select[] = { "SELECT", "data", NULL };
    static const char *const from[] = { "FROM", "tiles", NULL };
    if (!take_all(scan, select))
        return false;
    get->timed = accept_sql_word(scan, ",");
    get->raw_time = get->timed && accept_sql_word(scan, "ctime");
    if (get->timed && !get->raw_time && !(accept_sql_word(scan, "strftime") && take_all(scan, time)))
        return false;
    if (!take_all(scan, from))
        return false;
    get->unindexed = is_sql_token(scan, "NOT");
    if (get->unindexed && !take_all(scan, unindexed))
        return false;
    return accept_sql_word(scan, "WHERE");
}

const char *const mc_tile_columns[MC_TILE_COLUMNS] = { "z", "x", "y", "tileset", "grid", "dim" };
enum { NEEDED = 7 /* z, x and y */ };

/* "column = :column"; -1 for anything else. The parameter's name is bound as it stands, so that its case counts, and a
 * blank behind the colon is no parameter. */
static int
take_equation(scan *scan)
{
    for (int i = 0; i < MC_TILE_COLUMNS; i++) {
        if (!accept_sql_word(scan, mc_tile_columns[i]))
            continue;
        if (!accept_sql_word(scan, "=") || !is_sql_token(scan, ":") ||
            strncmp(scan->at, mc_tile_columns[i], strlen(mc_tile_columns[i])) != 0)
            return -1;
        advance_sql_token(scan);
        return accept_sql_word(scan, mc_tile_columns[i]) ? i : -1;
    }
    return -1;
}

bool
mc_plain_get_read(mc_plain_get *get, const char *statement)
{
    scan scan = { .at = statement };
    *get = (mc_plain_get){ 0 };
    advance_sql_token(&scan);
    if (!take_head(&scan, get))
        return false;
    do {
        int column = take_equation(&scan);
        if (column < 0 || (get->columns >> column & 1) != 0)
            return false;
        get->columns |= 1U << column;
    } while (accept_sql_word(&scan, "AND"));
    (void)accept_sql_word(&scan, ";");
    return scan.token.size == 0 && (get->columns & NEEDED) == NEEDED;
}

const char *
mc_coverage_statement(const char *get, apr_pool_t *pool)
{
    mc_plain_get plain;
    if (!mc_plain_get_read(&plain, get))
        return NULL;
    const char *where = "";
    for (int i = 0; i < MC_TILE_COLUMNS; i++)
        if ((plain.columns & ~(unsigned)NEEDED & 1U << i) != 0)
            where = apr_pstrcat(pool, where, *where == '\0' ? " WHERE " : " AND ", mc_tile_columns[i],
                                "=:", mc_tile_columns[i], NULL);
    return apr_psprintf(pool, "SELECT z, x, y FROM tiles%s LIMIT %d", where, MC_COVERAGE_TILES + 1);
}
