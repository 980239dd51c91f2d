# SPDX-License-Identifier: Apache-2.0
include tests/golden/switchpoll.mk
