/* Digests against the examples of their standards. */
#include "unit.h"

#include "digest/digest.h"
#include "digest/digest_blocks.h"

static void
expect_digest(const uint8_t *digest, size_t size, const char *wanted)
{
    char text[MC_SHA256_HEX];
    mc_hex_text(text, digest, size);
    ck_assert_str_eq(text, wanted);
}

static void
expect_sha256(const void *data, size_t size, const char *wanted)
{
    uint8_t digest[MC_SHA256_BYTES];
    mc_sha256(digest, data, size);
    expect_digest(digest, sizeof(digest), wanted);
}

/* FIPS 180-4 and its examples. */
START_TEST(sha256_of_the_standard)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    expect_sha256("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_sha256("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_sha256(two_blocks, 56, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = apr_palloc(pool, 1000000);
    memset(million, 'a', 1000000);
    expect_sha256(million, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
END_TEST

/* What this processor has no instructions for is hashed by the same code twice. */
START_TEST(instructions_and_plain_code_agree)
{
    uint8_t bytes[7 * MC_SHA256_BLOCK + 1];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 131 + (i >> 3));
    for (size_t count = 0; count <= 7; count++)
        for (size_t shift = 0; shift <= 1; shift++) {
            uint32_t plain[8] = { 1, 2, 3, 4, 5, 6, 0xfffffff7, 0x80000000 }, native[8];
            memcpy(native, plain, sizeof(plain));
            mc_sha256_blocks_plain(plain, bytes + shift, count);
            if (mc_sha256_has_instructions())
                mc_sha256_blocks_native(native, bytes + shift, count);
            else
                mc_sha256_blocks_plain(native, bytes + shift, count);
            ck_assert_mem_eq(plain, native, sizeof(plain));
        }
}
END_TEST

/* RFC 4231, cases 1, 2 and 6. */
START_TEST(hmac_sha256_of_the_standard)
{
    static const char larger[] = "Test Using Larger Than Block-Size Key - Hash Key First";
    uint8_t digest[MC_SHA256_BYTES], key[131];
    memset(key, 0x0b, 20);
    mc_hmac_sha256(digest, key, 20, "Hi There", 8);
    expect_digest(digest, 32, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    mc_hmac_sha256(digest, "Jefe", 4, "what do ya want for nothing?", 28);
    expect_digest(digest, 32, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof(key));
    mc_hmac_sha256(digest, key, sizeof(key), larger, strlen(larger));
    expect_digest(digest, 32, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    memcpy(digest, "Jefe", 4);
    mc_hmac_sha256(digest, digest, 4, "what do ya want for nothing?", 28); /* the digest is the key */
    expect_digest(digest, 32, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}
END_TEST

/* RFC 2202, 3, cases 1, 2 and 6. */
START_TEST(hmac_sha1_of_the_standard)
{
    static const char larger[] = "Test Using Larger Than Block-Size Key - Hash Key First";
    uint8_t digest[MC_SHA1_BYTES], key[80];
    memset(key, 0x0b, 20);
    mc_hmac_sha1(digest, key, 20, "Hi There", 8);
    expect_digest(digest, 20, "b617318655057264e28bc0b6fb378c8ef146be00");
    mc_hmac_sha1(digest, "Jefe", 4, "what do ya want for nothing?", 28);
    expect_digest(digest, 20, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
    memset(key, 0xaa, sizeof(key));
    mc_hmac_sha1(digest, key, sizeof(key), larger, strlen(larger));
    expect_digest(digest, 20, "aa4ae5e15272d00e95705637ce8a3b55ed402112");
}
END_TEST

/* RFC 1321, A.5. */
START_TEST(md5_of_the_standard)
{
    uint8_t digest[MC_MD5_BYTES];
    mc_md5(digest, "message digest", 14);
    expect_digest(digest, 16, "f96b697d7cb7938d525a2f31aaf161d0");
}
END_TEST

/* RFC 3720, B.4, and the check of the catalogue of CRCs. */
START_TEST(crc32c_of_the_standard)
{
    uint8_t bytes[32];
    memset(bytes, 0, sizeof(bytes));
    ck_assert_uint_eq(mc_crc32c(bytes, sizeof(bytes)), 0x8a9136aa);
    memset(bytes, 0xff, sizeof(bytes));
    ck_assert_uint_eq(mc_crc32c(bytes, sizeof(bytes)), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    ck_assert_uint_eq(mc_crc32c(bytes, sizeof(bytes)), 0x46dd794e);
    ck_assert_uint_eq(mc_crc32c("123456789", 9), 0xe3069283);
    ck_assert_uint_eq(mc_crc32c("", 0), 0);
}
END_TEST

UNIT_MAIN("digest", crc32c_of_the_standard, sha256_of_the_standard, instructions_and_plain_code_agree,
          hmac_sha256_of_the_standard, hmac_sha1_of_the_standard, md5_of_the_standard)
