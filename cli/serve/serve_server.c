/* See serve_server.h. */
#include "serve_server.h"

#include <apr_strings.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve_process.h"

/* --- what is installed -------------------------------------------------------------------------------------------- */

/* The first of the paths that is a file; each is put behind `folder`. The list ends with NULL. */
static const char *
first_file(const char *folder, const char *const *paths, apr_pool_t *pool)
{
    for (; *paths != NULL; paths++) {
        const char *file = apr_pstrcat(pool, folder, *paths, NULL);
        if (access(file, R_OK) == 0)
            return file;
    }
    return NULL;
}

/* The folder that a file stands in; "" of none. */
static const char *
folder_of_file(const char *file, apr_pool_t *pool)
{
    const char *slash = strrchr(file, '/');
    return slash == NULL ? "" : apr_pstrmemdup(pool, file, (apr_size_t)(slash - file));
}

static const char *
own_program_folder(apr_pool_t *pool)
{
    char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
    return size <= 0 ? "" : folder_of_file(apr_pstrmemdup(pool, path, (apr_size_t)size), pool);
}

/* The module for processes and threads of an httpd, and the folder that it stands in. */
static void
find_apache(mc_serve_programs *programs, apr_pool_t *pool)
{
    static const char *const models[] = { "event", "worker", "prefork" };
    static const char *const folders[] = { "/../lib/apache2/modules", "/../modules", "/../lib64/httpd/modules",
                                           "/../lib/httpd/modules", "/../libexec/apache2" };
    programs->apache = mc_serve_process_find("apache2", pool);
    if (programs->apache == NULL)
        programs->apache = mc_serve_process_find("httpd", pool);
    if (programs->apache == NULL)
        return;
    for (size_t i = 0; i < 15 && programs->mpm == NULL; i++) {
        const char *const names[] = { apr_pstrcat(pool, folders[i % 5], "/mod_mpm_", models[i / 5], ".so", NULL),
                                      NULL };
        const char *file = first_file(folder_of_file(programs->apache, pool), names, pool);
        if (file == NULL)
            continue;
        programs->mpm = models[i / 5];
        programs->apache_modules = folder_of_file(file, pool);
    }
    if (programs->mpm == NULL)
        programs->apache = NULL;
}

/* Beside this program in a build folder; installed, where Debian has them. */
static void
find_programs(mc_serve_programs *programs, apr_pool_t *pool)
{
    static const char *const module_files[] = { "/../modules/mod_mapcache.so",
                                                "/../lib/apache2/modules/mod_mapcache.so", NULL };
    static const char *const fcgi_files[] = { "/mapcache.fcgi", NULL };
    const char *folder = own_program_folder(pool);
    *programs = (mc_serve_programs){ .module = first_file(folder, module_files, pool),
                                     .fcgi = first_file(folder, fcgi_files, pool),
                                     .nginx = mc_serve_process_find("nginx", pool) };
    find_apache(programs, pool);
}

mc_error *
mc_serve_server_choose(mc_serve_server *server, mc_serve_front wanted, apr_pool_t *pool)
{
    mc_serve_programs *programs = &server->programs;
    find_programs(programs, pool);
    bool apache = programs->apache != NULL && programs->module != NULL;
    bool nginx = programs->nginx != NULL && programs->fcgi != NULL;
    if (wanted == MC_SERVE_APACHE && programs->apache == NULL)
        return mc_error_create(pool, MC_ERR_CONFIG, "Apache is not installed: `sudo apt install apache2-bin`");
    if (wanted == MC_SERVE_NGINX && programs->nginx == NULL)
        return mc_error_create(pool, MC_ERR_CONFIG, "nginx is not installed: `sudo apt install nginx-light`");
    if (programs->apache == NULL && programs->nginx == NULL)
        return mc_error_create(pool, MC_ERR_CONFIG,
                               "a web server is needed, and none is installed: `sudo apt install "
                               "apache2-bin`, or `sudo apt install nginx-light`");
    if ((wanted == MC_SERVE_APACHE && !apache) || (wanted == MC_SERVE_NGINX && !nginx) || (!apache && !nginx))
        return mc_error_create(
            pool, MC_ERR_CONFIG, "%s is not installed with this program: install the package mapcache again",
            wanted == MC_SERVE_NGINX || programs->apache == NULL ? "mapcache.fcgi" : "mod_mapcache.so");
    server->front = wanted != MC_SERVE_ANY ? wanted : apache ? MC_SERVE_APACHE : MC_SERVE_NGINX;
    server->count = server->front == MC_SERVE_APACHE ? 1 : 2;
    return MC_OK;
}

