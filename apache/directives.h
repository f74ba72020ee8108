/* The directives of the module: httpd, and the manual page mod_mapcache(8), read the same rows. */
#ifndef MC_APACHE_DIRECTIVES_H
#define MC_APACHE_DIRECTIVES_H

/* X(name, values, function, help) */
#define MC_APACHE_DIRECTIVES(X)                                                                                        \
    X("MapCacheAlias", "PATH FILE [quick]", set_alias,                                                                 \
      "URL path, mapcache configuration file, and optionally the word 'quick' to answer before authentication and "    \
      "authorisation")

#endif
