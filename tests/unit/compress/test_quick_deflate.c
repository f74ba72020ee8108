#include "compress/quick_deflate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

#include "unit.h"

enum { SIZE = 200000, ROOM = 2 * SIZE };

static uint8_t data[SIZE], expected[ROOM], made[ROOM], expanded[SIZE];

/* Rows that repeat a first one of noise: what begins it is found again in the next one only by its entry. */
static void
fill(unsigned seed, size_t size)
{
    size_t row = size < 4000 ? size / 3 + 1 : 1000;
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525 + 1013904223;
        data[i] = i < row ? (uint8_t)(seed >> 24) : data[i - row];
    }
}

/* CRC-32C of four bytes, bit by bit. */
static uint32_t
crc(uint32_t bytes)
{
    for (int i = 0; i < 32; i++)
        bytes = bytes >> 1 ^ ((bytes & 1) != 0 ? 0x82f63b78u : 0);
    return bytes;
}

/* Memory whose address has, in bits 16 to 47, the hash of some bytes of the data: it used to change what is written.
 * *next: where the search goes on. */
static void *
unlucky(uint64_t *next, const uint8_t *bytes, size_t size)
{
    uint32_t wanted;
    memcpy(&wanted, bytes, 4);
    for (wanted = crc(wanted); *next < UINT64_C(0x7fff0000); ++*next) {
        if (((crc((uint32_t)*next) ^ wanted) & 8191) != 0)
            continue;
        void *address = (void *)(uintptr_t)(*next << 16);
        void *memory =
            mmap(address, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        ++*next;
        if (memory == address)
            return memory;
        if (memory != MAP_FAILED)
            munmap(memory, size);
    }
    return NULL;
}

static void
check_expands(const uint8_t *stream, size_t written, size_t size)
{
    uLongf found = sizeof(expanded);
    ck_assert_int_eq(uncompress(expanded, &found, stream, written), Z_OK);
    ck_assert_uint_eq(found, size);
    ck_assert_mem_eq(expanded, data, size);
}

START_TEST(the_same_input_gives_the_same_bytes_wherever_memory_lies)
{
    static const size_t sizes[] = { 3, 300, 900, 2000, SIZE };
    size_t room = mc_quick_deflate_memory();
    uint8_t *memory = aligned_alloc(64, (room + 63) & ~(size_t)63);
    int places = 0;
    for (unsigned seed = 1; seed < 12; seed += 3)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            uint64_t next = 0x55550000;
            fill(seed, sizes[s]);
            size_t length = mc_quick_deflate(memory, expected, ROOM, data, sizes[s], false);
            ck_assert_uint_gt(length, 0);
            check_expands(expected, length, sizes[s]);
            for (int turn = 0; turn < 6; turn++) {
                void *other = unlucky(&next, data + turn % 3, room);
                if (other == NULL)
                    break;
                places++;
                memset(other, 0xa5, room);
                ck_assert_uint_eq(mc_quick_deflate(other, made, ROOM, data, sizes[s], false), length);
                ck_assert_mem_eq(made, expected, length);
                munmap(other, room);
            }
        }
    ck_assert_int_gt(places, 0);
    free(memory);
}
END_TEST

START_TEST(what_does_not_fit_is_told)
{
    uint8_t *memory = aligned_alloc(64, (mc_quick_deflate_memory() + 63) & ~(size_t)63);
    fill(7, SIZE);
    size_t length = mc_quick_deflate(memory, made, ROOM, data, SIZE, true);
    ck_assert_uint_gt(length, 18);
    ck_assert_int_eq(made[0] << 8 | made[1], 0x1f8b);
    ck_assert_uint_eq(mc_quick_deflate(memory, made, length / 2, data, SIZE, true), 0);
    free(memory);
}
END_TEST

#ifdef __x86_64__

/* What is in the upper halves of the vector registers, without changing them. */
static inline void
store_vector_registers(uint8_t registers[16][32])
{
#define STORE(NUMBER) "vmovups %%ymm" #NUMBER ", 32*" #NUMBER "(%0)\n\t"
    __asm__ volatile(STORE(0) STORE(1) STORE(2) STORE(3) STORE(4) STORE(5) STORE(6) STORE(7) STORE(8) STORE(9) STORE(10)
                         STORE(11) STORE(12) STORE(13) STORE(14) STORE(15)
                     :
                     : "r"(registers)
                     : "memory");
#undef STORE
}

/* Else all that comes behind is slow that is made of instructions of SSE. */
START_TEST(upper_halves_of_vector_registers_are_free_again)
{
    static uint8_t registers[16][32];
    if (!__builtin_cpu_supports("avx"))
        return;
    uint8_t *memory = aligned_alloc(64, (mc_quick_deflate_memory() + 63) & ~(size_t)63);
    fill(7, SIZE);
    size_t length = mc_quick_deflate(memory, made, ROOM, data, SIZE, true);
    store_vector_registers(registers);
    ck_assert_uint_gt(length, 0);
    for (int i = 0; i < 16; i++)
        for (int byte = 16; byte < 32; byte++)
            ck_assert_uint_eq(registers[i][byte], 0);
    free(memory);
}
END_TEST

#else

START_TEST(upper_halves_of_vector_registers_are_free_again)
{
} /* there are none, or ISA-L is not used */
END_TEST

#endif

#ifdef __x86_64__
UNIT_MAIN("quick_deflate", the_same_input_gives_the_same_bytes_wherever_memory_lies, what_does_not_fit_is_told,
          upper_halves_of_vector_registers_are_free_again)
#else
UNIT_MAIN("quick_deflate", the_same_input_gives_the_same_bytes_wherever_memory_lies, what_does_not_fit_is_told)
#endif
