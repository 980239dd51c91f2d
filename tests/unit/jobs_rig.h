// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_UNIT_JOBS_RIG_H
#define FT_TESTS_UNIT_JOBS_RIG_H
/* A process with the NCCL plugin, as the agent sees it. */
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/nccl/segment.h"
#include "tests/unit/unit.h"

/* As the plugin does: its memory, and who it is. */
static inline int connect_job(const char *path, struct ft_segment **out)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct ft_segment *segment;
    int memory = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct __attribute__((packed)) {
        uint64_t magic;
        uint32_t version;
    } hello = {htobe64(FT_SEGMENT_MAGIC), htobe32(FT_SEGMENT_VERSION)};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {.iov_base = &hello, .iov_len = sizeof(hello)};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};

    ck_assert(fd >= 0 && memory >= 0);
    ck_assert_int_eq(ftruncate(memory, sizeof(*segment)), 0);
    ck_assert_int_eq(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    segment = mmap(NULL, sizeof(*segment), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    ck_assert_ptr_ne(segment, MAP_FAILED);
    segment->version = FT_SEGMENT_VERSION;
    segment->rings = FT_SEGMENT_RINGS;
    segment->slots = FT_SEGMENT_SLOTS;
    segment->comms = FT_SEGMENT_COMMS;
    segment->record_bytes = sizeof(struct ft_segment_record);
    segment->flight_bytes = sizeof(struct ft_segment_flight);
    segment->magic = FT_SEGMENT_MAGIC;
    memset(&control, 0, sizeof(control));
    *CMSG_FIRSTHDR(&message) = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &memory, sizeof(memory));
    snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    ck_assert_int_eq(sendmsg(fd, &message, 0), sizeof(hello));
    close(memory);
    *out = segment;
    return fd;
}

#endif
