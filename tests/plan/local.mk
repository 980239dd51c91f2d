# SPDX-License-Identifier: Apache-2.0
# The program on fabrics on paper, without a daemon.
TESTS += tests/plan/check_astra.py tests/plan/check_plan.py
EXTRA_DIST += tests/plan/README.md tests/plan/chakra.py tests/plan/check_astra.py tests/plan/check_plan.py tests/plan/paper.py
