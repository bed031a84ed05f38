"""Puts the binary into the wheel and names the platforms that it runs on.

TRACELAKE_WHEEL_BINARY is the binary, TRACELAKE_WHEEL_VERSION the version.
"""

import os
import re
import struct
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ELF_MACHINES = {0x3E: "x86_64", 0xB7: "aarch64"}
MACH_CPUS = {0x01000007: "x86_64", 0x0100000C: "arm64"}
OLDEST_GLIBC = 17  # of the manylinux tags that installers know
OLDEST_MACOS = "12_0"  # what Go asks for


def binary() -> Path:
    path = os.environ.get("TRACELAKE_WHEEL_BINARY", "")
    if not path or not Path(path).is_file():
        raise SystemExit("set TRACELAKE_WHEEL_BINARY to the tracelake binary for the wheel")
    return Path(path).resolve()


def platform_tag(path: Path) -> str:
    """The platform of a binary, from its header and the symbols that it asks glibc for."""
    data = path.read_bytes()
    if data[:4] == b"\x7fELF":
        machine = struct.unpack_from("<H", data, 18)[0]
        if machine not in ELF_MACHINES:
            raise SystemExit(f"{path}: no wheel for ELF machine {machine:#x}")
        minor = max((int(m) for m in re.findall(rb"\0GLIBC_2\.(\d+)(?=[\0.])", data)), default=0)
        return f"manylinux_2_{max(minor, OLDEST_GLIBC)}_{ELF_MACHINES[machine]}"
    if data[:4] == b"\xcf\xfa\xed\xfe":
        cpu = struct.unpack_from("<I", data, 4)[0]
        if cpu not in MACH_CPUS:
            raise SystemExit(f"{path}: no wheel for Mach-O CPU {cpu:#x}")
        return f"macosx_{OLDEST_MACOS}_{MACH_CPUS[cpu]}"
    raise SystemExit(f"{path} is neither a Linux nor a macOS binary")


class CustomMetadataHook(MetadataHookInterface):
    def update(self, metadata):
        metadata["version"] = os.environ.get("TRACELAKE_WHEEL_VERSION", "0.0.0.dev0")


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        if self.target_name != "wheel" or version == "editable":
            return
        path = binary()
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(path)}"
        build_data["shared_scripts"] = {str(path): "tracelake"}
