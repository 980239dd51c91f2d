// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/mix.h"
#include "tests/unit/unit.h"

/* As java.util.SplittableRandom, made from a seed, has them. */
START_TEST(the_numbers_of_splitmix64)
{
    uint64_t state = 1234567;

    ck_assert_uint_eq(ft_mix_next(&state), UINT64_C(6457827717110365317));
    ck_assert_uint_eq(ft_mix_next(&state), UINT64_C(3203168211198807973));
    ck_assert_uint_eq(ft_mix_next(&state), UINT64_C(9817491932198370423));
    ck_assert_uint_eq(ft_mix_next(&state), UINT64_C(4593380528125082431));
    ck_assert_uint_eq(ft_mix_next(&state), UINT64_C(16408922859458223821));
    ck_assert_uint_eq(ft_mix(0), UINT64_C(0xe220a8397b1dcdaf));
}
END_TEST

START_TEST(the_first_that_follows_a_seed_is_the_seed_s)
{
    for (uint64_t seed = 0; seed < 1000; seed++) {
        uint64_t state = seed;

        ck_assert_uint_eq(ft_mix_next(&state), ft_mix(seed));
    }
}
END_TEST

FT_UNIT_MAIN("mix", the_numbers_of_splitmix64, the_first_that_follows_a_seed_is_the_seed_s)
