// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_WHATIF_WHATIF_ERROR_H
#define FT_CLI_WHATIF_WHATIF_ERROR_H
/* How far the model is off, for a person. */
#include <stdio.h>

#include "lib/whatif/error.h"

void ft_model_error_print(const struct ft_model_error *e, const struct ft_topology *t, FILE *out);

#endif
