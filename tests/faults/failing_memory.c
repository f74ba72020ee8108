/*
 * A library for LD_PRELOAD that refuses memory: the first four bytes of the file that FAILING_MEMORY names are a number
 * N; while N is not 0, every Nth allocation of the process fails as if nothing were left. Who has the file open changes
 * N at any time. A crash says on stderr in whose code: a line "crash:", then a line for each frame. The test's own
 * clock, libfaketime, which does not look at what malloc() returns, is refused nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

typedef void *mmap_function(void *address, size_t size, int protection, int flags, int file, off_t offset);

static const atomic_uint *every;
static atomic_uint asked;
static mmap_function *real_mmap;
static uintptr_t clock_begin, clock_end; /* the code of libfaketime */

static int
find_clock(struct dl_phdr_info *object, size_t size, void *baton)
{
    (void)size;
    (void)baton;
    if (strstr(object->dlpi_name, "libfaketime") == NULL)
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_LOAD && (object->dlpi_phdr[i].p_flags & PF_X) != 0) {
            clock_begin = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
            clock_end = clock_begin + object->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

/* The process ends by the same signal when this returns. */
static void
report_crash(int number)
{
    void *frames[48];
    static const char head[] = "crash:\n";
    (void)number;
    if (write(STDERR_FILENO, head, sizeof(head) - 1) > 0)
        backtrace_symbols_fd(frames, backtrace(frames, 48), STDERR_FILENO);
}

__attribute__((constructor)) static void
find_order(void)
{
    void *frame;
    struct sigaction action = { .sa_handler = report_crash, .sa_flags = (int)SA_RESETHAND };
    (void)backtrace(&frame, 1); /* it loads what it needs now, not in the crash */
    dl_iterate_phdr(find_clock, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    const char *path = getenv("FAILING_MEMORY");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    real_mmap = (mmap_function *)dlsym(RTLD_NEXT, "mmap");
    if (file < 0 || real_mmap == NULL)
        return;
    void *seen = real_mmap(NULL, sizeof(*every), PROT_READ, MAP_SHARED, file, 0);
    if (seen != MAP_FAILED)
        every = seen;
    close(file);
}

static int
refuse_memory(const void *caller)
{
    unsigned n = every == NULL ? 0 : atomic_load_explicit(every, memory_order_relaxed);
    if (n == 0 || ((uintptr_t)caller >= clock_begin && (uintptr_t)caller < clock_end))
        return 0;
    if (atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed) % n != n - 1)
        return 0;
    errno = ENOMEM;
    return 1;
}

void *
malloc(size_t size)
{
    return refuse_memory(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *
calloc(size_t count, size_t size)
{
    return refuse_memory(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *
realloc(void *old, size_t size)
{
    return refuse_memory(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}

/* APR takes the memory of its pools by mmap(). Files and stacks of threads are mapped as ever. */
void *
mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    if (real_mmap == NULL)
        real_mmap = (mmap_function *)dlsym(RTLD_NEXT, "mmap");
    if ((flags & MAP_ANONYMOUS) != 0 && (flags & MAP_STACK) == 0 && refuse_memory(__builtin_return_address(0)))
        return MAP_FAILED;
    return real_mmap(address, size, protection, flags, file, offset);
}
