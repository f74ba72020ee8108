/* What all fuzz targets share: the entry, and APR ready before it is called. */
#ifndef MC_FUZZ_SUPPORT_H
#define MC_FUZZ_SUPPORT_H

#include <apr_general.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

__attribute__((constructor)) static void
start_apr(void)
{
    if (apr_initialize() != APR_SUCCESS)
        abort();
}

#endif
