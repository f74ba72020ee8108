/* A line of an access log, in which clients have written: no byte behind the line is read, the parts lie in the line,
 * and nothing in the request ends it. */
#include <string.h>

#include "doctor/access_log.h"
#include "fuzz_support.h"
#include "mapcache/error.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* no byte of its own at the end: a sanitizer sees who reads on */
    char *exact = size == 0 ? text : realloc(text, size);
    memcpy(exact, data, size);
    mc_access_line line;
    if (mc_access_line_parse(&line, exact, size)) {
        MC_ASSERT(line.method >= exact && line.method_size > 0 && line.method + line.method_size < line.target);
        MC_ASSERT(line.target_size > 0 && line.target + line.target_size <= exact + size && *line.target == '/');
        MC_ASSERT(line.status >= 100 && line.status <= 599 && line.bytes >= -1);
        for (size_t i = 0; i < line.target_size; i++)
            MC_ASSERT((unsigned char)line.target[i] > ' ' && line.target[i] != '"' && line.target[i] != '\\');
    }
    free(exact);
    return 0;
}
