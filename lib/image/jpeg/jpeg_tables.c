/* Which Huffman tables go with which quantisation, and whether they suffice. */
#include "image/jpeg/jpeg_tables.h"

#include <stdlib.h>
#include <string.h>

/* The quantisation tables that quality scales (ITU-T T.81, tables K.1 and K.2), row by row. */
static const uint8_t base_steps[2][DCTSIZE2] = {
    { 16, 11,  10,  16, 24, 40, 51, 61, 12,  12,  14,  19,  26, 58, 60, 55,  14,  13,  16,  24, 40, 57,
      69, 56,  14,  17, 22, 29, 51, 87, 80,  62,  18,  22,  37, 56, 68, 109, 103, 77,  24,  35, 55, 64,
      81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98,  112, 100, 103, 99 },
    { 17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
      99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
      99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99 },
};

/* The order in which a block's coefficients are coded (figure A.6 of T.81). */
static const uint8_t zigzag[DCTSIZE2] = { 0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                          12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                          35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                          58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63 };

/* Whether no step is finer than at `quality`: then no coefficient is larger than the tables of that quality know. */
static bool
steps_suffice(const JQUANT_TBL *table, const uint8_t base[DCTSIZE2], int quality)
{
    unsigned scale = quality < 50 ? 5000u / (unsigned)quality : 200u - 2 * (unsigned)quality;
    for (int i = 0; table != NULL && i < DCTSIZE2; i++) {
        unsigned least = (base[i] * scale + 50) / 100;
        if (table->quantval[i] < (least > 1 ? least : 1))
            return false;
    }
    return table != NULL;
}

static unsigned
count_codes(const JHUFF_TBL *table)
{
    unsigned count = 0;
    for (int length = 1; length <= 16; length++)
        count += table->bits[length];
    return count < sizeof(table->huffval) ? count : sizeof(table->huffval);
}

static const mc_jpeg_trained *
find_trained(const struct jpeg_compress_struct *writer)
{
    for (int i = 0; i + 1 < MC_JPEG_TRAINED; i++) {
        const mc_jpeg_trained *trained = &mc_jpeg_trained_tables[i];
        bool suffice = true;
        for (int c = 0; suffice && c < writer->num_components; c++) {
            const jpeg_component_info *component = &writer->comp_info[c];
            suffice = steps_suffice(writer->quant_tbl_ptrs[component->quant_tbl_no],
                                    base_steps[component->ac_tbl_no == 0 ? 0 : 1], trained->quality);
        }
        if (suffice)
            return trained;
    }
    return &mc_jpeg_trained_tables[MC_JPEG_TRAINED - 1];
}

static void
set_codes(JHUFF_TBL *table, const uint8_t *trained)
{
    memcpy(table->bits + 1, trained, 16);
    memcpy(table->huffval, trained + 16, count_codes(table));
}

void
mc_jpeg_use_trained(struct jpeg_compress_struct *writer)
{
    const mc_jpeg_trained *trained = find_trained(writer);
    for (int i = 0; i < 2; i++) {
        set_codes(writer->dc_huff_tbl_ptrs[i], trained->tables[i][0]);
        set_codes(writer->ac_huff_tbl_ptrs[i], trained->tables[i][1]);
    }
}

static bool
has_code(const JHUFF_TBL *table, unsigned symbol)
{
    return memchr(table->huffval, (int)symbol, count_codes(table)) != NULL;
}

static bool
has_codes_of(const JHUFF_TBL *table, const JHUFF_TBL *other)
{
    for (unsigned i = 0; other != NULL && i < count_codes(other); i++)
        if (!has_code(table, other->huffval[i]))
            return false;
    return other != NULL;
}

/* Whether the writer has all codes of the file itself: so most files need no look at their coefficients, whose tables
 * were made for each image. */
static bool
has_codes_of_file(struct jpeg_decompress_struct *reader, const struct jpeg_compress_struct *writer)
{
    if (reader->arith_code || jpeg_has_multiple_scans(reader))
        return false;
    for (int c = 0; c < reader->num_components; c++) {
        const jpeg_component_info *from = &reader->comp_info[c], *to = &writer->comp_info[c];
        if (!has_codes_of(writer->dc_huff_tbl_ptrs[to->dc_tbl_no], reader->dc_huff_tbl_ptrs[from->dc_tbl_no]) ||
            !has_codes_of(writer->ac_huff_tbl_ptrs[to->ac_tbl_no], reader->ac_huff_tbl_ptrs[from->ac_tbl_no]))
            return false;
    }
    return true;
}

/* The number of bits that a coefficient of this size takes after its code. */
static unsigned
count_magnitude_bits(int largest)
{
    unsigned bits = 0;
    for (; largest > 0; largest >>= 1)
        bits++;
    return bits;
}

/* The largest magnitudes of a component's coefficients, over all of its blocks. */
static void
find_largest(int largest[DCTSIZE2], struct jpeg_decompress_struct *reader, jvirt_barray_ptr coefficients,
             const jpeg_component_info *component)
{
    JCOEF most[DCTSIZE2] = { 0 }, least[DCTSIZE2] = { 0 };
    for (JDIMENSION y = 0; y < component->height_in_blocks; y++) {
        JBLOCKARRAY row = reader->mem->access_virt_barray((j_common_ptr)reader, coefficients, y, 1, FALSE);
        for (JDIMENSION x = 0; x < component->width_in_blocks; x++) {
            const JCOEF *block = row[0][x];
            for (int i = 0; i < DCTSIZE2; i++) {
                most[i] = block[i] > most[i] ? block[i] : most[i];
                least[i] = block[i] < least[i] ? block[i] : least[i];
            }
        }
    }
    for (int i = 0; i < DCTSIZE2; i++)
        largest[i] = most[i] > -least[i] ? most[i] : -least[i];
}

bool
mc_jpeg_codes_all(struct jpeg_decompress_struct *reader, jvirt_barray_ptr *coefficients,
                  const struct jpeg_compress_struct *writer)
{
    if (has_codes_of_file(reader, writer))
        return true;
    for (int c = 0; c < reader->num_components; c++) {
        int largest[DCTSIZE2];
        find_largest(largest, reader, coefficients[c], &reader->comp_info[c]);
        /* A difference of two DC coefficients is at most twice as large as they are. */
        if (!has_code(writer->dc_huff_tbl_ptrs[writer->comp_info[c].dc_tbl_no], count_magnitude_bits(2 * largest[0])))
            return false;
        /* The symbol of the longest run of zeros that may stand before a coefficient: the tables that have it have
         * those of shorter runs, too. */
        const JHUFF_TBL *table = writer->ac_huff_tbl_ptrs[writer->comp_info[c].ac_tbl_no];
        for (unsigned k = 1; k < DCTSIZE2; k++) {
            unsigned bits = count_magnitude_bits(largest[zigzag[k]]), run = k - 1 < 15 ? k - 1 : 15;
            if (bits > 0 && (bits > 10 || !has_code(table, run << 4 | bits)))
                return false;
        }
    }
    return true;
}
