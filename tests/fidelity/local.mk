# SPDX-License-Identifier: Apache-2.0
# Fabrics on paper, judged by their truth: run.py, and check_paths.py for a small run of each case; inferred.py
# for paths that counters imply.
# The judge's own tests need no program.
fidelity_checks = tests/fidelity/check_generator.py tests/fidelity/check_judge.py \
	tests/fidelity/check_paths.py tests/fidelity/inferred.py
dist_check_SCRIPTS += $(fidelity_checks)
TESTS += $(fidelity_checks)
EXTRA_DIST += tests/fidelity/README.md tests/fidelity/run.py tests/fidelity/paper/__init__.py \
	tests/fidelity/paper/cases.py tests/fidelity/paper/checks.py \
	tests/fidelity/paper/explain.py tests/fidelity/paper/fabric.py \
	tests/fidelity/paper/faults.py tests/fidelity/paper/found.py \
	tests/fidelity/paper/idle.py tests/fidelity/paper/judge.py tests/fidelity/paper/limits.py \
	tests/fidelity/paper/ports.py tests/fidelity/paper/replay.py \
	tests/fidelity/paper/report.py tests/fidelity/paper/routing.py \
	tests/fidelity/paper/samples.py tests/fidelity/paper/single.py \
	tests/fidelity/paper/standing.py tests/fidelity/paper/truth.py \
	tests/fidelity/paper/volumes.py