const char *
mc_serve_server_name(const mc_serve_server *server)
{
    return server->front == MC_SERVE_APACHE ? "Apache" : "nginx";
}

/* --- configurations ----------------------------------------------------------------------------------------------- */

/* An argument of a directive, in quotes. NULL: it cannot be one. */
static const char *
quote_directive(const char *text, apr_pool_t *pool)
{
    char *quoted = apr_palloc(pool, 2 * strlen(text) + 3), *at = quoted;
    if (strstr(text, "${") != NULL)
        return NULL; /* httpd and nginx take it for a variable */
    *at++ = '"';
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ')
            return NULL;
        if (*text == '"' || *text == '\\')
            *at++ = '\\';
        *at++ = *text;
    }
    strcpy(at, "\"");
    return quoted;
}

/* One process that answers, and room for others while old ones end. */
static const char apache_text[] = "ServerRoot \"%s\"\n"
                                  "ServerName %s\n"
                                  "Listen %s:%d\n"
                                  "PidFile httpd.pid\n"
                                  "DefaultRuntimeDir .\n"
                                  "ErrorLog /proc/self/fd/2\n"
                                  "LogLevel warn\n"
                                  "LoadModule mpm_%s_module %s/mod_mpm_%s.so\n"
                                  "LoadModule mapcache_module %s\n"
                                  "StartServers 1\n"
                                  "ServerLimit %d\n"
                                  "MaxRequestWorkers 64\n"
                                  "%s"
                                  "MaxKeepAliveRequests 0\n"
                                  "GracefulShutdownTimeout 5\n"
                                  "ServerTokens Prod\n"
                                  "TraceEnable Off\n"
                                  "DocumentRoot \"%s/pages\"\n";

static const char threads_text[] = "ThreadLimit 64\n"
                                   "ThreadsPerChild 64\n"
                                   "MinSpareThreads 1\n"
                                   "MaxSpareThreads 128\n";

/* A page of another site can have its name point to this machine, and is then asked for with that name. */
#define OTHER_HOST "These maps are for this machine alone: ask 127.0.0.1, [::1] or localhost.\\n"

/* A slash in a name, as %2F, reaches us: what is wrong with the name is answered by the service that is asked. */
#define ENCODED_SLASHES "AllowEncodedSlashes NoDecode\n"

/* With everybody, and with this machine alone. */
static const char apache_public_text[] = ENCODED_SLASHES "MapCacheAlias / %s quick\n";

static const char apache_own_text[] = "<IfModule !mod_authz_core.c>\n"
                                      "  LoadModule authz_core_module %s/mod_authz_core.so\n"
                                      "</IfModule>\n"
                                      "<VirtualHost *:%d>\n"
                                      "  ServerName other.invalid\n"
                                      "  <Location \"/\">\n"
                                      "    Require all denied\n"
                                      "  </Location>\n"
                                      "  ErrorDocument 403 \"" OTHER_HOST "\"\n"
                                      "</VirtualHost>\n"
                                      "<VirtualHost *:%d>\n"
                                      "  ServerName %s\n"
                                      "  ServerAlias 127.0.0.1 [::1] ::1 localhost\n"
                                      "  " ENCODED_SLASHES "  MapCacheAlias / %s quick\n"
                                      "</VirtualHost>\n";

static const char nginx_own_text[] = "  server {\n"
                                     "    listen %s:%d default_server;\n"
                                     "    default_type text/plain;\n"
                                     "    return 403 \"" OTHER_HOST "\";\n"
                                     "  }\n";

