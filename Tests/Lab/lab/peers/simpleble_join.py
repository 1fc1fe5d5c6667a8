# SPDX-License-Identifier: MIT
"""simpleble_join.py ADAPTER-ADDRESS SERVICE CHARACTERISTIC REQUEST: joins with SimpleBLE; the answer on stdout.
A process of its own: its calls block."""
import queue
import sys
import time

import simplepyble

adapter_address, service, characteristic, request = sys.argv[1:]
adapter = next(each for each in simplepyble.Adapter.get_adapters() if each.address().upper() == adapter_address.upper())
deadline = time.monotonic() + 40
found = None
adapter.scan_start()
while found is None and time.monotonic() < deadline:
    time.sleep(0.2)
    for peripheral in adapter.scan_get_results():
        if any(each.uuid().lower() == service for each in peripheral.services()):
            found = peripheral
adapter.scan_stop()
if found is None:
    sys.exit("SimpleBLE finds no host that advertises the service")
found.connect()
answers = queue.Queue()
found.notify(service, characteristic, answers.put)
found.write_request(service, characteristic, request.encode())
print(answers.get(timeout=15).decode(), flush=True)
found.disconnect()
