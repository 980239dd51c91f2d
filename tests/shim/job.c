// SPDX-License-Identifier: Apache-2.0
/*
 * A job that makes queue pairs as it is asked on standard input, a line each:
 *   rtr QP PEER LABEL DST   ready to receive; DST is the last byte of the peer's address
 *   rts QP                  ready to send
 * After each it prints "done QP RC MICROSECONDS".
 *
 * usage: job linked|dlopen|dlopen1|old
 * linked: as perftest and UCX, which are linked against libibverbs.so.1. dlopen: as NCCL, which
 * loads "libibverbs.so" and asks for symbols by version. old: by the version before it, whose
 * structures differ. With MLX5 in the environment libmlx5.so.1 is loaded first.
 */
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

#define QPS 65536

typedef int modify_fn(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

static modify_fn *find(const char *how)
{
    void *library;
    modify_fn *fn;

    if (strcmp(how, "linked") == 0)
        return ibv_modify_qp;
    library = dlopen("libibverbs.so", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    fn = (modify_fn *)dlvsym(library, "ibv_modify_qp",
                             strcmp(how, "old") == 0 ? "IBVERBS_1.0" : "IBVERBS_1.1");
    /* All else is the library's own. */
    if (!fn || !dlvsym(library, "ibv_query_gid", "IBVERBS_1.1")) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return fn;
}

static long long now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static int ready(modify_fn *modify, struct ibv_qp *qp, unsigned peer, unsigned label, unsigned dst)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .dest_qp_num = peer};

    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.flow_label = label;
    attr.ah_attr.grh.dgid.raw[10] = attr.ah_attr.grh.dgid.raw[11] = 0xff;
    attr.ah_attr.grh.dgid.raw[12] = 10;
    attr.ah_attr.grh.dgid.raw[15] = (uint8_t)dst;
    return modify(qp, &attr,
                  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int main(int argc, char **argv)
{
    static struct ibv_qp qps[QPS];
    unsigned number, peer, label, dst;
    modify_fn *modify;
    char line[128];

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 2)
        return 2;
    if (getenv("MLX5") && !dlopen("libmlx5.so.1", RTLD_NOW))
        return 2;
    modify = find(argv[1]);
    while (fgets(line, sizeof(line), stdin)) {
        long long begun = now_us();
        struct ibv_qp *qp;
        int rc = -1;

        if (sscanf(line, "%*s %u", &number) != 1 || number >= QPS)
            return 2;
        qp = &qps[number];
        qp->qp_num = number;
        qp->qp_type = IBV_QPT_RC;
        if (sscanf(line, "rtr %u %u %u %u", &number, &peer, &label, &dst) == 4) {
            rc = ready(modify, qp, peer, label, dst);
        } else {
            struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

            rc = modify(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
        }
        printf("done %u %d %lld\n", number, rc, now_us() - begun);
    }
    return 0;
}
