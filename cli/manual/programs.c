/* Manual pages of the module, of the FastCGI program, and of the configuration. */
#include <apr_strings.h>
#include <string.h>

#include "apache/directives.h"
#include "manual.h"
#include "roff.h"
#include "server/reference.h"

void
mc_print_keys_page(FILE *out, apr_pool_t *pool)
{
    mc_roff_begin(out, "mapcache.xml", 5, "configuration of the tile and map server");
    fputs(".SH DESCRIPTION\n"
          "What caches, sources, grids, tilesets and services there are. The format is that of OSGeo MapCache.\n"
          "Where nothing else is said, elements stand in any order; names are used behind the element that declares\n"
          "them.\n.PP\n.B mapcache check\n.I FILE\nsays what is wrong with a file, with line and column.\n",
          out);
    mc_roff_markdown(out, mc_reference_markdown(pool), pool);
    fputs(".SH FILES\n.TP\n.I /etc/mapcache/mapcache.xml\nwhere README.md has the file.\n"
          ".TP\n.I /usr/share/doc/mapcache/examples/mapcache.xml.sample\nexplains every option.\n",
          out);
    mc_roff_also(out, "mapcache(1) mapcache-check(1) mod_mapcache(8) mapcache.fcgi(8)", NULL, "configuration.md", pool);
}

void
mc_print_module_page(FILE *out, apr_pool_t *pool)
{
    static const struct {
        const char *name, *values, *help;
    } directives[] = {
#define X(name, values, function, help) { name, values, help },
        MC_APACHE_DIRECTIVES(X)
#undef X
    };
    mc_roff_begin(out, "mod_mapcache", 8, "tile and map server: module of Apache");
    fputs(".SH SYNOPSIS\n.nf\nLoadModule mapcache_module modules/mod_mapcache.so\n"
          "MapCacheAlias /mapcache /etc/mapcache/mapcache.xml\n.fi\n.SH DESCRIPTION\n"
          "Serves the services of a configuration,\n.BR mapcache.xml (5),\nbelow a path. A reload of Apache reads the "
          "configuration again.\n.SH DIRECTIVES\n",
          out);
    for (size_t i = 0; i < sizeof(directives) / sizeof(directives[0]); i++) {
        mc_roff_text(out, ".TP\n\\fB", directives[i].name, "\\fR");
        mc_roff_text(out, " \\fI", directives[i].values, "\\fR\n");
        mc_roff_text(out, "", directives[i].help, ".\n");
    }
    fputs(".SH DIAGNOSTICS\nMessages are in the error log of Apache, as its\n.B LogLevel\nsays.\n"
          ".B LogLevel mapcache:debug\nwrites the lines that\n.BR mapcache\\-trace (1)\nreads.\n",
          out);
    mc_roff_also(out, "mapcache(1) mapcache-trace(1) mapcache.xml(5) mapcache.fcgi(8)", NULL, "operations.md", pool);
}

/* Lines "  --name VALUE  meaning", which go on in lines that are indented further. */
static void
print_fcgi_option(FILE *out, char *line)
{
    char *meaning = strstr(line + 2, "  ");
    if (meaning != NULL)
        *meaning = '\0';
    mc_roff_text(out, ".TP\n.B ", line + 2, "\n");
    if (meaning != NULL)
        mc_roff_text(out, "", meaning + 1 + strspn(meaning + 1, " "), "\n");
}

void
mc_print_fcgi_page(FILE *out, const char *help, apr_pool_t *pool)
{
    char *rest, *text = apr_pstrdup(pool, help);
    mc_roff_begin(out, "mapcache.fcgi", 8, "tile and map server: FastCGI and CGI program");
    fputs(".SH SYNOPSIS\n.B mapcache.fcgi\n[OPTIONS]\n.SH DESCRIPTION\n", out);
    apr_strtok(text, "\n", &rest); /* the line of usage */
    bool options = false;
    for (char *line = apr_strtok(NULL, "\n", &rest); line != NULL; line = apr_strtok(NULL, "\n", &rest)) {
        if (strncmp(line, "  --", 4) == 0) {
            fputs(options ? "" : ".SH OPTIONS\n", out);
            options = true;
            print_fcgi_option(out, line);
        } else {
            fputs(options && *line != ' ' ? ".SH SIGNALS\n" : "", out);
            options = options && *line == ' ';
            mc_roff_text(out, "", line + strspn(line, " "), "\n");
        }
    }
    mc_roff_also(out, "mapcache(1) mapcache.xml(5) mod_mapcache(8)", NULL, "operations.md", pool);
}
