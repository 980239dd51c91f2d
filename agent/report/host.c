// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/report/host.h"

#include <string.h>

#include "agent/rdma/rdma.h"

#define NS_PER_MS 1000000

enum sign {
    CNP_SENT,
    CNP_HANDLED,
    ECN_MARKED,
    OUT_OF_SEQUENCE,
    RETRANSMISSIONS,
    TIMEOUTS,
    SIGNS,
};

/* Names as the drivers mlx5, bnxt_re (older kernels; newer ones call most as mlx5 does), irdma (its
 * third generation alone counts losses of RoCEv2) and rxe have them in sysfs. A driver has but one
 * name for a sign. */
static const struct {
    const char *name;
    enum sign sign;
} meanings[] = {
    {"np_cnp_sent", CNP_SENT},
    {"tx_cnp_pkts", CNP_SENT},
    {"np_cnp_pkts", CNP_SENT},
    {"cnpSent", CNP_SENT},
    {"rp_cnp_handled", CNP_HANDLED},
    {"rx_cnp_pkts", CNP_HANDLED},
    {"cnpHandled", CNP_HANDLED},
    {"np_ecn_marked_roce_packets", ECN_MARKED},
    {"rx_ecn_marked_pkts", ECN_MARKED},
    {"RxECNMrkd", ECN_MARKED},
    {"out_of_sequence", OUT_OF_SEQUENCE},
    {"oos_drop_count", OUT_OF_SEQUENCE},
    {"Rcvd Out of order packets", OUT_OF_SEQUENCE},
    {"out_of_seq_request", OUT_OF_SEQUENCE},
    {"packet_seq_err", RETRANSMISSIONS},
    {"seq_err_naks_rcvd", RETRANSMISSIONS},
    {"Nak Sequence Error", RETRANSMISSIONS},
    {"completer_retry_err", RETRANSMISSIONS},
    {"local_ack_timeout_err", TIMEOUTS},
    {"to_retransmits", TIMEOUTS},
    {"RTO", TIMEOUTS},
};

static void read_signs(const struct ft_rdma_port_report *report, bool has[SIGNS],
                       uint64_t values[SIGNS])
{
    for (size_t i = 0; i < report->count; i++) {
        for (size_t m = 0; m < sizeof(meanings) / sizeof(meanings[0]); m++) {
            if (strcmp(report->counters[i].name, meanings[m].name) != 0)
                continue;
            has[meanings[m].sign] = true;
            values[meanings[m].sign] += report->growth[i];
        }
    }
}

static void fill_signs(const struct ft_rdma_port_report *report, Fabrictrace__HostCounters *m)
{
    bool has[SIGNS] = {false};
    uint64_t values[SIGNS] = {0};

    read_signs(report, has, values);
    m->has_cnp_sent = has[CNP_SENT];
    m->cnp_sent = values[CNP_SENT];
    m->has_cnp_handled = has[CNP_HANDLED];
    m->cnp_handled = values[CNP_HANDLED];
    m->has_ecn_marked = has[ECN_MARKED];
    m->ecn_marked = values[ECN_MARKED];
    m->has_out_of_sequence = has[OUT_OF_SEQUENCE];
    m->out_of_sequence = values[OUT_OF_SEQUENCE];
    m->has_retransmissions = has[RETRANSMISSIONS];
    m->retransmissions = values[RETRANSMISSIONS];
    m->has_timeouts = has[TIMEOUTS];
    m->timeouts = values[TIMEOUTS];
}

static char *text(const char *s)
{
    return s && s[0] ? (char *)(uintptr_t)s : NULL;
}

void ft_report_host(const struct ft_rdma_port_report *report, const char *host, const char *source,
                    struct ft_host_record *out)
{
    Fabrictrace__HostCounters *m = &out->host;

    fabrictrace__record__init(&out->record);
    fabrictrace__host_counters__init(m);
    out->record.kind_case = FABRICTRACE__RECORD__KIND_HOST;
    out->record.host = m;
    m->has_time_ms = true;
    m->time_ms = (uint64_t)report->time.ms;
    m->source = text(source);
    m->host = text(host);
    m->device = text(report->device);
    m->has_port = true;
    m->port = report->port;
    m->interface = text(report->netdev);
    m->driver = text(ft_rdma_driver_name(report->driver));
    m->has_active = report->has_state;
    m->active = report->active;
    m->has_speed_bps = report->speed_bps > 0;
    m->speed_bps = report->speed_bps;
    m->counters = out->list;
    m->n_counters = report->count;
    for (size_t i = 0; i < report->count; i++) {
        fabrictrace__counter__init(&out->counters[i]);
        out->counters[i].name = text(report->counters[i].name);
        out->counters[i].has_total = true;
        out->counters[i].total = report->counters[i].value;
        out->counters[i].has_growth = report->interval_ns > 0;
        out->counters[i].growth = report->growth[i];
        out->list[i] = &out->counters[i];
    }
    if (report->interval_ns == 0)
        return;
    m->has_interval_ms = true;
    m->interval_ms = (uint32_t)(report->interval_ns / NS_PER_MS);
    fill_signs(report, m);
}
