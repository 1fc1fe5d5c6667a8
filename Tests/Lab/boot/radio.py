# SPDX-License-Identifier: MIT
"""radio.py JSON: one command to the virtual radio's control channel, its answer on stdout."""
import socket
import sys

with socket.socket(socket.AF_UNIX) as channel:
    channel.connect("/run/lab.sock")
    channel.sendall(sys.argv[1].encode() + b"\n")
    print(channel.makefile().readline(), end="")
