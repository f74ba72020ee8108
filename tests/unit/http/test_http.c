#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/metrics.h"
#include "http/http_counters.h"
#include "origin.h"

static origin o; /* of the test */

static void
set_up(void)
{
    unit_setup();
    o = origin_start();
}

static void
tear_down(void)
{
    origin_stop(&o);
    unit_teardown();
}

static mc_http_call
get(const char *path)
{
    return (mc_http_call){
        .method = "GET", .url = origin_url(&o, path), .connect_timeout = 5, .timeout = 20, .max_response = 1 << 20
    };
}

static mc_error *
send_call(mc_http_reply *reply, const mc_http_call *call)
{
    return mc_http_send(reply, process.http, call, &ctx, pool);
}

static const char *
body_text(const mc_http_reply *reply)
{
    return apr_pstrmemdup(pool, (const char *)reply->body->data, reply->body->size);
}

START_TEST(one_connection_serves_many_requests)
{
    mc_http_call call = get("/echo?a=b");
    for (int i = 0; i < 20; i++) {
        mc_http_reply reply;
        ck_ok(send_call(&reply, &call));
        ck_assert_int_eq(reply.status, 200);
        ck_assert_ptr_nonnull(strstr(body_text(&reply), "\"connection\": 1,"));
    }
    ck_assert_int_eq(origin_count(&o), 20);
}
END_TEST

START_TEST(without_idle_connections_each_request_has_its_own)
{
    mc_http *http = mc_http_create(0);
    mc_http_call call = get("/echo");
    mc_http_reply reply;
    ck_ok(mc_http_send(&reply, http, &call, &ctx, pool));
    ck_ok(mc_http_send(&reply, http, &call, &ctx, pool));
    ck_assert_ptr_nonnull(strstr(body_text(&reply), "\"connection\": 2,"));
    mc_http_destroy(http);
}
END_TEST

START_TEST(the_deadline_ends_a_request)
{
    mc_http_call call = get("/late/60000/wms");
    mc_http_reply reply;
    apr_time_t begin = mc_clock_now();
    ctx.deadline = begin + 2 * APR_USEC_PER_SEC; /* time enough to send it, also on a busy machine */
    ck_fails(TIMEOUT, send_call(&reply, &call));
    ck_assert_double_lt(seconds_since(begin), 30);
    ck_assert_double_ge(seconds_since(begin), 1.9);
    ctx.deadline = mc_clock_now() - 1;
    ck_fails(UNAVAILABLE, send_call(&reply, &call)); /* it has passed: nothing is sent */
    ck_assert_int_eq(origin_count(&o), 1);
}
END_TEST

START_TEST(the_timeout_covers_the_whole_transfer)
{
    mc_http_call call = get("/drip/1000?WIDTH=64&HEIGHT=64");
    call.timeout = 2.5;
    mc_http_reply reply;
    apr_time_t begin = mc_clock_now();
    ck_fails(TIMEOUT, send_call(&reply, &call));
    ck_assert_double_lt(seconds_since(begin), 20);
}
END_TEST

static apr_time_t gone_at;

static bool
has_gone(void *baton)
{
    (*(int *)baton)++;
    return mc_clock_now() > gone_at;
}

START_TEST(a_client_that_has_gone_ends_the_request)
{
    mc_http_call call = get("/late/60000/wms");
    mc_http_reply reply;
    int asked = 0;
    apr_time_t begin = mc_clock_now();
    gone_at = begin + 500 * 1000;
    ctx.abandoned = has_gone;
    ctx.abandoned_baton = &asked;
    ck_fails(UNAVAILABLE, send_call(&reply, &call));
    ck_assert_double_lt(seconds_since(begin), 30);
    ck_assert_int_lt(asked, 100 * (1 + (int)seconds_since(begin))); /* it waits, it does not spin */
}
END_TEST

START_TEST(five_redirects_are_followed_to_http_only)
{
    mc_http_reply reply;
    mc_http_call call = get("/redirect/5/echo?x=y");
    ck_ok(send_call(&reply, &call));
    ck_assert_ptr_nonnull(strstr(body_text(&reply), "\"path\": \"/echo\", \"query\": \"x=y\""));
    ck_assert_ptr_null(apr_table_get(reply.headers, "Location"));
    static const char *const refused[] = { "/redirect/6/echo", "/loop", "/elsewhere?to=file:///etc/passwd",
                                           "/elsewhere?to=ftp://127.0.0.1/", "/elsewhere?to=gopher://127.0.0.1/" };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        call = get(refused[i]);
        ck_fails(UPSTREAM, send_call(&reply, &call));
    }
    call = get("");
    call.url = "file:///etc/passwd";
    ck_fails(UPSTREAM, send_call(&reply, &call));
}
END_TEST

