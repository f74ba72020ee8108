/* What clients say in Accept and Accept-Encoding: no text breaks the reader, weights keep to their limits, what is
 * added behind a list changes nothing that the list has named, and the case of letters means nothing. */
#include <apr_lib.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_support.h"
#include "mapcache/error.h"
#include "text/accept.h"

static const char *const names[] = { "image/png", "image/webp", "gzip", "br", "zstd", "identity", "*", "" };

static void
check_name(const char *list, const char *longer, const char *shouted, const char *name)
{
    mc_accept_match match, again, loud;
    int weight = mc_accept_share(&match, list, name);
    MC_ASSERT(weight >= 0 && weight <= MC_WEIGHT_MAX && match >= MC_NOT_NAMED && match <= MC_NAMED);
    MC_ASSERT(match != MC_NOT_NAMED || weight == 0);
    MC_ASSERT(mc_accept_share(&loud, shouted, name) == weight && loud == match);
    int added = mc_accept_share(&again, longer, name);
    MC_ASSERT(again >= match && (again > match || added == weight));
}

static void
check_choice(const char *accept)
{
    int chosen = mc_accept_choose(accept, names, 6), most = 0;
    for (int i = 0; i < 6; i++) {
        int weight = mc_accept_weight(accept, names[i]);
        MC_ASSERT(weight >= 0 && weight <= MC_WEIGHT_MAX);
        most = weight > most ? weight : most;
    }
    MC_ASSERT(chosen >= -1 && chosen < 6 && (chosen < 0) == (most == 0));
    MC_ASSERT(chosen < 0 || mc_accept_weight(accept, names[chosen]) == most);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char more[] = ",*/*;q=0.5,image/*,gzip;q=0,br";
    char *list = malloc(size + 1), *longer = malloc(size + sizeof(more)), *shouted = malloc(size + 1);
    memcpy(list, data, size);
    list[size] = '\0';
    size_t length = strlen(list);
    memcpy(longer, list, length);
    memcpy(longer + length, more, sizeof(more));
    for (size_t i = 0; i <= length; i++)
        shouted[i] = (char)apr_toupper(list[i]);
    bool open = strchr(list, '"') != NULL; /* what stands behind an open quote is in it */
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        check_name(list, open ? list : longer, shouted, names[i]);
    check_choice(list);
    free(list);
    free(longer);
    free(shouted);
    return 0;
}
