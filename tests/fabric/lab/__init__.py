# SPDX-License-Identifier: Apache-2.0
"""A leaf-spine of network namespaces: its layout, its life, its traffic and the truth about it."""
