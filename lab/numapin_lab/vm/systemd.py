"""systemd as process 1 of the virtual machine, with a command as one of its services.

The D-Bus daemon is the only other service: under emulation each unit takes a second.
"""

import shlex

PROGRAM = "/lib/systemd/systemd"
NAME = "numapin-command"
SCRIPT = f"/run/{NAME}"

START = f"""export SYSTEMD_GENERATOR_PATH=/nonexistent
exec {PROGRAM} --log-target=kmsg --show-status=no"""

# Without default dependencies, which would start a whole system.
UNITS = {
    f"{NAME}.target": f"""[Unit]
DefaultDependencies=no
Requires=dbus.socket dbus.service
Wants={NAME}.service
""",
    f"{NAME}.service": f"""[Unit]
DefaultDependencies=no
After=dbus.service
[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStart=/bin/sh {SCRIPT}
""",
}
BUS_UNITS = {
    "dbus.socket": """[Unit]
DefaultDependencies=no
[Socket]
ListenStream=/run/dbus/system_bus_socket
""",
    "dbus.service": """[Unit]
DefaultDependencies=no
Requires=dbus.socket
[Service]
Type=notify
ExecStart=/usr/bin/dbus-daemon --system --address=systemd: --nofork --nopidfile --syslog-only
""",
}


def under_systemd(script: str) -> str:
    """A script for process 1 that replaces itself with systemd, which runs `script`."""
    lines = [f"test -x {PROGRAM} || echo install systemd and dbus", _file(SCRIPT, script)]
    lines += [
        _file(f"/run/systemd/system/{name}", text) for name, text in {**UNITS, **BUS_UNITS}.items()
    ]
    return "\n".join([*lines, f"{START} --unit={NAME}.target", ""])


def _file(path: str, text: str) -> str:
    folder = path.rpartition("/")[0]
    return f"mkdir -p {folder}; printf %s {shlex.quote(text)} >{path}"
