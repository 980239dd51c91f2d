// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_TRACES_ASTRA_FILES_H
#define FT_CLI_TRACES_ASTRA_FILES_H
/*
 * ASTRA-sim's own files: the analytical network (YAML), the system layer and the communicator
 * groups (JSON). What its models have and ours have not is a complaint, so that no time is printed
 * that it would not. Each complaint names the file, and the line or key.
 */
#include "lib/base/diag.h"
#include "lib/config/yaml.h"
#include "lib/sim/astra.h"

/* All return 0, -EINVAL after a complaint, -ENOMEM, or -errno of the file after a complaint. */
int ft_astra_network_load(const char *file, struct ft_diag *diag, struct ft_astra_network *out);
int ft_astra_network_read(const struct ft_yaml *root, struct ft_diag *diag,
                          struct ft_astra_network *out);
int ft_astra_system_load(const char *file, struct ft_diag *diag, struct ft_astra_system *out);
int ft_astra_system_read(const char *text, size_t len, const char *file, struct ft_diag *diag,
                         struct ft_astra_system *out);

/* groups in the order of the ids that are asked for: ids[count] are looked up. Every rank has to be
 * below `ranks`. free() groups with ft_astra_groups_free(). */
int ft_astra_groups_load(const char *file, const uint32_t *ids, uint32_t count, uint32_t ranks,
                         struct ft_diag *diag, struct ft_astra_group *groups);
int ft_astra_groups_read(const char *text, size_t len, const char *file, const uint32_t *ids,
                         uint32_t count, uint32_t ranks, struct ft_diag *diag,
                         struct ft_astra_group *groups);
void ft_astra_groups_free(struct ft_astra_group *groups, uint32_t count);

#endif
