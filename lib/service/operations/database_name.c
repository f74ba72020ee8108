/* What everybody may know of a connection string: where the database is. */
#include <apr_strings.h>
#include <string.h>

#include "service/operations/failing.h"

static const char blanks[] = " \t\r\n\v\f";

/* A keyword that says where a database is; others may be secrets, or name files with secrets. */
static bool
is_public_keyword(const char *word, size_t size)
{
    static const char *const words[] = { "host", "hostaddr", "port", "dbname" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i]) == size && strncmp(words[i], word, size) == 0)
            return true;
    return false;
}

/* The end of a value as libpq reads it: in quotes, or up to a blank, with backslashes. NULL: the quotes have no end. */
static const char *
end_of_value(const char *at)
{
    const bool quoted = *at == '\'';
    for (at += quoted; *at != '\0'; at++) {
        if (*at == '\\' && at[1] != '\0')
            at++;
        else if (quoted ? *at == '\'' : strchr(blanks, *at) != NULL)
            return at + quoted;
    }
    return quoted ? NULL : at;
}

/* postgresql://user:word@host:port/database?more */
static const char *
name_by_address(const char *address, apr_pool_t *pool)
{
    const char *place = strstr(address, "://") + 3, *query = strchr(place, '?');
    size_t size = query == NULL ? strlen(place) : (size_t)(query - place);
    for (size_t i = size; i > 0; i--)
        if (place[i - 1] == '@')
            return apr_pstrcat(pool, "postgresql://", apr_pstrndup(pool, place + i, size - i), NULL);
    return apr_pstrcat(pool, "postgresql://", apr_pstrndup(pool, place, size), NULL);
}

const char *
mc_database_name(const char *connection, apr_pool_t *pool)
{
    const char *name = "", *at = connection;
    if (strncmp(connection, "postgresql://", 13) == 0 || strncmp(connection, "postgres://", 11) == 0)
        return name_by_address(connection, pool);
    for (;;) {
        at += strspn(at, blanks);
        const char *word = at;
        const size_t size = strcspn(at, " \t\r\n\v\f=");
        at += size;
        at += strspn(at, blanks);
        if (*at != '=')
            break;
        at++;
        at += strspn(at, blanks);
        const char *end = end_of_value(at);
        if (end == NULL)
            break;
        if (is_public_keyword(word, size) && memchr(at, '=', (size_t)(end - at)) == NULL) /* else a forgotten value */
            name = apr_psprintf(pool, "%s%s%.*s=%.*s", name, *name == '\0' ? "" : " ", (int)size, word, (int)(end - at),
                                at);
        at = end;
    }
    return *name == '\0' ? "PostgreSQL" : name;
}
