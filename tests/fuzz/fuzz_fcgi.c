/* The FastCGI record parser with any bytes, cut in pieces whose sizes the input decides too. */
#include "../../cgi/records.c"

#include "fuzz_support.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    apr_pool_t *pool;
    apr_pool_create_unmanaged(&pool);
    mc_fcgi_parser parser;
    mc_fcgi_bodies bodies = { 0 };
    mc_fcgi_init(&parser, &bodies, pool);
    size_t step = data[0] + 1U;
    data++;
    size--;
    mc_fcgi_event event = MC_FCGI_MORE;
    while (size > 0 && event != MC_FCGI_BROKEN) {
        size_t part = step < size ? step : size;
        size_t left = part;
        event = mc_fcgi_feed(&parser, &data, &left);
        size -= part - left;
        MC_ASSERT(event != MC_FCGI_MORE || left == 0);
        if (event == MC_FCGI_BODY)
            parser.body_limit = step * 8; /* some are too long */
        MC_ASSERT(bodies.bytes == parser.body_counted);
        if (event == MC_FCGI_REQUEST || event == MC_FCGI_ABORT) {
            apr_table_t *variables;
            if (mc_fcgi_variables(&variables, parser.params->data, parser.params->size, pool))
                MC_ASSERT(apr_table_elts(variables)->nelts <= MC_FCGI_VARIABLES_MAX);
            mc_fcgi_finish(&parser);
        }
        parser.replies->size = 0;
    }
    mc_fcgi_destroy(&parser);
    apr_pool_destroy(pool);
    return 0;
}
