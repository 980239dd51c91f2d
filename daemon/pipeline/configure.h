// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PIPELINE_CONFIGURE_H
#define FT_DAEMON_PIPELINE_CONFIGURE_H
/* What the settings make of a pipeline. Thread: any. */
#include "daemon/pipeline/pipeline.h"
#include "daemon/settings.h"

/* All but the seed, the name of the source and who keeps elephants. replay: of records in a file,
 * whose time is their own. */
void ft_pipeline_configure(struct ft_pipeline_config *config, const struct ft_settings *s,
                           bool replay);

#endif
