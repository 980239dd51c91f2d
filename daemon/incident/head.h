// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_INCIDENT_HEAD_H
#define FT_DAEMON_INCIDENT_HEAD_H
/*
 * The first section of an incident's file, as YAML: whose it is, of which time, and every setting
 * that the figures depend on, so that a replay works with the same. Thread: any.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/settings.h"
#include "lib/base/diag.h"
#include "lib/base/writer.h"

#define FT_HEAD_PROGRAM "fabrictraced " PACKAGE_VERSION

struct ft_head {
    char *source_id, *fabric, *program; /* program: with its version */
    int64_t from_ms, to_ms;
    bool from_start; /* the records begin where the daemon did: everything follows from them */
    uint64_t seed;
    uint64_t history_number; /* of the first window */
    uint32_t history_version;
};

/* Borrows the head's texts. */
void ft_head_write(struct ft_writer *w, const struct ft_head *head, const struct ft_settings *s);

/* Fills the head, whose texts are the caller's to free by ft_head_clear(), and the settings that it
 * has. -EBADMSG after a complaint. Foreign. */
int ft_head_read(const uint8_t *bytes, size_t len, struct ft_head *head, struct ft_settings *s,
                 struct ft_diag *diag);
void ft_head_clear(struct ft_head *head);

#endif
