// SPDX-License-Identifier: Apache-2.0
#ifndef FT_UNIT_RAS_ANSWER_H
#define FT_UNIT_RAS_ANSWER_H
/*
 * An answer of NCCL's RAS to VERBOSE STATUS as its sources write it (2.28.7 to 2.30,
 * src/ras/client_support.cc): four ranks of which rank 2 has launched one AllReduce less, and rank
 * 3 does not answer.
 */
#define RAS_STATUS(error)                                                                          \
    "\"status\": {\n \"init_state\": 0,\n \"async_error\": " error                                 \
    ",\n \"finalize_called\": false,\n"                                                            \
    " \"destroy_flag\": false,\n \"abort_flag\": false\n },\n"
#define RAS_COUNTS(reduces)                                                                        \
    "\"collective_counts\": {\n \"Broadcast\": 1,\n \"Reduce\": 0,\n \"AllGather\": 0,\n"          \
    " \"ReduceScatter\": 0,\n \"AllReduce\": " reduces "\n }\n"
#define RAS_RANK(rank, host, pid, error, reduces)                                                  \
    "{\n \"rank\": " rank ",\n \"host\": \"" host "\",\n \"pid\": " pid                            \
    ",\n \"cuda_dev\": 0,\n \"nvml_dev\": 0,\n" RAS_STATUS(error) RAS_COUNTS(reduces) "}"
#define RAS_MISSING(rank, unresponsive, dead)                                                      \
    "{\n \"rank\": " rank ",\n \"host\": \"192.0.2.4\",\n \"pid\": 44,\n \"cuda_dev\": 0,\n"       \
    " \"nvml_dev\": 0,\n \"status\": {\n \"unresponsive\": " unresponsive                          \
    ",\n \"considered_dead\": " dead "\n }\n }"
#define RAS_COMM(hash, ranks, missing)                                                             \
    "{\n \"hash\": \"" hash "\",\n \"secondary_hash\": \"0x1:0x2\",\n \"size\": 4,\n"              \
    " \"ranks_count\": 3,\n \"missing_ranks_count\": 1,\n \"ranks\": [\n" ranks                    \
    "\n ],\n \"missing_ranks\": [\n" missing "\n ]\n }"
#define RAS_ANSWER(comms)                                                                          \
    "{\n \"nccl_version\": \"2.28.9\",\n \"cuda_runtime_version\": 12090,\n"                       \
    " \"cuda_driver_version\": 12090,\n \"timestamp\": \"2026-11-23 12:00:00\",\n"                 \
    " \"communicators_count\": 1,\n \"communicators\": [\n" comms                                  \
    "\n ],\n \"ras\": {\n \"collection_time_sec\": 0.002,\n \"timeouts_count\": 1\n }\n}\n"

#define RAS_THREE                                                                                  \
    RAS_RANK("0", "192.0.2.1", "41", "0", "12")                                                    \
    ",\n" RAS_RANK("1", "192.0.2.2", "42", "6", "12") ",\n" RAS_RANK("2", "192.0.2.3", "43", "0",  \
                                                                     "11")
#define RAS_FOUR RAS_ANSWER(RAS_COMM("0xfab", RAS_THREE, RAS_MISSING("3", "true", "false")))

#endif
