/* The FastCGI record parser and writer: whole and cut input, bounds, refusals. */
#include "../../../cgi/records.c"

#include "unit.h"

static uint8_t wire[400000];
static size_t wire_size;

static void
add_record(uint8_t type, uint16_t id, const void *content, size_t size, uint8_t padding)
{
    write_header(wire + wire_size, type, id, size);
    wire[wire_size + 6] = padding;
    wire_size += MC_FCGI_HEADER_SIZE;
    if (size > 0)
        memcpy(wire + wire_size, content, size);
    memset(wire + wire_size + size, 0xee, padding);
    wire_size += size + padding;
}

static void
add_begin(uint16_t id, uint8_t role, uint8_t flags)
{
    const uint8_t content[8] = { 0, role, flags };
    add_record(BEGIN_REQUEST, id, content, sizeof(content), 0);
}

static const char pairs[] = "\x0e\x03REQUEST_METHODGET\x09\x05PATH_INFO/a/b\0\x0c\x00QUERY_STRING";

static void
add_request(uint16_t id, const char *body)
{
    add_begin(id, ROLE_RESPONDER, KEEP_CONNECTION);
    add_record(PARAMS, id, pairs, 31, 3); /* cut inside a pair, as a web server may */
    add_record(PARAMS, id, pairs + 31, sizeof(pairs) - 1 - 31, 0);
    add_record(PARAMS, id, NULL, 0, 0);
    if (*body != '\0')
        add_record(STDIN, id, body, strlen(body), 1);
    add_record(STDIN, id, NULL, 0, 2);
}

static mc_fcgi_bodies bodies;
static size_t body_limit = MC_FCGI_BODY_MAX;

/* As a connection does whose service reads bodies of that size. */
static mc_fcgi_event
feed_part(mc_fcgi_parser *parser, const uint8_t **data, size_t *size)
{
    mc_fcgi_event event = mc_fcgi_feed(parser, data, size);
    if (event != MC_FCGI_BODY)
        return event;
    ck_assert_uint_eq(parser->body_limit, 0);
    parser->body_limit = body_limit;
    return mc_fcgi_feed(parser, data, size);
}

static mc_fcgi_event
feed_all(mc_fcgi_parser *parser)
{
    const uint8_t *data = wire;
    size_t size = wire_size;
    return feed_part(parser, &data, &size);
}

START_TEST(takes_a_request_cut_anywhere)
{
    for (size_t step = 1; step < 80; step++) {
        mc_fcgi_parser parser;
        mc_fcgi_init(&parser, &bodies, pool);
        wire_size = 0;
        add_request(7, "hello");
        mc_fcgi_event event = MC_FCGI_MORE;
        for (size_t at = 0; at < wire_size; at += step) {
            ck_assert_int_eq(event, MC_FCGI_MORE);
            const uint8_t *data = wire + at;
            size_t size = step < wire_size - at ? step : wire_size - at;
            event = feed_part(&parser, &data, &size);
            ck_assert_uint_eq(size, 0);
        }
        ck_assert_int_eq(event, MC_FCGI_REQUEST);
        ck_assert(parser.keep && parser.active && parser.request_id == 7);
        ck_assert_uint_eq(parser.body->size, 5);
        ck_assert_mem_eq(parser.body->data, "hello", 5);
        apr_table_t *variables;
        ck_assert(mc_fcgi_variables(&variables, parser.params->data, parser.params->size, pool));
        ck_assert_str_eq(apr_table_get(variables, "REQUEST_METHOD"), "GET");
        ck_assert_str_eq(apr_table_get(variables, "PATH_INFO"), "/a/b");
        mc_fcgi_destroy(&parser);
    }
}
END_TEST

START_TEST(stops_behind_a_request)
{
    mc_fcgi_parser parser;
    mc_fcgi_init(&parser, &bodies, pool);
    wire_size = 0;
    add_request(1, "");
    size_t first = wire_size;
    add_request(2, "x");
    const uint8_t *data = wire;
    size_t size = wire_size;
    ck_assert_int_eq(feed_part(&parser, &data, &size), MC_FCGI_REQUEST);
    ck_assert_uint_eq(size, wire_size - first);
    ck_assert_ptr_null(parser.body);
    mc_fcgi_finish(&parser);
    ck_assert_int_eq(feed_part(&parser, &data, &size), MC_FCGI_REQUEST);
    ck_assert_uint_eq(parser.request_id, 2);
    ck_assert_uint_eq(parser.params->size, sizeof(pairs) - 1);
    mc_fcgi_destroy(&parser);
}
END_TEST

