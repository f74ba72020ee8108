/* Where a connection string leads. The names of hosts are looked up here, because libpq waits for a name server without
 * an end. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/resolve.h"
#include "db/postgres/postgres_private.h"
#include "text/text.h"

/* Seconds that a connection may take where the connection string has no connect_timeout. */
#define CONNECT_SECONDS 10

static const char *
find_conninfo_option(const PQconninfoOption *options, const char *keyword)
{
    for (const PQconninfoOption *o = options; o->keyword != NULL; o++)
        if (strcmp(o->keyword, keyword) == 0)
            return o->val;
    return NULL;
}

static const char *
or_default(const char *text, const char *otherwise)
{
    return text == NULL || *text == '\0' ? otherwise : text;
}

const char *
mc_pg_behind_password(const char *name)
{
    const char *last = strrchr(name, '@');
    return last == NULL || last == name ? name : last + 1; /* at the beginning: a local socket's abstract name */
}

/* Of a URI whose password has an unescaped slash, libpq takes half the password for the port. */
static bool
has_password_for_port(const char *connection, const PQconninfoOption *options)
{
    const char *port = or_default(find_conninfo_option(options, "port"), "");
    return strstr(connection, "://") != NULL && port[strspn(port, "0123456789,")] != '\0';
}

void
mc_pg_describe(mc_pg_target *target)
{
    target->connect_seconds = CONNECT_SECONDS;
    PQconninfoOption *options = PQconninfoParse(target->connection, NULL);
    if (options == NULL || has_password_for_port(target->connection, options)) {
        PQconninfoFree(options);
        return;
    }
    const char *host = or_default(find_conninfo_option(options, "host"),
                                  or_default(find_conninfo_option(options, "hostaddr"), "local socket"));
    char label[256];
    apr_snprintf(label, sizeof(label), "%s, port %s, database %s, user %s", mc_pg_behind_password(host),
                 or_default(find_conninfo_option(options, "port"), "default"),
                 mc_pg_behind_password(or_default(find_conninfo_option(options, "dbname"), "default")),
                 or_default(find_conninfo_option(options, "user"), "default"));
    target->label = strdup(label);
    MC_ASSERT(target->label != NULL);
    const char *seconds = find_conninfo_option(options, "connect_timeout");
    int parsed;
    if (seconds != NULL && mc_parse_int(&parsed, seconds, 1, 3600))
        target->connect_seconds = parsed;
    PQconninfoFree(options);
}

/* Lists with commas between, as libpq takes them (manual, 34.1.1.3): a host with several addresses stands in them as
 * often. */
typedef struct place_lists {
    const char *hosts;
    const char *addresses;
    const char *ports;
    int count;
} place_lists;

static const char *
append_item(const char *list, const char *item, int count, apr_pool_t *pool)
{
    return count == 0 ? item : apr_pstrcat(pool, list, ",", item, NULL);
}

static void
add_place(place_lists *lists, const char *host, const char *address, const char *port, apr_pool_t *pool)
{
    lists->hosts = append_item(lists->hosts, host, lists->count, pool);
    lists->addresses = append_item(lists->addresses, address, lists->count, pool);
    lists->ports = append_item(lists->ports, port, lists->count, pool);
    lists->count++;
}

/* The next item of a list, and its end moved on; the last one again where there is no other. */
static const char *
next_item(const char **list, apr_pool_t *pool)
{
    size_t size = strcspn(*list, ",");
    const char *item = apr_pstrmemdup(pool, *list, size);
    if ((*list)[size] == ',')
        *list += size + 1;
    return item;
}

/* A folder of local sockets, which has no address. */
static bool
is_local(const char *host)
{
    return *host == '\0' || *host == '/' || *host == '@';
}

static mc_error *
resolve_hosts(place_lists *lists, const char *hosts, const char *ports, const mc_pg_wait *wait)
{
    mc_error *failure = MC_OK;
    bool last = false;
    while (!last) {
        last = strchr(hosts, ',') == NULL;
        const char *host = next_item(&hosts, wait->pool);
        const char *port = next_item(&ports, wait->pool);
        mc_addresses found;
        if (is_local(host)) {
            add_place(lists, host, "", port, wait->pool);
            continue;
        }
        mc_error *error = mc_resolve_host(&found, host, wait->end, wait->ctx, wait->pool);
        if (error != MC_OK && error->kind != MC_ERR_IO)
            return error;
        for (int i = 0; error == MC_OK && i < found.count; i++)
            add_place(lists, host, found.at[i].text, port, wait->pool);
        if (error != MC_OK)
            failure = error;
    }
    return lists->count > 0 ? MC_OK : failure;
}

/* No name of a host has an @, and its first half may be half a password: nobody is asked for its address. */
static mc_error *
check_host_names(const char *hosts, apr_pool_t *pool)
{
    bool last = false;
    while (!last) {
        last = strchr(hosts, ',') == NULL;
        const char *host = next_item(&hosts, pool);
        if (!is_local(host) && strchr(host, '@') != NULL)
            return mc_error_create(pool, MC_ERR_IO,
                                   "host \"%s\" has an @ before it, which the password of a URI has as %%40",
                                   mc_pg_behind_password(host));
    }
    return MC_OK;
}

mc_error *
mc_pg_find_places(const char *const **names, const char *const **values, const mc_pg_target *target,
                  const mc_pg_wait *wait)
{
    static const char *const keywords[] = { "host", "hostaddr", "port", NULL };
    const char **found = apr_pcalloc(wait->pool, sizeof(keywords));
    *names = keywords;
    *values = found;
    PQconninfoOption *options = PQconninfoParse(target->connection, NULL);
    if (options == NULL)
        return MC_OK;
    place_lists lists = { "", "", "", 0 };
    const char *hosts = or_default(find_conninfo_option(options, "host"), "");
    mc_error *error = check_host_names(hosts, wait->pool);
    if (error == MC_OK && *hosts != '\0' && *or_default(find_conninfo_option(options, "hostaddr"), "") == '\0')
        error = resolve_hosts(&lists, hosts, or_default(find_conninfo_option(options, "port"), ""), wait);
    PQconninfoFree(options);
    if (lists.count > 0) {
        found[0] = lists.hosts;
        found[1] = lists.addresses;
        found[2] = lists.ports;
    }
    return error;
}
