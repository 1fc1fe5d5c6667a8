# SPDX-License-Identifier: MIT
"""What every benchmark needs: thresholds, tables, a private bus, children that end with us."""

import contextlib
import json
import os
import pathlib
import select
import statistics
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
THRESHOLDS = json.loads((HERE / "thresholds.json").read_text())


class NotMeasured(Exception):
    """Something could not be measured; its text says what and why."""


def verdict(key, value):
    """The cells `target` and `result` of a figure: at most the threshold of that key."""
    limit = THRESHOLDS[key]
    return f"<= {limit:g}", "met" if value <= limit else "missed"


def table(title, header, rows):
    """Prints one table. The first column is text, the others are right-aligned."""
    cells = [header] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    print(f"\n{title}")
    for number, row in enumerate(cells):
        print("  " + "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ).rstrip())
        if number == 0:
            print("  " + "  ".join("-" * width for width in widths))


def spread(values, digits=2):
    """Median and range as text."""
    return f"{statistics.median(values):.{digits}f}", f"{min(values):.{digits}f}..{max(values):.{digits}f}"


@contextlib.contextmanager
def child(arguments, **options):
    """A process that is ended, and waited for, when the block is left."""
    process = subprocess.Popen([str(argument) for argument in arguments], **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for_line(process, text, seconds=10):
    """Reads the child's stdout (a binary pipe) until a line contains `text`."""
    deadline = time.monotonic() + seconds
    seen = b""
    while text.encode() not in seen:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            raise NotMeasured(f"{process.args[0]}: no '{text}' within {seconds} s; it said {seen!r}")
        part = os.read(process.stdout.fileno(), 4096)
        if not part:
            raise NotMeasured(f"{process.args[0]}: ended ({process.wait()}) before it said '{text}'")
        seen += part


def run(arguments, prefix=(), **options):
    """Runs a command to its end; its stdout as text."""
    command = [str(argument) for argument in [*prefix, *arguments]]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    except subprocess.TimeoutExpired as error:
        raise NotMeasured(f"{command}: not done after 300 s") from error
    if done.returncode:
        raise NotMeasured(f"{command}: exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


BUS_CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={directory}/bus</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""


@contextlib.contextmanager
def private_bus(prefix=()):
    """A dbus-daemon of our own; gives its address."""
    with tempfile.TemporaryDirectory() as directory:
        configuration = pathlib.Path(directory) / "bus.conf"
        configuration.write_text(BUS_CONFIGURATION.format(directory=directory))
        command = [*prefix, "dbus-daemon", f"--config-file={configuration}", "--nofork", "--nopidfile",
                   "--print-address"]
        # Its complaint that it may not raise its own limit of descriptors is no news.
        with child(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as daemon:
            wait_for_line(daemon, "unix:")
            yield f"unix:path={directory}/bus"
