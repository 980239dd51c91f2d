// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_FOUND_H
#define FT_DIAGNOSIS_FOUND_H
/* The steps of a diagnosis: each adds what it finds. -ENOMEM. */
#include <stdbool.h>

#include "lib/diagnosis/diagnosis.h"
#include "lib/diagnosis/matched.h"

int ft_find_hangs(const struct ft_matched *m, uint64_t now_ns, bool ended,
                  struct ft_diagnoses *found);
int ft_find_mismatches(const struct ft_matched *m, struct ft_diagnoses *found);
/* Two collectives that one rank called in another order: of a table in which nothing stands. */
int ft_find_swapped(const struct ft_matched *m, struct ft_diagnoses *found);

/* Slow outside of communication, and in it. ended: nothing is added to the table any more. */
int ft_find_late(const struct ft_matched *m, bool ended, struct ft_diagnoses *found);
/* The same in jobs without collectives. */
int ft_find_late_senders(const struct ft_matched *m, struct ft_diagnoses *found);
/* Late against their own past alone: where the comparison with others finds none. */
int ft_find_changed(const struct ft_matched *m, struct ft_diagnoses *found);
/* Late once, and not any more: of a finished table. */
int ft_find_late_once(const struct ft_matched *m, struct ft_diagnoses *found);
int ft_find_slow_pairs(const struct ft_matched *m, struct ft_diagnoses *found);
int ft_find_slow_groups(const struct ft_matched *m, struct ft_diagnoses *found);

/* A new one with nothing known but its syndrome; NULL without memory. Good until the next. */
struct ft_diagnosis *ft_diagnoses_add(struct ft_diagnoses *found, enum ft_syndrome syndrome);

void ft_texts_add(struct ft_texts *texts, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
