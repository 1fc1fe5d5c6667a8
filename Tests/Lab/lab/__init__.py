# SPDX-License-Identifier: MIT
"""The lab's guest side: a virtual radio, foreign peers, and the runner of the cases in ../suite."""
