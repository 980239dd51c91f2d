// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/report/uplink.h"

#include <stdio.h>
#include <string.h>

#include "lib/io/loop.h"
#include "lib/io/transport/transport.h"
#include "proto/record.h"
#include "tests/batch.h"
#include "tests/unit/balanced.h"
#include "tests/unit/unit.h"

#define MS       INT64_C(1000000)
#define GIVEUP_S 20

/* What the daemon's side got. */
static struct {
    uint64_t flows, losses, packets;
    uint32_t last_qp;
    char source[64], program[64], host[64], interface[64];
} got;

static void take(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    if (record->kind_case == FABRICTRACE__RECORD__KIND_LOSS) {
        got.losses++;
        return;
    }
    ck_assert_int_eq(record->kind_case, FABRICTRACE__RECORD__KIND_FLOW);
    got.flows++;
    got.packets += record->flow->data_packets;
    got.last_qp = record->flow->qp->remote;
    snprintf(got.host, sizeof(got.host), "%s", record->flow->host);
    snprintf(got.interface, sizeof(got.interface), "%s", record->flow->interface);
}

static int apply(void *arg, void *known, const char *source_id, const char *program,
                 const uint8_t *payload, size_t len)
{
    uint64_t records = 0;
    uint64_t unknown = 0;

    (void)arg;
    (void)known;
    snprintf(got.source, sizeof(got.source), "%s", source_id);
    snprintf(got.program, sizeof(got.program), "%s", program);
    ck_assert_int_eq(ft_batch_unpack(payload, len, take, NULL, &records, &unknown), 0);
    ck_assert_uint_eq(unknown, 0);
    return 0;
}

static struct ft_flow_report report(uint32_t qp)
{
    struct ft_flow_report r = {
        .direction = FT_FLOW_TX,
        .counts = {.data_packets = 3, .bytes = 3000},
        .time = {1700000001000},
        .first_seen = {1700000000000},
        .interval_ns = 1000 * MS,
        .has_dst_qp = true,
        .dst_qp = qp,
    };

    ck_assert_int_eq(ft_tuple_parse("10.0.1.1:49441-10.0.3.1", &r.tuple), 0);
    return r;
}

static struct ft_sender *new_sender(struct ft_loop *loop, uint16_t port, size_t queue_bytes)
{
    char endpoint[64], error[256];
    const struct ft_sender_config config = {
        .endpoint = endpoint,
        .source_id = "gpu01",
        .program = "fabrictrace-agent",
        .boot_id = 1,
        .queue_bytes_max = queue_bytes,
        .retry_min_ns = 10 * MS,
        .retry_max_ns = 100 * MS,
    };
    struct ft_sender *sender;

    snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%u", port);
    sender = ft_sender_new(loop, &config, error, sizeof(error));
    ck_assert_msg(sender != NULL, "%s", error);
    return sender;
}

static struct ft_uplink *new_uplink(struct ft_sender *sender)
{
    struct ft_uplink *uplink = ft_uplink_to_daemon(
        &(struct ft_uplink_config){.host = "gpu01", .source_id = "gpu01"}, sender);

    ck_assert_ptr_nonnull(uplink);
    return uplink;
}

static struct ft_account_stage balanced(const struct ft_uplink *uplink)
{
    struct ft_account account = {0};

    ft_uplink_account(uplink, &account);
    ck_assert_uint_eq(account.stage_count, 1);
    ck_assert(ft_account_balanced(&account.stages[0]));
    return account.stages[0];
}

static void stop(void *arg)
{
    ft_loop_exit(arg, 0);
}

START_TEST(delivers_every_record_once)
{
    enum { RECORDS = 1500 };
    const struct ft_receiver_config config = {
        .listen = "127.0.0.1:0", .connections_max = 4, .sources_max = 4, .apply = apply};
    struct ft_loop *loop = ft_loop_new();
    char error[256];
    struct ft_receiver *receiver = ft_receiver_new(loop, &config, error, sizeof(error));
    struct ft_sender *sender = new_sender(loop, ft_receiver_port(receiver), 1 << 20);
    struct ft_uplink *uplink = new_uplink(sender);
    struct ft_account account = {0};

    memset(&got, 0, sizeof(got));
    for (uint32_t i = 0; i < RECORDS; i++) {
        struct ft_flow_report r = report(i);

        ft_uplink_flow(uplink, &r, "eth0");
        balanced(uplink);
    }
    ck_assert_uint_eq(balanced(uplink).pending, RECORDS);
    ck_assert_int_eq(ft_uplink_flush(uplink), 0);
    ft_uplink_account(uplink, &account);
    ft_uplink_loss(uplink, &account, (struct ft_wall){1700000001000});
    ck_assert_uint_eq(balanced(uplink).received, RECORDS + 1);
    ft_sender_flush(sender, GIVEUP_S * 1000 * MS, stop, loop);
    ft_loop_run(loop);
    ck_assert_uint_eq(got.flows, RECORDS);
    ck_assert_uint_eq(got.losses, 1);
    ck_assert_uint_eq(got.packets, 3 * RECORDS);
    ck_assert_uint_eq(got.last_qp, RECORDS - 1);
    ck_assert_str_eq(got.source, "gpu01");
    ck_assert_str_eq(got.program, "fabrictrace-agent");
    ck_assert_str_eq(got.host, "gpu01");
    ck_assert_str_eq(got.interface, "eth0");
    ck_assert_uint_eq(balanced(uplink).processed, RECORDS + 1);
    ft_uplink_free(uplink);
    ft_sender_free(sender);
    ft_receiver_free(receiver);
    ft_loop_free(loop);
}
END_TEST

START_TEST(accounts_what_a_full_queue_drops)
{
    struct ft_loop *loop = ft_loop_new();
    /* Port 9 (discard): nobody listens. */
    struct ft_sender *sender = new_sender(loop, 9, 64 << 10);
    struct ft_uplink *uplink = new_uplink(sender);
    struct ft_account_stage stage;

    for (uint32_t i = 0; i < 20000; i++) {
        struct ft_flow_report r = report(i);

        ft_uplink_flow(uplink, &r, "eth0");
    }
    stage = balanced(uplink);
    ck_assert_uint_eq(stage.received, 20000);
    ck_assert_uint_eq(stage.processed, 0);
    ck_assert_str_eq(stage.drops[0].reason, "queue_full");
    ck_assert_uint_gt(stage.drops[0].count, 0);
    ck_assert_uint_gt(stage.pending, 0);
    ft_uplink_free(uplink);
    ft_sender_free(sender);
    ft_loop_free(loop);
}
END_TEST

START_TEST(accounts_what_a_full_disk_drops)
{
    char error[256];
    struct ft_uplink *uplink =
        ft_uplink_to_file(&(struct ft_uplink_config){.host = "gpu01", .source_id = "gpu01"},
                          "/dev/full", error, sizeof(error));
    struct ft_flow_report r = report(1);

    ck_assert_ptr_nonnull(uplink);
    ft_uplink_flow(uplink, &r, "eth0");
    ck_assert_int_lt(ft_uplink_flush(uplink), 0);
    ft_uplink_flow(uplink, &r, "eth0");
    ck_assert_int_lt(ft_uplink_flush(uplink), 0);
    ck_assert_uint_eq(balanced(uplink).processed, 0);
    ck_assert_uint_eq(balanced(uplink).drops[0].count, 2);
    ft_uplink_free(uplink);
}
END_TEST

FT_UNIT_MAIN("uplink", delivers_every_record_once, accounts_what_a_full_queue_drops,
             accounts_what_a_full_disk_drops)
