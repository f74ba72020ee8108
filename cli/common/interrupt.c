/* See interrupt.h. */
#include "interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { INTERRUPTED = 2 };

/* Written before the signals are handled. */
static volatile int *flag;
static const char *words;

static void
handle_cli_interrupt(int signal_number)
{
    static _Atomic apr_time_t first;
    apr_time_t none = 0, now = mc_clock_now();
    (void)signal_number;
    if (!atomic_compare_exchange_strong(&first, &none, now)) {
        if (now - none >= MC_CLI_SAME_INTERRUPT)
            _exit(INTERRUPTED);
        return;
    }
    *flag = 1;
    int saved = errno;
    if (words != NULL && write(STDERR_FILENO, words, strlen(words)) < 0)
        *flag = 1; /* nobody to tell */
    errno = saved;
}

void
mc_cli_stop_on_interrupt(volatile int *stop, const char *message)
{
    struct sigaction interrupt = { .sa_handler = handle_cli_interrupt, .sa_flags = SA_RESTART };
    flag = stop;
    words = message;
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGTERM, &interrupt, NULL);
}
