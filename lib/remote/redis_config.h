/* How a configuration says where redis is: the same for caches and lockers. */
#ifndef MC_REMOTE_REDIS_CONFIG_H
#define MC_REMOTE_REDIS_CONFIG_H

#include "mapcache/config.h"
#include "remote/redis.h"

typedef struct mc_redis_settings {
    const char *host, *socket;
    int port;
    const char *user, *password, *password_file;
    int database;
    bool tls;
    const char *tls_name, *tls_authorities, *tls_certificate, *tls_key;
} mc_redis_settings;

/* Rows of a table whose struct `type_` has mc_redis_settings as its member `field_`; `flags_` of <host> and <port>. */
#define MC_REDIS_KEYS(type_, field_, flags_, of_)                                                                      \
    MC_KEY_TEXT("host", offsetof(type_, field_.host), "Name or address of the redis server" of_ ".",                   \
                .flags = (flags_)),                                                                                    \
        MC_KEY_INT("port", offsetof(type_, field_.port), "Its port" of_ ".", .min = 1, .max = 65535,                   \
                   .flags = (flags_), .fallback = "6379"),                                                             \
        MC_KEY_TEXT("socket", offsetof(type_, field_.socket),                                                          \
                    "Local socket of the redis server" of_ ", instead of <host>.",                                     \
                    .flags = MC_KEY_OURS | MC_KEY_FILE),                                                               \
        MC_KEY_TEXT("user", offsetof(type_, field_.user), "User of redis" of_ "; without one, its user `default`.",    \
                    .flags = MC_KEY_OURS),                                                                             \
        MC_KEY_TEXT("password", offsetof(type_, field_.password), "Password of that user.", .flags = MC_KEY_OURS),     \
        MC_KEY_TEXT("password_file", offsetof(type_, field_.password_file),                                            \
                    "File whose first line is the password: instead of <password>.",                                   \
                    .flags = MC_KEY_OURS | MC_KEY_FILE),                                                               \
        MC_KEY_INT("database", offsetof(type_, field_.database),                                                       \
                   "Number of the database" of_ "; a cluster has only 0.", .max = 1000000, .flags = MC_KEY_OURS,       \
                   .fallback = "0"),                                                                                   \
        MC_KEY_BOOL("tls", offsetof(type_, field_.tls),                                                                \
                    "Whether connections are encrypted (TLS), and the server's certificate checked.",                  \
                    .flags = MC_KEY_OURS, .fallback = "false"),                                                        \
        MC_KEY_TEXT("tls_name", offsetof(type_, field_.tls_name),                                                      \
                    "Name in the server's certificate where it is not <host>.", .flags = MC_KEY_OURS),                 \
        MC_KEY_TEXT("tls_authorities", offsetof(type_, field_.tls_authorities),                                        \
                    "File of the certificates that sign the server's; without it, the system's.",                      \
                    .flags = MC_KEY_OURS | MC_KEY_FILE),                                                               \
        MC_KEY_TEXT("tls_certificate", offsetof(type_, field_.tls_certificate),                                        \
                    "File of our own certificate, where the server asks for one.",                                     \
                    .flags = MC_KEY_OURS | MC_KEY_FILE),                                                               \
        MC_KEY_TEXT("tls_key", offsetof(type_, field_.tls_key),                                                        \
                    "File of its key, where that is not in the same file.", .flags = MC_KEY_OURS | MC_KEY_FILE)

extern const mc_key mc_redis_server_keys[]; /* of <server>: one more of a cluster */

/* The servers that these settings name at `node`; `servers`: const mc_node * of each <server>. NULL after a complaint.
 */
mc_redis *mc_redis_from_config(const mc_redis_settings *settings, const apr_array_header_t *servers,
                               const mc_node *node, mc_build *build);

#endif