/* A store may send us to an address with a signature of its own. */
START_TEST(no_message_has_the_query_of_a_store)
{
    mc_http_reply reply;
    mc_http_call call = get("/elsewhere?to=http://127.0.0.1:1/tile?sig=sesame");
    call.store = true;
    mc_error *error = send_call(&reply, &call);
    ck_assert_ptr_nonnull(error);
    const char *why = mc_error_chain(error, pool);
    ck_assert_msg(strstr(why, "redirected to http://127.0.0.1:1/tile") != NULL && strstr(why, "sesame") == NULL, "%s",
                  why);
}
END_TEST

/* What the origin was sent with the last request, as its JSON says. */
static const char *
sent_after_redirect(const char *method, const char *path, const char *header, const char *value, const char *sent)
{
    mc_http_reply reply;
    mc_http_call call = get(path);
    apr_table_t *headers = apr_table_make(pool, 4);
    apr_table_setn(headers, header, value);
    apr_table_setn(headers, "Authorization", "Basic c2VjcmV0OndvcmQ=");
    apr_table_setn(headers, "Content-Type", "text/x-test");
    call.method = method;
    call.headers = headers;
    call.body = sent;
    call.body_size = sent == NULL ? 0 : strlen(sent);
    ck_ok(send_call(&reply, &call));
    ck_assert_int_eq(reply.status, 200);
    return body_text(&reply);
}

START_TEST(headers_end_with_their_origin)
{
    mc_http_destroy(process.http); /* the other origin makes one, too */
    origin other = origin_start();
    const char *inside = "/redirect/2/echo";
    const char *outside = apr_pstrcat(pool, "/elsewhere?to=", origin_url(&other, "/echo"), NULL);
    const char *back =
        apr_pstrcat(pool, "/elsewhere?to=", origin_url(&other, "/elsewhere"), "?to=", origin_url(&o, "/echo"), NULL);
    const char *text = sent_after_redirect("GET", inside, "X-Key", "swordfish", NULL);
    ck_assert(strstr(text, "swordfish") != NULL && strstr(text, "c2VjcmV0") != NULL);
    const char *const leads[] = { outside, back };
    for (int i = 0; i < 2; i++) {
        text = sent_after_redirect("GET", leads[i], "X-Key", "swordfish", NULL);
        ck_assert_msg(strstr(text, "\"path\": \"/echo\"") != NULL && strstr(text, "swordfish") == NULL &&
                          strstr(text, "c2VjcmV0") == NULL,
                      "%s", text);
    }
    text = sent_after_redirect("POST", outside, "X-Key", "swordfish", "all of it"); /* 302: a GET */
    ck_assert(strstr(text, "\"GET\"") != NULL && strstr(text, "all of it") == NULL &&
              strstr(text, "text/x-test") == NULL);
    mc_http_call call = get(outside);
    mc_http_reply reply;
    call.url = apr_psprintf(pool, "http://user:word@127.0.0.1%s", strchr(origin_url(&o, outside) + 7, ':'));
    ck_ok(send_call(&reply, &call));
    ck_assert_ptr_null(strstr(body_text(&reply), "uthorization"));
    call.url = apr_psprintf(
        pool, "http://user:word@127.0.0.1%s",
        strchr(origin_url(&o, apr_pstrcat(pool, "/elsewhere?to=", origin_url(&o, "/echo"), NULL)) + 7, ':'));
    ck_ok(send_call(&reply, &call)); /* to the same origin, by a whole URL */
    ck_assert_msg(strstr(body_text(&reply), "dXNlcjp3b3Jk") != NULL, "%s", body_text(&reply));
    origin_stop(&other);
}
END_TEST

START_TEST(answers_are_bounded)
{
    mc_http_reply reply;
    static const char *const large[] = { "/huge/100001", "/stream/100001", "/bomb/100001", "/bomb/50000000",
                                         "/headers/200" };
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
        mc_http_call call = get(large[i]);
        call.max_response = 100000;
        ck_fails(UPSTREAM, send_call(&reply, &call));
    }
    static const char *const fitting[] = { "/huge/100000", "/stream/100000", "/bomb/100000" };
    for (size_t i = 0; i < sizeof(fitting) / sizeof(fitting[0]); i++) {
        mc_http_call call = get(fitting[i]);
        call.max_response = 100000;
        ck_ok(send_call(&reply, &call));
        ck_assert_uint_eq(reply.body->size, 100000);
    }
}
END_TEST