static const char nginx_text[] = "daemon off;\n"
                                 "master_process off;\n"
                                 "pid nginx.pid;\n"
                                 "error_log stderr warn;\n"
                                 "events { worker_connections 512; }\n"
                                 "http {\n"
                                 "  access_log off;\n"
                                 "  server_tokens off;\n"
                                 "  client_max_body_size 200m;\n"
                                 "  keepalive_requests 1000000;\n"
                                 "  client_body_temp_path body;\n"
                                 "  fastcgi_temp_path fastcgi;\n"
                                 "  proxy_temp_path proxy;\n"
                                 "  uwsgi_temp_path uwsgi;\n"
                                 "  scgi_temp_path scgi;\n"
                                 "  upstream mapcache { server unix:%s/mapcache.sock; keepalive 64; }\n"
                                 "%s"
                                 "  server {\n"
                                 "    listen %s:%d;\n"
                                 "    server_name 127.0.0.1 [::1] localhost %s;\n"
                                 "    location / {\n"
                                 "      fastcgi_param REQUEST_METHOD $request_method;\n"
                                 "      fastcgi_param QUERY_STRING $query_string;\n"
                                 "      fastcgi_param CONTENT_TYPE $content_type;\n"
                                 "      fastcgi_param CONTENT_LENGTH $content_length;\n"
                                 "      fastcgi_param SCRIPT_NAME \"\";\n"
                                 "      fastcgi_param PATH_INFO $uri;\n"
                                 "      fastcgi_param REQUEST_SCHEME $scheme;\n"
                                 "      fastcgi_param SERVER_PROTOCOL $server_protocol;\n"
                                 "      fastcgi_param SERVER_NAME $server_addr;\n"
                                 "      fastcgi_param SERVER_PORT $server_port;\n"
                                 "      fastcgi_param REMOTE_ADDR $remote_addr;\n"
                                 "      fastcgi_param REMOTE_PORT $remote_port;\n"
                                 "      fastcgi_keep_conn on;\n"
                                 "      fastcgi_read_timeout 300s;\n"
                                 "      fastcgi_pass mapcache;\n"
                                 "    }\n"
                                 "  }\n"
                                 "}\n";

static mc_error *
write_server_file(const char *file, const char *text, apr_pool_t *pool)
{
    FILE *out = fopen(file, "we");
    bool written = out != NULL && fputs(text, out) >= 0;
    if (out != NULL && fclose(out) != 0)
        written = false;
    return written ? MC_OK : mc_error_create(pool, MC_ERR_IO, "%s cannot be written: %s", file, strerror(errno));
}

static mc_error *
write_apache_configuration(const mc_serve_server *server, const char *file, apr_pool_t *pool)
{
    const mc_serve_programs *programs = &server->programs;
    const char *folder = server->place->folder, *host = server->address->host;
    const char *config = quote_directive(server->config, pool), *module = quote_directive(programs->module, pool);
    bool threaded = strcmp(programs->mpm, "prefork") != 0;
    int port = server->address->port;
    if (config == NULL || module == NULL)
        return mc_error_create(pool, MC_ERR_CONFIG,
                               "the name of a file that Apache reads cannot have ${ or control "
                               "characters: %s",
                               config == NULL ? server->config : programs->module);
    mkdir(apr_pstrcat(pool, folder, "/pages", NULL), 0700);
    const char *shared =
        apr_psprintf(pool, apache_text, folder, host, host, port, programs->mpm, programs->apache_modules,
                     programs->mpm, module, threaded ? 4 : 64, threaded ? threads_text : "", folder);
    const char *alias = server->address->public
                            ? apr_psprintf(pool, apache_public_text, config)
                            : apr_psprintf(pool, apache_own_text, programs->apache_modules, port, port, host, config);
    return write_server_file(file, apr_pstrcat(pool, shared, alias, NULL), pool);
}

