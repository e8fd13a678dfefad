"""Whether a frame belongs to the system, and generated parts of its name.

A frame is of the *system* when it belongs to the language, a library or a framework. It is told
by its file where there is one, else by the module in its name.
"""

from __future__ import annotations

import re
from typing import Final

from stratagem.function_cache import cache_texts

__all__ = ["is_system", "is_system_file", "without_made_up"]

_SYSTEM_FILES: Final = (
    # Python
    r"(?:site|dist)-packages[/\\]",
    r"\blib(?:64)?[/\\]python\d",
    r"[\\/]python\d*[\\/]lib[\\/]",
    r"^<(?:frozen|__array_function__|decorator-gen|attrs generated)",
    # JavaScript; the modules of old versions of Node have no directory
    r"node_modules[/\\]",
    r"^node:|^internal/|^_?[a-z_]+\.js$|^native|^<anonymous>$|^index \d",
    r"webpack/(?:runtime|bootstrap)",
    # Go, Rust, Ruby, PHP
    r"/(?:usr/local|usr/lib|opt)/go[\d.-]*/src/|/go/pkg/mod/|/libexec/src/|/golang\.org/toolchain",
    r"\.cargo[/\\]|^/?rustc/",
    r"/gems/|/vendor/",
    # C
    r"^/lib(?:32|64)?/|^/usr/(?:lib|include)(?:32|64)?/",
    r"^\.\.?/(?:sysdeps|nptl|csu|stdlib|elf|malloc|string)/|libsanitizer|^<null>$",
    r"\.(?:so|dylib|dll)[.\d]*(?:\+0x\w+)?\)?$",
    # Java
    r"^Native Method$",
)
_SYSTEM_NAMES: Final = (
    # Java and its kin
    r"(?:java|javax|jdk|jakarta|sun|com\.sun|kotlin|kotlinx|scala|groovy|clojure)[./]",
    r"(?:android|androidx|com\.android|dalvik|junit|reactor|okhttp3|retrofit2|rx|akka|play|feign)\.",
    r"org\.(?:springframework|apache|hibernate|junit|eclipse|gradle|jboss|mockito|testng|slf4j)\.",
    r"org\.(?:postgresql|codehaus|graalvm|aspectj|jetbrains)\.",
    r"io\.(?:netty|micrometer|grpc|undertow|reactivex|vertx|quarkus|micronaut)\.",
    r"com\.(?:zaxxer|fasterxml|google\.common|google\.inject|mysql|intellij|netflix|rabbitmq)\.",
    r"ch\.qos\.|oracle\.|lombok\.",
    # .NET
    r"System\.|Microsoft\.",
    # Go
    (
        r"(?:runtime|testing|reflect|sync|net/http|internal|os|bufio|io|encoding|database/sql|syscall)"
        r"(?:/[\w/]+)?\."
    ),
    # Rust
    r"<?(?:std|core|alloc|tokio|futures\w*|test|backtrace|anyhow|rayon\w*|hyper)(?:\[\[?\w+\]?\])?::",
    r"rust_(?:begin|panic)|__rust|_rust",
    # C and C++
    r"__libc|__GI_|__cxa|__gnu|__asan|__ubsan|__tsan|__interceptor|__pthread|__clone|_Unwind",
    r"(?:_start|start_thread|clone\d?|raise|abort|malloc|free|calloc|realloc|memcpy|strlen)$",
    r"operator (?:new|delete)|\?\?$|<unknown>$",
    # JavaScript
    r"Module\._|Function\.executeUserEntryPoint|process\.processTicks|processTicksAndRejections",
    r"Array\.|Promise\b|new Promise|__webpack_require__",
)
_SYSTEM_FILE: Final = re.compile("|".join(_SYSTEM_FILES))
_SYSTEM_NAME: Final = re.compile(f"(?:{'|'.join(_SYSTEM_NAMES)})")

_MADE_UP: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # Java: lambdas, proxies, anonymous classes
        (r"\$\$Lambda(?:[$/][\w/]*)?", "$Lambda"),
        (r"\$\$(?:Enhancer|FastClass|SpringCGLIB|KeyFactory|_javassist)\w*(?:\$\$\w+)*", ""),
        (r"\blambda\$([\w$]{1,200}?)\$\d+\b", r"lambda$\1"),
        (r"(\$Proxy|Accessor)\d+", r"\1"),
        (r"\$\d+(?=\W|$)", ""),
        (r"\$default$|-impl$", ""),
        # Go: closures, method values, type parameters
        (r"(?:\.func|\.gowrap|-fm\b)[\d.]*(?=\W|$)", ".func"),
        (r"\[\.\.\.\]|\[\[?(?:[0-9a-f]{8,16}|hex)\]?\]", ""),
        # Rust: the hash of a symbol, closures, the trait of a method
        (r"::h[0-9a-f]{16}$", ""),
        (r"\{\{closure\}\}|\{closure(?:#\d+|_env#\d+)?\}|\{impl#\d+\}|\{\{impl\}\}", "{closure}"),
        (r"^<(.{1,200}?) as .{1,200}?>(?=::)", r"\1"),
        # C and C++: clones, versions of symbols, offsets
        (r" \[clone [^\]]{0,200}+\]", ""),
        (r"(?:\.(?:isra|constprop|part|cold|lto_priv)(?:\.\d{1,9})?){1,8}$", ""),
        (r"@@?[A-Z]+_[\d.]+$|\+0x[0-9a-f]+$", ""),
        # JavaScript: how it was called, and functions without a name
        (r" \[as [^\]]{0,200}+\]", ""),
        (r"^(?:async |new |Object\.|Module\.|Function\.|global\.|exports\.)+(?=.)", ""),
        (r"<anonymous>|\(anonymous(?: function)?\)|^anonymous$|^eval$|\.<computed>", ""),
        # .NET: state machines and the number of type parameters
        (r"<(\w+)>[a-z]__\w+(?:\|[\d_]+)?", r"\1"),
        (r"`\d+", ""),
    )
)


@cache_texts(1_024)
def is_system(name: str, file: str) -> bool:
    """Say whether a function is not the program's own."""
    made_up = "$$Lambda" in name
    return made_up or is_system_file(file) or _SYSTEM_NAME.match(name) is not None


@cache_texts(1_024)
def is_system_file(file: str) -> bool:
    """Say whether a file is not the program's own."""
    return _SYSTEM_FILE.search(file) is not None


def without_made_up(name: str) -> str:
    """Return a name without what a compiler, a proxy or a bundler put into it."""
    for pattern, replacement in _MADE_UP:
        name = pattern.sub(replacement, name)
    return name
