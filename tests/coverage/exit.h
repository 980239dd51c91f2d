// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_COVERAGE_EXIT_H
#define FT_TESTS_COVERAGE_EXIT_H
/*
 * Comes first in each file of a build with --enable-coverage: what a process counted is written
 * when it ends by _exit(2), too, as servers of unit tests and the launcher do. gcc sees to exec and
 * exit itself. No system header may be included here, since config.h says what they declare.
 */
void __gcov_dump(void);
extern void ft_coverage_real_exit(int status) __asm__("_exit") __attribute__((noreturn));
void ft_coverage_exit(int status) __attribute__((noreturn));

__attribute__((weak, noreturn, no_profile_instrument_function)) void ft_coverage_exit(int status)
{
    __gcov_dump();
    ft_coverage_real_exit(status);
}

#define _exit ft_coverage_exit

#endif
