/* The files of the manual. */
#include "manual.h"

#include <apr_strings.h>
#include <errno.h>
#include <string.h>

#include "cli/common/help.h"

/* Of a file that was written; it is closed. False after a message. */
static bool
close_manual_page(FILE *out, const char *path)
{
    bool written = out != NULL && !ferror(out);
    if (out != NULL && fclose(out) == 0 && written)
        return true;
    fprintf(stderr, "mapcache help: %s cannot be written: %s\n", path, strerror(errno));
    return false;
}

static bool
write_other_pages(const char *folder, const char *fcgi, const mc_cli_command *commands, apr_pool_t *pool)
{
    static const char *const names[] = { "mapcache.1", "mapcache.xml.5", "mod_mapcache.8", "mapcache.fcgi.8" };
    enum { COUNT = sizeof(names) / sizeof(names[0]) };
    for (int i = 0; i < (fcgi == NULL ? COUNT - 1 : COUNT); i++) {
        const char *path = apr_pstrcat(pool, folder, "/", names[i], NULL);
        FILE *out = fopen(path, "w");
        if (out != NULL && i == 0)
            mc_print_overview_page(out, commands, pool);
        else if (out != NULL && i == 1)
            mc_print_keys_page(out, pool);
        else if (out != NULL && i == 2)
            mc_print_module_page(out, pool);
        else if (out != NULL)
            mc_print_fcgi_page(out, fcgi, pool);
        if (!close_manual_page(out, path))
            return false;
    }
    return true;
}

static bool
write_command_page(const char *folder, const mc_cli_command *row, const mc_cli_command *commands, apr_pool_t *pool)
{
    const char *path = apr_pstrcat(pool, folder, "/mapcache-", row->name, ".1", NULL);
    FILE *out = fopen(path, "w");
    if (out != NULL)
        mc_print_command_page(out, row, commands, pool);
    if (!close_manual_page(out, path))
        return false;
    if (row->drop_in == NULL)
        return true;
    path = apr_pstrcat(pool, folder, "/", mc_drop_in_name_of(row, pool), ".1", NULL);
    out = fopen(path, "w");
    if (out != NULL)
        mc_print_drop_in_page(out, row, pool);
    return close_manual_page(out, path);
}

bool
mc_write_manual(const char *folder, const char *fcgi, const mc_cli_command *commands, apr_pool_t *pool)
{
    for (const mc_cli_command *row = commands; row->name != NULL; row++)
        if (strchr(row->name, ' ') == NULL && !write_command_page(folder, row, commands, pool))
            return false;
    return write_other_pages(folder, fcgi, commands, pool);
}

mc_value_sort
mc_value_sort_of(const mc_cli_option *option)
{
    if (option->choices != NULL)
        return MC_VALUE_CHOICE;
    if (option->value == NULL)
        return MC_VALUE_OTHER;
    return strcmp(option->value, "FILE") == 0     ? MC_VALUE_FILE
           : strcmp(option->value, "FOLDER") == 0 ? MC_VALUE_FOLDER
                                                  : MC_VALUE_OTHER;
}