static mc_error *
write_nginx_configuration(const mc_serve_server *server, const char *file, apr_pool_t *pool)
{
    const char *host = server->address->host;
    int port = server->address->port;
    const char *others = server->address->public ? "" : apr_psprintf(pool, nginx_own_text, host, port);
    const char *names = strcmp(host, "127.0.0.1") == 0 || strcmp(host, "[::1]") == 0 ? "" : host; /* each once */
    return write_server_file(file, apr_psprintf(pool, nginx_text, server->place->folder, others, host, port, names),
                             pool);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

enum { FCGI_SLOT, NGINX_SLOT }; /* of nginx; Apache has the first one */

static mc_error *
start_slot(mc_serve_server *server, int slot, const char *const *words, const char *const *variables, apr_pool_t *pool)
{
    mc_serve_process_slot *at = &server->slots[slot];
    const mc_serve_command command = { .words = words, .variables = variables, .output = server->output };
    if (at->process != 0)
        return MC_OK;
    at->started = mc_clock_now(); /* before: starting may take a while, in which the process runs */
    MC_TRY(mc_serve_process_start(&at->process, &command, pool));
    mc_serve_place_keep(server->place, at->process);
    return MC_OK;
}

static mc_error *
start_apache(mc_serve_server *server, apr_pool_t *pool)
{
    const char *file = apr_pstrcat(pool, server->place->folder, "/httpd.conf", NULL);
    const char *const words[] = { server->programs.apache, "-f", file, "-DFOREGROUND", NULL };
    MC_TRY(write_apache_configuration(server, file, pool));
    return start_slot(server, 0, words, NULL, pool);
}

static mc_error *
start_nginx(mc_serve_server *server, apr_pool_t *pool)
{
    const char *folder = server->place->folder;
    const char *file = apr_pstrcat(pool, folder, "/nginx.conf", NULL);
    const char *socket = apr_pstrcat(pool, folder, "/mapcache.sock", NULL);
    const char *const fcgi_words[] = { server->programs.fcgi, "--listen", socket, NULL };
    const char *const fcgi_variables[] = { apr_pstrcat(pool, "MAPCACHE_CONFIG_FILE=", server->config, NULL), NULL };
    const char *const words[] = { server->programs.nginx, "-p", folder, "-c", file, "-e", "stderr", NULL };
    if (server->slots[NGINX_SLOT].process == 0) /* a running one may be about to read the file */
        MC_TRY(write_nginx_configuration(server, file, pool));
    MC_TRY(start_slot(server, FCGI_SLOT, fcgi_words, fcgi_variables, pool));
    return start_slot(server, NGINX_SLOT, words, NULL, pool);
}

mc_error *
mc_serve_server_start(mc_serve_server *server, apr_pool_t *pool)
{
    return server->front == MC_SERVE_APACHE ? start_apache(server, pool) : start_nginx(server, pool);
}

static bool
fcgi_answers(const mc_serve_server *server)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    snprintf(name.sun_path, sizeof(name.sun_path), "%s/mapcache.sock", server->place->folder);
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return false;
    bool answers = connect(probe, (const struct sockaddr *)&name, sizeof(name)) == 0;
    close(probe);
    return answers;
}

bool
mc_serve_server_answers(const mc_serve_server *server)
{
    int last = server->count - 1;
    return mc_serve_address_held(server->address, server->slots[last].process) &&
           (server->front == MC_SERVE_APACHE || fcgi_answers(server));
}

void
mc_serve_server_reload(const mc_serve_server *server)
{
    pid_t process = server->slots[0].process;
    if (process != 0)
        kill(process, server->front == MC_SERVE_APACHE ? SIGUSR1 : SIGHUP);
}

static const double BURIAL_TIME = 2; /* seconds */

const char *
mc_serve_server_ended(mc_serve_server *server, pid_t process, double *lasted)
{
    for (int i = 0; i < server->count; i++) {
        mc_serve_process_slot *slot = &server->slots[i];
        if (slot->process != process)
            continue;
        *lasted = (double)(mc_clock_now() - slot->started) / 1e6;
        mc_serve_process_bury(process, BURIAL_TIME);
        mc_serve_place_forget(server->place, process);
        slot->process = 0;
        return server->front == MC_SERVE_APACHE ? "Apache" : i == FCGI_SLOT ? "mapcache.fcgi" : "nginx";
    }
    return NULL;
}

void
mc_serve_server_stop(mc_serve_server *server)
{
    static const double PATIENCE = 2; /* seconds */
    for (int i = server->count - 1; i >= 0; i--)
        if (server->slots[i].process != 0) {
            mc_serve_process_end(server->slots[i].process, PATIENCE);
            mc_serve_place_forget(server->place, server->slots[i].process);
            server->slots[i].process = 0;
        }
}