START_TEST(gzip_is_undone)
{
    mc_http_call call = get("/gzip/echo");
    mc_http_reply reply;
    ck_ok(send_call(&reply, &call));
    ck_assert_ptr_nonnull(strstr(body_text(&reply), "\"accept-encoding\": \"gzip\""));
    ck_assert_ptr_null(apr_table_get(reply.headers, "Content-Encoding"));
    ck_assert_ptr_null(apr_table_get(reply.headers, "Content-Length"));
    ck_assert_str_eq(apr_table_get(reply.headers, "Content-Type"), "application/json");
}
END_TEST

START_TEST(messages_do_not_tell_the_url)
{
    mc_http_reply reply;
    mc_http_call call = get("/loop");
    call.url = apr_psprintf(pool, "http://user:pass%%40word@127.0.0.1:%d/loop?layer=1&key=hidden", o.port);
    mc_error *error = send_call(&reply, &call);
    ck_assert_ptr_nonnull(error);
    ck_assert_ptr_null(strstr(error->message, "127.0.0.1"));
    ck_assert_ptr_null(strstr(error->message, "loop"));
    const char *chain = mc_error_chain(error, pool);
    ck_assert_ptr_nonnull(strstr(chain, "/loop?layer=1&key=***"));
    ck_assert_ptr_null(strstr(chain, "word"));
    call = get("");
    call.url = "http://127.0.0.1:1/closed";
    error = send_call(&reply, &call);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->kind, MC_ERR_UPSTREAM);
    ck_assert_ptr_null(strstr(error->message, "127.0.0.1"));
    ck_assert_ptr_nonnull(strstr(mc_error_chain(error, pool), "127.0.0.1"));
}
END_TEST

START_TEST(headers_cannot_be_smuggled)
{
    apr_table_t *headers = apr_table_make(pool, 2);
    apr_table_set(headers, "X-Good", "a\r\nX-Evil: b");
    apr_table_set(headers, "X-Empty", "");
    mc_http_call call = get("/echo");
    call.headers = headers;
    mc_http_reply reply;
    ck_ok(send_call(&reply, &call));
    ck_assert_ptr_null(strstr(body_text(&reply), "\"x-evil\""));
    ck_assert_ptr_nonnull(strstr(body_text(&reply), "\"x-good\": \"a"));
    ck_assert_ptr_nonnull(strstr(body_text(&reply), "\"x-empty\": \"\""));
    ck_assert_ptr_nonnull(strstr(body_text(&reply), "\"user-agent\": \"mod-mapcache/"));
    apr_table_clear(headers);
    apr_table_set(headers, "User-Agent", "tester");
    ck_ok(send_call(&reply, &call));
    ck_assert_ptr_nonnull(strstr(body_text(&reply), "\"user-agent\": \"tester\""));
    static const char *const names[] = { "", "X Evil", "X-Evil:", "X\r\nEvil", "X\tEvil" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        apr_table_clear(headers);
        apr_table_set(headers, names[i], "a");
        ck_fails(CONFIG, send_call(&reply, &call));
    }
    ck_assert_int_eq(origin_count(&o), 2);
}
END_TEST

START_TEST(repeated_headers_of_the_answer_are_kept)
{
    mc_http_call call = get("/echo");
    mc_http_reply reply;
    ck_ok(send_call(&reply, &call));
    int count = 0;
    const apr_array_header_t *items = apr_table_elts(reply.headers);
    for (int i = 0; i < items->nelts; i++)
        count += strcmp(APR_ARRAY_IDX(items, i, apr_table_entry_t).key, "X-Echo") == 0;
    ck_assert_int_eq(count, 2);
}
END_TEST

