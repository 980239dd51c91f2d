// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/columns.h"

#include <errno.h>
#include <string.h>

#include "proto/batch.h"
#include "proto/record.h"
#include "tests/unit/unit.h"

#define START_MS UINT64_C(1700000000000)
#define MANY     5000

/* An observation with all that its message points to. */
struct made {
    Fabrictrace__Observation o;
    Fabrictrace__Flow flow, outer;
    struct ft_tuple tuple, tunnel;
    struct ft_ip agent;
};

static uint64_t dice_state;

static uint32_t dice(uint32_t sides)
{
    dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(dice_state >> 33) % sides;
}

static struct ft_ip address(uint32_t n, bool six)
{
    const uint8_t four[4] = {10, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    uint8_t sixteen[16] = {0xfd, [13] = (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};

    return six ? ft_ip6(sixteen) : ft_ip4(four);
}

static void begin(struct made *m, uint32_t src, uint32_t dst, uint32_t agent)
{
    memset(m, 0, sizeof(*m));
    m->tuple = (struct ft_tuple){.src = address(src, false),
                                 .dst = address(dst, false),
                                 .sport = (uint16_t)(49152 + (src + 7 * dst) % 16384),
                                 .dport = FT_ROCE_PORT,
                                 .proto = FT_PROTO_UDP};
    m->agent = address(1000000 + agent, false);
    fabrictrace__observation__init(&m->o);
    m->o.has_time_ms = m->o.has_interval_ms = m->o.has_agent = true;
    m->o.has_samples = m->o.has_packets = m->o.has_bytes = true;
    m->o.has_first_ms = m->o.has_last_ms = m->o.has_fate = m->o.has_point = true;
    m->o.time_ms = m->o.first_ms = m->o.last_ms = START_MS;
    m->o.interval_ms = 1000;
    m->o.samples = m->o.data_samples = 1;
    m->o.packets = 2048;
    m->o.bytes = 2048 * 4170;
}

static void end(struct made *m)
{
    ft_flow_from_tuple(&m->flow, &m->tuple);
    ft_flow_from_tuple(&m->outer, &m->tunnel);
    m->o.flow = &m->flow;
    m->o.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&m->agent, &m->o.agent.len);
}

static void any_flow(struct made *m)
{
    bool six = dice(4) == 0;

    begin(m, dice(200), dice(200), dice(20));
    if (six)
        m->tuple.src = address(dice(50), true);
    m->tuple.sport = (uint16_t)dice(65536);
    if (dice(3) == 0)
        m->tuple.dport = (uint16_t)dice(65536);
    if (dice(5) == 0)
        m->tuple.proto = (uint8_t)dice(256);
    m->o.has_in_ifindex = m->o.has_out_ifindex = true;
    m->o.in_ifindex = dice(3) ? dice(600) : UINT32_MAX;
    m->o.out_ifindex = dice(600);
    m->o.sub_agent = dice(2);
    m->o.source_type = dice(2);
    m->o.source_index = dice(3) ? 0 : UINT32_MAX;
    m->o.point = (Fabrictrace__SamplingPoint)dice(4);
    m->o.fate = (Fabrictrace__Fate)dice(3);
    m->o.discard_reason = dice(2) ? 0 : 256;
    m->o.has_ttl = dice(3) > 0;
    m->o.ttl = m->o.has_ttl ? 1 + dice(255) : 0;
}

static void any_sums(struct made *m)
{
    m->o.samples = dice(6);
    m->o.ack_samples = dice(m->o.samples + 1);
    m->o.data_samples = dice(m->o.samples - m->o.ack_samples + 1);
    m->o.cnp_samples = dice(m->o.ack_samples + 1);
    m->o.ce_samples = dice(m->o.samples + 1);
    m->o.packets = m->o.samples * 2048 + (dice(4) == 0 ? dice(UINT32_MAX) : 0);
    m->o.bytes = dice(2) ? m->o.packets * 4170 : dice(2) ? UINT64_MAX - dice(9) : dice(100000);
    m->o.first_ms = START_MS + dice(1000) - dice(2) * 5000;
    m->o.last_ms = m->o.first_ms + dice(3) * dice(1000);
    m->o.has_dst_qp = dice(3) > 0;
    m->o.dst_qp = m->o.has_dst_qp ? dice(1u << 24) : 0;
    m->o.has_psn = dice(3) > 0;
    m->o.psn = m->o.has_psn ? dice(1u << 24) : 0;
    m->o.psn_span = m->o.has_psn ? dice(UINT32_MAX) : 0;
    m->o.psn_back_samples = m->o.has_psn ? dice(9) : 0;
    m->o.message_starts = dice(m->o.data_samples + 1);
    m->o.frame_min_bytes = dice(2) ? 4170 : dice(3) * 90;
    m->o.frame_max_bytes = m->o.frame_min_bytes + dice(2) * dice(9000);
    m->o.nak_samples = dice(5) ? 0 : dice(9);
    m->o.rnr_samples = dice(5) ? 0 : dice(9);
    m->o.no_credit_samples = dice(5) ? 0 : dice(9);
    m->o.source_routed = dice(4) == 0;
    m->o.read_responses = dice(4) == 0;
    m->o.read_requests = dice(4) == 0;
    m->o.has_queue_max_bytes = dice(8) == 0;
    m->o.queue_max_bytes = m->o.has_queue_max_bytes ? UINT32_MAX - dice(2) : 0;
    m->o.has_transit_max_ns = dice(8) == 0;
    m->o.transit_max_ns = m->o.has_transit_max_ns ? dice(9) : 0;
}

static void any(struct made *m)
{
    any_flow(m);
    any_sums(m);
    if (dice(6) == 0) {
        m->tunnel = m->tuple;
        m->tunnel.src = address(dice(9), dice(2));
        m->tunnel.sport = (uint16_t)dice(65536);
        m->tunnel.dport = 4789;
        m->o.outer = &m->outer;
        m->o.has_vni = dice(2);
        m->o.vni = m->o.has_vni ? dice(1u << 24) : 0;
    }
    end(m);
}

/* What comes out is compared with the same sequence of what went in. */
static uint64_t came;

static void same(const struct ft_observed *got, const struct ft_observed *want)
{
    ck_assert_mem_eq(&got->tuple, &want->tuple, sizeof(got->tuple));
    ck_assert_mem_eq(&got->agent, &want->agent, sizeof(got->agent));
    ck_assert_uint_eq(got->time_ms, want->time_ms);
    ck_assert_uint_eq(got->interval_ms, want->interval_ms);
    ck_assert_uint_eq(got->first_ms, want->first_ms);
    ck_assert_uint_eq(got->last_ms, want->last_ms);
    ck_assert_uint_eq(got->in_ifindex, want->in_ifindex);
    ck_assert_uint_eq(got->out_ifindex, want->out_ifindex);
    ck_assert_uint_eq(got->sub_agent, want->sub_agent);
    ck_assert_uint_eq(got->source_type, want->source_type);
    ck_assert_uint_eq(got->source_index, want->source_index);
    ck_assert_uint_eq(got->point, want->point);
    ck_assert_uint_eq(got->fate, want->fate);
    ck_assert_uint_eq(got->discard_reason, want->discard_reason);
    ck_assert_uint_eq(got->samples, want->samples);
    ck_assert_uint_eq(got->ce_samples, want->ce_samples);
    ck_assert_uint_eq(got->data_samples, want->data_samples);
    ck_assert_uint_eq(got->ack_samples, want->ack_samples);
    ck_assert_uint_eq(got->cnp_samples, want->cnp_samples);
    ck_assert_uint_eq(got->packets, want->packets);
    ck_assert_uint_eq(got->bytes, want->bytes);
    ck_assert(got->has_packets && got->has_dst_qp == want->has_dst_qp);
    ck_assert_uint_eq(got->dst_qp, want->dst_qp);
    ck_assert(got->has_ttl == want->has_ttl && got->ttl == want->ttl);
    ck_assert(got->has_queue == want->has_queue && got->has_transit == want->has_transit);
    ck_assert_uint_eq(got->queue_max_bytes, want->queue_max_bytes);
    ck_assert_uint_eq(got->transit_max_ns, want->transit_max_ns);
    ck_assert(got->has_psn == want->has_psn);
    ck_assert_uint_eq(got->psn, want->psn);
    ck_assert_uint_eq(got->psn_span, want->psn_span);
    ck_assert_uint_eq(got->psn_back_samples, want->psn_back_samples);
    ck_assert_uint_eq(got->message_starts, want->message_starts);
    ck_assert_uint_eq(got->frame_min_bytes, want->frame_min_bytes);
    ck_assert_uint_eq(got->frame_max_bytes, want->frame_max_bytes);
    ck_assert_uint_eq(got->nak_samples, want->nak_samples);
    ck_assert_uint_eq(got->rnr_samples, want->rnr_samples);
    ck_assert_uint_eq(got->no_credit_samples, want->no_credit_samples);
    ck_assert(got->source_routed == want->source_routed);
    ck_assert(got->read_responses == want->read_responses);
    ck_assert(got->read_requests == want->read_requests);
    ck_assert(got->has_vni == want->has_vni && got->vni == want->vni);
    ck_assert(got->has_outer == want->has_outer);
    if (want->has_outer)
        ck_assert_mem_eq(&got->outer, &want->outer, sizeof(got->outer));
}

static void compare(void *arg, const struct ft_observed *o)
{
    struct ft_observed want;
    struct made m;

    (void)arg;
    any(&m);
    ck_assert_int_eq(ft_observed_from(&m.o, &want), 0);
    same(o, &want);
    came++;
}

static void never(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    ck_abort_msg("a record of kind %d", record->kind_case);
}

static void count(void *arg, const struct ft_observed *o)
{
    (void)arg;
    (void)o;
    came++;
}

static int take(const uint8_t *bytes, size_t len, size_t most,
                void (*observed)(void *arg, const struct ft_observed *o))
{
    const struct ft_batch_sink sink = {.record = never, .observed = observed};
    struct ft_batch *batch = ft_batch_new(len);
    uint64_t before;
    int rc;

    came = 0;
    do {
        before = came;
        rc = ft_batch_step(batch, bytes, most, &sink);
        ck_assert_uint_le(came - before, most);
    } while (rc > 0);
    ft_batch_free(batch);
    return rc;
}

START_TEST(what_goes_in_comes_out)
{
    const size_t steps[] = {1, 64, SIZE_MAX};

    for (size_t i = 0; i < 3; i++) {
        struct ft_columns *c = ft_columns_new(1u << 20);
        struct ft_writer w;
        struct made m;

        ft_writer_init(&w, 2u << 20);
        dice_state = i;
        /* Twice, since the lists begin anew with each message. */
        for (uint32_t n = 0; n < 2 * MANY; n++) {
            any(&m);
            ck_assert_int_eq(ft_columns_add(c, &m.o), 0);
            if (n % MANY == MANY - 1)
                ck_assert_int_eq(ft_columns_pack(c, &w), 0);
        }
        ck_assert_uint_eq(ft_columns_count(c), 0);
        dice_state = i;
        ck_assert_int_eq(take(w.bytes, w.len, steps[i], compare), 0);
        ck_assert_uint_eq(came, 2 * MANY);
        ft_writer_free(&w);
        ft_columns_free(c);
    }
}
END_TEST

/* 512 leaves with 16 hosts each under 32 spines: every flow is sampled once at each switch of its
 * path, in any order. An observation is to take 24 bytes at most. */
START_TEST(an_observation_of_a_large_fabric_takes_few_bytes)
{
    const uint32_t leaves = 512, hosts = 16, spines = 32, rows = 60000;
    struct ft_columns *c = ft_columns_new(2u << 20);
    struct ft_writer w;
    struct made m;

    ft_writer_init(&w, 4u << 20);
    dice_state = 1;
    for (uint32_t n = 0; n < rows; n++) {
        uint32_t src = dice(leaves * hosts), dst = dice(leaves * hosts), spine = dice(spines);
        uint32_t hop = dice(3), leaf = hop == 0 ? src / hosts : dst / hosts;

        begin(&m, src, dst, hop == 1 ? leaves + spine : leaf);
        m.o.first_ms = m.o.last_ms = START_MS + n * 1000 / rows;
        m.o.has_in_ifindex = m.o.has_out_ifindex = m.o.has_ttl = m.o.has_dst_qp = true;
        m.o.in_ifindex = hop == 0 ? 1 + src % hosts : hop == 1 ? 1 + src / hosts : 100 + spine;
        m.o.out_ifindex = hop == 0 ? 100 + spine : 1 + (hop == 1 ? dst / hosts : dst % hosts);
        m.o.ttl = 64 - hop;
        m.o.dst_qp = dice(1u << 24);
        m.o.bytes = 2048 * (dice(4) ? 4170 : 64 + dice(4000));
        end(&m);
        ck_assert_int_eq(ft_columns_add(c, &m.o), 0);
    }
    ck_assert_int_eq(ft_columns_pack(c, &w), 0);
    ck_assert_msg(w.len <= 24 * rows, "%.1f bytes an observation", (double)w.len / rows);
    ck_assert_int_eq(take(w.bytes, w.len, SIZE_MAX, count), 0);
    ck_assert_uint_eq(came, rows);
    ft_writer_free(&w);
    ft_columns_free(c);
}
END_TEST

START_TEST(a_message_is_of_one_interval_and_has_an_end)
{
    struct ft_columns *c = ft_columns_new(4096);
    struct ft_writer w;
    struct made m;
    uint32_t n = 0;

    ft_writer_init(&w, 1u << 20);
    begin(&m, 1, 2, 3);
    end(&m);
    ck_assert_int_eq(ft_columns_add(c, &m.o), 0);
    m.o.time_ms += 1000;
    ck_assert_int_eq(ft_columns_add(c, &m.o), -ENOSPC);
    m.o.time_ms -= 1000;
    m.o.interval_ms = 2000;
    ck_assert_int_eq(ft_columns_add(c, &m.o), -ENOSPC);
    m.o.interval_ms = 1000;
    m.o.first_ms += UINT64_C(1) << 40;
    m.o.last_ms = m.o.first_ms;
    ck_assert_int_eq(ft_columns_add(c, &m.o), -ENOSPC);
    ck_assert_uint_eq(ft_columns_count(c), 1);
    ck_assert_int_eq(ft_columns_pack(c, &w), 0);
    /* A new one takes what the old one could not. */
    m.o.first_ms = m.o.last_ms = m.o.time_ms += 1000;
    while (ft_columns_add(c, &m.o) == 0)
        n++;
    ck_assert_uint_gt(n, 4096 / 24);
    ck_assert_uint_lt(n, FT_COLUMNS_ROWS_MAX);
    ck_assert_int_eq(ft_columns_pack(c, &w), 0);
    ck_assert_int_eq(take(w.bytes, w.len, 7, count), 0);
    ck_assert_uint_eq(came, n + 1);
    /* Of nothing there is no message. */
    n = (uint32_t)w.len;
    ck_assert_int_eq(ft_columns_pack(c, &w), 0);
    ck_assert_uint_eq(w.len, n);
    ft_writer_free(&w);
    ft_columns_free(c);
}
END_TEST

START_TEST(what_columns_cannot_say_is_refused)
{
    struct ft_columns *c = ft_columns_new(4096);
    struct made m;

    begin(&m, 1, 2, 3);
    end(&m);
    m.o.has_packets = false;
    ck_assert_int_eq(ft_columns_add(c, &m.o), -EINVAL);
    m.o.has_packets = true;
    m.o.ack_samples = 1;
    ck_assert_int_eq(ft_columns_add(c, &m.o), -EINVAL);
    m.o.ack_samples = 0;
    m.o.last_ms--;
    ck_assert_int_eq(ft_columns_add(c, &m.o), -EINVAL);
    m.o.last_ms++;
    m.o.flow = NULL;
    ck_assert_int_eq(ft_columns_add(c, &m.o), -EINVAL);
    ck_assert_uint_eq(ft_columns_count(c), 0);
    ft_columns_free(c);
}
END_TEST

/* A message of three observations, in which a test breaks something. */
struct message {
    Fabrictrace__Record *record;
    Fabrictrace__Observations *m;
};

static const char three[] =
    "{\"schema\":\"fabrictrace.observations.v1\",\"time_ms\":1700000000000,\"interval_ms\":1000,"
    "\"addresses\":[\"10.0.0.1\",\"fd00::2\",\"192.0.2.1\"],\"sources\":[{\"agent\":2,"
    "\"sampling_rate\":100}],\"lengths\":[64],\"source\":[0,0,0],\"src\":[0,1,0],\"dst\":[1,0,1],"
    "\"sport\":[1,2,65535],\"samples\":[1,2,3],\"length\":[1,0,1],\"bytes\":[0,777,0],"
    "\"first_after\":[1,-1,5],\"outer_src\":[0,0,1],\"source_routed\":[0,0,1],"
    "\"reads\":[0,1,2],\"no_credit_samples\":[0,4,0],\"vni\":[0,1,5002]}";

static struct message read_three(void)
{
    struct message msg;
    char error[200] = "";

