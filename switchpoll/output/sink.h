// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_OUTPUT_SINK_H
#define FT_SWITCHPOLL_OUTPUT_SINK_H
/*
 * Where finished records go. emit() must have used the record when it returns: the record and all
 * that it points to live on its maker's stack.
 */
#include "proto/fabrictrace.pb-c.h"

struct ft_record_sink {
    void (*emit)(void *arg, const Fabrictrace__Record *record);
    void *arg;
};

#endif
