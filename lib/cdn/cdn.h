/* <cdn>: a cache in front of the server, a CDN or a proxy. Part of a configuration. */
#ifndef MC_CDN_CDN_H
#define MC_CDN_CDN_H

#include <apr_tables.h>

#include "mapcache/config.h"

/* How such a cache is told. */
typedef enum mc_cdn_type { MC_CDN_VARNISH, MC_CDN_FASTLY, MC_CDN_NGINX } mc_cdn_type;

typedef struct mc_cdn {
    const char *name;
    mc_cdn_type type;
    apr_array_header_t *urls; /* of const char *: each is told */
    apr_table_t *headers;     /* of the requests; secrets stand here */
    const char *method;       /* of requests that name addresses */
    bool soft;                /* what is purged may still be shown while it is asked for anew */
    int batch;                /* keys of a request */
    double delay;             /* seconds from the moment when a change was seen to the purge */
    double timeout;           /* seconds of a request */
    int max_age;              /* seconds that the cache may keep what it is given; 0: as all others */
    uint64_t definition;      /* hash of all this */
} mc_cdn;

/* Those of a configuration, and what they read of an answer. */
typedef struct mc_cdns {
    apr_array_header_t *all;         /* of mc_cdn * */
    apr_array_header_t *key_headers; /* of const char *: names of headers with surrogate keys, each once */
    apr_array_header_t *age_headers; /* of mc_cdn_age */
} mc_cdns;

/* A header that tells one type of cache how long to keep an answer: "NAME: PREFIXseconds". */
typedef struct mc_cdn_age {
    const char *header, *prefix;
    const char *value; /* of an answer that is fresh for max_age */
    int max_age;
} mc_cdn_age;

extern const mc_key mc_cdn_keys[];

/* nodes: the elements <cdn> (const mc_node *). NULL: there are none, or none is left after complaints. */
const mc_cdns *mc_cdns_from_config(const apr_array_header_t *nodes, mc_build *build);

#endif
