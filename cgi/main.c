/*
 * mapcache.fcgi: the FastCGI and CGI program. Finds out how it was started (with --listen, by systemd with open
 * sockets, by a spawner with a listening socket as descriptor 0, or as a plain CGI), loads the configuration and
 * serves.
 */
#include <apr_general.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop.h"
#include "plain.h"
#include "sockets.h"
#include "text/text.h"
#include "user.h"

typedef struct main_options {
    const char *config; /* the file, or NULL */
    const char *listen;
    const char *user; /* NULL: whoever has started the program */
    mc_loop_limits limits;
    int backlog;
} main_options;

static const char help_text[] = "Usage: mapcache.fcgi [--config FILE] [--listen ADDRESS] [--threads N] [--backlog N]\n"
                                "                     [--idle SECONDS] [--user NAME]\n"
                                "\n"
                                "Serves a configuration by FastCGI or as a plain CGI program.\n"
                                "\n"
                                "  --config FILE     the configuration; without it, the environment variable\n"
                                "                    MAPCACHE_CONFIG_FILE names the file\n"
                                "  --listen ADDRESS  HOST:PORT, [HOST]:PORT, :PORT, or the path of a local socket\n"
                                "                    (which begins with a slash). Without it, sockets passed by\n"
                                "                    systemd are used, or a listening socket as descriptor 0, as\n"
                                "                    spawn-fcgi and mod_fcgid pass it. Without any of them the\n"
                                "                    program answers one request as a plain CGI.\n"
                                "  --threads N       at most N requests at the same time, 1 to 1024 (default: 512)\n"
                                "  --backlog N       connections that may wait to be accepted (default: 1024)\n"
                                "  --idle SECONDS    connections on which nothing happens for so long are closed,\n"
                                "                    1 to 86400 (default: 600)\n"
                                "  --user NAME       once the socket is open, the program becomes that user, who also\n"
                                "                    gets the local socket; for a program that root starts\n"
                                "  --version         prints the version and ends\n"
                                "  --help            prints this text and ends\n"
                                "\n"
                                "SIGTERM and SIGUSR1 let running requests finish, for at most 10 seconds. SIGHUP\n"
                                "loads the configuration again, with the files that it names; requests go on.\n"
                                "Where the configuration cannot be used the program ends with status 1; only what\n"
                                "a web server has spawned (descriptor 0) answers 500 until the file is mended.\n";

static bool
number_option(int *value, const char *name, const char *text, int max)
{
    if (mc_parse_int(value, text, 1, max))
        return true;
    fprintf(stderr, "mapcache.fcgi: --%s is a whole number from 1 to %d, not '%s'\n", name, max, text);
    return false;
}

/* True to go on; else *status is the exit status. */
static bool
parse_fcgi_options(main_options *out, int *status, int argc, char **argv)
{
    static const struct option known[] = {
        { "config", required_argument, NULL, 'c' },
        { "listen", required_argument, NULL, 'l' },
        { "threads", required_argument, NULL, 't' },
        { "backlog", required_argument, NULL, 'b' },
        { "idle", required_argument, NULL, 'i' },
        { "user", required_argument, NULL, 'u' },
        { "version", no_argument, NULL, 'v' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    *out = (main_options){ .limits = { .threads = 512, .idle_seconds = 600 }, .backlog = 1024 };
    *status = EXIT_FAILURE;
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 'c') {
            out->config = optarg;
        } else if (option == 'l') {
            out->listen = optarg;
        } else if (option == 'u') {
            out->user = optarg;
        } else if (option == 't') {
            if (!number_option(&out->limits.threads, "threads", optarg, 1024))
                return false;
        } else if (option == 'b') {
            if (!number_option(&out->backlog, "backlog", optarg, 65535))
                return false;
        } else if (option == 'i') {
            if (!number_option(&out->limits.idle_seconds, "idle", optarg, 86400))
                return false;
        } else if (option == 'v' || option == 'h') {
            fputs(option == 'v' ? "mapcache.fcgi " MC_VERSION "\n" : help_text, stdout);
            *status = EXIT_SUCCESS;
            return false;
        } else {
            return false;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "mapcache.fcgi: unexpected argument '%s'\n", argv[optind]);
        return false;
    }
    return true;
}

/* Signals are taken by the loop's thread alone: all others inherit the block. */
static void
prepare_signals(void)
{
    sigset_t signals;
    mc_loop_signals(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int
run_fcgi_program(const main_options *chosen, const char *file, apr_pool_t *pool)
{
    mc_sockets sockets;
    mc_error *error = mc_sockets_open(&sockets, chosen->listen, chosen->backlog, pool);
    if (error == MC_OK && chosen->user != NULL)
        error = mc_user_become(chosen->user, sockets.path, pool);
    if (error != MC_OK) {
        fprintf(stderr, "mapcache.fcgi: %s\n", mc_error_chain(error, pool));
        mc_sockets_remove(&sockets);
        return EXIT_FAILURE;
    }
    bool plain = sockets.count == 0;
    if (plain)
        signal(SIGPIPE, SIG_IGN);
    else
        prepare_signals();
    if (!plain && chosen->user == NULL)
        mc_user_warn_of_root(pool);
    mc_generations *generations = mc_generations_create(file, plain ? 0 : chosen->limits.threads, pool);
    int status = EXIT_FAILURE;
    mc_loop_outcome outcome = MC_LOOP_FAILED;
    if (plain)
        status = mc_plain_run(generations, pool);
    else if (sockets.spawned || mc_generations_loaded(generations))
        outcome = mc_loop_run(generations, sockets.descriptors, sockets.count, &chosen->limits, pool);
    mc_sockets_remove(&sockets);
    if (outcome == MC_LOOP_LEFT) {
        mc_runtime *runtime = mc_generations_runtime(generations);
        if (runtime != NULL)
            mc_runtime_drain(runtime);
        _exit(EXIT_SUCCESS);
    }
    mc_generations_destroy(generations);
    return outcome == MC_LOOP_ENDED ? EXIT_SUCCESS : status;
}

int
main(int argc, char **argv)
{
    main_options chosen;
    int status;
    if (!parse_fcgi_options(&chosen, &status, argc, argv))
        return status;
    apr_initialize();
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    apr_pool_abort_set(mc_memory_exhausted, pool);
    apr_pool_abort_set(mc_memory_exhausted, apr_pool_parent_get(pool)); /* of all that will have no parent */
    const char *file = chosen.config != NULL ? chosen.config : getenv("MAPCACHE_CONFIG_FILE");
    if (file == NULL || *file == '\0') {
        mc_ctx ctx = { .pool = pool, .log = &mc_log_stderr };
        mc_log_write(&ctx, MC_LOG_ERROR,
                     "no configuration: neither --config nor the environment variable MAPCACHE_CONFIG_FILE is there");
        status = EXIT_FAILURE;
    } else {
        status = run_fcgi_program(&chosen, file, pool);
    }
    apr_pool_destroy(pool);
    apr_terminate();
    return status;
}
