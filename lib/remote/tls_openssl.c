/* The module of TLS: OpenSSL 3, certificates of servers always checked. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "remote/tls.h"

extern const mc_tls_engine mc_tls_openssl;

static mc_error *
tls_refusal(mc_error_kind kind, const char *what, apr_pool_t *pool)
{
    char reason[200] = "";
    unsigned long code = ERR_get_error();
    if (code != 0)
        ERR_error_string_n(code, reason, sizeof(reason));
    ERR_clear_error();
    return mc_error_create(pool, kind, "%s%s%s", what, code == 0 ? "" : ": ", reason);
}

static mc_error *
load_tls_files(SSL_CTX *context, const mc_remote_tls *tls, apr_pool_t *pool)
{
    bool trusted = tls->authorities == NULL ? SSL_CTX_set_default_verify_paths(context) == 1
                                            : SSL_CTX_load_verify_file(context, tls->authorities) == 1;
    if (!trusted)
        return tls_refusal(MC_ERR_CONFIG, "the certificates of authorities cannot be read", pool);
    if (tls->certificate != NULL && SSL_CTX_use_certificate_chain_file(context, tls->certificate) != 1)
        return tls_refusal(MC_ERR_CONFIG, "the client's certificate cannot be read", pool);
    const char *key = tls->key == NULL ? tls->certificate : tls->key;
    if (key != NULL && SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
        return tls_refusal(MC_ERR_CONFIG, "the key of the client's certificate cannot be read", pool);
    return MC_OK;
}

static mc_error *
tls_prepare(void **settings, const mc_remote_tls *tls, apr_pool_t *pool)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context == NULL)
        return tls_refusal(MC_ERR_UNAVAILABLE, "TLS is not to be had", pool);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF); /* a server that is killed says no goodbye */
    mc_error *error = load_tls_files(context, tls, pool);
    if (error == MC_OK)
        *settings = context;
    else
        SSL_CTX_free(context);
    return error;
}

static void
tls_forget(void *settings)
{
    SSL_CTX_free(settings);
}

/* As OpenSSL's own way to write to a socket, but a connection that has ended raises no SIGPIPE. */
static int
write_without_signal(BIO *bio, const char *bytes, int size)
{
    int descriptor;
    BIO_get_fd(bio, &descriptor);
    BIO_clear_retry_flags(bio);
    ssize_t sent = send(descriptor, bytes, (size_t)size, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)sent;
}

static BIO_METHOD *quiet_socket; /* NULL: no memory */

static void
make_quiet_socket(void)
{
    const BIO_METHOD *usual = BIO_s_socket();
    quiet_socket = BIO_meth_new(BIO_TYPE_SOCKET, "socket without signals");
    if (quiet_socket == NULL)
        return;
    BIO_meth_set_write(quiet_socket, write_without_signal);
    BIO_meth_set_read(quiet_socket, BIO_meth_get_read(usual));
    BIO_meth_set_ctrl(quiet_socket, BIO_meth_get_ctrl(usual));
    BIO_meth_set_create(quiet_socket, BIO_meth_get_create(usual));
    BIO_meth_set_destroy(quiet_socket, BIO_meth_get_destroy(usual));
}

static bool
set_tls_socket(SSL *ssl, int descriptor)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_quiet_socket);
    BIO *bio = quiet_socket == NULL ? NULL : BIO_new(quiet_socket);
    if (bio == NULL)
        return false;
    BIO_set_fd(bio, descriptor, BIO_NOCLOSE);
    SSL_set_bio(ssl, bio, bio);
    return true;
}

static mc_tls_session *
tls_begin(void *settings, int descriptor, const char *host)
{
    SSL *ssl = SSL_new(settings);
    if (ssl == NULL)
        return NULL;
    X509_VERIFY_PARAM *wanted = SSL_get0_param(ssl);
    bool named = X509_VERIFY_PARAM_set1_ip_asc(wanted, host) == 1 ||
                 (SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1);
    ERR_clear_error(); /* a name is no address */
    if (!named || !set_tls_socket(ssl, descriptor)) {
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_connect_state(ssl);
    return (mc_tls_session *)ssl;
}

/* What OpenSSL waits for; 0: nothing that could come. */
static short
tls_events(SSL *ssl, int result)
{
    switch (SSL_get_error(ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return POLLIN;
    case SSL_ERROR_WANT_WRITE:
        return POLLOUT;
    default:
        return 0;
    }
}

static mc_error *
tls_shake(mc_tls_wish *wish, mc_tls_session *session, apr_pool_t *pool)
{
    SSL *ssl = (SSL *)session;
    ERR_clear_error();
    int result = SSL_connect(ssl);
    wish->events = 0;
    if (result == 1)
        return MC_OK;
    wish->events = tls_events(ssl, result);
    if (wish->events != 0)
        return MC_OK;
    long verdict = SSL_get_verify_result(ssl);
    if (verdict != X509_V_OK) {
        ERR_clear_error();
        return mc_error_create(pool, MC_ERR_FORBIDDEN,
                               "the certificate: %s (<tls_authorities> says who signs it, <tls_name> its name)",
                               X509_verify_cert_error_string(verdict));
    }
    return tls_refusal(MC_ERR_IO, "TLS cannot be agreed on (does the server want <tls> at this port?)", pool);
}

static ssize_t
end_tls_transfer(SSL *ssl, int result, mc_tls_wish *wish)
{
    if (result > 0)
        return result;
    wish->events = tls_events(ssl, result);
    ERR_clear_error();
    return wish->events != 0 ? -1 : 0;
}

static int
tls_size(size_t size)
{
    return size > 1 << 20 ? 1 << 20 : (int)size;
}

static ssize_t
tls_send(mc_tls_session *session, const void *bytes, size_t size, mc_tls_wish *wish)
{
    SSL *ssl = (SSL *)session;
    ERR_clear_error();
    return end_tls_transfer(ssl, SSL_write(ssl, bytes, tls_size(size)), wish);
}

static ssize_t
tls_receive(mc_tls_session *session, void *bytes, size_t size, mc_tls_wish *wish)
{
    SSL *ssl = (SSL *)session;
    ERR_clear_error();
    return end_tls_transfer(ssl, SSL_read(ssl, bytes, tls_size(size)), wish);
}

static bool
tls_has_unread(const mc_tls_session *session)
{
    return SSL_pending((const SSL *)session) > 0;
}

static void
tls_end(mc_tls_session *session)
{
    SSL_free((SSL *)session);
}

const mc_tls_engine mc_tls_openssl = {
    .prepare = tls_prepare,
    .forget = tls_forget,
    .begin = tls_begin,
    .shake = tls_shake,
    .send = tls_send,
    .receive = tls_receive,
    .has_unread = tls_has_unread,
    .end = tls_end,
};
