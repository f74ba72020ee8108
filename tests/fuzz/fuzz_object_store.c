/* What stores behind HTTP and sources of credentials say, files of credentials and of headers, and names of tiles from
 * clients: an answer is a tile, none or an error; an address stays below its template; what is signed has no line more
 * than it should. The first byte says which. */
#include "../../lib/cache/rest/aws_sources.c"
#include "../../lib/cache/rest/rest_list.c"

#include "cache/rest/aws_files.h"
#include "cache/rest/signed_headers.h"
#include "fuzz_support.h"

static const char *
input_text(const uint8_t *data, size_t size, apr_pool_t *pool)
{
    return apr_pstrmemdup(pool, (const char *)data, size); /* up to a zero byte, as files are read */
}

static void
read_credentials(const char *text, apr_pool_t *pool)
{
    mc_aws_secret secret;
    mc_aws_parse_file(&secret, text, "default", pool);
    mc_aws_profile profile = { .found = false };
    mc_aws_profile_parse(&profile, text, "default", pool);
    MC_ASSERT((secret.id == NULL) == (secret.key == NULL) && (secret.id != NULL || secret.token == NULL));
    MC_ASSERT(secret.id == NULL || (*secret.id != '\0' && strpbrk(secret.id, "\n") == NULL));
    MC_ASSERT(secret.token == NULL || strpbrk(secret.token, "\n") == NULL);
}

static int
check_line(void *baton, const char *name, const char *value)
{
    (void)baton;
    MC_ASSERT(mc_is_token(name, strlen(name)) && strpbrk(value, "\r\n") == NULL);
    return 1;
}

static void
read_headers(const char *text, apr_pool_t *pool)
{
    apr_table_t *headers = apr_table_make(pool, 4);
    mc_rest_header_lines(headers, text, pool);
    apr_table_do(check_line, NULL, headers, NULL);
    const char *lines, *names;
    mc_signed_texts(&lines, &names, headers, pool);
    MC_ASSERT(strcmp(lines, mc_signed_lines(headers, "", NULL, pool)) == 0);
    MC_ASSERT(strlen(names) <= strlen(lines) && (*names == '\0') == (*lines == '\0'));
    int count = 0;
    for (const char *at = lines; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    MC_ASSERT(count == apr_table_elts(headers)->nelts);
}

static void
judge_answer(const uint8_t *data, size_t size, apr_pool_t *pool)
{
    static const int statuses[] = { 200, 201, 204, 206, 301, 400, 401, 403, 404, 410, 416, 429, 500, 501, 503, 504 };
    double absent[] = { 404, 403 };
    const mc_rest_cache cache = { .base.cache.name = "c", .absent = { absent, 2 } };
    const char *code;
    mc_rest_ask ask = { .operation = (mc_rest_operation)(data[0] >> 4 & 3), .url = "http://store/a?sig=QzX81hidden" };
    ask.reply.status = statuses[data[0] & 15];
    ask.reply.framed = (data[0] & 64) != 0;
    ask.reply.headers = apr_table_make(pool, 4);
    const uint8_t *body = size == 1 ? NULL : memchr(data + 1, 0xff, size - 1);
    size_t head = body == NULL ? 0 : (size_t)(body - data) - 1;
    mc_rest_header_lines(ask.reply.headers, input_text(data + 1, head, pool), pool);
    body = body == NULL ? data + 1 : body + 1;
    ask.reply.body = mc_buf_attach(mc_buf_copy(body, (size_t)(data + size - body)), pool);
    mc_rest_judge(&ask, &code, &cache, pool);
    MC_ASSERT(!ask.absent || (ask.error == MC_OK && (ask.reply.status == 404 || ask.reply.status == 403)));
    MC_ASSERT(ask.error != MC_OK || ask.absent || ask.reply.status < 300);
    bool echoed = memmem(data, size, "QzX8", 4) != NULL; /* the store may say what it was told */
    MC_ASSERT(ask.error == MC_OK || echoed || strstr(mc_error_chain(ask.error, pool), "QzX81hidden") == NULL);
}

static void
read_source(const uint8_t *data, size_t size, apr_pool_t *pool)
{
    static const char *const names[] = { "AccessKeyId", "SecretAccessKey", "Token", "Expiration", "Code", "Other" };
    mc_aws_answer answer = { .expires = 0 };
    source_fields fields = { .answer = &answer, .pool = pool };
    const char *text = input_text(data, size, pool);
    mc_error_ignore(
        check_aws_answer(&answer, mc_rest_xml_value(text, strlen(text), "Expiration", pool), "a source", pool));
    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && *text != '\0'; i++) {
        size_t length = strcspn(text, "\n");
        mc_error_ignore(take_source_field(&fields, names[i], apr_pstrmemdup(pool, text, length)));
        text += length + (text[length] == '\n');
    }
    mc_error *error = check_aws_answer(&answer, fields.expiration, "a source", pool);
    MC_ASSERT(error != MC_OK || (answer.secret.id != NULL && *answer.secret.id != '\0' && answer.secret.key != NULL));
    (void)is_role_name(names[0]);
}

