#include "remote/redis_config.h"

#include <apr_strings.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config_files.h"

enum { PASSWORD_MAX = 1024 };

typedef struct redis_server {
    const char *host;
    int port;
} redis_server;

const mc_key mc_redis_server_keys[] = {
    MC_KEY_TEXT("host", offsetof(redis_server, host), "Name or address of the server.", .flags = MC_KEY_REQUIRED),
    MC_KEY_INT("port", offsetof(redis_server, port), "Its port.", .min = 1, .max = 65535, .fallback = "6379"),
    MC_KEY_END,
};

/* The first line of the file; NULL after a complaint. */
static const char *
read_password_file(const char *path, const mc_node *node, mc_build *build)
{
    char line[PASSWORD_MAX];
    mc_config_files_note(build->diagnostics->read, path);
    FILE *file = fopen(path, "re");
    const char *got = file == NULL ? NULL : fgets(line, sizeof(line), file);
    int reason = file == NULL ? errno : 0;
    if (file != NULL)
        fclose(file);
    if (got == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "password_file"),
                    "the password cannot be read from %s: %s", mc_config_quote(path, build->pool),
                    reason == 0 ? "the file is empty" : strerror(reason));
        return NULL;
    }
    line[strcspn(line, "\r\n")] = '\0';
    return apr_pstrdup(build->pool, line);
}

static bool
read_redis_password(mc_redis_config *config, const mc_redis_settings *settings, const mc_node *node, mc_build *build)
{
    config->password = settings->password;
    if (settings->password_file == NULL)
        return true;
    config->password = read_password_file(settings->password_file, node, build);
    return config->password != NULL;
}

static mc_remote_tls *
make_redis_tls(const mc_redis_settings *settings, apr_pool_t *pool)
{
    mc_remote_tls *tls = apr_pcalloc(pool, sizeof(*tls));
    *tls =
        (mc_remote_tls){ settings->tls_name, settings->tls_authorities, settings->tls_certificate, settings->tls_key };
    return tls;
}

/* The seeds: the server itself, and those of <server>. -1 after a complaint. */
static int
read_redis_seeds(mc_remote_address *seeds, const mc_redis_settings *settings, const apr_array_header_t *servers,
                 const mc_node *node, mc_build *build)
{
    const mc_remote_tls *tls = settings->tls ? make_redis_tls(settings, build->pool) : NULL;
    int count = 0;
    if (settings->host != NULL || settings->socket != NULL)
        seeds[count++] = (mc_remote_address){ .kind = "redis",
                                              .host = settings->socket == NULL ? settings->host : NULL,
                                              .port = settings->port,
                                              .socket = settings->socket,
                                              .tls = tls };
    for (int i = 0; i < servers->nelts && count < MC_REDIS_SEEDS_MAX; i++) {
        redis_server each = { 0 };
        if (!mc_config_read(&each, APR_ARRAY_IDX(servers, i, const mc_node *), mc_redis_server_keys,
                            build->diagnostics))
            return -1;
        seeds[count++] = (mc_remote_address){ .kind = "redis", .host = each.host, .port = each.port, .tls = tls };
    }
    if (count == 0)
        mc_complain(build->diagnostics, MC_REFUSED, node, "redis needs a <host>, a <socket> or a <server>");
    return count == 0 ? -1 : count;
}

mc_redis *
mc_redis_from_config(const mc_redis_settings *settings, const apr_array_header_t *servers, const mc_node *node,
                     mc_build *build)
{
    mc_remote_address seeds[MC_REDIS_SEEDS_MAX];
    mc_redis_config config = { .seeds = seeds, .user = settings->user, .database = settings->database };
    config.count = read_redis_seeds(seeds, settings, servers, node, build);
    if (config.count < 0 || !read_redis_password(&config, settings, node, build))
        return NULL;
    if (config.user != NULL && config.password == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "a user of redis needs a <password> or a <password_file>");
        return NULL;
    }
    if (settings->tls && settings->socket != NULL && settings->tls_name == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "TLS over a local socket needs a <tls_name>");
        return NULL;
    }
    mc_redis *redis = mc_redis_create(&config, build->pool);
    if (redis == NULL)
        mc_complain(build->diagnostics, MC_REFUSED, node, "the user and the password of redis are too long");
    return redis;
}
