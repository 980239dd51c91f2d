// SPDX-License-Identifier: Apache-2.0
/*
 * libibverbs.so for the processes of one job: wraps ibv_modify_qp() alone, so that new queue pairs
 * get the UDP source port that a plan of the job's owner has for them.
 *
 * It is loaded by LD_PRELOAD. What is linked against libibverbs.so.1 finds its symbol, of the same
 * version, before the library's; who loads "libibverbs.so" by dlopen(3), as NCCL does, gets this
 * one by its SONAME, and every other symbol from the library that it needs. Nothing is changed when
 * the agent is not there, has no plan, or when the program chose a flow label itself. Thread: any.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "agent/shim/ask.h"

#define EXPORT __attribute__((visibility("default")))

/* Flow labels whose 14 lowest bits and 6 highest ones give the port (RDMA core); 0 means none. */
#define LABEL_BITS 0x3fffu
#define LABEL_ZERO 0x4001u
/* Masks that are known to need no more than this version's struct ibv_qp_attr. */
#define KNOWN_MASK ((IBV_QP_RATE_LIMIT << 1) - 1)
/* Queue pairs between ready to receive and ready to send whose label was refused. */
#define LATER_MAX 256

typedef int modify_fn(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
typedef int sport_fn(struct ibv_qp *qp, uint16_t sport);

/* qp NULL: free. */
struct later {
    atomic_flag held;
    struct ibv_qp *qp;
    struct ft_shim_question question;
    uint16_t sport;
};

static struct later laters[LATER_MAX];
static _Atomic(modify_fn *) modify;

/* The library's own. RTLD_NEXT would look in what the program itself has loaded, where a library
 * that came with dlopen(3) is not. */
static modify_fn *real_modify(void)
{
    modify_fn *fn = modify;
    void *library;

    if (fn)
        return fn;
    library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
    fn = library ? (modify_fn *)dlvsym(library, "ibv_modify_qp", "IBVERBS_1.1") : NULL;
    /* One name for both files would be a circle. */
    if (fn == ibv_modify_qp)
        fn = NULL;
    modify = fn;
    return fn;
}

/* mlx5dv_modify_qp_udp_sport(3), where the program has that library. */
static sport_fn *set_sport(void)
{
    void *library = dlopen("libmlx5.so.1", RTLD_LAZY | RTLD_NOLOAD);

    return library ? (sport_fn *)dlvsym(library, "mlx5dv_modify_qp_udp_sport", "MLX5_1.17") : NULL;
}

/* For some instructions only. */
static void hold(struct later *l)
{
    while (atomic_flag_test_and_set(&l->held))
        ;
}

/* Remembered until it is made ready to send; without room it keeps the port that it has. */
static void remember(struct ibv_qp *qp, const struct ft_shim_question *question, uint16_t sport)
{
    for (size_t i = 0; i < LATER_MAX; i++) {
        struct later *l = &laters[i];
        bool took = false;

        hold(l);
        /* One at the same address was destroyed meanwhile. */
        if (!l->qp || l->qp == qp) {
            l->question = *question;
            l->sport = sport;
            l->qp = qp;
            took = true;
        }
        atomic_flag_clear(&l->held);
        if (took)
            return;
    }
}

/* The port that it is to have, 0: none. */
static uint16_t recall(const struct ibv_qp *qp, struct ft_shim_question *question)
{
    for (size_t i = 0; i < LATER_MAX; i++) {
        struct later *l = &laters[i];
        uint16_t sport = 0;

        hold(l);
        if (l->qp == qp) {
            *question = l->question;
            sport = l->question.qp == qp->qp_num ? l->sport : 0;
            l->qp = NULL;
        }
        atomic_flag_clear(&l->held);
        if (sport)
            return sport;
    }
    return 0;
}

static int to_receive(modify_fn *real, struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    struct ft_shim_question question = {.qp = qp->qp_num, .peer = attr->dest_qp_num};
    struct ibv_qp_attr changed;
    union ibv_gid own;
    uint16_t sport;
    int fd, rc;

    if (ibv_query_gid(qp->context, attr->ah_attr.port_num, attr->ah_attr.grh.sgid_index, &own))
        return real(qp, attr, mask);
    memcpy(question.src, own.raw, sizeof(question.src));
    memcpy(question.dst, attr->ah_attr.grh.dgid.raw, sizeof(question.dst));
    sport = ft_shim_ask(&question, &fd);
    if (!sport)
        return real(qp, attr, mask);
    changed = *attr;
    changed.ah_attr.grh.flow_label = sport & LABEL_BITS ? sport & LABEL_BITS : LABEL_ZERO;
    rc = real(qp, &changed, mask);
    if (rc == 0) {
        ft_shim_done(fd, &question, sport, FT_SHIM_LABEL);
        return 0;
    }
    /* A transition that failed has changed nothing. */
    rc = real(qp, attr, mask);
    ft_shim_done(fd, &question, sport, FT_SHIM_REFUSED);
    if (rc == 0)
        remember(qp, &question, sport);
    return rc;
}

static int to_send(modify_fn *real, struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    struct ft_shim_question question;
    uint16_t sport = recall(qp, &question);
    sport_fn *set = sport ? set_sport() : NULL;
    int rc = real(qp, attr, mask), fd;

    if (rc == 0 && set && set(qp, sport) == 0 && ft_shim_ask(&question, &fd))
        ft_shim_done(fd, &question, sport, FT_SHIM_SPORT);
    return rc;
}

/* Whether a label is the shim's to give: of a connected queue pair with a global route. One that
 * the program chose itself, as UCX always does, stays where the plan has no port for it. */
static bool is_open(const struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    return (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_UC) && (mask & IBV_QP_AV) &&
           (mask & IBV_QP_DEST_QPN) && !(mask & ~KNOWN_MASK) && attr->ah_attr.is_global;
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    modify_fn *real = real_modify();
    int before = errno, rc;

    if (!real)
        return ENOSYS;
    if (!(mask & IBV_QP_STATE))
        return real(qp, attr, mask);
    if (attr->qp_state == IBV_QPS_RTR && is_open(qp, attr, mask))
        rc = to_receive(real, qp, attr, mask);
    else if (attr->qp_state == IBV_QPS_RTS)
        rc = to_send(real, qp, attr, mask);
    else
        rc = real(qp, attr, mask);
    if (rc == 0)
        errno = before;
    return rc;
}
