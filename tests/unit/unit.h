// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_UNIT_H
#define FT_TESTS_UNIT_H
/* What every unit test program needs: Check, and a main() that runs one suite. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Whether sanitizers are in this program. They find what a line does wrong the first time it runs,
 * and make it several times slower: what is repeated for the sake of statistics is repeated less
 * often then, and its statistics are left to the build without them.
 */
#if defined(__SANITIZE_ADDRESS__)
#define FT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FT_SANITIZED 1
#endif
#endif
#ifndef FT_SANITIZED
#define FT_SANITIZED 0
#endif

/* Each test is a test case of its own, named after it and tagged so, too: CK_RUN_CASE=NAME runs
 * that one alone, CK_EXCLUDE_TAGS="NAME..." all but these. A name that no test has is a failure. */
static inline int ft_unit_run(const char *name, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    SRunner *runner = srunner_create(suite);
    const char *only = getenv("CK_RUN_CASE");
    int failed;

    for (size_t i = 0; i < count; i++) {
        TCase *tcase = tcase_create(tests[i]->name);

        /* For what hangs: under ASan beside much else a large one took five minutes. */
        tcase_set_timeout(tcase, 900);
        tcase_set_tags(tcase, tests[i]->name);
        tcase_add_test(tcase, tests[i]);
        suite_add_tcase(suite, tcase);
    }
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    if (srunner_ntests_run(runner) == 0) {
        fprintf(stderr, "%s: no test is named '%s'; there are:\n", name, only ? only : "");
        for (size_t i = 0; i < count; i++)
            fprintf(stderr, "  %s\n", tests[i]->name);
        failed = 1;
    }
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Runs a list of functions made by START_TEST. */
#define FT_UNIT_MAIN(name, ...)                                                                    \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = {__VA_ARGS__};                                                \
        return ft_unit_run(name, tests, sizeof(tests) / sizeof(tests[0]));                         \
    }

#endif
