// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <string.h>

#include "agent/probe/course.h"
#include "proto/probe_request.h"
#include "tests/fuzz/fuzz.h"

/* What anybody can send to a host that probes: ICMP, after a byte that says of which version; and a
 * request, after any other. The probes that were sent are random, so that no answer is theirs. */
static void take_answer(int (*decode)(const uint8_t *, size_t, struct ft_ttl_answer *), int v6,
                        const uint8_t *bytes, size_t len)
{
    static struct ft_course course;
    struct ft_ttl_answer answer = {.id = 7};
    const struct ft_ttl_answer before = answer;
    uint64_t random[2] = {UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xbf58476d1ce4e5b9)};
    uint8_t packet[FT_PROBE_BYTES];
    int rc = decode(bytes, len, &answer);

    ft_fuzz_assert(rc == 0 || rc == -EBADMSG, "a known result");
    ft_fuzz_assert(rc == 0 || memcmp(&answer, &before, sizeof(answer)) == 0,
                   "what is no answer is left alone");
    if (rc)
        return;
    ft_fuzz_assert(answer.tuple.proto == FT_PROTO_UDP, "UDP");
    ft_fuzz_assert(!v6 || answer.id == 0, "IPv6 has no identification");
    /* Of the very flow that it quotes. */
    course = (struct ft_course){.tuple = answer.tuple, .switches = 5};
    ft_course_begin_round(&course, (struct ft_mono){1});
    for (uint32_t ttl = 1; ttl < 5; ttl++)
        ft_fuzz_assert(ft_course_shoot(&course, ttl, (struct ft_mono){1}, random, packet) <=
                           FT_PROBE_BYTES,
                       "a probe has room");
    ft_fuzz_assert(!answer.has_nonce || answer.nonce == random[0] ||
                       !ft_course_take(&course, &answer.tuple.dst, &answer, (struct ft_mono){2}),
                   "another number is no answer");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct ft_probe_request request;
    int rc;

    if (len == 0)
        return 0;
    if (bytes[0] == 4) {
        take_answer(ft_ttl_answer_decode4, 0, bytes + 1, len - 1);
    } else if (bytes[0] == 6) {
        take_answer(ft_ttl_answer_decode6, 1, bytes + 1, len - 1);
    } else {
        rc = ft_probe_request_decode(bytes + 1, len - 1, &request);
        ft_fuzz_assert(rc == -EBADMSG || (rc == 0 && len - 1 == FT_PROBE_REQUEST_BYTES),
                       "a request has one length");
        if (rc == 0)
            ft_course_complaint(&request.tuple, request.dst_qp, request.dscp, request.switches);
    }
    return 0;
}
