// SPDX-License-Identifier: Apache-2.0
/* The files of a spool, as whatever a kill or a bad disk leaves: up to two of them, then entries
 * are written behind and all are read. What is read was whole, and the account balances. */
#include "config.h"

#include "lib/io/disk/spool.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

#define ENTRY_MAX 4096

/* In memory: it is forced to the disk all the time. */
static char folder[] = "/dev/shm/fabrictrace-fuzz-spool.XXXXXX";
static int dir = -1;

static void remove_folder(void)
{
    unlinkat(dir, "lock", 0);
    unlinkat(dir, "position", 0);
    rmdir(folder);
}

static void write_file(const char *name, const uint8_t *bytes, size_t len)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    ft_fuzz_assert(fd >= 0 && write(fd, bytes, len) == (ssize_t)len, "the test can write");
    close(fd);
}

static void read_all(struct ft_spool *s)
{
    struct ft_spool_stats stats;
    const uint8_t *bytes;
    uint64_t number, before = 0, count = 0;
    size_t len;

    while (ft_spool_next(s, &bytes, &len, &number) == 0) {
        ft_fuzz_assert(number > before && len <= ENTRY_MAX, "numbers rise, entries are bounded");
        before = number;
        count++;
    }
    ft_spool_stats(s, &stats);
    ft_fuzz_assert(stats.found + stats.appended == count + stats.damaged, "all is read or damaged");
    ft_fuzz_assert(stats.unread == 0 && stats.kept == count, "what is read is kept");
    ft_spool_release(s, UINT64_MAX);
    ft_spool_stats(s, &stats);
    ft_fuzz_assert(stats.released == count && stats.kept == 0 && stats.bytes == 0,
                   "what is released is gone");
}

/* The first byte is where the first file ends, in 1/256. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const struct ft_spool_config config = {.folder = folder,
                                           .bytes_max = FT_SPOOL_BYTES_MIN * 4,
                                           .entry_bytes_max = ENTRY_MAX,
                                           .keep_oldest = true};
    struct ft_spool *s;
    char error[256];
    uint64_t number;
    size_t first;

    if (len == 0)
        return 0;
    if (dir < 0) {
        ft_fuzz_assert(mkdtemp(folder) != NULL, "a folder for the test");
        dir = open(folder, O_RDONLY | O_DIRECTORY);
        atexit(remove_folder);
    }
    first = (len - 1) * (bytes[0] + 1u) / 256;
    unlinkat(dir, "position", 0);
    write_file("0000000000000001.spool", bytes + 1, first);
    if (bytes[0] != 255)
        write_file("0000000000000004.spool", bytes + 1 + first, len - 1 - first);
    s = ft_spool_open(&config, error, sizeof(error));
    ft_fuzz_assert(s != NULL, "no file keeps a spool from being opened");
    ft_fuzz_assert(ft_spool_append(s, "behind", 6, &number) == 0 && number < 1 << 20,
                   "an entry is written behind it");
    read_all(s);
    ft_spool_close(s);
    return 0;
}
