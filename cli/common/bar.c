/* See bar.h. */
#include "bar.h"

#include <stdio.h>

void
mc_cli_clear_bar(bool *drawn)
{
    if (*drawn) {
        fputs("\r\033[K", stdout);
        fflush(stdout);
    }
    *drawn = false;
}
