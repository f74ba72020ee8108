/* See trace_context.h. */
#include "base/trace_context.h"

#include <apr_time.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { VENDORS_MAX = 512 };

/* A number of hexadecimal digits in lower case (2.2.1: upper case is not allowed). */
static bool
parse_lower_hex(uint64_t *number, const char *text, int digits)
{
    *number = 0;
    for (int i = 0; i < digits; i++) {
        char c = text[i];
        if (c >= '0' && c <= '9')
            *number = *number << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            *number = *number << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    return true;
}

static char *
put_lower_hex(char *to, uint64_t number, int digits)
{
    for (int i = digits - 1; i >= 0; i--, number >>= 4)
        to[i] = "0123456789abcdef"[number & 15];
    return to + digits;
}

/* Fields: version 0 to 1, trace 3 to 34, parent 36 to 51, flags 53 and 54. */
bool
mc_traceparent_parse(mc_trace_context *context, bool *sampled, const char *text)
{
    uint64_t version, trace[2], parent, flags;
    if (strnlen(text, MC_TRACEPARENT_SIZE) < MC_TRACEPARENT_SIZE - 1)
        return false;
    if (!parse_lower_hex(&version, text, 2) || text[2] != '-' || !parse_lower_hex(&trace[0], text + 3, 16) ||
        !parse_lower_hex(&trace[1], text + 19, 16) || text[35] != '-' || !parse_lower_hex(&parent, text + 36, 16) ||
        text[52] != '-' || !parse_lower_hex(&flags, text + 53, 2))
        return false;
    if (version == 0xff || (trace[0] | trace[1]) == 0 || parent == 0)
        return false;
    if (text[55] != '\0' && (version == 0 || text[55] != '-'))
        return false;
    context->trace[0] = trace[0];
    context->trace[1] = trace[1];
    context->parent = parent;
    *sampled = (flags & 1) != 0;
    return true;
}

bool
mc_tracestate_is_valid(const char *text)
{
    size_t size = strnlen(text, VENDORS_MAX + 1);
    if (size == 0 || size > VENDORS_MAX)
        return false;
    for (size_t i = 0; i < size; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return strchr(text, '=') != NULL;
}

/* splitmix64, by Sebastiano Vigna (public domain, https://prng.di.unimi.it/splitmix64.c): every number once. */
static uint64_t
mix_number(uint64_t number)
{
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

static _Thread_local struct {
    bool seeded;
    uint64_t state;
} generator;

static void
forget_seed(void)
{
    generator.seeded = false;
}

static void
watch_trace_forks(void)
{
    pthread_atfork(NULL, NULL, forget_seed);
}

static void
seed_generator(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_trace_forks);
    if (getrandom(&generator.state, sizeof(generator.state), GRND_NONBLOCK) != (ssize_t)sizeof(generator.state))
        generator.state = mix_number((uint64_t)apr_time_now() ^ (uint64_t)getpid() << 40 ^ (uintptr_t)&generator);
    generator.seeded = true;
}

uint64_t
mc_trace_random(void)
{
    if (__builtin_expect(!generator.seeded, 0))
        seed_generator();
    generator.state += UINT64_C(0x9e3779b97f4a7c15);
    return mix_number(generator.state);
}

/* The numbers of a context are made of one random one: there are 2^64 different traces. */
void
mc_trace_context_begin(mc_trace_context *context, uint64_t random)
{
    if ((context->trace[0] | context->trace[1]) == 0) {
        context->trace[0] = mix_number(random + 1);
        context->trace[1] = mix_number(random + 2) | 1;
    }
    context->root = mix_number(random + 3);
    if (context->root == 0)
        context->root = 1;
}

uint64_t
mc_trace_context_span(const mc_trace_context *context, unsigned number)
{
    if (number <= 1)
        return context->root;
    uint64_t id = mix_number(context->root + number);
    return id == 0 ? number : id;
}

void
mc_traceparent_format(char text[MC_TRACEPARENT_SIZE], const mc_trace_context *context, unsigned number)
{
    char *to = text;
    *to++ = '0';
    *to++ = '0';
    *to++ = '-';
    to = put_lower_hex(to, context->trace[0], 16);
    to = put_lower_hex(to, context->trace[1], 16);
    *to++ = '-';
    to = put_lower_hex(to, mc_trace_context_span(context, number), 16);
    *to++ = '-';
    to = put_lower_hex(to, context->sampled ? 1 : 0, 2);
    *to = '\0';
}

void
mc_trace_id_format(char text[MC_TRACE_ID_SIZE], const mc_trace_context *context)
{
    char *to = text;
    if ((context->trace[0] | context->trace[1]) != 0) {
        to = put_lower_hex(to, context->trace[0], 16);
        to = put_lower_hex(to, context->trace[1], 16);
    }
    *to = '\0';
}
