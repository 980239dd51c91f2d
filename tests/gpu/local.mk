# SPDX-License-Identifier: Apache-2.0
# Needs CUDA and NCCL, which it takes from PyPI, and a GPU to run: no part of "make check".
EXTRA_DIST += tests/gpu/README.md tests/gpu/run.py tests/gpu/cuda.py tests/gpu/follower.py tests/gpu/training.py \
	tests/gpu/nccl_job.c

check-gpu: all
	$(srcdir)/tests/gpu/run.py --build .
.PHONY: check-gpu