START_TEST(refuses_what_is_not_fastcgi)
{
    static const struct {
        const char *bytes;
        size_t size;
    } broken[] = {
        { "GET / HTTP/1.1\r\n", 16 },
        { "\x02\x01\x00\x01\x00\x08\x00\x00", 8 },
        { "\x01\x01\x00\x01\x00\x00\x00\x00", 8 },                                  /* begin without content */
        { "\x01\x01\x00\x00\x00\x08\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00", 16 }, /* begin of request 0 */
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        mc_fcgi_parser parser;
        mc_fcgi_init(&parser, &bodies, pool);
        const uint8_t *data = (const uint8_t *)broken[i].bytes;
        size_t size = broken[i].size;
        ck_assert_int_eq(feed_part(&parser, &data, &size), MC_FCGI_BROKEN);
        mc_fcgi_destroy(&parser);
    }
}
END_TEST

START_TEST(ends_input_only_after_params)
{
    mc_fcgi_parser parser;
    mc_fcgi_init(&parser, &bodies, pool);
    wire_size = 0;
    add_begin(1, ROLE_RESPONDER, 0);
    add_record(STDIN, 1, NULL, 0, 0);
    ck_assert_int_eq(feed_all(&parser), MC_FCGI_BROKEN);
    mc_fcgi_destroy(&parser);
}
END_TEST

START_TEST(refuses_other_roles_and_second_requests)
{
    mc_fcgi_parser parser;
    mc_fcgi_init(&parser, &bodies, pool);
    wire_size = 0;
    add_begin(3, 2, 0);
    add_begin(1, ROLE_RESPONDER, 0);
    add_begin(2, ROLE_RESPONDER, 0);
    add_record(PARAMS, 2, "xx", 2, 0);
    add_record(STDIN, 9, NULL, 0, 0);
    ck_assert_int_eq(feed_all(&parser), MC_FCGI_MORE);
    ck_assert_uint_eq(parser.replies->size, 32);
    ck_assert_int_eq(parser.replies->data[3], 3);
    ck_assert_int_eq(parser.replies->data[12], UNKNOWN_ROLE);
    ck_assert_int_eq(parser.replies->data[16 + 3], 2);
    ck_assert_int_eq(parser.replies->data[16 + 12], CANT_MULTIPLEX);
    ck_assert_uint_eq(parser.params->size, 0);
    wire_size = 0;
    add_record(MC_FCGI_ABORT_REQUEST, 1, NULL, 0, 0);
    ck_assert_int_eq(feed_all(&parser), MC_FCGI_ABORT);
    mc_fcgi_destroy(&parser);
}
END_TEST

START_TEST(bounds_params_and_replies)
{
    static const uint8_t much[65535];
    mc_fcgi_parser parser;
    mc_fcgi_init(&parser, &bodies, pool);
    wire_size = 0;
    add_begin(1, ROLE_RESPONDER, 0);
    for (int i = 0; i < 5; i++)
        add_record(PARAMS, 1, much, sizeof(much), 0);
    add_record(PARAMS, 1, NULL, 0, 0);
    add_record(STDIN, 1, NULL, 0, 0);
    ck_assert_int_eq(feed_all(&parser), MC_FCGI_REQUEST);
    ck_assert(parser.params_too_long);
    ck_assert_uint_le(parser.params->capacity, MC_FCGI_PARAMS_MAX);
    mc_fcgi_finish(&parser);
    ck_assert(!parser.params_too_long);

    wire_size = 0;
    for (int i = 0; i < 5000; i++)
        add_record(99, 0, NULL, 0, 0);
    ck_assert_int_eq(feed_all(&parser), MC_FCGI_BROKEN);
    ck_assert_uint_le(parser.replies->size, REPLIES_MAX);
    mc_fcgi_destroy(&parser);
}
END_TEST

/* A request whose variables are there and whose body is as long. */
static void
add_body(uint16_t id, size_t size)
{
    static const uint8_t much[32768];
    add_begin(id, ROLE_RESPONDER, KEEP_CONNECTION);
    add_record(PARAMS, id, pairs, sizeof(pairs) - 1, 0);
    add_record(PARAMS, id, NULL, 0, 0);
    for (; size > 0; size -= size < sizeof(much) ? size : sizeof(much))
        add_record(STDIN, id, much, size < sizeof(much) ? size : sizeof(much), 0);
}

