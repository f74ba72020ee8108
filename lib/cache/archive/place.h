/*
 * Where an archive of tiles is, as a cache says it: a file on a disk, or an address of http, https or s3. Rows of the
 * cache's table of keys, and what is made of them once.
 */
#ifndef MC_CACHE_ARCHIVE_PLACE_H
#define MC_CACHE_ARCHIVE_PLACE_H

#include "cache/archive/ranges.h"
#include "cache/rest/aws_options.h"

typedef struct mc_archive_place {
    const char *file, *url; /* path or address, or template, of the archives: one of the two */
    const char *endpoint;   /* of s3://, or NULL */
    mc_ranges_remote remote;
    mc_aws_options aws; /* remote.aws, where requests are signed */
} mc_archive_place;

/* at: offset of the place in the struct of the cache. */
#define MC_ARCHIVE_PLACE_KEYS(at)                                                                                      \
    MC_KEY_TEXT("file", (at) + offsetof(mc_archive_place, file),                                                       \
                "Path of the archive; with {tileset}, {grid} and {dim} or {dim:NAME} one for each of them.",           \
                .flags = MC_KEY_WORKDIR | MC_KEY_OURS),                                                                \
        MC_KEY_URL("url", (at) + offsetof(mc_archive_place, url),                                                      \
                   "Address of the archive (http, https, or s3://BUCKET/KEY), instead of <file>: the archive is read " \
                   "by parts, nothing is stored.",                                                                     \
                   .flags = MC_KEY_OURS),                                                                              \
        MC_KEY_NUMBER("revalidate", (at) + offsetof(mc_archive_place, remote.revalidate),                              \
                      "Seconds for which an archive of <url> is taken for unchanged; an archive that was replaced is " \
                      "seen at once where a part of it has to be fetched.",                                            \
                      .max = 1e6, .fallback = "60", .flags = MC_KEY_OURS),                                             \
        MC_KEY_NUMBER("connection_timeout", (at) + offsetof(mc_archive_place, remote.connect_timeout),                 \
                      "Seconds to wait for a connection to <url>.", .min = 0.1, .max = 3600, .fallback = "5",          \
                      .flags = MC_KEY_OURS),                                                                           \
        MC_KEY_NUMBER("timeout", (at) + offsetof(mc_archive_place, remote.timeout),                                    \
                      "Seconds to wait for a part of <url>.", .min = 0.1, .max = 3600, .fallback = "30",               \
                      .flags = MC_KEY_OURS),                                                                           \
        MC_KEY_URL("endpoint", (at) + offsetof(mc_archive_place, endpoint),                                            \
                   "Address of the store that s3:// means, without it that of AWS_ENDPOINT_URL_S3, "                   \
                   "AWS_ENDPOINT_URL or the profile, or Amazon's.",                                                    \
                   .flags = MC_KEY_OURS),                                                                              \
        MC_AWS_KEYS((at) + offsetof(mc_archive_place, aws), MC_KEY_OURS)

/* After the keys of the cache `name` are read: looks whether they name one archive, and makes its address of s3://.
 * False after a complaint. */
bool mc_archive_place_prepare(mc_archive_place *place, const char *name, const mc_node *node, mc_build *build);

/* Looks at an archive on disk or behind HTTP (mc_ranges_look, mc_ranges_ask). */
mc_error *mc_archive_place_look(mc_ranged_file *file, const mc_archive_place *place, const char *path, mc_ctx *ctx,
                                apr_pool_t *pool) MC_CHECKED;

/* The address of the one archive of a place whose <url> has no tokens, encoded, of MC_PATH_MAX bytes. */
mc_error *mc_archive_place_address(char *url, const mc_archive_place *place, apr_pool_t *pool) MC_CHECKED;

/* The path or address of a tile's archive by the template made of the place, of MC_PATH_MAX bytes. */
mc_error *mc_archive_place_path(char *path, const mc_archive_place *place, const mc_template *template,
                                const mc_tile_key *key, apr_pool_t *pool) MC_CHECKED;

/* Encodes the path of an address in `url`, of MC_PATH_MAX bytes, as it is sent, and signed; but for the bytes in
 * `kept`. */
mc_error *mc_archive_encode_path(char *url, const char *kept, apr_pool_t *pool) MC_CHECKED;

#endif
