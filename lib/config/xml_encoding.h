/* Text of a configuration in whatever encoding, as UTF-8. */
#ifndef MC_CONFIG_XML_ENCODING_H
#define MC_CONFIG_XML_ENCODING_H

#include <apr_pools.h>
#include <stddef.h>

/* What could not be read as the file says. */
typedef struct mc_xml_stray {
    int count;        /* bytes that are no UTF-8 */
    int line, column; /* of the first one */
    const char *unknown_encoding;
} mc_xml_stray;

/* The text as UTF-8, in `pool`, with a zero byte behind it. `text` has a zero byte behind it, too. Characters keep
 * their lines and columns. */
const char *mc_xml_to_utf8(size_t *converted_size, mc_xml_stray *stray, const char *text, size_t size,
                           apr_pool_t *pool);

#endif
