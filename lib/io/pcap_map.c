// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/pcap_map.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "lib/base/reader.h"

/* draft-ietf-opsawg-pcap sections 4 and 5 */
#define MAGIC_MICROSECONDS 0xa1b2c3d4
#define MAGIC_NANOSECONDS  0xa1b23c4d
#define FORMAT_VERSION     (2 | 4u << 16)
#define FILE_HEAD_BYTES    24
#define PACKET_HEAD_BYTES  16
#define LINK_ETHERNET      1
#define LINK_RAW           101
#define LINK_COOKED        113
#define LINK_COOKED2       276

/* As libpcap has it for these link types. */
#define CAPTURED_MAX 262144
/* Mapped at a time: many packets for three system calls, and little memory. */
#define WINDOW_BYTES ((size_t)4 << 20)
#define CACHE_LINE   64
/* The next packet is asked for while this one is worked on, as far as this. */
#define AHEAD_MAX 2048

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

struct ft_pcap_map {
    int fd;
    enum ft_pcap_link link;
    uint32_t snap_bytes;
    uint32_t per_ms; /* fractions of a time in a millisecond */
    size_t page_bytes;
    uint8_t *window;
    size_t window_bytes;
    uint64_t window_at; /* in the file */
    struct ft_reader r; /* over the window */
};

/* The part that is mapped now, and what is to be said when it is cut off. */
static const uint8_t *volatile mapped;
static volatile size_t mapped_bytes;
static char cut_text[512];

/* A file that another program cuts short leaves nothing behind its pages (mmap(2)). That is told
 * and ends the program; a fault elsewhere is a bug, and takes its course. */
static void on_fault(int signal, siginfo_t *info, void *context)
{
    const uint8_t *at = info->si_addr;
    ssize_t ignored;

    (void)context;
    if (mapped && at >= mapped && at < mapped + mapped_bytes) {
        ignored = write(STDERR_FILENO, cut_text, strlen(cut_text));
        (void)ignored;
        _exit(EX_IOERR);
    }
    sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    raise(signal);
}

static void catch_faults(const char *file)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

    snprintf(cut_text, sizeof(cut_text), "%s: the capture was cut short while it was read\n", file);
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

static uint32_t host32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static void unmap(struct ft_pcap_map *m)
{
    mapped = NULL;
    if (m->window)
        munmap(m->window, m->window_bytes);
    m->window = NULL;
}

/* Maps the file from a place on, of which at least n bytes are wanted. -ENODATA when it has less,
 * with 0 in *left at its very end. */
static int map_at(struct ft_pcap_map *m, uint64_t at, size_t n, uint64_t *left)
{
    uint64_t start = at - at % m->page_bytes;
    struct stat st;
    uint64_t bytes;
    void *window;

    if (fstat(m->fd, &st) < 0)
        return -errno;
    *left = (uint64_t)st.st_size > at ? (uint64_t)st.st_size - at : 0;
    if (*left < n)
        return -ENODATA;
    bytes = (uint64_t)st.st_size - start;
    if (bytes > WINDOW_BYTES)
        bytes = WINDOW_BYTES;
    unmap(m);
    window = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, m->fd, (off_t)start);
    if (window == MAP_FAILED)
        return -errno;
    m->window = window;
    m->window_bytes = bytes;
    mapped_bytes = bytes;
    mapped = window;
    m->window_at = start;
    /* One call instead of a fault a page; and here a disk's fault is an error, later a signal. */
    if (madvise(window, bytes, MADV_POPULATE_READ) < 0)
        return -errno;
    ft_reader_init(&m->r, m->window, m->window_bytes);
    ft_read_skip(&m->r, at - start);
    return 0;
}

/* Borrows the next n bytes, at most a packet's. */
static int take(struct ft_pcap_map *m, size_t n, const uint8_t **bytes, uint64_t *left)
{
    int rc;

    if (ft_reader_left(&m->r) < n) {
        rc = map_at(m, m->window_at + (uint64_t)(m->r.pos - m->window), n, left);
        if (rc < 0)
            return rc;
    }
    *bytes = ft_read_bytes(&m->r, n);
    return 0;
}

static bool read_head(struct ft_pcap_map *m)
{
    const uint8_t *h;
    uint64_t left;

    if (map_at(m, 0, FILE_HEAD_BYTES, &left) < 0)
        return false;
    h = ft_read_bytes(&m->r, FILE_HEAD_BYTES);
    if (!h || host32(h + 4) != FORMAT_VERSION)
        return false;
    if (host32(h) != MAGIC_MICROSECONDS && host32(h) != MAGIC_NANOSECONDS)
        return false;
    m->per_ms = host32(h) == MAGIC_MICROSECONDS ? 1000 : 1000000;
    m->snap_bytes = host32(h + 16);
    if (m->snap_bytes == 0 || m->snap_bytes > CAPTURED_MAX)
        return false;
    switch (host32(h + 20)) {
    case LINK_ETHERNET:
        m->link = FT_PCAP_ETHERNET;
        return true;
    case LINK_RAW:
        m->link = FT_PCAP_RAW;
        return true;
    case LINK_COOKED:
        m->link = FT_PCAP_COOKED;
        return true;
    case LINK_COOKED2:
        m->link = FT_PCAP_COOKED2;
        return true;
    default:
        return false;
    }
}

struct ft_pcap_map *ft_pcap_map_new(const char *file)
{
    struct ft_pcap_map *m = calloc(1, sizeof(*m));
    struct stat st;

    if (!m)
        return NULL;
    m->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    catch_faults(file);
    /* A pipe can be opened once: to look into it here would cut off whoever writes it. */
    m->fd = stat(file, &st) == 0 && S_ISREG(st.st_mode)
                ? open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                : -1;
    if (m->fd < 0 || fstat(m->fd, &st) < 0 || !S_ISREG(st.st_mode) || !read_head(m)) {
        ft_pcap_map_free(m);
        return NULL;
    }
    posix_fadvise(m->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return m;
}

void ft_pcap_map_free(struct ft_pcap_map *m)
{
    if (!m)
        return;
    unmap(m);
    if (m->fd >= 0)
        close(m->fd);
    free(m);
}

/* The processor fetches ahead within a page only, and packets come from memory, not from a cache.
 */
static void hint_next(const struct ft_pcap_map *m, size_t bytes)
{
    size_t left = ft_reader_left(&m->r);
    size_t ahead = bytes < AHEAD_MAX ? bytes : AHEAD_MAX;

    if (ahead > left)
        ahead = left;
    for (size_t at = 0; at < ahead; at += CACHE_LINE)
        __builtin_prefetch(m->r.pos + at);
}

int ft_pcap_map_next(struct ft_pcap_map *m, struct ft_pcap_packet *packet)
{
    const uint8_t *h, *bytes;
    struct ft_pcap_packet p;
    uint32_t in_file;
    uint64_t left = 0;
    int rc = take(m, PACKET_HEAD_BYTES, &h, &left);

    if (rc < 0)
        return rc == -ENODATA && left == 0 ? 0 : rc;
    p.when.ms = (int64_t)host32(h) * 1000 + host32(h + 4) / m->per_ms;
    in_file = host32(h + 8);
    p.wire = host32(h + 12);
    if (in_file > CAPTURED_MAX)
        return -EMSGSIZE;
    rc = take(m, in_file, &bytes, &left);
    if (rc < 0)
        return rc;
    p.link = m->link;
    p.bytes = bytes;
    p.captured = in_file < m->snap_bytes ? in_file : m->snap_bytes;
    hint_next(m, in_file + PACKET_HEAD_BYTES);
    *packet = p;
    return 1;
}
