"""What people call systems, languages, frameworks and runtimes.

Each table lists, under the name that a bucket shows, the other names in use. Names are written
as `environments` compares them: lower case, and nothing but letters, digits, `+` and `#`. In the
tables of languages and frameworks the order matters: where an environment names several, the
first is the one it is known by, so that what others are built on comes before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = [
    "ABSENT",
    "ARCHITECTURES",
    "DISTRIBUTIONS",
    "MISSING",
    "NAMES",
    "NOT_KEYS",
    "OWN_NUMBERS",
    "PRESENT",
    "PRIORITY",
    "ROLES",
]

_DISTRIBUTIONS: Final = (
    "ubuntu debian alpine fedora centos rhel redhat arch archlinux manjaro mint linuxmint opensuse "
    "suse sles amazonlinux amzn gentoo nixos kali rocky rockylinux alma almalinux oraclelinux "
    "raspbian void slackware coreos flatcar photon bottlerocket popos elementary"
)

_SYSTEMS: Final = {
    "linux": f"{_DISTRIBUTIONS} wsl gnulinux manylinux musllinux",
    "macos": "darwin osx mac macosx sonoma ventura monterey sequoia catalina",
    "windows": "win windowsnt nt cygwin mingw msys mswin windowsserver",
    "freebsd": "",
    "openbsd": "",
    "netbsd": "",
    "android": "",
    "ios": "ipados iphoneos",
    "solaris": "sunos illumos",
    "aix": "",
    "chromeos": "",
}

_LANGUAGES: Final = {
    "py": "python cpython pypy ipython",
    "node": "nodejs javascript js ecmascript typescript ts",
    "deno": "",
    "bun": "",
    "go": "golang",
    "rust": "rustc rustlang",
    "java": "openjdk jdk jre jvm",
    "kotlin": "kt",
    "scala": "",
    "clojure": "",
    "groovy": "",
    "ruby": "rb",
    "php": "",
    "dotnet": "net netcore dotnetcore netframework dotnetframework csharp c# fsharp f# vbnet",
    "cpp": "c++ cplusplus cxx",
    "c": "",
    "swift": "",
    "objc": "objectivec",
    "dart": "",
    "elixir": "",
    "erlang": "otp",
    "haskell": "ghc",
    "ocaml": "",
    "r": "rlang",
    "julia": "",
    "lua": "luajit",
    "perl": "",
    "zig": "",
    "nim": "",
    "crystal": "",
    "fortran": "",
    "matlab": "octave",
    "solidity": "",
    "powershell": "pwsh",
    "bash": "shell sh zsh shellscript",
    "sql": "",
}

_FRAMEWORKS: Final = {
    "torch": "pytorch",
    "tf": "tensorflow",
    "jax": "",
    "keras": "",
    "paddle": "paddlepaddle",
    "mxnet": "",
    "lightning": "pytorchlightning",
    "transformers": "huggingfacetransformers",
    "vllm": "",
    "sklearn": "scikitlearn",
    "spark": "pyspark apachespark",
    "ray": "",
    "dask": "",
    "airflow": "apacheairflow",
    "langchain": "",
    "llamaindex": "",
    "django": "",
    "flask": "",
    "fastapi": "",
    "starlette": "",
    "tornado": "",
    "aiohttp": "",
    "pyramid": "",
    "sanic": "",
    "celery": "",
    "streamlit": "",
    "gradio": "",
    "scrapy": "",
    "react": "",
    "vue": "",
    "angular": "",
    "svelte": "",
    "reactnative": "",
    "next": "",
    "nuxt": "",
    "remix": "",
    "gatsby": "",
    "astro": "",
    "sveltekit": "",
    "expo": "",
    "electron": "",
    "ember": "",
    "jquery": "",
    "nest": "",
    "express": "",
    "fastify": "",
    "koa": "",
    "vite": "",
    "webpack": "",
    "jest": "",
    "spring": "springboot springframework",
    "quarkus": "",
    "micronaut": "",
    "ktor": "",
    "hibernate": "",
    "rails": "rubyonrails ror",
    "sinatra": "",
    "laravel": "",
    "symfony": "",
    "wordpress": "",
    "aspnet": "aspnetcore",
    "blazor": "",
    "maui": "",
    "unity": "",
    "unreal": "unrealengine",
    "godot": "",
    "gin": "",
    "fiber": "",
    "actix": "actixweb",
    "axum": "",
    "tokio": "",
    "tauri": "",
    "bevy": "",
    "phoenix": "",
    "flutter": "",
    "ionic": "",
    "swiftui": "",
    "qt": "pyqt pyside",
    "pytest": "",
    "pandas": "",
    "numpy": "",
    "scipy": "",
}

_GPUS: Final = {
    "cuda": ("cu cudatoolkit nvidia nvidiagpu geforce tesla quadro"),
    "rocm": "hip amd amdgpu radeon",
    "mps": "metal apple applesilicon",
    "oneapi": "xpu sycl intel arc",
    "tpu": "",
    "directml": "",
    "cpu": "cpuonly nogpu",
    "gpu": "",
}

_RUNTIMES: Final = {
    "docker": "dockercompose dockerdesktop dockerengine",
    "podman": "",
    "kubernetes": "k8s k3s kube minikube kind eks gke aks openshift",
    "container": "containerd oci devcontainer",
    "singularity": "apptainer",
    "lxc": "lxd",
    "lambda": "awslambda",
    "wasm": "webassembly wasi",
    "browser": "chrome chromium firefox safari edge webbrowser",
    "vm": "virtualmachine virtualbox vmware qemu kvm hyperv",
    "colab": "googlecolab",
    "jupyter": "notebook jupyterlab jupyternotebook",
    "bare": "baremetal native local host localhost",
}


def _lookup(table: Mapping[str, str]) -> dict[str, str]:
    """Return the table from each name in use to the one that a bucket shows."""
    return {alias: name for name, others in table.items() for alias in [name, *others.split()]}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "os": _lookup(_SYSTEMS),
    "language": _lookup(_LANGUAGES),
    "framework": _lookup(_FRAMEWORKS),
    "gpu": _lookup(_GPUS),
    "runtime": _lookup(_RUNTIMES),
}
DISTRIBUTIONS: Final = _words(_DISTRIBUTIONS)
ARCHITECTURES: Final[Mapping[str, str]] = _lookup(
    {
        "x86_64": "x8664 amd64 x64 em64t intel64",
        "arm64": "aarch64 armv8 arm64v8 applesilicon m1 m2 m3 m4",
        "x86": "i386 i486 i586 i686 ia32 32bit",
        "arm": "armv6 armv6l armv7 armv7l armhf armel",
        "riscv64": "",
        "ppc64le": "powerpc64le",
        "s390x": "",
        "wasm32": "",
    }
)
PRIORITY: Final[Mapping[str, int]] = {
    name: place
    for table in (_LANGUAGES, _FRAMEWORKS, _GPUS, _RUNTIMES)
    for place, name in enumerate(table)
}

# The number that follows is their own, not the version of what they stand for.
OWN_NUMBERS: Final = _words(
    "typescript ts csharp c# fsharp f# vbnet nvidia nvidiagpu geforce tesla quadro amd amdgpu "
    "radeon apple applesilicon intel arc cpu gpu"
)

# The fields that name a part of the environment, and which of two of them is heard first.
ROLES: Final[Mapping[str, tuple[str, int]]] = {
    "os": ("os", 0),
    "osfamily": ("os", 1),
    "osname": ("os", 1),
    "ostype": ("os", 1),
    "operatingsystem": ("os", 1),
    "system": ("os", 2),
    "platform": ("os", 2),
    "distro": ("os", 3),
    "distribution": ("os", 3),
    "language": ("language", 0),
    "lang": ("language", 1),
    "programminglanguage": ("language", 1),
    "languages": ("language", 1),
    "framework": ("framework", 0),
    "frameworks": ("framework", 1),
    "frameworkname": ("framework", 1),
    "runtime": ("runtime", 0),
    "container": ("runtime", 1),
    "containerruntime": ("runtime", 1),
    "virtualization": ("runtime", 2),
    "gpu": ("gpu", 0),
    "gpus": ("gpu", 1),
    "gpumodel": ("gpu", 1),
    "gpuname": ("gpu", 1),
    "gputype": ("gpu", 1),
    "accelerator": ("gpu", 1),
    "device": ("gpu", 2),
    "arch": ("arch", 0),
    "architecture": ("arch", 1),
    "cpuarch": ("arch", 1),
    "machine": ("arch", 2),
    "processor": ("arch", 2),
    "cpu": ("arch", 2),
}

# Names that mean something else when they are the name of a field.
NOT_KEYS: Final = _words(
    "c net sh shell sql cpu gpu arc intel apple kube kind container containerd oci devcontainer "
    "lambda chrome chromium firefox safari edge vm kvm qemu notebook bare native local host "
    "localhost"
)

# What a field says instead of naming something.
MISSING: Final = _words("- ? unknown n/a null undefined any unspecified") | {""}
ABSENT: Final = _words("false no none off 0 disabled without")
PRESENT: Final = _words("true yes on 1 enabled latest lts installed")
