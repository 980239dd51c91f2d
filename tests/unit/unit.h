// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_UNIT_H
#define FT_TESTS_UNIT_H
/* What every unit test program needs: Check, and a main() that runs one suite. */
#include <check.h>
#include <stdlib.h>

/* Runs a test case list of functions made by START_TEST. */
#define FT_UNIT_MAIN(name, ...)                                                                    \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *tests[] = {__VA_ARGS__};                                                      \
        Suite *suite = suite_create(name);                                                         \
        TCase *tcase = tcase_create(name);                                                         \
        SRunner *runner;                                                                           \
        int failed;                                                                                \
                                                                                                   \
        tcase_set_timeout(tcase, 300);                                                             \
        for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)                              \
            tcase_add_test(tcase, tests[i]);                                                       \
        suite_add_tcase(suite, tcase);                                                             \
        runner = srunner_create(suite);                                                            \
        srunner_run_all(runner, CK_NORMAL);                                                        \
        failed = srunner_ntests_failed(runner);                                                    \
        srunner_free(runner);                                                                      \
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;                                               \
    }

#endif