static int
one_leading_part(const mc_rest_cache *cache)
{
    (void)cache;
    return 1;
}

static bool
see_listed_tile(void *baton, int x, int y)
{
    (void)baton;
    MC_ASSERT(x >= 0 && x < 8 && y >= 0 && y < 4);
    return true;
}

/* A page of names, and where it goes on. */
static void
read_page(const uint8_t *data, size_t size, apr_pool_t *pool)
{
    mc_level levels[] = { { 1000, 1, 1 }, { 500, 8, 4 } };
    const mc_grid grid = { .name = "G", .level_count = 2, .levels = levels };
    const mc_template_rules rules = { .url = true };
    const mc_rest_lister lister = { one_leading_part, NULL, "Page", "Blob", "Name", "Size", "NextMarker" };
    mc_rest_cache cache = { .base.cache.name = "c", .lister = &lister };
    const mc_tile_range area = { 0, 0, 8, 4 };
    rest_listing listing = { .cache = &cache,
                             .key = { .tileset = "t", .grid = &grid, .z = 1, .extension = "png" },
                             .area = &area,
                             .visit = see_listed_tile };
    static const char end[] = "</Page>";
    bool possible;
    const char *last;
    cache.template = mc_template_compile("http://h/b/{tileset}/{z}/{inv_x}-{y}.{ext}", &rules, pool);
    mc_error *error = begin_listing(&listing, &possible, pool);
    MC_ASSERT(error == MC_OK && possible && strcmp(listing.prefix, "t/1/") == 0);
    error = take_listed_page(&listing, &last, (const char *)data, size, pool);
    if (error != MC_OK) { /* nearly always, as it does not end so */
        char *whole = apr_palloc(pool, size + sizeof(end));
        memcpy(whole, data, size);
        memcpy(whole + size, end, sizeof(end));
        data = (const uint8_t *)whole;
        size += sizeof(end) - 1;
        error = take_listed_page(&listing, &last, whole, size, pool);
    }
    if (error == MC_OK)
        error = find_next_page(&listing, last, (const char *)data, size, pool);
    MC_ASSERT(error != MC_OK || listing.ended || listing.after[0] != '\0');
}

/* The name of a layer, and a value of a dimension behind the first line. */
static void
build_address(const char *text, bool client_named, apr_pool_t *pool)
{
    mc_level levels[] = { { 1000, 1, 1 } };
    const mc_grid grid = { .name = "G", .level_count = 1, .levels = levels };
    const mc_template_rules rules = { .url = true };
    const mc_rest_cache cache = { .template = mc_template_compile("http://h/t/{tileset}/{dim:d}/{z}/{x}/{y}.{ext}",
                                                                  &rules, pool) };
    size_t length = strcspn(text, "\n");
    const mc_dimension_value value = { "d", text + length + (text[length] == '\n'), true };
    const mc_tile_key key = { .tileset = client_named ? apr_pstrmemdup(pool, text, length) : "ts",
                              .grid = &grid,
                              .extension = "png",
                              .dimension_count = 1,
                              .dimensions = &value,
                              .client_named = client_named };
    const char *url, *path;
    if (mc_rest_url(&url, &path, &cache, &key, pool) != MC_OK)
        return;
    MC_ASSERT(strncmp(url, "http://h/t/", 11) == 0 && path == url + 8);
    MC_ASSERT(strspn(path, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~/%+") == strlen(path));
    MC_ASSERT(strstr(path, "/../") == NULL && strstr(path, "/./") == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    if (size < 2)
        return 0;
    apr_pool_create(&pool, NULL);
    const char *text = input_text(data + 1, size - 1, pool);
    switch (data[0] % 6) {
    case 0:
        read_credentials(text, pool);
        break;
    case 1:
        read_headers(text, pool);
        break;
    case 2:
        judge_answer(data + 1, size - 1, pool);
        break;
    case 3:
        read_source(data + 1, size - 1, pool);
        break;
    case 4:
        read_page(data + 1, size - 1, pool);
        break;
    default:
        build_address(text, data[0] >= 128, pool);
    }
    apr_pool_destroy(pool);
    return 0;
}
