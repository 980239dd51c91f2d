// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_HTTP_COMMON_METRICS_H
#define FT_IO_HTTP_COMMON_METRICS_H
/*
 * The metrics that all daemons have: version, process, main loop, HTTP and the accounting of their
 * stages. Each program's table begins with FT_COMMON_METRICS(its prefix), and its own numbers with
 * FT_METRIC_COMMON_COUNT. Thread: the loop's.
 */
#include "lib/base/account.h"
#include "lib/base/prometheus.h"
#include "lib/io/http/http.h"
#include "lib/io/loop.h"

enum ft_common_metric {
    FT_METRIC_BUILD_INFO,
    FT_METRIC_CPU,
    FT_METRIC_RESIDENT,
    FT_METRIC_VIRTUAL,
    FT_METRIC_OPEN_FILES,
    FT_METRIC_FILES_MAX,
    FT_METRIC_START,
    FT_METRIC_LOOP_BUSY,
    FT_METRIC_LOOP_LONGEST,
    FT_METRIC_LOOP_SLOW,
    FT_METRIC_HTTP_CONNECTED,
    FT_METRIC_HTTP_CONNECTIONS,
    FT_METRIC_HTTP_ACCEPT_FAILURES,
    FT_METRIC_HTTP_CUT_OFF,
    FT_METRIC_HTTP_REFUSED,
    FT_METRIC_HTTP_SHARED,
    FT_METRIC_RECEIVED,
    FT_METRIC_PROCESSED,
    FT_METRIC_PENDING,
    FT_METRIC_DROPPED,
    FT_METRIC_COMMON_COUNT,
};

/* clang-format off */
#define FT_COMMON_METRICS(P) \
    [FT_METRIC_BUILD_INFO] = {P "build_info", FT_PROM_GAUGE, "always 1", "version", NULL, 1, \
        "The version that runs."}, \
    [FT_METRIC_CPU] = {"process_cpu_seconds_total", FT_PROM_COUNTER, "seconds", NULL, NULL, 1, \
        "Processor time of the program."}, \
    [FT_METRIC_RESIDENT] = {"process_resident_memory_bytes", FT_PROM_GAUGE, "bytes", NULL, NULL, \
        1, "Memory of the program that is in RAM."}, \
    [FT_METRIC_VIRTUAL] = {"process_virtual_memory_bytes", FT_PROM_GAUGE, "bytes", NULL, NULL, 1, \
        "Address space of the program."}, \
    [FT_METRIC_OPEN_FILES] = {"process_open_fds", FT_PROM_GAUGE, "descriptors", NULL, NULL, 1, \
        "Descriptors that are open."}, \
    [FT_METRIC_FILES_MAX] = {"process_max_fds", FT_PROM_GAUGE, "descriptors", NULL, NULL, 1, \
        "Descriptors that may be open."}, \
    [FT_METRIC_START] = {"process_start_time_seconds", FT_PROM_GAUGE, "seconds", NULL, NULL, 1, \
        "When the program started, Unix time."}, \
    [FT_METRIC_LOOP_BUSY] = {P "loop_busy_seconds_total", FT_PROM_COUNTER, "seconds", "stage", \
        NULL, FT_LOOP_STAGES, \
        "Time that the main loop spent in a stage. All stages together near one second a second: " \
        "the program can do no more."}, \
    [FT_METRIC_LOOP_LONGEST] = {P "loop_longest_step_seconds", FT_PROM_GAUGE, "seconds", NULL, \
        NULL, 1, "The longest that the main loop was kept by one thing."}, \
    [FT_METRIC_LOOP_SLOW] = {P "loop_slow_steps_total", FT_PROM_COUNTER, "steps", NULL, NULL, 1, \
        "Times that it was for more than 100 ms."}, \
    [FT_METRIC_HTTP_CONNECTED] = {P "http_connections", FT_PROM_GAUGE, "connections", NULL, NULL, \
        1, "HTTP clients connected."}, \
    [FT_METRIC_HTTP_CONNECTIONS] = {P "http_connections_total", FT_PROM_COUNTER, "connections", \
        NULL, NULL, 1, "HTTP clients that came."}, \
    [FT_METRIC_HTTP_ACCEPT_FAILURES] = {P "http_accept_failures_total", FT_PROM_COUNTER, "times", \
        NULL, NULL, 1, "Times that no client could be accepted, because no descriptor was free."}, \
    [FT_METRIC_HTTP_CUT_OFF] = {P "http_cut_off_total", FT_PROM_COUNTER, "connections", \
        "reason", NULL, FT_HTTP_CUTS, \
        "HTTP clients cut off, by reason. full: all connections were taken; silent: no request " \
        "came within 60 s; still: nothing of the answer was read for 15 s; slow: all of it was " \
        "not read in time; behind: more than 256 KiB of a stream waited; failed: the answer " \
        "could not be made to its end."}, \
    [FT_METRIC_HTTP_REFUSED] = {P "http_answers_refused_total", FT_PROM_COUNTER, "answers", NULL, \
        NULL, 1, "Answers too large for the memory that is left for answers."}, \
    [FT_METRIC_HTTP_SHARED] = {P "http_answers_shared_total", FT_PROM_COUNTER, "answers", NULL, \
        NULL, 1, "Answers that were made once for several clients, but for the first of each."}, \
    [FT_METRIC_RECEIVED] = {P "received_total", FT_PROM_COUNTER, "as the label unit says", \
        "stage,unit", NULL, FT_ACCOUNT_STAGES, \
        "What entered a stage: as much as was processed, is pending and was dropped."}, \
    [FT_METRIC_PROCESSED] = {P "processed_total", FT_PROM_COUNTER, "as the label unit says", \
        "stage,unit", NULL, FT_ACCOUNT_STAGES, "What left a stage as it should."}, \
    [FT_METRIC_PENDING] = {P "pending", FT_PROM_GAUGE, "as the label unit says", "stage,unit", \
        NULL, FT_ACCOUNT_STAGES, "What is still in a stage: the depth of its queue."}, \
    [FT_METRIC_DROPPED] = {P "dropped_total", FT_PROM_COUNTER, "as the label unit says", \
        "stage,unit,reason", NULL, FT_ACCOUNT_STAGES * FT_ACCOUNT_DROPS, \
        "What a stage lost, by reason."}
/* clang-format on */

struct ft_common_facts {
    const struct ft_loop *loop;       /* NULL: none runs */
    const struct ft_http *http;       /* NULL: no port */
    const struct ft_account *account; /* stages of one name are reported as their sum */
};

void ft_common_metrics_write(struct ft_prom *page, const struct ft_common_facts *facts);

#endif