START_TEST(keeps_bodies_that_somebody_reads)
{
    static const struct {
        size_t limit, size;
        mc_fcgi_loss loss;
    } cases[] = { { 0, 1, MC_FCGI_TOO_LONG },
                  { 10, 10, MC_FCGI_KEPT },
                  { 10, 11, MC_FCGI_TOO_LONG },
                  { 40000, 40000, MC_FCGI_KEPT },
                  { 40000, 70000, MC_FCGI_TOO_LONG } };
    mc_fcgi_parser parser;
    mc_fcgi_init(&parser, &bodies, pool);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        wire_size = 0;
        add_body(1, cases[i].size);
        body_limit = cases[i].limit;
        ck_assert_int_eq(feed_all(&parser), MC_FCGI_MORE);
        ck_assert_int_eq(parser.body_loss, cases[i].loss);
        bool kept = cases[i].loss == MC_FCGI_KEPT;
        ck_assert((parser.body != NULL) == kept && (bodies.bytes > 0) == kept);
        ck_assert(!kept || (parser.body->size == cases[i].size && bodies.bytes == parser.body->capacity));
        wire_size = 0;
        add_record(STDIN, 1, NULL, 0, 0);
        ck_assert_int_eq(feed_all(&parser), MC_FCGI_REQUEST);
        mc_fcgi_finish(&parser);
        ck_assert_uint_eq(bodies.bytes, 0);
        ck_assert_int_eq(parser.body_loss, MC_FCGI_KEPT);
    }
    mc_fcgi_destroy(&parser);
    body_limit = MC_FCGI_BODY_MAX;
}
END_TEST

START_TEST(all_bodies_have_one_budget)
{
    mc_fcgi_parser one, other;
    mc_fcgi_init(&one, &bodies, pool);
    mc_fcgi_init(&other, &bodies, pool);
    wire_size = 0;
    add_body(1, 100000);
    ck_assert_int_eq(feed_all(&one), MC_FCGI_MORE);
    size_t kept = bodies.bytes;
    atomic_fetch_add(&bodies.bytes, MC_FCGI_BODIES_MAX - kept); /* others have the rest */
    ck_assert_int_eq(feed_all(&other), MC_FCGI_MORE);
    ck_assert_int_eq(other.body_loss, MC_FCGI_NO_ROOM);
    ck_assert_ptr_null(other.body);
    ck_assert_uint_eq(bodies.bytes, MC_FCGI_BODIES_MAX);
    mc_fcgi_destroy(&one);
    ck_assert_uint_eq(bodies.bytes, MC_FCGI_BODIES_MAX - kept);
    mc_fcgi_finish(&other);
    ck_assert_int_eq(feed_all(&other), MC_FCGI_MORE);
    ck_assert_int_eq(other.body_loss, MC_FCGI_KEPT);
    mc_fcgi_destroy(&other);
    bodies.bytes = 0;
}
END_TEST

START_TEST(variables_come_before_a_body)
{
    mc_fcgi_parser parser;
    mc_fcgi_init(&parser, &bodies, pool);
    wire_size = 0;
    add_begin(1, ROLE_RESPONDER, 0);
    add_record(STDIN, 1, "x", 1, 0);
    ck_assert_int_eq(feed_all(&parser), MC_FCGI_BROKEN);
    mc_fcgi_destroy(&parser);
}
END_TEST

START_TEST(contradictions_are_left_out)
{
    static const uint8_t said[] =
        "\x08\x01HTTP_X_A1\x08\x01http_x_a2\x08\x01HTTP_X_A1\x08\x01HTTP_X_B1\x08\x01HTTP_X_B1\x01\x01"
        "C1\x01\x01"
        "C2";
    apr_table_t *variables;
    ck_assert(mc_fcgi_variables(&variables, said, sizeof(said) - 1, pool));
    ck_assert_ptr_null(apr_table_get(variables, "HTTP_X_A"));
    ck_assert_str_eq(apr_table_get(variables, "HTTP_X_B"), "1");
    ck_assert_str_eq(apr_table_get(variables, "C"), "2");
}
END_TEST

START_TEST(says_values_once)
{
    static const char asked[] = "\x0f\x00"
                                "FCGI_MPXS_CONNS"
                                "\x0f\x00"
                                "FCGI_MPXS_CONNS"
                                "\x05\x00"
                                "OTHER"
                                "\xff";
    mc_fcgi_parser parser;
    mc_fcgi_init(&parser, &bodies, pool);
    wire_size = 0;
    add_record(GET_VALUES, 0, asked, sizeof(asked) - 1, 0);
    ck_assert_int_eq(feed_all(&parser), MC_FCGI_MORE);
    ck_assert_uint_eq(parser.replies->size, MC_FCGI_HEADER_SIZE + 18);
    ck_assert_mem_eq(parser.replies->data + MC_FCGI_HEADER_SIZE,
                     "\x0f\x01"
                     "FCGI_MPXS_CONNS0",
                     18);
    mc_fcgi_destroy(&parser);
}
END_TEST

