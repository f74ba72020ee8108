/* The least that FastCGI costs: argv[1] threads answer the bytes of the file argv[2], through libfcgi. */
#include <fcgiapp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static char body[1 << 20];
static int size;

static void *
serve_connections(void *unused)
{
    FCGX_Request request;
    FCGX_InitRequest(&request, 0, 0);
    while (FCGX_Accept_r(&request) >= 0) {
        FCGX_FPrintF(request.out,
                     "Content-Type: image/jpeg\r\nETag: \"0123456789abcdef\"\r\nCache-Control: "
                     "max-age=300\r\nContent-Length: %d\r\n\r\n",
                     size);
        FCGX_PutStr(body, size, request.out);
        FCGX_Finish_r(&request);
    }
    return unused;
}

int
main(int argc, char **argv)
{
    FILE *file = argc > 2 ? fopen(argv[2], "rb") : NULL;
    if (file == NULL)
        return 1;
    size = (int)fread(body, 1, sizeof(body), file);
    FCGX_Init();
    for (int i = 1; i < atoi(argv[1]); i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, serve_connections, NULL);
    }
    serve_connections(NULL);
    return 0;
}
