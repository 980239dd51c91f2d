// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_UNIT_HISTORY_FILE_H
#define FT_TESTS_UNIT_HISTORY_FILE_H
/* A history's file as another version would have written it. */
#include <check.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

/* Changes the version of the rows, and makes the checksum right again. */
static inline void history_file_change_version(const char *path)
{
    static uint8_t bytes[1 << 20];
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    int fd = open(path, O_RDWR);
    ssize_t len = read(fd, bytes, sizeof(bytes));

    ck_assert_int_gt(len, 20);
    bytes[11] ^= 1;
    for (ssize_t i = 0; i < len - 8; i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    for (int i = 0; i < 8; i++)
        bytes[len - 8 + i] = (uint8_t)(sum >> (56 - 8 * i));
    ck_assert_int_eq(pwrite(fd, bytes, (size_t)len, 0), len);
    close(fd);
}

#endif
