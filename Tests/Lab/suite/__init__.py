# SPDX-License-Identifier: MIT
"""The cases. A module a subject; `scripts/lab.sh --list` names them."""
