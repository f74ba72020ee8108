/* See overviews_list.h. */
#include "overviews_list.h"

#include <apr_strings.h>
#include <inttypes.h>
#include <string.h>

#include "cli/common/json_line.h"
#include "cli/common/style.h"
#include "cli/common/words.h"

static void
print_found_json(const mc_cli_found_printer *printer, const mc_overview_found *found)
{
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_string(line.json, "tileset", printer->tileset);
    mc_json_string(line.json, found->kind, found->name);
    mc_json_string(line.json, "layer", found->layer);
    if (found->rows >= 0)
        mc_json_digits(line.json, "rows", found->rows, 7);
    mc_json_integer(line.json, "levels", found->levels);
    if (found->number > 0) {
        mc_json_digits(line.json, "resolution", found->resolution, 12);
        mc_json_digits(line.json, "until", found->until, 12);
    }
    if (found->coarsest >= 0) {
        mc_json_integer(line.json, "minzoom", found->coarsest);
        mc_json_integer(line.json, "maxzoom", found->finest);
    }
    if (found->features >= 0)
        mc_json_integer(line.json, "features", found->features);
    if (found->levels > 0)
        mc_json_integer(line.json, "size", found->bytes);
    if (found->built != NULL)
        mc_json_string(line.json, "built", found->built);
    if (found->changes >= 0)
        mc_json_integer(line.json, "changes", found->changes);
    mc_json_boolean(line.json, "used", found->fault == NULL);
    if (found->fault != NULL)
        mc_json_string(line.json, "reason", found->fault);
    mc_cli_json_line_end(&line);
}

/* "5", "0-4": the levels of the grid. */
static const char *
zoom_words(const mc_overview_found *found, apr_pool_t *pool)
{
    return found->coarsest < 0                ? "-"
           : found->coarsest == found->finest ? apr_itoa(pool, found->finest)
                                              : apr_psprintf(pool, "%d-%d", found->coarsest, found->finest);
}

static const char *
state_words(const mc_overview_found *found, apr_pool_t *pool)
{
    return found->fault != NULL  ? apr_pstrcat(pool, "not used: ", found->fault, NULL)
           : found->changes < 0  ? "used"
           : found->changes == 0 ? "used, up to date"
                                 : apr_psprintf(pool, "used, except for %s (run: mapcache overviews update)",
                                                mc_cli_count_words(found->changes, "changed place", pool));
}

static void
print_source_line(mc_cli_found_printer *printer, const mc_overview_found *found)
{
    if (printer->source != NULL && strcmp(printer->source, found->name) == 0 &&
        strcmp(printer->layer, found->layer) == 0)
        return;
    printer->source = apr_pstrdup(printer->pool, found->name);
    printer->layer = apr_pstrdup(printer->pool, found->layer);
    printf("%stileset %s, layer %s: %s %s%s\n", mc_cli_ink_of(stdout, MC_INK_HEADING), printer->tileset, found->layer,
           found->kind, found->name, mc_cli_ink_of(stdout, MC_INK_END));
    if (found->number > 0)
        printf("%12s %12s %8s %12s %10s  %-20s  %s\n", "resolution", "to below", "zoom", "features", "size", "built",
               "maps");
}

static void
print_found_line(mc_cli_found_printer *printer, const mc_overview_found *found, apr_pool_t *pool)
{
    const mc_cli_ink ink = found->fault != NULL ? MC_INK_WARNING : found->changes <= 0 ? MC_INK_GOOD : MC_INK_FAINT;
    print_source_line(printer, found);
    if (found->levels == 0)
        printf("  %s%s%s\n", mc_cli_ink_of(stdout, MC_INK_WARNING), found->fault, mc_cli_ink_of(stdout, MC_INK_END));
    else if (found->number > 0)
        printf("%12g %12g %8s %12s %10s  %-20s  %s%s%s\n", found->resolution, found->until, zoom_words(found, pool),
               found->features < 0 ? "-" : apr_psprintf(pool, "%" PRId64, found->features),
               mc_cli_size_words((double)found->bytes, pool), found->built == NULL ? "-" : found->built,
               mc_cli_ink_of(stdout, ink), state_words(found, pool), mc_cli_ink_of(stdout, MC_INK_END));
    else
        printf("  besides %s, %s, %s\n",
               mc_cli_count_words(found->levels, strcmp(found->kind, "table") == 0 ? "level" : "file", pool),
               mc_cli_size_words((double)found->bytes, pool), found->fault);
}

void
mc_cli_print_found(void *baton, const mc_overview_found *found)
{
    mc_cli_found_printer *printer = baton;
    apr_pool_t *pool;
    apr_pool_create(&pool, printer->pool);
    if (printer->json)
        print_found_json(printer, found);
    else if (!printer->quiet)
        print_found_line(printer, found, pool);
    apr_pool_destroy(pool);
}
