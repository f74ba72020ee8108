#include "unit.h"

#include <apr_strings.h>
#include <string.h>

#include "mapcache/service.h"
#include "server/reference.h"
#include "server/server_private.h"

static int
count(const char *text, const char *what)
{
    int times = 0;
    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what))
        times++;
    return times;
}

START_TEST(every_table_of_the_build_is_in_it_once)
{
    const char *text = mc_reference_markdown(pool);
    for (const mc_key *key = mc_root_keys; key->name != NULL; key++)
        if (*key->name != '@')
            ck_assert_msg(strstr(text, apr_psprintf(pool, "| `<%s>` |", key->name)) != NULL, "%s", key->name);
    for (int i = 0; mc_source_kinds[i] != NULL; i++)
        ck_assert_int_eq(count(text, apr_psprintf(pool, "### `<source type=\"%s\">`", mc_source_kinds[i]->type)), 1);
    for (int i = 0; mc_cache_kinds[i] != NULL; i++)
        ck_assert_int_eq(count(text, apr_psprintf(pool, "### `<cache type=\"%s\">`", mc_cache_kinds[i]->type)), 1);
    for (int i = 0; mc_service_kinds[i] != NULL; i++)
        ck_assert_int_eq(count(text, apr_psprintf(pool, "### `<service type=\"%s\">`", mc_service_kinds[i]->type)), 1);
    ck_assert_int_eq(count(text, "#### `connection_pool`"), 1);
    ck_assert_int_eq(count(text, "#### `tileset/grid`"), 1);
    ck_assert_int_eq(count(text, "locker/locker/locker"), 0);
}
END_TEST

START_TEST(rows_have_four_cells_and_no_markup_of_their_own)
{
    char *state;
    char *text = apr_pstrdup(pool, mc_reference_markdown(pool));
    for (char *line = apr_strtok(text, "\n", &state); line != NULL; line = apr_strtok(NULL, "\n", &state)) {
        if (*line != '|')
            continue;
        int bars = 0;
        for (const char *c = line; *c != '\0'; c++)
            bars += *c == '|' && (c == line || c[-1] != '\\');
        ck_assert_msg(bars == 5, "%s", line);
    }
}
END_TEST

START_TEST(what_is_ours_is_marked)
{
    const char *text = mc_reference_markdown(pool);
    const char *row = strstr(text, "| `<memory_cache>`");
    ck_assert_ptr_nonnull(row);
    const char *mark = strstr(row, "*Not in MapCache.*");
    ck_assert(mark != NULL && mark < strchr(row, '\n'));
    row = strstr(text, "| `<srsalias>`");
    mark = strstr(row, "*Not in MapCache.*");
    ck_assert(mark == NULL || mark > strchr(row, '\n'));
}
END_TEST

UNIT_MAIN("reference", every_table_of_the_build_is_in_it_once, rows_have_four_cells_and_no_markup_of_their_own,
          what_is_ours_is_marked)
