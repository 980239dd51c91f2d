// SPDX-License-Identifier: Apache-2.0
/* What jobs of any user say and lay down for the agent, and a daemon: a question for a port, or a
 * withdrawal (first byte even), or the file of a plan. It is refused, or every port of it can be
 * given. */
#include "config.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "agent/plans/ask.h"
#include "agent/plans/plan_file.h"
#include "proto/plan_name.h"
#include "proto/withdrawal.h"
#include "tests/fuzz/fuzz.h"

#define JOB "j"

static void check_ask(const uint8_t *bytes, size_t len)
{
    struct ft_plan_ask ask;
    int rc = ft_plan_ask_decode(bytes, len, &ask);

    ft_fuzz_assert(rc == 0 || rc == -EBADMSG, "it is a question or none");
    if (rc)
        return;
    ft_fuzz_assert(!ask.job[0] || ft_plan_name_is_good(ask.job), "its job can name a file");
    ft_fuzz_assert(len == (ask.kind == FT_SHIM_DONE ? FT_SHIM_DONE_BYTES : FT_SHIM_ASK_BYTES),
                   "it is whole, and nothing is behind it");
    ft_fuzz_assert(ask.kind == FT_SHIM_ASK || ask.sport >= 0xc000, "a label can give its port");
}

static void check_withdrawal(const uint8_t *bytes, size_t len)
{
    struct ft_withdrawal withdrawal;
    int rc = ft_withdrawal_decode(bytes, len, &withdrawal);
    struct ft_writer w;

    ft_fuzz_assert(rc == 0 || rc == -EBADMSG, "it is a withdrawal or none");
    if (rc)
        return;
    ft_fuzz_assert(ft_plan_name_is_good(withdrawal.job), "its job can name a file");
    ft_writer_init(&w, FT_WITHDRAWAL_BYTES);
    ft_withdrawal_write(&w, &withdrawal);
    ft_fuzz_assert(ft_writer_ok(&w) && w.len == len && memcmp(w.bytes, bytes, len) == 0,
                   "it is written as it was read");
    ft_writer_free(&w);
}

static void check_file(const char *text, size_t len)
{
    struct ft_plan_file file;
    char error[256] = "";
    int rc = ft_plan_file_parse(text, len, JOB, &file, error, sizeof(error));

    ft_fuzz_assert((rc == -EINVAL) == (error[0] != '\0'), "what is refused is explained");
    if (rc)
        return;
    ft_fuzz_assert(file.count > 0, "a plan has ports");
    for (size_t i = 0; i < file.count; i++) {
        const struct ft_plan_entry *e = &file.entries[i];

        ft_fuzz_assert(e->sport >= 0xc000, "a label can give it");
        ft_fuzz_assert(ft_plan_file_port(&file, &e->src, &e->dst, e->sport) != NULL &&
                           ft_plan_file_find(&file, &e->src, &e->dst) != NULL,
                       "what is in it is found");
    }
    ft_plan_file_clear(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len == 0)
        return 0;
    if (bytes[0] % 2) {
        check_file((const char *)bytes + 1, len - 1);
        return 0;
    }
    check_ask(bytes + 1, len - 1);
    check_withdrawal(bytes + 1, len - 1);
    return 0;
}
