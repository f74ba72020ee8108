/* `mapcache serve THING...`: from files, addresses or a database to maps in a browser, by one command. */
#include <apr_strings.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/commands.h"
#include "serve_run.h"
#include "text/secret.h"

#define WISH(field) offsetof(mc_serve_wishes, field)

static const mc_cli_option serve_rows[] = {
    MC_OPTION_HEADING("Address"),
    MC_OPTION_INT("port", 0, "PORT", WISH(port), 1, 65535, "the port; without it 8080, or the next one that is free"),
    MC_OPTION_TEXT("listen", 0, "ADDRESS", WISH(listen),
                   "where to listen: 127.0.0.1 without it, for this machine alone; 0.0.0.0: everywhere"),
    MC_OPTION_FLAG("open", 0, WISH(open), "open the maps in a browser"),
    MC_OPTION_HEADING("Server"),
    MC_OPTION_FLAG("apache", 0, WISH(apache), "serve by Apache; without it, too, where Apache is installed"),
    MC_OPTION_FLAG("nginx", 0, WISH(nginx), "serve by nginx and mapcache.fcgi"),
    MC_OPTION_TEXT("save", 0, "FILE", WISH(save),
                   "write the mapcache.xml that is used into FILE, for Apache or nginx, and go on serving"),
    MC_OPTION_FLAG("force", 'f', WISH(force), "--save may write over a file"),
    MC_OPTION_HEADING("Output"),
    MC_OPTION_QUIET(WISH(quiet)),
    MC_OPTION_JSON(WISH(json), "what happens as objects of JSON, one on a line"),
    MC_OPTION_END,
};

static void
set_serve_defaults(void *options, apr_pool_t *pool)
{
    (void)pool;
    ((mc_serve_wishes *)options)->listen = "127.0.0.1";
}

const mc_cli_option_table mc_serve_option_table = { serve_rows, sizeof(mc_serve_wishes), set_serve_defaults };

const char *
mc_check_serve_options(mc_cli_call *call)
{
    const mc_serve_wishes *wishes = call->options;
    if (call->arguments->nelts == 0)
        return "no THING is named: a file, a folder, an address, a database, or a mapcache.xml";
    if (wishes->apache && wishes->nginx)
        return "--apache and --nginx do not go together";
    if (wishes->force && wishes->save == NULL)
        return "--force goes with --save";
    return NULL;
}

int
mc_command_serve(mc_cli_call *call)
{
    apr_array_header_t *things = apr_array_make(call->pool, call->arguments->nelts, sizeof(const char *));
    for (int i = 0; i < call->arguments->nelts; i++) {
        const char *argument = APR_ARRAY_IDX(call->arguments, i, const char *);
        APR_ARRAY_PUSH(things, const char *) = apr_pstrdup(call->pool, argument);
        mc_blank_address_password((char *)(uintptr_t)argument); /* what lists of processes show */
    }
    return mc_serve_run(call->options, things, call->pool);
}