START_TEST(refuses_malformed_pairs)
{
    static const struct {
        const char *bytes;
        size_t size;
    } bad[] = { { "\x05", 1 },
                { "\x05\x05name", 6 },
                { "\x80\x00\x00", 3 },
                { "\xff\xff\xff\xff\xff\xff\xff\xff", 8 },
                { "\x01\x80\x00\x00\x05xab", 8 } };
    apr_table_t *variables;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert(!mc_fcgi_variables(&variables, (const uint8_t *)bad[i].bytes, bad[i].size, pool));
    ck_assert(mc_fcgi_variables(&variables, NULL, 0, pool));
    ck_assert(apr_is_empty_table(variables));
    static const uint8_t empty_pairs[2 * (MC_FCGI_VARIABLES_MAX + 1)];
    ck_assert(mc_fcgi_variables(&variables, empty_pairs, sizeof(empty_pairs) - 2, pool));
    ck_assert(!mc_fcgi_variables(&variables, empty_pairs, sizeof(empty_pairs), pool));
    ck_assert(mc_fcgi_variables(&variables,
                                (const uint8_t *)"\x01\x01"
                                                 "a1"
                                                 "\x01\x01"
                                                 "a2",
                                8, pool));
    ck_assert_str_eq(apr_table_get(variables, "a"), "2");
}
END_TEST

/* Sends an output `step` bytes at a time and gives the standard output that the records carry. */
static mc_buf *
sent_content(mc_fcgi_output *output, size_t step)
{
    mc_buf *all = mc_buf_attach(mc_buf_create(0, 10000000), pool);
    bool more = true;
    while (more) {
        const struct iovec *vector = &output->vectors[output->next];
        size_t part = choose_smaller_size(step, vector->iov_len);
        ck_ok(mc_buf_append(all, vector->iov_base, part, pool));
        more = mc_fcgi_output_sent(output, part);
    }
    mc_buf *content = mc_buf_attach(mc_buf_create(0, 10000000), pool);
    size_t at = 0;
    bool stream_ended = false;
    while (at < all->size) {
        const uint8_t *record = all->data + at;
        size_t size = (size_t)record[4] << 8 | record[5];
        ck_assert_int_eq(record[0], 1);
        ck_assert_int_eq(record[3], 9);
        if (record[1] == STDOUT) {
            ck_assert(!stream_ended);
            ck_ok(mc_buf_append(content, record + MC_FCGI_HEADER_SIZE, size, pool));
            stream_ended = size == 0;
        } else {
            ck_assert_int_eq(record[1], END_REQUEST);
            ck_assert(stream_ended);
            ck_assert_uint_eq(at + MC_FCGI_HEADER_SIZE + size, all->size);
        }
        at += MC_FCGI_HEADER_SIZE + size + record[6];
    }
    return content;
}

START_TEST(writes_bodies_of_any_size)
{
    static const size_t sizes[] = { 0, 1, 65523, 65524, 65525, 131051, 131052, 131053, 1000000 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint8_t *head = (uint8_t *)apr_palloc(pool, MC_FCGI_HEADER_SIZE + 4) + MC_FCGI_HEADER_SIZE;
        memcpy(head, "head", 4);
        uint8_t *body = apr_palloc(pool, sizes[i] + 1);
        for (size_t j = 0; j < sizes[i]; j++)
            body[j] = (uint8_t)(j * 7 + j / 251);
        mc_fcgi_output output;
        mc_fcgi_respond(&output, 9, head, 4, sizes[i] == 0 ? NULL : body, sizes[i], pool);
        mc_buf *content = sent_content(&output, i % 2 == 0 ? 4000 : 1000000);
        ck_assert_uint_eq(content->size, 4 + sizes[i]);
        ck_assert_mem_eq(content->data, "head", 4);
        ck_assert_mem_eq(content->data + 4, body, sizes[i]);
    }
}
END_TEST

UNIT_MAIN("records", takes_a_request_cut_anywhere, stops_behind_a_request, refuses_what_is_not_fastcgi,
          ends_input_only_after_params, refuses_other_roles_and_second_requests, bounds_params_and_replies,
          keeps_bodies_that_somebody_reads, all_bodies_have_one_budget, variables_come_before_a_body,
          contradictions_are_left_out, says_values_once, refuses_malformed_pairs, writes_bodies_of_any_size)
