# SPDX-License-Identifier: Apache-2.0
prometheus_tests = tests/prometheus/live.py tests/prometheus/rules.py
TESTS += $(prometheus_tests)
EXTRA_DIST += $(prometheus_tests) tests/prometheus/fabric.py tests/prometheus/rules_test.yaml
