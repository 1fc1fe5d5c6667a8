#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the table of UUID names in Sources/nearby from scripts/data/uuid-names.tsv; --check only compares."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "scripts/data/uuid-names.tsv"
TABLE = ROOT / "Sources/nearby/Console/UUIDNames.swift"
HEAD = """\
// SPDX-License-Identifier: MIT
// Made by scripts/uuid-names.py from scripts/data/uuid-names.tsv, which names the sources. Do not edit.

import NearbyDiscoveryKit

/// What services and characteristics are called: Bluetooth SIG, Assigned Numbers, 3.4 and 3.8, a part of them; and a few
/// that are not the SIG's.
enum UUIDNames {
    static func name(_ uuid: BluetoothUUID) -> String? { names[uuid.description] }

    private static let names: [String: String] = [
"""


def table():
    lines = [HEAD]
    seen = set()
    for line in DATA.read_text().splitlines():
        if line.startswith("#"):
            continue
        uuid, name = line.split("\t")
        if not re.fullmatch(r"[0-9A-F]{4}|[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}", uuid) or uuid in seen:
            sys.exit(f"{DATA.name}: {uuid}: not a UUID in upper case, or there twice")
        if not re.fullmatch(r"[ -!#-\[\]-~]+", name):
            sys.exit(f"{DATA.name}: {name}: plain ASCII without quotes and backslashes only")
        seen.add(uuid)
        lines.append(f'        "{uuid}": "{name}",\n')
    return "".join([*lines, "    ]\n}\n"])


if "--check" in sys.argv[1:]:
    sys.exit(0 if TABLE.read_text() == table() else f"{TABLE} is not what scripts/uuid-names.py makes")
TABLE.write_text(table())
