// SPDX-License-Identifier: Apache-2.0
/*
 * Makes and destroys RC queue pairs at a rate, and writes down which and when: what really was, for
 * the judge of this scenario. No packet is sent. The queue pairs are made by a thread, as NCCL
 * does.
 *
 * usage: churn DEVICE GID_INDEX DESTINATION FIRST_REMOTE ALIVE RATE SECONDS [unconnected]
 *
 * Keeps ALIVE queue pairs to DESTINATION (IPv4) and the 63 addresses after it in turn, destroys the
 * oldest as it makes the next, RATE a second (0: makes them once), for SECONDS. Their remote
 * numbers count up from FIRST_REMOTE. Lines, times in Unix milliseconds:
 * - process PID TID COMM
 * - made LQPN RQPN MS: when it could send
 * - gone LQPN RQPN MS MS: before and after it was destroyed
 * - end MS: after all were
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STEP_NS      10000000
#define DESTINATIONS 64

struct pair {
    struct ibv_qp *qp;
    uint32_t remote;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static union ibv_gid destination;
static int gid_index;
static uint32_t remote;
static long alive, rate;
static double seconds;
static int unconnected;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static long long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, const char *what)
{
    if (ibv_modify_qp(qp, attr, mask))
        fail(what);
}

static struct pair make(void)
{
    union ibv_gid gid = destination;
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    long long begin_ms = now_ms();
    struct pair pair = {.qp = ibv_create_qp(pd, &init), .remote = remote++};

    if (!pair.qp)
        fail("ibv_create_qp");
    gid.raw[15] = (uint8_t)(gid.raw[15] + pair.remote % DESTINATIONS);
    if (unconnected)
        return pair;
    modify(pair.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
           "INIT");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = pair.remote,
        .rq_psn = pair.remote,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 9}},
    };
    modify(pair.qp, &attr,
           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
           "RTR");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .sq_psn = pair.remote,
                                .timeout = 14,
                                .retry_cnt = 7,
                                .rnr_retry = 7,
                                .max_rd_atomic = 1};
    modify(pair.qp, &attr,
           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
               IBV_QP_MAX_QP_RD_ATOMIC,
           "RTS");
    printf("made %u %u %lld\n", pair.qp->qp_num, pair.remote, begin_ms);
    return pair;
}

static void destroy(struct pair *pair)
{
    uint32_t number = pair->qp->qp_num;
    long long begin_ms = now_ms();

    ibv_destroy_qp(pair->qp);
    if (!unconnected)
        printf("gone %u %u %lld %lld\n", number, pair->remote, begin_ms, now_ms());
    pair->qp = NULL;
}

static double elapsed(const struct timespec *begin)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)(t.tv_sec - begin->tv_sec) + (double)(t.tv_nsec - begin->tv_nsec) / 1e9;
}

static void *work(void *arg)
{
    const struct timespec step = {.tv_nsec = STEP_NS};
    struct pair *pairs = calloc((size_t)alive, sizeof(*pairs));
    struct timespec begin;
    char comm[16] = "";
    long long second = now_ms() / 1000;
    long made = 0, before = 0;
    FILE *file = fopen("/proc/self/comm", "r");

    if (!pairs || !file || !fgets(comm, sizeof(comm), file))
        fail("start");
    fclose(file);
    comm[strcspn(comm, "\n")] = '\0';
    pthread_setname_np(pthread_self(), "worker");
    printf("process %d %ld %s\n", (int)getpid(), syscall(SYS_gettid), comm);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (elapsed(&begin) < seconds) {
        long due = rate ? (long)(elapsed(&begin) * (double)rate) : alive;

        for (; made < due; made++) {
            struct pair *place = &pairs[made % alive];

            if (place->qp)
                destroy(place);
            *place = make();
            if (now_ms() / 1000 != second) {
                printf("second %lld %ld\n", second, made + 1 - before);
                second = now_ms() / 1000;
                before = made + 1;
            }
        }
        fflush(stdout);
        nanosleep(&step, NULL);
    }
    printf("second %lld %ld\n", second, made - before);
    for (long i = 0; i < alive; i++)
        if (pairs[i].qp)
            destroy(&pairs[i]);
    free(pairs);
    return arg;
}

static void open_device(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    for (int i = 0; list && list[i] && !context; i++)
        if (strcmp(ibv_get_device_name(list[i]), name) == 0)
            context = ibv_open_device(list[i]);
    if (!context)
        fail(name);
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    if (!pd || !cq)
        fail("ibv_create_cq");
}

int main(int argc, char **argv)
{
    pthread_t thread;

    if (argc != 8 && argc != 9)
        return 64;
    unconnected = argc == 9;
    gid_index = atoi(argv[2]);
    destination.raw[10] = destination.raw[11] = 0xff;
    if (inet_pton(AF_INET, argv[3], destination.raw + 12) != 1)
        return 64;
    remote = (uint32_t)strtoul(argv[4], NULL, 10);
    alive = atol(argv[5]);
    rate = atol(argv[6]);
    seconds = atof(argv[7]);
    open_device(argv[1]);
    if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL))
        fail("thread");
    printf("end %lld\n", now_ms());
    return 0;
}
