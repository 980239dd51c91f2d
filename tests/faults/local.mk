# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += \
	tests/faults/README.md \
	tests/faults/run.py \
	tests/faults/kit.py \
	tests/faults/honest.py \
	tests/faults/hostile.py \
	tests/faults/hanging.py \
	tests/faults/madeup.py \
	tests/faults/judged.py \
	tests/faults/segment.py \
	tests/faults/wire.py \
	tests/faults/scenarios/clocks.py \
	tests/faults/scenarios/connections.py \
	tests/faults/scenarios/costs.py \
	tests/faults/scenarios/crowd.py \
	tests/faults/scenarios/disk_full.py \
	tests/faults/scenarios/drips.py \
	tests/faults/scenarios/event_streams.py \
	tests/faults/scenarios/events_refused.py \
	tests/faults/scenarios/filled.py \
	tests/faults/scenarios/half_frames.py \
	tests/faults/scenarios/kept_records.py \
	tests/faults/scenarios/killed_sender.py \
	tests/faults/scenarios/kills.py \
	tests/faults/scenarios/links.py \
	tests/faults/scenarios/loss_sources.py \
	tests/faults/scenarios/loud_job.py \
	tests/faults/scenarios/memfds.py \
	tests/faults/scenarios/memory_full.py \
	tests/faults/scenarios/no_descriptors.py \
	tests/faults/scenarios/reloads.py \
	tests/faults/scenarios/sent_descriptors.py \
	tests/faults/scenarios/siege.py \
	tests/faults/scenarios/silent_jobs.py \
	tests/faults/scenarios/slow_readers.py \
	tests/faults/scenarios/spoofed.py
