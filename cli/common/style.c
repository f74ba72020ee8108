/* See style.h. NO_COLOR is that of no-color.org: set, and not empty. */
#include "style.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum { AUTO, ALWAYS, NEVER } when = AUTO;

static void
set_color_choice(const char *word)
{
    when = strcmp(word, "always") == 0 ? ALWAYS : strcmp(word, "never") == 0 ? NEVER : AUTO;
}

void
mc_cli_choose_color(int argc, const char *const *argv)
{
    static const char name[] = "--color";
    size_t size = sizeof(name) - 1;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strncmp(argv[i], name, size) == 0 && argv[i][size] == '=')
            set_color_choice(argv[i] + size + 1);
        else if (strcmp(argv[i], name) == 0 && i + 1 < argc)
            set_color_choice(argv[i + 1]);
}

bool
mc_cli_is_screen(FILE *stream)
{
    const char *terminal = getenv("TERM");
    return isatty(fileno(stream)) == 1 && terminal != NULL && *terminal != '\0' && strcmp(terminal, "dumb") != 0;
}

mc_log_level
mc_cli_log_level(bool verbose, bool quiet)
{
    return verbose ? MC_LOG_DEBUG : quiet ? MC_LOG_ERROR : MC_LOG_WARN;
}

static bool
is_colored(FILE *stream)
{
    const char *refused = getenv("NO_COLOR");
    if (when != AUTO)
        return when == ALWAYS;
    return (refused == NULL || *refused == '\0') && mc_cli_is_screen(stream);
}

const char *
mc_cli_ink_of(FILE *stream, mc_cli_ink ink)
{
    static const char *const sequences[] = {
        [MC_INK_END] = "\033[0m",      [MC_INK_HEADING] = "\033[1m",  [MC_INK_NAME] = "\033[36m",
        [MC_INK_ERROR] = "\033[1;31m", [MC_INK_WARNING] = "\033[33m", [MC_INK_GOOD] = "\033[32m",
        [MC_INK_FAINT] = "\033[2m",
    };
    return is_colored(stream) ? sequences[ink] : "";
}
