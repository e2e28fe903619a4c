"""Fingerprint of 64-bit words: the hash of states and of signal tables.

Four lanes of 128 bits take pairs of words in turn, each by a round of AES (FIPS 197: SubBytes, ShiftRows,
MixColumns), here for its diffusion alone:

    lane <- round(lane) ^ (first word, second word)

The fourth takes the last word where their number is odd. Then the first lane takes the others, with two rounds for
each (one would bring what has just changed in two lanes to the same four bytes, by one byte of SubBytes each: 1 in
127 would cancel), goes through two more and its halves are added bit by bit. Lanes begin with the seed and the number
of words, each beside constants of its own. The round is one-to-one: a word that differs changes its lane, and a
change of one bit (signs of doubles) is one of four bytes after a round and of all sixteen after two, so that changes
of several words do not cancel but by chance. Not made against an opponent.

Words are integers and their bytes are taken from the lowest on, whatever the order of the processor: the same double
is the same word anywhere. Processors of x86 have the round as one instruction, two thirds of an instruction a word
with all; others go through a table, some forty.
"""

from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    """
    #ifndef TORQUELOOP_FINGERPRINT_H
    #define TORQUELOOP_FINGERPRINT_H
    #include <stdint.h>
    #include <string.h>
    /* where lanes begin: beside the seed, and beside the number of words */
    static const uint64_t tl_lane_begin[4][2] = {
        {0x9E3779B97F4A7C15U, 0xC2B2AE3D27D4EB4FU}, {0xA0761D6478BD642FU, 0x589965CC75374CC3U},
        {0xE7037ED1A0B428DBU, 0x1D8E4E27C47D124FU}, {0x8EBC6AF09C88C6E3U, 0xEB44ACCAB455D165U}};

    static const uint8_t tl_sub_bytes[256] = {
        99, 124, 119, 123, 242, 107, 111, 197, 48, 1, 103, 43, 254, 215, 171, 118,
        202, 130, 201, 125, 250, 89, 71, 240, 173, 212, 162, 175, 156, 164, 114, 192,
        183, 253, 147, 38, 54, 63, 247, 204, 52, 165, 229, 241, 113, 216, 49, 21,
        4, 199, 35, 195, 24, 150, 5, 154, 7, 18, 128, 226, 235, 39, 178, 117,
        9, 131, 44, 26, 27, 110, 90, 160, 82, 59, 214, 179, 41, 227, 47, 132,
        83, 209, 0, 237, 32, 252, 177, 91, 106, 203, 190, 57, 74, 76, 88, 207,
        208, 239, 170, 251, 67, 77, 51, 133, 69, 249, 2, 127, 80, 60, 159, 168,
        81, 163, 64, 143, 146, 157, 56, 245, 188, 182, 218, 33, 16, 255, 243, 210,
        205, 12, 19, 236, 95, 151, 68, 23, 196, 167, 126, 61, 100, 93, 25, 115,
        96, 129, 79, 220, 34, 42, 144, 136, 70, 238, 184, 20, 222, 94, 11, 219,
        224, 50, 58, 10, 73, 6, 36, 92, 194, 211, 172, 98, 145, 149, 228, 121,
        231, 200, 55, 109, 141, 213, 78, 169, 108, 86, 244, 234, 101, 122, 174, 8,
        186, 120, 37, 46, 28, 166, 180, 198, 232, 221, 116, 31, 75, 189, 139, 138,
        112, 62, 181, 102, 72, 3, 246, 14, 97, 53, 87, 185, 134, 193, 29, 158,
        225, 248, 152, 17, 105, 217, 142, 148, 155, 30, 135, 233, 206, 85, 40, 223,
        140, 161, 137, 13, 191, 230, 66, 104, 65, 153, 45, 15, 176, 84, 187, 22,
    };

    /* SubBytes and MixColumns of the first byte of a column; of the others the same, turned by as many bytes */
    static uint32_t tl_column[256];

    __attribute__((constructor)) static void tl_make_columns(void)
    {
        int i;
        for (i = 0; i < 256; i++) {
            const uint32_t s = tl_sub_bytes[i], twice = (s << 1 ^ (s >> 7) * 0x1B) & 0xFF;
            tl_column[i] = twice | s << 8 | s << 16 | (twice ^ s) << 24;
        }
    }

    typedef struct { uint64_t lo, hi; } tl_pair;

    #define TL_COLUMN(word, bits) tl_column[(word) >> (bits) & 0xFF]
    #define TL_TURNED(x, bits) ((x) << (bits) | (x) >> (32 - (bits)))

    /* a column of the round: its bytes are those of four columns (ShiftRows), one of each */
    static inline uint32_t tl_round_column(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
    {
        const uint32_t second = TL_COLUMN(b, 8), third = TL_COLUMN(c, 16), fourth = TL_COLUMN(d, 24);
        return TL_COLUMN(a, 0) ^ TL_TURNED(second, 8) ^ TL_TURNED(third, 16) ^ TL_TURNED(fourth, 24);
    }

    /* round(lane) ^ (lo, hi) */
    static inline tl_pair tl_round(tl_pair lane, uint64_t lo, uint64_t hi)
    {
        const uint32_t a = (uint32_t)lane.lo, b = (uint32_t)(lane.lo >> 32);
        const uint32_t c = (uint32_t)lane.hi, d = (uint32_t)(lane.hi >> 32);
        lane.lo = lo ^ tl_round_column(a, b, c, d) ^ (uint64_t)tl_round_column(b, c, d, a) << 32;
        lane.hi = hi ^ tl_round_column(c, d, a, b) ^ (uint64_t)tl_round_column(d, a, b, c) << 32;
        return lane;
    }

    static uint64_t tl_fingerprint_plain(uint64_t seed, const char* p, int64_t words)
    {
        tl_pair lane[4];
        uint64_t word[2];
        int64_t i;
        for (i = 0; i < 4; i++) {
            lane[i].lo = seed ^ tl_lane_begin[i][0];
            lane[i].hi = (uint64_t)words ^ tl_lane_begin[i][1];
        }
        for (i = 0; i + 2 <= words; i += 2) {
            memcpy(word, p + 8 * i, 16);
            lane[i / 2 & 3] = tl_round(lane[i / 2 & 3], word[0], word[1]);
        }
        if (i < words) {
            memcpy(word, p + 8 * i, 8);
            lane[3] = tl_round(lane[3], word[0], 0);
        }
        for (i = 1; i < 4; i++)
            lane[0] = tl_round(tl_round(lane[0], 0, 0), lane[i].lo, lane[i].hi);
        lane[0] = tl_round(tl_round(lane[0], 0, 0), 0, 0);
        return lane[0].lo ^ lane[0].hi;
    }

    static uint64_t (*tl_fingerprint)(uint64_t, const char*, int64_t) = tl_fingerprint_plain;

    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    #define TL_TAKE(lane, k) lane = _mm_aesenc_si128(lane, _mm_loadu_si128((const __m128i*)(p + 16 * (k))))
    #define TL_TAKE_FOUR(k) TL_TAKE(a, k); TL_TAKE(b, k + 1); TL_TAKE(c, k + 2); TL_TAKE(d, k + 3)
    #define TL_BEGIN(k) _mm_xor_si128(from, _mm_loadu_si128((const __m128i*)tl_lane_begin[k]))

    static __attribute__((target("aes,avx"))) uint64_t tl_fingerprint_aes(uint64_t seed, const char* p, int64_t words)
    {
        const __m128i from = _mm_set_epi64x(words, (long long)seed), zero = _mm_setzero_si128();
        __m128i a = TL_BEGIN(0), b = TL_BEGIN(1), c = TL_BEGIN(2), d = TL_BEGIN(3);
        int64_t i;
        for (i = words; i >= 32; i -= 32, p += 256) {
            TL_TAKE_FOUR(0);
            TL_TAKE_FOUR(4);
            TL_TAKE_FOUR(8);
            TL_TAKE_FOUR(12);
        }
        for (; i >= 8; i -= 8, p += 64) {
            TL_TAKE_FOUR(0);
        }
        if (i & 6)
            TL_TAKE(a, 0);
        if (i & 4)
            TL_TAKE(b, 1);
        if ((i & 6) == 6)
            TL_TAKE(c, 2);
        if (i & 1)
            d = _mm_aesenc_si128(d, _mm_loadl_epi64((const __m128i*)(p + (i & 6) * 8)));
        a = _mm_aesenc_si128(_mm_aesenc_si128(a, zero), b);
        a = _mm_aesenc_si128(_mm_aesenc_si128(a, zero), c);
        a = _mm_aesenc_si128(_mm_aesenc_si128(a, zero), d);
        a = _mm_aesenc_si128(_mm_aesenc_si128(a, zero), zero);
        return (uint64_t)_mm_cvtsi128_si64(_mm_xor_si128(a, _mm_unpackhi_epi64(a, a)));
    }

    __attribute__((constructor)) static void tl_choose_fingerprint(void)
    {
        __builtin_cpu_init();
        if (__builtin_cpu_supports("aes") && __builtin_cpu_supports("avx"))
            tl_fingerprint = tl_fingerprint_aes;
    }
    #endif
    #endif
    """
    # fingerprint of so many words that begin at data, in the order they have, continuing `seed`
    uint64_t fingerprint "tl_fingerprint"(uint64_t seed, const void* data, int64_t words) noexcept nogil
    # the same as processors without the instruction do it (tests)
    uint64_t fingerprint_plain "tl_fingerprint_plain"(uint64_t seed, const void* data, int64_t words) noexcept nogil