    ck_assert_msg(ft_record_from_json(three, strlen(three), &msg.record, error, sizeof(error)) == 0,
                  "%s", error);
    msg.m = msg.record->observations;
    return msg;
}

START_TEST(columns_are_read_as_the_contract_says)
{
    struct message msg = read_three();
    struct ft_columns_reader r;
    struct ft_observed o = {.packets = 0};
    char text[FT_TUPLE_TEXT_BYTES];

    ck_assert_int_eq(ft_columns_open(&r, msg.m), 0);
    ck_assert(ft_columns_next(&r, &o));
    ft_tuple_format(&o.tuple, text);
    ck_assert_str_eq(text, "[10.0.0.1]:49153-[fd00::2]:4791");
    ck_assert_uint_eq(o.first_ms, START_MS + 1);
    ck_assert_uint_eq(o.packets, 100);
    ck_assert_uint_eq(o.bytes, 6400);
    ck_assert_uint_eq(o.data_samples, 1);
    ck_assert(!o.has_outer && !o.has_dst_qp && !o.has_ttl && !o.has_queue && !o.source_routed);
    ck_assert(!o.has_vni);
    ck_assert(ft_columns_next(&r, &o));
    ck_assert_uint_eq(o.first_ms, START_MS);
    ck_assert_uint_eq(o.bytes, 777);
    ck_assert(o.read_responses && !o.read_requests);
    ck_assert_uint_eq(o.no_credit_samples, 4);
    ck_assert(o.has_vni && o.vni == 0);
    ck_assert(ft_columns_next(&r, &o));
    ck_assert_uint_eq(o.tuple.sport, 49151);
    ck_assert_uint_eq(o.first_ms, START_MS + 5);
    ck_assert(o.has_outer && ft_ip_equal(&o.outer.src, &o.tuple.src) && o.source_routed);
    ck_assert(o.has_vni && o.vni == 5001);
    ck_assert(!ft_columns_next(&r, &o));
    ck_assert(!ft_columns_next(&r, &o));
    ft_record_free(msg.record);
}
END_TEST

static int refuses(void (*spoil)(Fabrictrace__Observations *m))
{
    struct message msg = read_three();
    struct ft_columns_reader r;
    int rc;

    spoil(msg.m);
    rc = ft_columns_open(&r, msg.m);
    ft_record_free(msg.record);
    return rc;
}

#define SPOIL(name, what)                                                                          \
    static void name(Fabrictrace__Observations *m)                                                 \
    {                                                                                              \
        what;                                                                                      \
    }
SPOIL(nothing, (void)m)
SPOIL(shorter, m->n_sport = 2)
SPOIL(shorter_times, m->n_first_after = 1)
SPOIL(shorter_bytes, m->n_bytes = 1)
SPOIL(no_rows, m->n_source = 0)
SPOIL(source_beyond, m->source[2] = 1)
SPOIL(address_beyond, m->dst[0] = 3)
SPOIL(tunnel_beyond, m->outer_src[2] = 4)
SPOIL(agent_beyond, m->sources[0]->agent = 3)
SPOIL(length_beyond, m->length[1] = 2)
SPOIL(port_beyond, m->sport[0] = 65536)
SPOIL(neither_0_nor_1, m->source_routed[1] = 2)
SPOIL(more_than_both, m->reads[1] = 4)
SPOIL(shorter_credits, m->n_no_credit_samples = 2)
SPOIL(address_of_3_bytes, m->addresses[0].len = 3)
SPOIL(no_time, m->has_time_ms = false)

START_TEST(lists_that_do_not_fit_together_are_refused)
{
    ck_assert_int_eq(refuses(nothing), 0);
    ck_assert_int_eq(refuses(shorter), -EBADMSG);
    ck_assert_int_eq(refuses(shorter_times), -EBADMSG);
    ck_assert_int_eq(refuses(shorter_bytes), -EBADMSG);
    ck_assert_int_eq(refuses(no_rows), -EBADMSG);
    ck_assert_int_eq(refuses(source_beyond), -EBADMSG);
    ck_assert_int_eq(refuses(address_beyond), -EBADMSG);
    ck_assert_int_eq(refuses(tunnel_beyond), -EBADMSG);
    ck_assert_int_eq(refuses(agent_beyond), -EBADMSG);
    ck_assert_int_eq(refuses(length_beyond), -EBADMSG);
    ck_assert_int_eq(refuses(port_beyond), -EBADMSG);
    ck_assert_int_eq(refuses(neither_0_nor_1), -EBADMSG);
    ck_assert_int_eq(refuses(more_than_both), -EBADMSG);
    ck_assert_int_eq(refuses(shorter_credits), -EBADMSG);
    ck_assert_int_eq(refuses(address_of_3_bytes), -EBADMSG);
    ck_assert_int_eq(refuses(no_time), -EBADMSG);
}
END_TEST

/* Nothing of a batch is taken before all of it is known to be good. */
START_TEST(a_bad_message_spoils_its_batch_and_nothing_is_taken)
{
    struct message good = read_three(), bad = read_three();
    Fabrictrace__Record *records[] = {good.record, bad.record};
    struct ft_writer w;

    ft_writer_init(&w, 1u << 20);
    bad.m->source[2] = 1;
    ck_assert_int_eq(ft_batch_pack(records, 2, &w), 0);
    ck_assert_int_eq(take(w.bytes, w.len, 1, count), -EBADMSG);
    ck_assert_uint_eq(came, 0);
    ft_writer_reset(&w);
    ck_assert_int_eq(ft_batch_pack(records, 1, &w), 0);
    for (size_t n = 1; n < w.len; n++) {
        uint8_t *copy = malloc(n);

        /* On the heap, so that reading beyond it is seen. */
        memcpy(copy, w.bytes, n);
        ck_assert_int_eq(take(copy, n, 1, count), -EBADMSG);
        ck_assert_uint_eq(came, 0);
        free(copy);
    }
    ck_assert_int_eq(take(w.bytes, w.len, 1, count), 0);
    ck_assert_uint_eq(came, 3);
    ft_record_free(good.record);
    ft_record_free(bad.record);
    ft_writer_free(&w);
}
END_TEST

START_TEST(more_observations_than_a_message_may_have)
{
    Fabrictrace__Observations m = FABRICTRACE__OBSERVATIONS__INIT;
    struct message msg = read_three();
    struct ft_columns_reader r;

    m.has_time_ms = true;
    m.addresses = msg.m->addresses;
    m.n_addresses = msg.m->n_addresses;
    m.sources = msg.m->sources;
    m.n_sources = msg.m->n_sources;
    m.source = calloc(FT_COLUMNS_ROWS_MAX + 1, sizeof(*m.source));
    m.n_source = FT_COLUMNS_ROWS_MAX;
    ck_assert_int_eq(ft_columns_open(&r, &m), 0);
    m.n_source++;
    ck_assert_int_eq(ft_columns_open(&r, &m), -EBADMSG);
    free(m.source);
    ft_record_free(msg.record);
}
END_TEST

FT_UNIT_MAIN("columns", what_goes_in_comes_out, an_observation_of_a_large_fabric_takes_few_bytes,
             a_message_is_of_one_interval_and_has_an_end, what_columns_cannot_say_is_refused,
             columns_are_read_as_the_contract_says, lists_that_do_not_fit_together_are_refused,
             a_bad_message_spoils_its_batch_and_nothing_is_taken,
             more_observations_than_a_message_may_have)
