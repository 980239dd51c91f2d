// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_EVENT_H
#define FT_DAEMON_DIAGNOSIS_EVENT_H
/*
 * The event that a diagnosis raises. Pure. Thread: any.
 */
#include "proto/fabrictrace.pb-c.h"

#define FT_DIAGNOSIS_SUBJECT_BYTES 128

/* Fills all three; the event borrows from the diagnosis, the evidence and the subject. */
void ft_diagnosis_event(const Fabrictrace__Diagnosis *m, Fabrictrace__Event *event,
                        Fabrictrace__Evidence *evidence, char subject[FT_DIAGNOSIS_SUBJECT_BYTES]);

#endif
