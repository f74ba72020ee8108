/*
 * Profiles of AWS's own programs: sections of ~/.aws/config and ~/.aws/credentials (AWS SDKs and Tools Reference Guide,
 * "Shared config and credentials files").
 */
#ifndef MC_CACHE_REST_AWS_PROFILE_H
#define MC_CACHE_REST_AWS_PROFILE_H

#include "cache/rest/sigv4.h"
#include "mapcache/error.h"

/* The next line without blanks at its ends; *at moves on. NULL: there is none. */
const char *mc_aws_next_line(const char **at, apr_pool_t *pool);

/* What a profile says; NULL where it says nothing. */
typedef struct mc_aws_profile {
    bool found; /* one of the files has the section */
    mc_aws_secret secret;
    const char *region, *endpoint;                  /* of S3 */
    const char *role, *role_session, *external_id;  /* to be assumed */
    const char *source_profile, *credential_source; /* whose credentials assume it */
    const char *identity_file;                      /* or a web identity does */
    const char *unsupported;                        /* the key of a way to credentials that is not to be had here */
} mc_aws_profile;

/* Adds what the section of that name in the text says; keys of an access key replace those that are there. */
void mc_aws_profile_parse(mc_aws_profile *profile, const char *text, const char *name, apr_pool_t *pool);

/* The profile by both files, either of which may be NULL or not there; the file of credentials goes first. MC_ERR_IO
 * where one cannot be read. */
mc_error *mc_aws_profile_read(mc_aws_profile *profile, const char *name, const char *config_file,
                              const char *credentials_file, apr_pool_t *pool) MC_CHECKED;

#endif
