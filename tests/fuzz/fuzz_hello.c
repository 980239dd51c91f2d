// SPDX-License-Identifier: Apache-2.0
/*
 * What a process sends first over nccl.socket: up to 7 descriptors, of kinds that the first bytes
 * name, and a message. Memory is taken from a good hello with one descriptor alone; no descriptor
 * is lost; a message that is not taken stays with all that came with it.
 */
#include "config.h"

#include "agent/jobs/hello.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/jobs/rings.h"
#include "agent/nccl/segment.h"
#include "lib/io/closer.h"
#include "tests/fuzz/fuzz.h"

#define FDS_MAX 7

enum kind { SEALED, UNSEALED, SHORT, NO_SEGMENT, DEVICE, EVENTS, SOCKET, KINDS };

static int made[KINDS];
static struct ft_segment head;

static int make_memory(off_t bytes, int seals, bool has_head)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    ft_fuzz_assert(fd >= 0 && ftruncate(fd, bytes) == 0 &&
                       (!has_head || pwrite(fd, &head, offsetof(struct ft_segment, ring), 0) > 0) &&
                       fcntl(fd, F_ADD_SEALS, seals) == 0,
                   "memory can be had");
    return fd;
}

static void set_up(void)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW;

    head.magic = FT_SEGMENT_MAGIC;
    head.version = FT_SEGMENT_VERSION;
    head.rings = FT_SEGMENT_RINGS;
    head.slots = FT_SEGMENT_SLOTS;
    head.comms = FT_SEGMENT_COMMS;
    head.record_bytes = sizeof(struct ft_segment_record);
    head.flight_bytes = sizeof(struct ft_segment_flight);
    made[SEALED] = make_memory(sizeof(struct ft_segment), seals, true);
    made[UNSEALED] = make_memory(sizeof(struct ft_segment), 0, true);
    made[SHORT] = make_memory(4096, seals, true);
    made[NO_SEGMENT] = make_memory(sizeof(struct ft_segment), seals, false);
    made[DEVICE] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    made[EVENTS] = eventfd(0, EFD_CLOEXEC);
    made[SOCKET] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static bool is_memory(enum kind kind)
{
    return kind < DEVICE;
}

static void put(int to, const uint8_t *kinds, size_t count, const uint8_t *bytes, size_t len)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control = {0};
    struct iovec iov = {.iov_base = (void *)bytes, .iov_len = len};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    int fds[FDS_MAX];

    for (size_t i = 0; i < count; i++)
        fds[i] = made[kinds[i] % KINDS];
    if (count) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        *CMSG_FIRSTHDR(&message) = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                                    .cmsg_type = SCM_RIGHTS,
                                                    .cmsg_len = CMSG_LEN(count * sizeof(int))};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), fds, count * sizeof(int));
    }
    ft_fuzz_assert(sendmsg(to, &message, 0) == (ssize_t)len, "it is sent");
}

/* The number that the next descriptor gets: a lost one changes it. */
static int next_descriptor(void)
{
    int fd = dup(made[DEVICE]);

    close(fd);
    return fd;
}

static bool is_good(const uint8_t *bytes, size_t len, uint32_t *version)
{
    const uint64_t magic = htobe64(FT_SEGMENT_MAGIC);

    if (len != FT_SEGMENT_HELLO_BYTES || memcmp(bytes, &magic, sizeof(magic)) != 0)
        return false;
    memcpy(version, bytes + sizeof(magic), sizeof(*version));
    *version = be32toh(*version);
    return true;
}

static void check_taken(int rc, int foreign, const uint8_t *kinds, size_t count, bool good,
                        bool current)
{
    ft_fuzz_assert((foreign >= 0) == (count > 0 && !is_memory(kinds[0] % KINDS)),
                   "what is first and not memory is handed over");
    if (good && !current)
        ft_fuzz_assert(rc == -EPROTONOSUPPORT, "another version is named");
    else if (good && count == 1 && foreign < 0)
        ft_fuzz_assert(rc >= 0, "memory is taken");
    else
        ft_fuzz_assert(rc == -EBADMSG, "anything else is not");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    size_t count = len ? bytes[0] % (FDS_MAX + 1) : 0;
    uint8_t rest[FT_SEGMENT_HELLO_BYTES * 8];
    const uint8_t *message = bytes + 1 + count;
    uint32_t version = 0, said = 0;
    int ends[2], before, rc, foreign;
    struct ft_rings *rings;
    bool good;

    if (len < 1 + count || len - 1 - count > sizeof(rest))
        return 0;
    if (made[SEALED] == 0)
        set_up();
    len -= 1 + count;
    before = next_descriptor();
    ft_fuzz_assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "a pair");
    put(ends[0], bytes + 1, count, message, len);
    good = is_good(message, len, &version);
    rc = ft_hello_take(ends[1], &said, &foreign);
    check_taken(rc, foreign, bytes + 1, count, good, version == FT_SEGMENT_VERSION);
    ft_fuzz_assert(!good || said == version, "its version is that which it says");
    if (rc >= 0) {
        if (ft_rings_open(rc, &rings) == 0) {
            ft_fuzz_assert(bytes[1] % KINDS == SEALED, "a plugin's memory is sealed and whole");
            ft_rings_free(rings);
        }
        close(rc);
        ft_fuzz_assert(recv(ends[1], rest, sizeof(rest), MSG_DONTWAIT) < 0, "it is taken once");
    } else if (count) {
        ft_fuzz_assert(ft_closer_receive(ends[1], rest, sizeof(rest)) == -EBADMSG, "it stays");
    } else {
        ft_fuzz_assert(ft_closer_receive(ends[1], rest, sizeof(rest)) == (ssize_t)len, "it stays");
    }
    if (foreign >= 0)
        close(foreign);
    close(ends[0]);
    close(ends[1]);
    ft_fuzz_assert(next_descriptor() == before, "no descriptor is lost");
    return 0;
}