START_TEST(methods_carry_bodies)
{
    static const char *const methods[] = { "POST", "PUT", "DELETE", "GET" };
    mc_http_reply reply;
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        mc_http_call call = get("/echo");
        call.method = methods[i];
        call.body = "{\"q\": \0}";
        call.body_size = 7;
        ck_ok(send_call(&reply, &call));
        ck_assert_str_eq(origin_last(&o, "method"), methods[i]);
        ck_assert_ptr_nonnull(strstr(body_text(&reply), "\"body\": \"{\\\"q\\\": \\u0000\""));
        ck_assert_ptr_null(strstr(body_text(&reply), "\"content-type\""));
        ck_assert_ptr_null(strstr(body_text(&reply), "\"expect\""));
        call.body = NULL;
        call.body_size = 0;
        ck_ok(send_call(&reply, &call));
        ck_assert_str_eq(origin_last(&o, "method"), methods[i]);
        ck_assert_str_eq(origin_last(&o, "body"), "");
    }
    mc_http_call call = get("/echo");
    call.method = "HEAD";
    ck_ok(send_call(&reply, &call));
    ck_assert_str_eq(origin_last(&o, "method"), "HEAD");
    ck_assert_uint_eq(reply.body->size, 0);
    ck_assert_str_eq(apr_table_get(reply.headers, "Content-Type"), "application/json");
}
END_TEST

START_TEST(statuses_are_answers_and_broken_transfers_are_errors)
{
    process.metrics = mc_metrics_create();
    mc_http_reply reply;
    mc_http_call call = get("/status/500");
    ck_ok(send_call(&reply, &call));
    ck_assert_int_eq(reply.status, 500);
    call = get("/status/404");
    ck_ok(send_call(&reply, &call));
    ck_assert_int_eq(reply.status, 404);
    static const char *const broken[] = { "/cut?WIDTH=64&HEIGHT=64", "/silent" };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        call = get(broken[i]);
        ck_fails(UPSTREAM, send_call(&reply, &call));
    }
    call = get("/huge/777");
    uint64_t before = mc_counter_value(process.metrics, MC_COUNT_origin_bytes_total);
    ck_ok(send_call(&reply, &call));
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_origin_requests_total), 5);
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_origin_errors_total), 3);
    ck_assert_uint_eq(mc_counter_value(process.metrics, MC_COUNT_origin_bytes_total) - before, 777);
    mc_metrics_destroy(process.metrics);
}
END_TEST

START_TEST(without_a_client_nothing_is_sent)
{
    mc_http_reply reply;
    mc_http_call call = { .method = "GET", .url = "http://127.0.0.1/" };
    ck_fails(UNAVAILABLE, mc_http_send(&reply, NULL, &call, &ctx, pool));
    mc_http_destroy(NULL);
}
END_TEST

enum { THREADS = 6, REQUESTS = 15 };
static atomic_int succeeded;
static const char *shared_url;

static void *
client(void *unused)
{
    (void)unused;
    apr_pool_t *own;
    apr_allocator_t *allocator;
    apr_allocator_create(&allocator);
    apr_pool_create_ex(&own, NULL, NULL, allocator);
    mc_ctx own_ctx = { .pool = own, .process = &process, .log = &mc_log_stderr };
    for (int i = 0; i < REQUESTS; i++) {
        mc_http_call call = { .method = "GET", .url = shared_url, .timeout = 20, .max_response = 1 << 20 };
        mc_http_reply reply;
        mc_error *error = mc_http_send(&reply, process.http, &call, &own_ctx, own);
        if (error == MC_OK && reply.status == 200 && reply.body->size > 0)
            atomic_fetch_add(&succeeded, 1);
    }
    apr_pool_destroy(own);
    apr_allocator_destroy(allocator);
    return NULL;
}

START_TEST(threads_share_a_client)
{
    shared_url = origin_url(&o, "/wms?LAYERS=red");
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, client, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(succeeded, THREADS * REQUESTS);
    ck_assert_int_eq(origin_count(&o), THREADS * REQUESTS);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { one_connection_serves_many_requests,
                                   without_idle_connections_each_request_has_its_own,
                                   the_deadline_ends_a_request,
                                   the_timeout_covers_the_whole_transfer,
                                   a_client_that_has_gone_ends_the_request,
                                   five_redirects_are_followed_to_http_only,
                                   no_message_has_the_query_of_a_store,
                                   headers_end_with_their_origin,
                                   answers_are_bounded,
                                   gzip_is_undone,
                                   messages_do_not_tell_the_url,
                                   headers_cannot_be_smuggled,
                                   repeated_headers_of_the_answer_are_kept,
                                   methods_carry_bodies,
                                   statuses_are_answers_and_broken_transfers_are_errors,
                                   without_a_client_nothing_is_sent,
                                   threads_share_a_client };
    return unit_run_between("http", tests, (int)(sizeof(tests) / sizeof(tests[0])), set_up, tear_down);
}
