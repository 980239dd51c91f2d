// SPDX-License-Identifier: Apache-2.0
/* A capture file: whatever is read without libpcap, libpcap reads as the same packets, and as many
 * of them. */
#include "config.h"

#include "lib/io/capture/pcap_file.h"

#include <pcap/pcap.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

static int fd = -1;
static char name[32];

static pcap_t *open_again(void)
{
    char error[PCAP_ERRBUF_SIZE];
    FILE *in = fopen(name, "re");

    ft_fuzz_assert(in != NULL, "the file can be read");
    return pcap_fopen_offline_with_tstamp_precision(in, PCAP_TSTAMP_PRECISION_NANO, error);
}

static int link_of(enum ft_pcap_link link)
{
    static const int links[] = {[FT_PCAP_ETHERNET] = DLT_EN10MB,
                                [FT_PCAP_COOKED] = DLT_LINUX_SLL,
                                [FT_PCAP_COOKED2] = DLT_LINUX_SLL2,
                                [FT_PCAP_RAW] = DLT_RAW};

    return links[link];
}

/* Times that no clock has are left out: libpcap adds up what it makes of them. */
static bool is_time(const struct timeval *ts)
{
    return ts->tv_sec >= 0 && ts->tv_usec >= 0 && ts->tv_usec < 1000000000;
}

static void check_packet(const struct ft_pcap_packet *p, pcap_t *pcap)
{
    struct pcap_pkthdr *head;
    const u_char *bytes;

    ft_fuzz_assert(pcap_next_ex(pcap, &head, &bytes) == 1, "libpcap has this packet, too");
    ft_fuzz_assert(link_of(p->link) == pcap_datalink(pcap), "of the same link type");
    ft_fuzz_assert(p->captured == head->caplen && p->wire == head->len, "of the same length");
    ft_fuzz_assert(memcmp(p->bytes, bytes, p->captured) == 0, "with the same bytes");
    if (is_time(&head->ts))
        ft_fuzz_assert(p->when.ms == head->ts.tv_sec * INT64_C(1000) + head->ts.tv_usec / 1000000,
                       "at the same time");
}

static void check_file(struct ft_pcap_file *file, pcap_t *pcap)
{
    struct ft_pcap_packet packet;
    struct pcap_pkthdr *head;
    const u_char *bytes;
    int rc;

    while ((rc = ft_pcap_file_next(file, &packet)) == 1)
        check_packet(&packet, pcap);
    ft_fuzz_assert(pcap_next_ex(pcap, &head, &bytes) == (rc ? PCAP_ERROR : PCAP_ERROR_BREAK),
                   "it ends where libpcap says, and as it says");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct ft_pcap_file *file;
    pcap_t *pcap;

    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    }
    ft_fuzz_assert(ftruncate(fd, 0) == 0 && pwrite(fd, bytes, len, 0) == (ssize_t)len,
                   "the test can write");
    file = ft_pcap_file_new(name);
    if (!file)
        return 0;
    pcap = open_again();
    ft_fuzz_assert(pcap != NULL, "what is a capture is one for libpcap");
    check_file(file, pcap);
    pcap_close(pcap);
    ft_pcap_file_free(file);
    return 0;
}
