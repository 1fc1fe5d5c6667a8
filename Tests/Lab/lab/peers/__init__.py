# SPDX-License-Identifier: MIT
"""Foreign peers: stacks and libraries that are not ours."""
