/* Any text from outside: numbers agree with strtod, escapes come back, nothing dangerous is left in what was made safe.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz_support.h"
#include "text/text.h"

static apr_pool_t *pool;

int LLVMFuzzerInitialize(int *count, char ***values);
int
LLVMFuzzerInitialize(int *count, char ***values)
{
    (void)count;
    (void)values;
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : 1;
}

static void
check_numbers(const char *text)
{
    double numbers[8];
    int found;
    int64_t bytes;
    int whole;
    if (mc_parse_double(numbers, text)) {
        char *end;
        double expected = strtod(text, &end);
        MC_ASSERT(*end == '\0' && memcmp(&expected, numbers, sizeof(expected)) == 0);
    }
    if (mc_parse_doubles(numbers, 8, &found, text, ",") || mc_parse_doubles(numbers, 8, &found, text, " ,\t"))
        MC_ASSERT(found >= 0 && found <= 8);
    if (mc_parse_size(&bytes, text))
        MC_ASSERT(bytes >= 0);
    if (mc_parse_config_int(&whole, text, -5, 2000000))
        MC_ASSERT(whole >= -5 && whole <= 2000000);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_clear(pool);
    char *text = malloc(size + 1); /* of its own, so that a read beyond its end is seen */
    MC_ASSERT(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    check_numbers(text);
    mc_url_decode(text, size, false, pool);
    mc_query_parse(text, 50, pool);
    char *encoded = mc_url_encode(text, "/", false, true, pool);
    MC_ASSERT(strcmp(mc_url_decode(encoded, strlen(encoded), true, pool), text) == 0);
    MC_ASSERT(strpbrk(mc_xml_escape(text, pool), "<>\"'") == NULL);
    MC_ASSERT(strpbrk(mc_json_escape(text, pool), "\r\n\t") == NULL);
    MC_ASSERT(strpbrk(mc_header_value(text, pool), "\r\n") == NULL);
    const char *message = mc_message_text(text, 100, pool);
    MC_ASSERT(strlen(message) <= 310 && strpbrk(message, "\r\n\x1b") == NULL);
    mc_replace_all(text, "ab", "abab", pool);
    mc_text_distance(text, "metatile");
    mc_http_date(mc_http_date_parse(text), pool);
    free(text);
    return 0;
}
